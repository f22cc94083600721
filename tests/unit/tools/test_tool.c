/* SPDX-License-Identifier: MIT
 *
 * What a task may say about a tool, and what a model gets of it.
 */
#include "tools/tool.h"

#include "../values.h"
#include "base/json.h"
#include "base/macro.h"
#include "data/schema.h"
#include "tools/tool_callback.h"

/* No bridge here: what a handler says is kept. */
static struct tool_result said;
static int times_said;

void tool_run_done(struct tool_run *run, const struct tool_result *result)
{
    said = *result;
    times_said++;
}

static struct tool define(const char *yaml)
{
    struct tool t;
    struct err e;
    if (tool_define(arena, tree(yaml), &t, &e) < 0) {
        fail_msg("%s", e.msg);
    }
    return t;
}

static void assert_json(const struct json *v, const char *text)
{
    CLEANUP(buf) struct buf b = BUF_INIT(BUF_TEXT);
    assert_int_equal(json_write(v, JSON_COMPACT, &b, NULL), 0);
    assert_string_equal(b.ptr, text);
}

static void test_definition(void **state)
{
    struct tool t = define("{name: run_tests-2, title: Tests, description: ' Runs the tests ', "
                           "timeout: 90s, max_output: 2K}");
    assert_true(str_eqc(t.name, "run_tests-2"));
    assert_true(str_eqc(t.description, "Runs the tests"));
    assert_true(t.timeout == 90 * NSEC_PER_SEC);
    assert_int_equal(t.max_output, 2048);
    assert_json(t.input_schema,
                "{\"type\":\"object\",\"properties\":{},\"additionalProperties\":false}");
    assert_null(t.output);
    tool_free(&t);
    t = define("{name: a, description: d}");
    assert_true(t.timeout == TOOL_TIME && t.max_output == TOOL_OUTPUT);
    tool_free(&t);
}

static void test_what_is_wrong(void **state)
{
    static const char *const cases[][2] = {
        { "{description: d}", "a name is 1 to 64" },
        { "{name: Upper, description: d}", "tool 'Upper': a name is" },
        { "{name: ' a', description: d}", "a name is" },
        { "{name: a.b, description: d}", "a name is" },
        { "{name: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, description: "
          "d}",
          "a name is" },
        { "{name: a}", "tool 'a': the description must be 1 to 200 ASCII" },
        { "{name: a, description: '  '}", "the description must be" },
        { "{name: a, description: \"gr\\u00fcn\"}", "the description must be" },
        { "{name: a, description: d, input_schema: [1]}", "input_schema: must be an object" },
        { "{name: a, description: d, input_schema: {type: array}}", "'type' must be 'object'" },
        { "{name: a, description: d, input_schema: {type: [object, 'null']}}", "must be 'object'" },
        { "{name: a, description: d, input_schema: {properties: 3}}", "input_schema: schema at" },
        { "{name: a, description: d, output_schema: {type: 3}}", "output_schema: schema at" },
        { "{name: a, description: d, timeout: soon}", "timeout" },
        { "{name: a, description: d, max_output: -1}", "max_output" },
        { "{name: a, description: d, examples: {}}", "examples: must be a list" },
        { "{name: a, description: d, examples: [{input: {}}]}", "example 1: the description" },
        { "{name: a, description: d, examples: [{description: x, input: {b: 1}}]}",
          "example 1: the input does not fit its schema" },
        { "{name: a, description: d, output_schema: {type: integer}, examples: [{description: x, "
          "output: 1}, {description: x, output: '1'}]}",
          "example 2: the output does not fit its schema: expected integer" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct tool t;
        struct err e;
        assert_int_equal(tool_define(arena, tree(cases[i][0]), &t, &e), -ERR_CONFIG);
        if (strstr(e.msg, cases[i][1]) == NULL) {
            fail_msg("'%s' is not in '%s'", cases[i][1], e.msg);
        }
    }
}

static void test_extra_keys_are_forbidden(void **state)
{
    struct tool t = define("{name: a, description: d, input_schema: {properties: {n: {}}}}");
    assert_json(t.input_schema, "{\"type\":\"object\",\"properties\":{\"n\":{}},"
                                "\"additionalProperties\":false}");
    assert_int_equal(schema_check(t.input, tree("{n: 1}"), NULL, NULL), 1);
    assert_int_equal(schema_check(t.input, tree("{n: 1, m: 2}"), NULL, NULL), 0);
    tool_free(&t);
    /* who says something about them, means it */
    t = define("{name: a, description: d, input_schema: {additionalProperties: {type: string}}}");
    assert_int_equal(schema_check(t.input, tree("{n: x}"), NULL, NULL), 1);
    tool_free(&t);
    /* members that a branch allows are not extra */
    t = define("{name: a, description: d, input_schema: {anyOf: [{properties: {x: {}}, required: "
               "[x]}, {properties: {y: {}}, required: [y]}]}}");
    assert_int_equal(schema_check(t.input, tree("{x: 1}"), NULL, NULL), 1);
    assert_int_equal(schema_check(t.input, tree("{x: 1, z: 1}"), NULL, NULL), 0);
    tool_free(&t);
}

static void test_no_coercion(void **state)
{
    struct tool t = define("{name: a, description: d, input_schema: {properties: {n: {type: "
                           "integer}, b: {type: boolean}, s: {type: string}}}}");
    static const struct {
        const char *arguments;
        int fits;
    } cases[] = {
        { "{n: 1}", 1 },    { "{n: 1.0}", 1 },    { "{n: 1.5}", 0 }, { "{n: '1'}", 0 },
        { "{n: true}", 0 }, { "{b: 'true'}", 0 }, { "{b: 1}", 0 },   { "{s: 1}", 0 },
        { "{s: '1'}", 1 },  { "{n: null}", 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(schema_check(t.input, tree(cases[i].arguments), NULL, NULL),
                         cases[i].fits);
    }
    tool_free(&t);
}

static void test_as_offered(void **state)
{
    struct tool t = define("{name: a, title: T, description: d, output_schema: {type: object, "
                           "properties: {n: {}}}}");
    t.reads_only = true;
    assert_json(tool_mcp_json(arena, &t),
                "{\"name\":\"a\",\"title\":\"T\",\"description\":\"d\",\"inputSchema\":{\"type\":"
                "\"object\",\"properties\":{},\"additionalProperties\":false},\"outputSchema\":{"
                "\"type\":\"object\",\"properties\":{\"n\":{}}},\"annotations\":{\"readOnlyHint\":"
                "true,\"destructiveHint\":false,\"openWorldHint\":false}}");
    assert_json(tool_structured(arena, &t, tree("{n: 1}")), "{\"n\":1}");
    assert_null(tool_structured(arena, &t, tree("[1]")));
    tool_free(&t);
    /* MCP knows objects only */
    t = define("{name: a, description: d, output_schema: {type: array, items: {$ref: '#/$defs/x'}, "
               "$defs: {x: {type: integer}}}}");
    struct json *shown = tool_mcp_json(arena, &t);
    struct json *structured = tool_structured(arena, &t, tree("[1]"));
    CLEANUP(schema) struct schema *s = NULL;
    assert_json(structured, "{\"result\":[1]}");
    assert_int_equal(schema_compile(json_get(shown, "outputSchema"), NULL, &s, NULL), 0);
    assert_int_equal(schema_check(s, structured, NULL, NULL), 1);
    assert_int_equal(schema_check(s, tree("{result: [x]}"), NULL, NULL), 0);
    tool_free(&t);
}

static void test_rendering(void **state)
{
    struct str text;
    assert_true(str_eqc(tool_render(arena, NULL), ""));
    assert_true(str_eqc(tool_render(arena, tree("null")), ""));
    assert_true(str_eqc(tool_render(arena, tree("'a b'")), "a b"));
    assert_true(str_eqc(tool_render(arena, tree("[1, true, {a: null}]")), "[1,true,{\"a\":null}]"));
    assert_int_equal(tool_render_bounded(arena, tree("[1]"), 3, &text, NULL), 0);
    assert_int_equal(tool_render_bounded(arena, tree("[12]"), 3, &text, NULL), -ERR_LIMIT);
    assert_int_equal(tool_render_bounded(arena, tree("abcd"), 3, &text, NULL), -ERR_LIMIT);
}

static void test_words(void **state)
{
    for (int i = TOOL_OK; i <= TOOL_INTERNAL; i++) {
        for (int k = TOOL_OK; k < i; k++) {
            assert_string_not_equal(tool_failure_word((enum tool_failure)i),
                                    tool_failure_word((enum tool_failure)k));
        }
    }
}

/* --- C functions --- */

static int freed, cancelled;

static bool add(void *arg, struct tool_run *run, struct tool_result *ret)
{
    ret->value = json_integer(run->arena, json_int(json_get(run->arguments, "a"), 0) + *(int *)arg);
    return json_get(run->arguments, "later") == NULL;
}

static void on_cancel(void *arg, struct tool_run *run)
{
    cancelled++;
    tool_run_done(run, &(struct tool_result) { .failure = TOOL_CANCELLED });
}

static void on_free(void *arg)
{
    freed++;
}

static void test_callback(void **state)
{
    int two = 2;
    struct tool t = define("{name: a, description: d}");
    struct tool_run run = { .tool = &t, .arena = arena, .arguments = tree("{a: 3}") };
    tool_callback_bind(&t, &(struct tool_callback) { add, on_cancel, on_free, &two });
    assert_string_equal(t.handler->kind, "callback");
    t.handler->start(t.self, &run);
    assert_int_equal(times_said, 1);
    assert_int_equal(json_int(said.value, 0), 5);
    run.arguments = tree("{later: 1}");
    t.handler->start(t.self, &run);
    assert_int_equal(times_said, 1);
    t.handler->cancel(t.self, &run);
    assert_int_equal(cancelled, 1);
    tool_free(&t);
    assert_int_equal(freed, 1);
    t = define("{name: a, description: d}");
    tool_callback_bind(&t, &(struct tool_callback) { .call = add, .arg = &two });
    assert_null(t.handler->cancel);
    tool_free(&t);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, arena_setup, arena_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_definition),  TEST(test_what_is_wrong),
        TEST(test_no_coercion), TEST(test_extra_keys_are_forbidden),
        TEST(test_as_offered),  TEST(test_rendering),
        TEST(test_words),       TEST(test_callback),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
