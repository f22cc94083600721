/* SPDX-License-Identifier: MIT
 *
 * Schemas in the dialects of providers, and the way back from their answers.
 */
#include "llm/schema_convert.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "data/schema.h"

static int set_up(void **state)
{
    *state = arena_new();
    return 0;
}

static int tear_down(void **state)
{
    arena_free(*state);
    return 0;
}

/* Texts in this file are written with ' for ". */
static struct json *tree(struct arena *a, const char *text)
{
    char *copy = arena_dup(a, str_of(text));
    for (char *c = copy; *c != '\0'; c++) {
        *c = *c == '\'' ? '"' : *c;
    }
    struct json *v = NULL;
    struct err e = { 0 };
    if (json_parse(a, str_of(copy), NULL, &v, &e) != 0) {
        fail_msg("%s: %s", copy, e.msg);
    }
    return v;
}

/* The order of members counts: it is what the model sees. */
static void assert_tree(struct arena *a, const struct json *got, const char *expected)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    CLEANUP(buf) struct buf want = BUF_INIT(BUF_TEXT);
    assert_int_equal(json_write(got, JSON_COMPACT, &out, NULL), 0);
    assert_int_equal(json_write(tree(a, expected), JSON_COMPACT, &want, NULL), 0);
    assert_string_equal(out.ptr, want.ptr);
}

static void assert_strict(struct arena *a, const char *schema, const char *expected)
{
    struct json *out = NULL;
    struct err e = { 0 };
    struct json *in = tree(a, schema);
    if (schema_to_strict(a, in, &out, &e) != 0) {
        fail_msg("%s: %s", schema, e.msg);
    }
    assert_tree(a, out, expected);
    assert_tree(a, in, schema); /* the input is untouched */
}

static void test_strict_objects(void **state)
{
    assert_strict(
        *state,
        "{'type':'object','properties':{'a':{'type':'string','minLength':2,'default':'x'},"
        "'b':{'type':'integer','minimum':1}},'required':['a'],'minProperties':1}",
        "{'type':'object','properties':{'a':{'type':'string'},"
        "'b':{'type':['integer','null'],'minimum':1}},"
        "'required':['a','b'],'additionalProperties':false}");
}

static void test_strict_optional_takes_null(void **state)
{
    assert_strict(
        *state,
        "{'type':'object','$defs':{'r':{'type':'object','properties':{},"
        "'additionalProperties':false}},'properties':{"
        "'list':{'type':['string','number']},'word':{'enum':['x','y']},'both':{'type':'string',"
        "'enum':['x']},'one':{'const':1},'ref':{'$ref':'#/$defs/r','description':'d'},"
        "'any':{'anyOf':[{'type':'string'},{'type':'integer'}]},"
        "'already':{'type':['string','null']},'there':{'anyOf':[{'type':'null'},"
        "{'type':'string'}]}}}",
        "{'type':'object','properties':{"
        "'list':{'type':['string','number','null']},'word':{'enum':['x','y',null]},"
        "'both':{'type':['string','null'],'enum':['x',null]},"
        "'one':{'anyOf':[{'const':1},{'type':'null'}]},"
        "'ref':{'anyOf':[{'$ref':'#/$defs/r'},{'type':'null'}]},"
        "'any':{'anyOf':[{'type':'string'},{'type':'integer'},{'type':'null'}]},"
        "'already':{'type':['string','null']},'there':{'anyOf':[{'type':'null'},"
        "{'type':'string'}]}},"
        "'required':['list','word','both','one','ref','any','already','there'],"
        "'additionalProperties':false,"
        "'$defs':{'r':{'type':'object','properties':{},'required':[],"
        "'additionalProperties':false}}}");
}

static void test_strict_nested(void **state)
{
    /* items, oneOf, definitions, allOf of one, a reference at the root */
    assert_strict(
        *state,
        "{'$ref':'#/definitions/root','definitions':{'root':{'type':'object','properties':{"
        "'l':{'type':'array','items':{'allOf':[{'$ref':'#/definitions/e'}]}}},"
        "'required':['l']},'e':{'oneOf':[{'type':'object','properties':{'k':{'const':'a'}},"
        "'required':['k']},{'type':'null'}]}}}",
        "{'type':'object','properties':{'l':{'type':'array','items':"
        "{'$ref':'#/definitions/e'}}},'required':['l'],'additionalProperties':false,"
        "'definitions':{'root':{'type':'object','properties':{'l':{'type':'array','items':"
        "{'$ref':'#/definitions/e'}}},'required':['l'],'additionalProperties':false},"
        "'e':{'anyOf':[{'type':'object','properties':{'k':{'const':'a'}},'required':['k'],"
        "'additionalProperties':false},{'type':'null'}]}}}");
}

static void test_strict_refuses(void **state)
{
    struct arena *a = *state;
    static const char *const list[][2] = {
        { "{'type':'array','items':{'type':'string'}}",
          "schema at its root: a root that is no object has no strict form" },
        { "{'type':'object'}", "schema at its root: an object with free keys has no strict form" },
        { "{'type':'object','properties':{'m':{'type':'object','additionalProperties':"
          "{'type':'string'}}}}",
          "schema at /properties/m: an object with free keys has no strict form" },
        { "{'properties':{'a':true}}",
          "schema at /properties/a: true or false as a schema has no strict form" },
        { "{'properties':{'a':{}}}",
          "schema at /properties/a: a value of anything has no strict form" },
        { "{'properties':{'a':{'type':'array'}}}",
          "schema at /properties/a: an array of anything has no strict form" },
        { "{'properties':{'a':{'prefixItems':[{'type':'null'}],'type':'array'}}}",
          "schema at /properties/a: a tuple has no strict form" },
        { "{'properties':{'a':{'allOf':[{'type':'string'},{'minLength':1}]}}}",
          "schema at /properties/a: allOf of several schemas has no strict form" },
        { "{'properties':{'a':{'$ref':'http://x/y'}}}",
          "schema at /properties/a: a reference to another document or to nothing has no strict "
          "form" },
    };
    for (size_t i = 0; i < ARRAY_LEN(list); i++) {
        struct err e = { 0 };
        struct json *out = NULL;
        assert_int_equal(schema_to_strict(a, tree(a, list[i][0]), &out, &e), -ERR_UNSUPPORTED);
        assert_string_equal(e.msg, list[i][1]);
    }
}

/* What a model fills in for absent properties disappears; a null that the author allows stays. */
static void test_from_strict(void **state)
{
    struct arena *a = *state;
    struct json *schema = tree(a, "{'type':'object','properties':{'a':{'type':'string'},"
                                  "'b':{'type':'integer'},'n':{'type':['string','null']},"
                                  "'l':{'type':'array','items':{'$ref':'#/$defs/i'}},"
                                  "'v':{'anyOf':[{'$ref':'#/$defs/i'},{'type':'object',"
                                  "'properties':{'k':{'const':'z'},'q':{'type':'string'}}}]}},"
                                  "'required':['a'],'$defs':{'i':{'type':'object','properties':"
                                  "{'x':{'type':'number'},'y':{'type':'number'}},"
                                  "'required':['x']}}}");
    struct json *value = tree(a, "{'a':'s','b':null,'n':null,'l':[{'x':1,'y':null},{'x':1,'y':2}],"
                                 "'v':{'k':'z','q':null},'other':null}");
    assert_tree(a, schema_from_strict(a, schema, value),
                "{'a':'s','n':null,'l':[{'x':1},{'x':1,'y':2}],'v':{'k':'z'},'other':null}");
}

/* Whatever the strict form lets through is valid for the author's schema after the way back. */
static void test_round_trip(void **state)
{
    struct arena *a = *state;
    struct json *schema = tree(a, "{'type':'array','items':{'type':'object','properties':"
                                  "{'id':{'type':'integer'},'note':{'type':'string'}},"
                                  "'required':['id'],'additionalProperties':false}}");
    struct json *strict = NULL;
    struct json *wrapped = schema_wrap(a, schema);
    CLEANUP(schema) struct schema *theirs = NULL;
    CLEANUP(schema) struct schema *mine = NULL;
    assert_int_equal(schema_to_strict(a, wrapped, &strict, NULL), 0);
    assert_int_equal(schema_compile(strict, NULL, &theirs, NULL), 0);
    assert_int_equal(schema_compile(schema, NULL, &mine, NULL), 0);
    struct json *answer = tree(a, "{'items':[{'id':1,'note':null},{'id':2,'note':'x'}]}");
    assert_int_equal(schema_check(theirs, answer, NULL, NULL), 1);
    assert_int_equal(schema_check(mine, answer, NULL, NULL), 0);
    const struct json *back = schema_unwrap(schema, schema_from_strict(a, wrapped, answer));
    assert_tree(a, back, "[{'id':1},{'id':2,'note':'x'}]");
    assert_int_equal(schema_check(mine, back, NULL, NULL), 1);
}

static void test_wrap(void **state)
{
    struct arena *a = *state;
    assert_tree(a, schema_wrap(a, tree(a, "{'type':'object'}")), "{'type':'object'}");
    assert_tree(a,
                schema_wrap(a, tree(a, "{'type':'array','items':{'$ref':'#/$defs/t'},"
                                       "'$defs':{'t':{'anyOf':[{'$ref':'#'},{'type':'null'}]}}}")),
                "{'type':'object','properties':{'items':{'type':'array','items':"
                "{'$ref':'#/$defs/t'}}},'required':['items'],'additionalProperties':false,"
                "'$defs':{'t':{'anyOf':[{'$ref':'#/properties/items'},{'type':'null'}]}}}");
    assert_tree(a, schema_wrap(a, tree(a, "{'enum':['a','b']}")),
                "{'type':'object','properties':{'value':{'enum':['a','b']}},'required':['value'],"
                "'additionalProperties':false}");
}

/* The input schema of a tool that takes {"data": …}. */
static void test_nest(void **state)
{
    struct arena *a = *state;
    struct json *nested =
        schema_nest(a,
                    tree(a, "{'$schema':'https://json-schema.org/draft/2020-12/schema','type':"
                            "'object','properties':{'kids':{'items':{'$ref':'#'}},'n':"
                            "{'$ref':'#/$defs/n'}},'$defs':{'n':{'type':'null'}}}"),
                    "data");
    assert_tree(
        a, nested,
        "{'type':'object','properties':{'data':{'type':'object','properties':{'kids':{'items':"
        "{'$ref':'#/properties/data'}},'n':{'$ref':'#/$defs/n'}}}},'required':['data'],"
        "'additionalProperties':false,'$defs':{'n':{'type':'null'}},"
        "'$schema':'https://json-schema.org/draft/2020-12/schema'}");
    CLEANUP(schema) struct schema *s = NULL;
    assert_int_equal(schema_compile(nested, NULL, &s, NULL), 0);
    assert_int_equal(schema_check(s, tree(a, "{'data':{'kids':[{'n':null}]}}"), NULL, NULL), 1);
    assert_int_equal(schema_check(s, tree(a, "{'data':{'kids':[{'n':1}]}}"), NULL, NULL), 0);
}

static void test_unwrap(void **state)
{
    struct arena *a = *state;
    struct json *array = tree(a, "{'type':'array'}");
    assert_tree(a, schema_unwrap(array, tree(a, "{'items':[1]}")), "[1]");
    assert_tree(a, schema_unwrap(array, tree(a, "[1]")), "[1]"); /* bare is as good */
    assert_tree(a, schema_unwrap(array, tree(a, "{'items':[1],'x':2}")), "{'items':[1],'x':2}");
    struct json *object = tree(a, "{'type':'object'}");
    assert_tree(a, schema_unwrap(object, tree(a, "{'items':[1]}")), "{'items':[1]}");
    assert_tree(a, schema_unwrap(tree(a, "{'type':'string'}"), tree(a, "{'value':'x'}")), "'x'");
}

static void test_fold_null(void **state)
{
    struct arena *a = *state;
    static const char *const list[][2] = {
        { "{'anyOf':[{'type':'string','maxLength':3},{'type':'null'}],'description':'d'}",
          "{'description':'d','type':['string','null'],'maxLength':3}" },
        { "{'oneOf':[{'type':'null'},{'type':['string','integer']}]}",
          "{'type':['string','integer','null']}" },
        { "{'anyOf':[{'type':'string','enum':['a']},{'type':'null'}]}",
          "{'type':['string','null'],'enum':['a',null]}" },
        { "{'properties':{'p':{'items':{'anyOf':[{'type':'number'},{'type':'null'}]}}}}",
          "{'properties':{'p':{'items':{'type':['number','null']}}}}" },
        { "{'anyOf':[{'type':'string','description':'in'},{'type':'null'}],'description':'out'}",
          "{'description':'out','type':['string','null']}" },
        /* nothing to fold, or no way to */
        { "{'anyOf':[{'$ref':'#/$defs/a'},{'type':'null'}]}",
          "{'anyOf':[{'$ref':'#/$defs/a'},{'type':'null'}]}" },
        { "{'anyOf':[{'type':'string'},{'type':'integer'},{'type':'null'}]}",
          "{'anyOf':[{'type':'string'},{'type':'integer'},{'type':'null'}]}" },
        { "{'enum':[{'anyOf':[{'type':'string'},{'type':'null'}]}]}",
          "{'enum':[{'anyOf':[{'type':'string'},{'type':'null'}]}]}" },
    };
    for (size_t i = 0; i < ARRAY_LEN(list); i++) {
        assert_tree(a, schema_fold_null(a, tree(a, list[i][0])), list[i][1]);
    }
}

/* References in circles, and nesting beyond all measure, come to an end. */
static void test_bounded(void **state)
{
    struct arena *a = *state;
    struct json *out = NULL;
    struct json *round = tree(a, "{'type':'object','properties':{'a':{'$ref':'#/$defs/b'}},'$defs':"
                                 "{'b':{'$ref':'#/$defs/c'},'c':{'$ref':'#/$defs/b'}}}");
    assert_int_equal(schema_to_strict(a, round, &out, NULL), -ERR_UNSUPPORTED);
    struct json *many =
        tree(a, "{'type':'object','properties':{'a':{'anyOf':[{'$ref':"
                "'#/properties/a'},{'$ref':'#/properties/a'},{'type':'string'}]}}}");
    assert_int_equal(schema_to_strict(a, many, &out, NULL), 0);
    struct json *deep = json_object(a);
    for (int i = 0; i < 10000; i++) {
        struct json *outer = json_object(a);
        json_setc(a, outer, "items", deep);
        deep = outer;
    }
    assert_non_null(schema_fold_null(a, deep));
    assert_non_null(schema_wrap(a, deep));
    assert_int_equal(schema_to_strict(a, schema_wrap(a, deep), &out, NULL), -ERR_UNSUPPORTED);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static void draft_07(void **state)
{
    struct arena *a = *state;
    const struct json *in =
        tree(a, "{'$schema':'https://json-schema.org/draft/2020-12/schema','type':'object',"
                "'x-note':1,'properties':{'x-type':{'type':'string','x-type':'artifact',"
                "'description':'d','format':'path','pattern':'(?i)a'},'b':{'prefixItems':[{}],"
                "'items':{'pattern':'(?:a)','nullable':true}}},'$defs':{'f':{'x-a':1,"
                "'minContains':1,'contains':{'x-b':2}}}}");
    assert_tree(a, schema_to_draft_07(a, in),
                "{'type':'object','properties':{'x-type':{'type':'string','description':'d'},"
                "'b':{'items':{'pattern':'(?:a)'}}},'$defs':{'f':{'contains':{}}}}");
}

static void joined(void **state)
{
    struct arena *a = *state;
    /* one object as it is */
    assert_tree(a, schema_join(a, tree(a, "{'type':'object','properties':{'a':{}}}")),
                "{'type':'object','properties':{'a':{}}}");
    assert_tree(
        a,
        schema_join(a, tree(a, "{'anyOf':[{'type':'object','properties':{'ok':{'const':true},"
                               "'n':{'type':'integer'}},'required':['ok','n']},{'$ref':'#/$defs/q'}"
                               "],'$defs':{'q':{'type':'object','properties':{'ok':{'const':false},"
                               "'m':{'type':'string'},'n':{'type':'integer'}},'required':['ok',"
                               "'m']}}}")),
        "{'type':'object','properties':{'ok':{'anyOf':[{'const':true},{'const':false}]},"
        "'n':{'type':'integer'},'m':{'type':'string'}},'required':['ok'],'$defs':{'q':{'type':"
        "'object','properties':{'ok':{'const':false},'m':{'type':'string'},'n':{'type':'integer'}}"
        ",'required':['ok','m']}}}");
    /* alternatives of alternatives, and a branch that is a document of its own */
    assert_tree(a,
                schema_join(a, tree(a, "{'anyOf':[{'$id':'urn:x','oneOf':[{'type':'object',"
                                       "'properties':{'a':{'$ref':'#/$defs/s'}}}],'$defs':{'s':{}"
                                       "}},{'type':'object','properties':{'b':{}}}]}")),
                "{'type':'object','properties':{'a':{'$ref':'#/$defs/s'},'b':{}},'required':[],"
                "'$defs':{'s':{}}}");
    /* what one object cannot stand for is wrapped */
    static const char *const others[] = {
        "{'type':'array','items':{}}",
        "{'anyOf':[{'type':'object'},{'type':'string'}]}",
        "{'anyOf':[{'$ref':'#/nowhere'}]}",
        "{'anyOf':[{'type':'object','allOf':[{}]}]}",
        "{'anyOf':[{'$ref':'#'}]}",
        "{'anyOf':[{'type':'object','$defs':{'a':1}},{'type':'object','$defs':{'a':2}}]}",
    };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        const struct json *schema = tree(a, others[i]);
        assert_true(json_equal(schema_join(a, schema), schema_wrap(a, schema)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_strict_objects),
        TEST(test_strict_optional_takes_null),
        TEST(test_strict_nested),
        TEST(test_strict_refuses),
        TEST(test_from_strict),
        TEST(test_round_trip),
        TEST(test_wrap),
        TEST(test_nest),
        TEST(test_unwrap),
        TEST(test_fold_null),
        TEST(test_bounded),
        TEST(draft_07),
        TEST(joined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
