/* SPDX-License-Identifier: MIT
 *
 * The validator beyond the official suite (schema_suite.c): what its errors say, how bad schemas
 * are refused, references, and that nothing makes it run away.
 */
#include "data/schema.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

struct fixture {
    struct arena *arena;
    struct err e;
};

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof *f);
    f->arena = arena_new();
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    arena_free(f->arena);
    free(f);
    return 0;
}

/* Texts in this file are written with ' for ". */
static struct json *tree(struct fixture *f, const char *text)
{
    char *copy = arena_dup(f->arena, str_of(text));
    for (char *c = copy; *c != '\0'; c++) {
        *c = *c == '\'' ? '"' : *c;
    }
    struct json *v = NULL;
    if (json_parse(f->arena, str_of(copy), NULL, &v, &f->e) != 0) {
        fail_msg("%s: %s", copy, f->e.msg);
    }
    return v;
}

static struct schema *compile(struct fixture *f, const char *text, const struct schema_options *o)
{
    struct schema *s = NULL;
    if (schema_compile(tree(f, text), o, &s, &f->e) != 0) {
        fail_msg("%s: %s", text, f->e.msg);
    }
    return s;
}

static bool accepts(struct fixture *f, const char *schema, const char *value)
{
    CLEANUP(schema) struct schema *s = compile(f, schema, NULL);
    int rc = schema_check(s, tree(f, value), NULL, &f->e);
    assert_true(rc >= 0);
    return rc == 1;
}

/* All errors as text; "" when the value is valid. */
static const char *errors(struct fixture *f, const char *schema, const char *value)
{
    CLEANUP(schema) struct schema *s = compile(f, schema, NULL);
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    struct schema_result r;
    assert_int_equal(schema_validate(s, tree(f, value), NULL, f->arena, &r, &f->e), 0);
    assert_int_equal(schema_result_write(&r, &out, NULL), 0);
    assert_int_equal(r.valid, out.len == 0);
    return arena_dup(f->arena, buf_str(&out));
}

struct sentence {
    const char *schema, *value, *text;
};

static void check_sentences(struct fixture *f, const struct sentence *list, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        const char *got = errors(f, list[i].schema, list[i].value);
        if (strcmp(got, list[i].text) != 0) {
            fail_msg("%s on %s:\n%sinstead of\n%s", list[i].schema, list[i].value, got,
                     list[i].text);
        }
    }
}

static void test_sentences(void **state)
{
    static const struct sentence list[] = {
        { "{'items':{'properties':{'price':{'type':'number'}}}}", "[{'price':1},{'price':'12'}]",
          "/1/price: expected number, got string \"12\"\n" },
        { "{'type':['string','null']}", "5", "expected string or null, got integer 5\n" },
        { "{'type':['integer','number','array']}", "true",
          "expected number or array, got boolean true\n" },
        { "{'type':'object'}", "[1,2]", "expected object, got array of 2 items\n" },
        { "{'enum':['red','green','blue']}", "'grene'",
          "expected one of \"red\", \"green\", \"blue\", got string \"grene\" "
          "(did you mean 'green'?)\n" },
        { "{'enum':[1]}", "2", "expected 1, got integer 2\n" },
        { "{'const':{'a':1}}", "{'a':2}", "expected {\"a\":1}, got object\n" },
        { "{'multipleOf':0.01}", "0.005", "0.005 is not a multiple of 0.01\n" },
        { "{'minimum':3}", "2", "expected a number at least 3, got 2\n" },
        { "{'exclusiveMaximum':3}", "3", "expected a number less than 3, got 3\n" },
        { "{'minLength':1}", "''", "the string must not be empty\n" },
        { "{'maxLength':2}", "'abc'", "string \"abc\" has 3 characters, at most 2 are allowed\n" },
        { "{'pattern':'^a'}", "'b'", "string \"b\" does not match the pattern ^a\n" },
        { "{'minItems':2}", "[1]", "the array has 1 item, at least 2 are needed\n" },
        { "{'uniqueItems':true}", "[1,2,1.0]", "items 0 and 2 are equal, but all must differ\n" },
        { "{'contains':{'type':'null'}}", "[1]", "no item fits the schema in contains\n" },
        { "{'contains':true,'maxContains':1}", "[1,2]",
          "more than 1 items fit the schema in contains\n" },
        { "{'prefixItems':[true],'items':false}", "[1,2,3]",
          "the array has 3 items, at most 1 are allowed\n" },
        { "{'required':['a','b']}", "{}", "missing property 'a'\nmissing property 'b'\n" },
        { "{'minProperties':1}", "{}", "the object has 0 properties, at least 1 are needed\n" },
        { "{'dependentRequired':{'a':['b']}}", "{'a':1}",
          "missing property 'b', needed beside 'a'\n" },
        { "{'propertyNames':{'maxLength':1}}", "{'ab':1}",
          "property name 'ab': string \"ab\" has 2 characters, at most 1 are allowed\n" },
        { "{'properties':{'a':false}}", "{'a':1}", "/a: is not allowed here\n" },
        { "false", "1", "no value is allowed here\n" },
        { "{'not':{'type':'string'}}", "'a'",
          "string \"a\" fits the schema that it must not fit\n" },
        { "{'if':{'required':['a']},'then':{'required':['b']}}", "{'a':1}",
          "missing property 'b'\n" },
        { "{'properties':{'a':true},'unevaluatedProperties':false}", "{'b':1}",
          "unknown property 'b'\n" },
        { "{'prefixItems':[true],'unevaluatedItems':false}", "[1,2]", "item 1 is not allowed\n" },
        { "{'properties':{'a/b':{'properties':{'~':{'type':'null'}}}}}", "{'a/b':{'~':1}}",
          "/a~1b/~0: expected null, got integer 1\n" },
    };
    check_sentences(*state, list, ARRAY_LEN(list));
}

static void test_unknown_property_names_the_nearest(void **state)
{
    static const struct sentence list[] = {
        { "{'properties':{'name':true,'age':true},'additionalProperties':false}", "{'anme':1}",
          "unknown property 'anme' (did you mean 'name'?)\n" },
        { "{'properties':{'description':true},'additionalProperties':false}", "{'desciption':1}",
          "unknown property 'desciption' (did you mean 'description'?)\n" },
        /* a name that is there is not the one that was meant */
        { "{'properties':{'name':true},'additionalProperties':false}", "{'name':1,'names':2}",
          "unknown property 'names'\n" },
        { "{'properties':{'name':true},'additionalProperties':false}", "{'date':1}",
          "unknown property 'date'\n" },
    };
    check_sentences(*state, list, ARRAY_LEN(list));
}

static void test_closest_branch(void **state)
{
    static const struct sentence list[] = {
        /* only types differ: one sentence */
        { "{'anyOf':[{'type':'string'},{'type':'null'}]}", "5",
          "expected string or null, got integer 5\n" },
        /* one branch of the right type: its errors, no talk about alternatives */
        { "{'anyOf':[{'type':'null'},{'type':'object','required':['a']}]}", "{}",
          "missing property 'a'\n" },
        /* constants tell variants apart */
        { "{'oneOf':[{'properties':{'kind':{'const':'circle'},'r':{'type':'number'}}},"
          "{'properties':{'kind':{'const':'square'},'side':{'type':'number'}}}]}",
          "{'kind':'square','side':'x'}",
          "fits none of the 2 alternatives of oneOf; the closest is number 2\n"
          "/side: expected number, got string \"x\"\n" },
        { "{'oneOf':[{'minimum':1},{'maximum':9},{'type':'string'}]}", "5",
          "fits alternatives 1 and 2 of oneOf, but must fit exactly one\n" },
    };
    check_sentences(*state, list, ARRAY_LEN(list));
}

static void test_paths(void **state)
{
    struct fixture *f = *state;
    CLEANUP(schema)
    struct schema *s = compile(
        f, "{'$defs':{'p':{'type':'number'}},'properties':{'a':{'$ref':'#/$defs/p'}}}", NULL);
    struct schema_result r;
    struct json *v = tree(f, "{'a':'x'}");
    assert_int_equal(schema_validate(s, v, NULL, f->arena, &r, &f->e), 0);
    assert_int_equal(r.len, 1);
    assert_true(str_eqc(r.errors[0].instance_path, "/a"));
    assert_true(str_eqc(r.errors[0].schema_path, "/$defs/p/type"));
    assert_true(str_eqc(r.errors[0].keyword, "type"));
    assert_ptr_equal(r.errors[0].value, json_get(v, "a"));
}

static void test_error_limit(void **state)
{
    struct fixture *f = *state;
    CLEANUP(schema) struct schema *s = compile(f, "{'items':{'type':'string'}}", NULL);
    struct schema_result r;
    struct schema_limits three = { .max_errors = 3 };
    struct json *v = tree(f, "[1,2,3,4]");
    assert_int_equal(schema_validate(s, v, &three, f->arena, &r, &f->e), 0);
    assert_int_equal(r.len, 3);
    assert_true(r.more);
    v = tree(f, "[1,2,3]");
    assert_int_equal(schema_validate(s, v, &three, f->arena, &r, &f->e), 0);
    assert_int_equal(r.len, 3);
    assert_false(r.more);
}

static void test_long_values_are_cut(void **state)
{
    struct fixture *f = *state;
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    buf_adds(&text, "'");
    for (int i = 0; i < 5000; i++) {
        buf_adds(&text, "\xc3\xa9");
    }
    buf_adds(&text, "'");
    const char *got = errors(f, "{'type':'null'}", text.ptr);
    assert_true(strlen(got) < 200);
    assert_true(str_is_utf8(str_of(got)));
    assert_non_null(strstr(got, "\xe2\x80\xa6\""));
}

static void test_bad_schemas(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *schema, *message;
    } list[] = {
        { "5",
          "schema at its root (line 1): a schema must be an object, true or false, not integer" },
        { "{'properties':{'a':{'type':'strng'}}}",
          "schema at /properties/a/type (line 1): unknown type 'strng' (did you mean 'string'?)" },
        { "{'type':5}", "schema at /type (line 1): must be the name of a type, not integer" },
        { "{'type':['string',null]}",
          "schema at /type (line 1): must be the name of a type, not null" },
        { "{'required':'a'}", "schema at /required (line 1): must be an array of strings" },
        { "{'minLength':-1}",
          "schema at /minLength (line 1): must be an integer that is not negative" },
        { "{'multipleOf':0}", "schema at /multipleOf (line 1): must be a number greater than 0" },
        { "{'anyOf':[]}", "schema at /anyOf (line 1): must be an array of schemas, not empty" },
        { "{'properties':{'a':1}}",
          "schema at /properties/a (line 1): a schema must be an object, true or false, not "
          "integer" },
        { "{'$defs':{'x':{'pattern':'('}}}",
          "schema at /$defs/x/pattern (line 1): pattern '(' at offset 1: a group is not closed, "
          "')' is missing" },
        { "{'$ref':'#/$defs/a'}", "schema at /$ref (line 1): cannot resolve '#/$defs/a': there is "
                                  "nothing at '/$defs/a'" },
        { "{'$ref':'#a'}",
          "schema at /$ref (line 1): cannot resolve '#a': there is no anchor 'a'" },
        { "{'$ref':'http://example.com/x.json'}",
          "schema at /$ref (line 1): cannot resolve 'http://example.com/x.json': no document "
          "'http://example.com/x.json' was supplied, and none is fetched" },
        { "{'$ref':'#'}",
          "schema at its root (line 1): leads back to itself without descending into the value" },
        { "{'$defs':{'a':{'allOf':[{'$ref':'#/$defs/b'}]},'b':{'anyOf':[true,{'$ref':'#/$defs/"
          "a'}]}},"
          "'$ref':'#/$defs/a'}",
          "schema at /$defs/b/anyOf/1 (line 1): leads back to itself without descending into the "
          "value" },
        { "{'$schema':'http://example.com/mine'}",
          "schema: \"$schema\" is neither 2020-12 nor draft-07: no "
          "document 'http://example.com/mine' was supplied, and none is fetched" },
        { "{'$id':'http://a/#frag'}",
          "schema at /$id (line 1): must not have a fragment; use $anchor" },
        { "{'$defs':{'a':{'$anchor':'x'},'b':{'$anchor':'x'}}}",
          "schema at /$defs/b/$anchor (line 1): the anchor 'x' is there twice" },
        { "{'$defs':{'a':{'$id':'http://a/'},'b':{'$id':'http://a/'}}}",
          "schema at /$defs/b/$id (line 1): 'http://a/' is the $id of another schema too" },
    };
    for (size_t i = 0; i < ARRAY_LEN(list); i++) {
        struct schema *s = NULL;
        int rc = schema_compile(tree(f, list[i].schema), NULL, &s, &f->e);
        assert_int_equal(rc, -ERR_CONFIG);
        assert_null(s);
        assert_string_equal(f->e.msg, list[i].message);
    }
    struct schema *s = NULL;
    assert_int_equal(schema_compile(NULL, NULL, &s, &f->e), -ERR_CONFIG);
}

/* A recursive schema is fine as long as it descends. */
static void test_recursion(void **state)
{
    struct fixture *f = *state;
    static const char list[] =
        "{'type':'object','properties':{'next':{'$ref':'#'}},'additionalProperties':false}";
    assert_true(accepts(f, list, "{'next':{'next':{}}}"));
    assert_string_equal(errors(f, list, "{'next':{'next':{'x':1}}}"),
                        "/next/next: unknown property 'x'\n");
}

static void test_documents(void **state)
{
    struct fixture *f = *state;
    struct schema_document documents[] = {
        { STR("http://example.com/a.json"), tree(f, "{'$ref':'b.json#/$defs/x'}") },
        { STR("http://example.com/b.json"), tree(f, "{'$defs':{'x':{'type':'integer'}}}") },
    };
    struct schema_options o = { .documents = documents, .document_count = 2 };
    CLEANUP(schema) struct schema *s = compile(f, "{'$ref':'http://example.com/a.json'}", &o);
    assert_int_equal(schema_check(s, tree(f, "1"), NULL, NULL), 1);
    struct schema_result r;
    assert_int_equal(schema_validate(s, tree(f, "'x'"), NULL, f->arena, &r, NULL), 0);
    assert_true(str_eqc(r.errors[0].schema_path, "http://example.com/b.json#/$defs/x/type"));
}

static int load_counted(void *context, struct arena *a, struct str uri, const struct json **ret,
                        struct err *e)
{
    int *count = context;
    *count += 1;
    struct json *o = json_object(a);
    if (!str_eqc(uri, "https://example.org/dir/known")) {
        return ERR(e, ERR_CONFIG, "not allowed");
    }
    json_setc(a, o, "type", json_cstr(a, "string"));
    *ret = o;
    return 0;
}

static void test_resolver(void **state)
{
    struct fixture *f = *state;
    int count = 0;
    struct schema_options o = { .uri = STR("https://example.org/dir/root.json"),
                                .resolver = { load_counted, &count } };
    CLEANUP(schema)
    struct schema *s = compile(f, "{'prefixItems':[{'$ref':'known'},{'$ref':'./known#'}]}", &o);
    assert_int_equal(count, 1); /* a document is asked for once */
    assert_int_equal(schema_check(s, tree(f, "['a','b']"), NULL, NULL), 1);
    assert_int_equal(schema_check(s, tree(f, "['a',1]"), NULL, NULL), 0);
    struct schema *none = NULL;
    assert_int_equal(schema_compile(tree(f, "{'$ref':'other'}"), &o, &none, &f->e), -ERR_CONFIG);
    assert_string_equal(f->e.msg, "schema at /$ref (line 1): cannot resolve 'other': document "
                                  "'https://example.org/dir/other': not allowed");
}

static void test_drafts(void **state)
{
    struct fixture *f = *state;
    static const char d7[] = "'$schema':'http://json-schema.org/draft-07/schema#'";
    /* beside $ref nothing counts in draft 07, all counts in 2020-12 */
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    buf_addf(&text, "{%s,'definitions':{'a':true},'$ref':'#/definitions/a','type':'null'}", d7);
    assert_true(accepts(f, text.ptr, "1"));
    assert_false(
        accepts(f, "{'definitions':{'a':true},'$ref':'#/definitions/a','type':'null'}", "1"));
    /* https and http, with and without the hash */
    assert_true(accepts(f,
                        "{'$schema':'https://json-schema.org/draft-07/schema',"
                        "'prefixItems':[false]}",
                        "[1]"));
    /* read although of another draft */
    assert_false(accepts(f, "{'items':[{'type':'null'}],'additionalItems':false}", "[null,1]"));
    assert_false(accepts(f, "{'minimum':1,'exclusiveMinimum':true}", "1"));
    assert_false(accepts(f, "{'dependencies':{'a':['b']}}", "{'a':1}"));
    struct schema_options o = { .draft = SCHEMA_DRAFT_07 };
    CLEANUP(schema) struct schema *s = compile(f, "{'prefixItems':[false]}", &o);
    assert_int_equal(schema_check(s, tree(f, "[1]"), NULL, NULL), 1);
}

struct verdict {
    const char *schema, *value;
    bool valid;
};

static void check_verdicts(struct fixture *f, const struct verdict *list, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (accepts(f, list[i].schema, list[i].value) != list[i].valid) {
            fail_msg("%s on %s: %s", list[i].schema, list[i].value,
                     list[i].valid ? "refused" : "accepted");
        }
    }
}

/* Schemas of other drafts are read by the rules of the nearest one that is supported. */
static void test_other_drafts(void **state)
{
    struct fixture *f = *state;
    static const struct verdict list[] = {
        { "{'$schema':'http://json-schema.org/draft-04/schema#','minimum':1,"
          "'exclusiveMinimum':true}",
          "1", false },
        { "{'$schema':'http://json-schema.org/draft-06/schema#','items':[{'type':'null'}],"
          "'additionalItems':false}",
          "[null,1]", false },
        { "{'$schema':'http://json-schema.org/draft-06/schema#','$ref':'#/definitions/a',"
          "'definitions':{'a':true},'type':'null'}",
          "1", true },
        { "{'$schema':'https://json-schema.org/draft/2019-09/schema','$ref':'#/$defs/a',"
          "'$defs':{'a':true},'type':'null','unevaluatedProperties':false}",
          "1", false },
    };
    check_verdicts(f, list, ARRAY_LEN(list));
    struct schema *s = NULL;
    assert_int_equal(
        schema_compile(tree(f, "{'$schema':'https://json-schema.org/draft/2019-09/schema',"
                               "'$recursiveAnchor':true,'items':{'$recursiveRef':'#'}}"),
                       NULL, &s, &f->e),
        -ERR_CONFIG);
    assert_non_null(strstr(f->e.msg, "is not supported; use $dynamicRef"));
    assert_int_equal(
        schema_compile(tree(f, "{'$schema':'http://json-schema.org/draft-03/schema#'}"), NULL, &s,
                       &f->e),
        -ERR_CONFIG);
    assert_non_null(strstr(f->e.msg, "neither 2020-12 nor draft-07"));
}

static void test_meta_schemas_are_built_in(void **state)
{
    struct fixture *f = *state;
    static const char *const uris[] = {
        "https://json-schema.org/draft/2020-12/schema",
        "http://json-schema.org/draft-07/schema#",
    };
    for (size_t i = 0; i < ARRAY_LEN(uris); i++) {
        const char *schema = arena_printf(f->arena, "{'$ref':'%s'}", uris[i]);
        assert_true(accepts(f, schema, "{'type':'object','properties':{'a':{'minLength':1}}}"));
        assert_false(accepts(f, schema, "{'properties':{'a':{'minLength':-1}}}"));
    }
}

/* What counts as evaluated: by branches that fit, by contains, not by those that fail, not by
 * cousins or by not. */
static void test_unevaluated(void **state)
{
#define BRANCHES                                                   \
    "{'anyOf':[{'properties':{'a':{'const':1}},'required':['a']}," \
    "{'properties':{'b':{'const':2}},'required':['b']}],'unevaluatedProperties':false}"
    static const struct verdict list[] = {
        { BRANCHES, "{'a':1,'b':2}", true }, /* both branches count */
        { BRANCHES, "{'a':1,'b':3}", false },
        { BRANCHES, "{'a':1,'c':3}", false },
        { "{'if':{'properties':{'a':true},'required':['a']},'unevaluatedProperties':false}",
          "{'a':1}", true },
        { "{'if':{'required':['x'],'properties':{'a':true}},'unevaluatedProperties':false}",
          "{'a':1}", false },
        { "{'not':{'not':{'properties':{'a':true}}},'unevaluatedProperties':false}", "{'a':1}",
          false },
        { "{'allOf':[{'properties':{'a':true}},{'unevaluatedProperties':false}]}", "{'a':1}",
          false },
        { "{'allOf':[{'patternProperties':{'^a':true}},{'additionalProperties':{'type':'null'}}],"
          "'unevaluatedProperties':false}",
          "{'a':null,'b':null}", true },
        { "{'$ref':'#/$defs/x','$defs':{'x':{'properties':{'a':true}}},"
          "'unevaluatedProperties':{'type':'string'}}",
          "{'a':1,'b':'x'}", true },
        { "{'dependentSchemas':{'a':{'properties':{'a':true}}},'unevaluatedProperties':false}",
          "{'a':1}", true },
        { "{'properties':{'p':{'unevaluatedProperties':false}}}", "{'p':{'a':1}}", false },
        { "{'allOf':[{'unevaluatedProperties':true}],'unevaluatedProperties':false}", "{'a':1}",
          true },
        { "{'prefixItems':[true],'contains':{'const':'x'},'unevaluatedItems':false}", "[1,'x','x']",
          true },
        { "{'prefixItems':[true],'contains':{'const':'x'},'unevaluatedItems':false}", "[1,'x',2]",
          false },
        { "{'oneOf':[{'prefixItems':[{'type':'null'},true]},{'prefixItems':[{'type':'integer'}]}],"
          "'unevaluatedItems':false}",
          "[1,2]", false },
    };
    check_verdicts(*state, list, ARRAY_LEN(list));
}

static void test_references(void **state)
{
    static const struct verdict list[] = {
        { "{'$id':'http://x/a?q=1','$ref':'#/$defs/n','$defs':{'n':{'type':'null'}}}", "1", false },
        { "{'$id':'http://x/dir/a','$defs':{'n':{'$id':'../b/./c','type':'null'}},'$ref':'/b/c'}",
          "1", false },
        { "{'$id':'urn:a:b','$defs':{'n':{'$anchor':'n','type':'null'}},'$ref':'urn:a:b#n'}", "1",
          false },
        { "{'properties':{'a~b/c%d':{'type':'null'}},'not':{'$ref':'#/properties/a~0b~1c%25d'}}",
          "1", true },
        { "{'x-own':[{'y':{'type':'null'}}],'$ref':'#/x-own/0/y'}", "1", false },
        /* an $id where no schema is means nothing */
        { "{'enum':[{'$id':'http://x/y','type':'null'}],'$defs':{'z':{'$id':'http://x/"
          "y','type':'object'}},"
          "'$ref':'http://x/y'}",
          "{'$id':'http://x/y','type':'null'}", true },
        /* the outermost dynamic anchor of the name counts */
        { "{'$id':'http://x/"
          "strict','$dynamicAnchor':'node','$ref':'tree','unevaluatedProperties':false,"
          "'$defs':{'t':{'$id':'tree','$dynamicAnchor':'node','properties':{'kids':{'items':"
          "{'$dynamicRef':'#node'}}}}}}",
          "{'kids':[{'kidz':[]}]}", false },
        { "{'$id':'http://x/loose','$ref':'tree','unevaluatedProperties':false,"
          "'$defs':{'t':{'$id':'tree','$dynamicAnchor':'node','properties':{'kids':{'items':"
          "{'$dynamicRef':'#node'}}}}}}",
          "{'kids':[{'kidz':[]}]}", true },
    };
    check_verdicts(*state, list, ARRAY_LEN(list));
}

/* A meta-schema of one's own can switch vocabularies off. */
static void test_vocabularies(void **state)
{
    struct fixture *f = *state;
    struct schema_document documents[] = {
        { STR("http://x/bare"),
          tree(f, "{'$schema':'https://json-schema.org/draft/2020-12/schema','$vocabulary':{"
                  "'https://json-schema.org/draft/2020-12/vocab/core':true,"
                  "'https://json-schema.org/draft/2020-12/vocab/applicator':true}}") },
        { STR("http://x/odd"), tree(f, "{'$schema':'https://json-schema.org/draft/2020-12/schema',"
                                       "'$vocabulary':{'http://x/own':true}}") },
    };
    struct schema_options o = { .documents = documents, .document_count = 2 };
    CLEANUP(schema)
    struct schema *s =
        compile(f, "{'$schema':'http://x/bare','items':{'minimum':9,'not':{'items':true}}}", &o);
    assert_int_equal(schema_check(s, tree(f, "[]"), NULL, NULL), 1);
    assert_int_equal(schema_check(s, tree(f, "[1]"), NULL, NULL), 0);
    CLEANUP(schema)
    struct schema *lax = compile(f, "{'$schema':'http://x/bare','items':{'minimum':9}}", &o);
    assert_int_equal(schema_check(lax, tree(f, "[1]"), NULL, NULL), 1);
    struct schema *none = NULL;
    assert_int_equal(schema_compile(tree(f, "{'$schema':'http://x/odd'}"), &o, &none, &f->e),
                     -ERR_CONFIG);
    assert_string_equal(f->e.msg,
                        "schema: 'http://x/odd' requires the unknown vocabulary 'http://x/own'");
}

static void test_format_is_an_annotation(void **state)
{
    struct fixture *f = *state;
    assert_true(accepts(f, "{'format':'ipv4'}", "'nonsense'"));
}

static void test_numbers(void **state)
{
    struct fixture *f = *state;
    assert_true(accepts(f, "{'type':'integer'}", "1.0"));
    assert_true(accepts(f, "{'type':'integer'}", "1e300"));
    assert_true(accepts(f, "{'const':1}", "1.0"));
    assert_true(accepts(f, "{'multipleOf':0.01}", "19.99"));
    assert_true(accepts(f, "{'multipleOf':0.0001}", "0.0075"));
    assert_false(accepts(f, "{'multipleOf':0.3}", "1"));
    assert_true(accepts(f, "{'multipleOf':1e-8}", "12391239123"));
    /* 2^53 + 1 is not 2^53, although they are the same double */
    assert_false(accepts(f, "{'maximum':9007199254740992.0}", "9007199254740993"));
    assert_false(accepts(f, "{'const':9007199254740992.0}", "9007199254740993"));
    assert_false(accepts(f, "{'minimum':-9223372036854775808}", "-1e19"));
    assert_true(accepts(f, "{'minimum':-1e19}", "-9223372036854775808"));
}

/* --- nothing runs away --- */

static void test_depth(void **state)
{
    struct fixture *f = *state;
    CLEANUP(schema) struct schema *s = compile(f, "{'items':{'$ref':'#'}}", NULL);
    struct json *v = json_array(f->arena);
    for (int i = 0; i < 100000; i++) {
        struct json *outer = json_array(f->arena);
        json_push(f->arena, outer, v);
        v = outer;
    }
    assert_int_equal(schema_check(s, v, NULL, &f->e), -ERR_LIMIT);
    /* $dynamicRef in circles is not seen by the compiler */
    CLEANUP(schema)
    struct schema *round = compile(
        f, "{'$dynamicAnchor':'x','anyOf':[{'$dynamicRef':'#x'},{'$dynamicRef':'#x'}]}", NULL);
    assert_int_equal(schema_check(round, tree(f, "1"), NULL, &f->e), -ERR_LIMIT);
}

/* a0 = allOf [a1, a1], a1 = allOf [a2, a2] …: 2^60 applications. */
static void test_steps(void **state)
{
    struct fixture *f = *state;
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    buf_adds(&text, "{'$ref':'#/$defs/a0','$defs':{'a60':{'type':'string'}");
    for (int i = 0; i < 60; i++) {
        buf_addf(&text, ",'a%d':{'allOf':[{'$ref':'#/$defs/a%d'},{'$ref':'#/$defs/a%d'}]}", i,
                 i + 1, i + 1);
    }
    buf_adds(&text, "}}");
    CLEANUP(schema) struct schema *s = compile(f, text.ptr, NULL);
    struct schema_limits few = { .max_steps = 1000 * 1000 };
    assert_int_equal(schema_check(s, tree(f, "'x'"), &few, &f->e), -ERR_LIMIT);
    assert_string_equal(f->e.msg, "validation takes too many steps");
    assert_int_equal(schema_check(s, tree(f, "1"), &few, &f->e), 0); /* the first failure decides */
}

/* Explaining costs more than deciding; the verdict stands even if the explanation does not end. */
static void test_explaining_is_bounded(void **state)
{
    struct fixture *f = *state;
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    enum { LEVELS = 14 };
    buf_addf(&text, "{'$ref':'#/$defs/a0','$defs':{'a%d':{'type':'string'}", LEVELS);
    for (int i = 0; i < LEVELS; i++) {
        buf_addf(&text, ",'a%d':{'anyOf':[{'$ref':'#/$defs/a%d'},{'$ref':'#/$defs/a%d'}]}", i,
                 i + 1, i + 1);
    }
    buf_adds(&text, "}}");
    CLEANUP(schema) struct schema *s = compile(f, text.ptr, NULL);
    struct schema_limits few = { .max_steps = 500 * 1000 };
    struct schema_result r;
    size_t before = arena_used(f->arena);
    assert_int_equal(schema_validate(s, tree(f, "1"), &few, f->arena, &r, &f->e), 0);
    assert_false(r.valid);
    assert_int_equal(r.len, 1);
    assert_true(r.more);
    assert_true(arena_used(f->arena) - before < 4 << 20);
}

static void test_runaway_pattern(void **state)
{
    struct fixture *f = *state;
    CLEANUP(schema) struct schema *s = compile(f, "{'pattern':'^(a+)+$'}", NULL);
    struct json *v = tree(f, "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!'");
    assert_int_equal(schema_check(s, v, NULL, &f->e), -ERR_LIMIT);
    CLEANUP(schema)
    struct schema *names = compile(f, "{'patternProperties':{'^(a+)+$':true}}", NULL);
    struct json *o = json_object(f->arena);
    json_set(f->arena, o, v->string, v);
    assert_int_equal(schema_check(names, o, NULL, &f->e), -ERR_LIMIT);
}

static void test_wide_values(void **state)
{
    struct fixture *f = *state;
    enum { WIDE = 200 * 1000 };
    CLEANUP(schema) struct schema *s = compile(f, "{'uniqueItems':true}", NULL);
    struct json *v = json_array(f->arena);
    for (int i = 0; i < WIDE; i++) {
        struct json *pair = json_array(f->arena);
        json_push(f->arena, pair, json_integer(f->arena, i));
        json_push(f->arena, v, pair);
    }
    assert_int_equal(schema_check(s, v, NULL, &f->e), 1);
    json_push(f->arena, v, json_copy(f->arena, json_item(v, 77)));
    struct schema_result r;
    assert_int_equal(schema_validate(s, v, NULL, f->arena, &r, &f->e), 0);
    assert_true(str_eqc(r.errors[0].message, "items 77 and 200000 are equal, but all must differ"));
    CLEANUP(schema)
    struct schema *u =
        compile(f,
                "{'contains':{'const':[77]},'anyOf':[{'prefixItems':[true]},{'type':'array'}],"
                "'unevaluatedItems':{'type':'array'}}",
                NULL);
    assert_int_equal(schema_check(u, v, NULL, &f->e), 1);
}

static void test_too_many_subschemas(void **state)
{
    struct fixture *f = *state;
    struct schema_options o = { .max_schemas = 3 };
    struct schema *s = NULL;
    struct json *root = tree(f, "{'allOf':[true,true,true]}");
    assert_int_equal(schema_compile(root, &o, &s, &f->e), -ERR_CONFIG);
    assert_string_equal(f->e.msg, "schema: more than 3 subschemas");
    struct json *deep = json_object(f->arena);
    for (int i = 0; i < 100000; i++) {
        struct json *outer = json_object(f->arena);
        json_setc(f->arena, outer, "not", deep);
        deep = outer;
    }
    assert_int_equal(schema_compile(deep, NULL, &s, &f->e), -ERR_CONFIG);
}

/* The tree may go after compiling. */
static void test_owns_its_schema(void **state)
{
    struct fixture *f = *state;
    CLEANUP(schema) struct schema *s = NULL;
    struct arena *a = arena_new();
    struct json *root = NULL;
    assert_int_equal(json_parse(a, STR("{\"enum\":[\"x\"],\"pattern\":\"x\"}"), NULL, &root, NULL),
                     0);
    assert_int_equal(schema_compile(root, NULL, &s, NULL), 0);
    arena_free(a);
    assert_int_equal(schema_check(s, tree(f, "'x'"), NULL, NULL), 1);
    assert_int_equal(schema_check(s, tree(f, "'y'"), NULL, NULL), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_sentences),
        TEST(test_unknown_property_names_the_nearest),
        TEST(test_closest_branch),
        TEST(test_paths),
        TEST(test_error_limit),
        TEST(test_long_values_are_cut),
        TEST(test_bad_schemas),
        TEST(test_recursion),
        TEST(test_documents),
        TEST(test_resolver),
        TEST(test_drafts),
        TEST(test_other_drafts),
        TEST(test_meta_schemas_are_built_in),
        TEST(test_unevaluated),
        TEST(test_references),
        TEST(test_vocabularies),
        TEST(test_format_is_an_annotation),
        TEST(test_numbers),
        TEST(test_depth),
        TEST(test_steps),
        TEST(test_explaining_is_bounded),
        TEST(test_runaway_pattern),
        TEST(test_wide_values),
        TEST(test_too_many_subschemas),
        TEST(test_owns_its_schema),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
