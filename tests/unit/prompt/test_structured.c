/* SPDX-License-Identifier: MIT
 *
 * The ladder from a final text to a valid value: which rung is taken, what it says when there is
 * none, and that no text makes it run away.
 */
#include "prompt/structured.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "llm/schema_convert.h"

struct fixture {
    struct arena *arena;
    struct schema *person; /* {"name": string}, nothing else */
    struct structured_options options;
    struct structured_result result;
    struct err e;
};

static struct json *tree(struct fixture *f, const char *text)
{
    struct json *v = NULL;
    if (json_parse(f->arena, str_of(text), NULL, &v, &f->e) != 0) {
        fail_msg("%s: %s", text, f->e.msg);
    }
    return v;
}

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof *f);
    f->arena = arena_new();
    struct json *schema =
        tree(f, "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"}},"
                "\"required\":[\"name\"],\"additionalProperties\":false}");
    assert_int_equal(schema_compile(schema, NULL, &f->person, &f->e), 0);
    f->options.schema = f->person;
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    schema_free(f->person);
    arena_free(f->arena);
    free(f);
    return 0;
}

static int parse(struct fixture *f, const char *text)
{
    return structured_parse(str_of(text), &f->options, f->arena, &f->result, &f->e);
}

static void expect(struct fixture *f, const char *text, const char *value, const char *repair)
{
    if (parse(f, text) != 0) {
        fail_msg("%s: %s", text, f->e.msg);
    }
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    assert_int_equal(json_write(f->result.value, JSON_COMPACT, &out, NULL), 0);
    assert_string_equal(out.ptr, value);
    assert_string_equal(structured_repair_name(f->result.repair), repair);
}

#define JOE "{\"name\":\"joe\"}"

static void test_rungs(void **state)
{
    static const struct {
        const char *text, *repair;
    } list[] = {
        { JOE, "none" },
        { " \n" JOE "\r\n\t", "none" },
        { "```json\n" JOE "\n```", "fence" },
        { "Here you are:\n\n```JSON\n" JOE "\n```\nAnything else?", "fence" },
        { "```\n" JOE "\n```", "fence" },
        { "~~~json\n" JOE "\n~~~", "fence" },
        { "````json\n" JOE "\n````", "fence" },
        { "  ```json\n  " JOE "\n  ```", "fence" },
        { "```json" JOE "```", "fence" },         /* all in one line */
        { "Sure: ```json\n" JOE "```", "fence" }, /* not at line starts */
        { "```json\n" JOE, "fence" },             /* never closed */
        { "```json\r\n" JOE "\r\n```\r\n", "fence" },
        { "```python\nprint({})\n```\n```json\n" JOE "\n```", "fence" }, /* json before others */
        { "```\n{\"x\":1}\n```\n```\n" JOE "\n```", "fence" },
        { "The answer is " JOE ".", "balanced" },
        { "{x} [1] {\"a\": } " JOE, "balanced" },
        { "He said \"ok\" and gave {\"wrong\":1} then " JOE, "balanced" },
        { "{\"result\":" JOE "}", "balanced" }, /* inside something valid JSON, but not valid */
        { "an unpaired \" and { and " JOE, "balanced" },
        { "{\"thought\":\"}\"} " JOE, "balanced" },
    };
    for (size_t i = 0; i < ARRAY_LEN(list); i++) {
        expect(*state, list[i].text, JOE, list[i].repair);
    }
}

static void test_strings_are_respected(void **state)
{
    struct fixture *f = *state;
    /* brackets, quotes and fences in strings are no brackets, quotes and fences */
    expect(f, "x {\"name\":\"}]\\\"{[\"} y", "{\"name\":\"}]\\\"{[\"}", "balanced");
    expect(f, "```json\n{\"name\":\"run ```sh\\nls\\n``` now\"}\n```",
           "{\"name\":\"run ```sh\\nls\\n``` now\"}", "fence");
}

static void test_piece(void **state)
{
    struct fixture *f = *state;
    expect(f, "so: " JOE ".", JOE, "balanced");
    assert_true(str_eqc(f->result.piece, JOE));
    assert_null(f->result.pointer);
    assert_string_equal(structured_source_name(f->result.source), "text");
}

static void test_first_valid_wins(void **state)
{
    struct fixture *f = *state;
    expect(f, "{\"name\":1} {\"name\":\"a\"} {\"name\":\"b\"}", "{\"name\":\"a\"}", "balanced");
}

static void test_envelope(void **state)
{
    struct fixture *f = *state;
    static const char *const pointers[] = { "/structured_output", "/result" };
    f->options.envelopes = pointers;
    f->options.envelope_count = 2;
    expect(f, "{\"type\":\"result\",\"structured_output\":" JOE "}", JOE, "envelope");
    assert_string_equal(f->result.pointer, "/structured_output");
    /* JSON in a string */
    expect(f, "{\"result\":\"{\\\"name\\\":\\\"joe\\\"}\"}", JOE, "envelope");
    assert_string_equal(f->result.pointer, "/result");
    expect(f, "{\"result\":\"well: ```json\\n{\\\"name\\\":\\\"joe\\\"}\\n```\"}", JOE, "fence");
    expect(f, "{\"structured_output\":null,\"result\":" JOE "}", JOE, "envelope");
    expect(f, JOE, JOE, "none");
    /* without a schema the envelope itself would do, so it must be opened first */
    f->options.schema = NULL;
    expect(f, "{\"result\":{\"x\":1}}", "{\"x\":1}", "envelope");
}

static void test_without_schema(void **state)
{
    struct fixture *f = *state;
    f->options.schema = NULL;
    expect(f, "[1,2]", "[1,2]", "none");
    expect(f, "so {\"a\":1}", "{\"a\":1}", "balanced");
    assert_int_equal(parse(f, "42"), -ERR_PARSE); /* a number is no structure */
    assert_int_equal(parse(f, "just words"), -ERR_PARSE);
}

static void test_scalars_by_schema(void **state)
{
    struct fixture *f = *state;
    CLEANUP(schema) struct schema *s = NULL;
    assert_int_equal(schema_compile(tree(f, "{\"enum\":[\"yes\",\"no\"]}"), NULL, &s, NULL), 0);
    f->options.schema = s;
    expect(f, "\"yes\"", "\"yes\"", "none");
    assert_int_equal(parse(f, "yes"), -ERR_PARSE);
}

static void test_array_in_items(void **state)
{
    struct fixture *f = *state;
    CLEANUP(schema) struct schema *s = NULL;
    f->options.wanted = tree(f, "{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}");
    assert_int_equal(schema_compile(f->options.wanted, NULL, &s, NULL), 0);
    f->options.schema = s;
    expect(f, "{\"items\":[1,2]}", "[1,2]", "none");
    expect(f, "[1,2]", "[1,2]", "none");
    expect(f, "```json\n{\"items\":[3]}\n```", "[3]", "fence");
}

/* Asked in the strict form, a model writes null for what it leaves out. */
static void test_nulls_of_the_strict_form(void **state)
{
    struct fixture *f = *state;
    CLEANUP(schema) struct schema *s = NULL;
    f->options.wanted = tree(f, "{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":"
                                "{\"a\":{\"type\":\"integer\"},\"b\":{\"type\":\"integer\"}},"
                                "\"required\":[\"a\"]}}");
    assert_int_equal(schema_compile(f->options.wanted, NULL, &s, NULL), 0);
    f->options.schema = s;
    assert_int_equal(parse(f, "{\"items\":[{\"a\":1,\"b\":null}]}"), -ERR_PARSE);
    f->options.strict = schema_wrap(f->arena, f->options.wanted);
    expect(f, "{\"items\":[{\"a\":1,\"b\":null}]}", "[{\"a\":1}]", "none");
    expect(f, "Look: {\"items\":[{\"a\":1,\"b\":2}]}", "[{\"a\":1,\"b\":2}]", "balanced");
    assert_int_equal(parse(f, "{\"items\":[{\"a\":null,\"b\":2}]}"), -ERR_PARSE);
}

static void expect_failure(struct fixture *f, const char *text, const char *message)
{
    assert_int_equal(parse(f, text), -ERR_PARSE);
    assert_null(f->result.value);
    assert_true(str_eqc(f->result.failure.raw, text));
    if (!str_eqc(f->result.failure.message, message)) {
        fail_msg("%s: '%.*s'", text, STR_ARG(f->result.failure.message));
    }
    assert_int_equal(strncmp(f->e.msg, message, 100), 0);
}

static void test_failures(void **state)
{
    struct fixture *f = *state;
    expect_failure(f, "", "the answer is empty");
    expect_failure(f, "I could not do it.",
                   "there is no JSON value in the answer; give the JSON value only");
    expect_failure(f, "{\"name\":1}",
                   "the answer does not fit the schema:\n/name: expected string, got integer 1");
    assert_int_equal(f->result.failure.errors->len, 1);
    assert_true(str_eqc(f->result.failure.errors->errors[0].instance_path, "/name"));
    expect_failure(
        f, "{\"name\":\"joe\"",
        "the JSON of the answer does not parse: line 1, column 14: unexpected end of data");
    expect_failure(f, "[1]",
                   "the answer does not fit the schema:\nexpected object, got array of 1 item");
}

/* What is said is about the candidate that came closest. */
static void test_best_reason(void **state)
{
    struct fixture *f = *state;
    expect_failure(f, "[1,2] and {\"name\":\"joe\",\"title\":1} and [3]",
                   "the answer does not fit the schema:\nunknown property 'title'");
    assert_true(str_eqc(f->result.failure.excerpt, "{\"name\":\"joe\",\"title\":1}"));
    assert_int_equal(f->result.failure.repair, STRUCTURED_BALANCED);
}

static void test_accept(void **state)
{
    struct fixture *f = *state;
    struct json *good = tree(f, JOE);
    assert_int_equal(
        structured_accept(good, STRUCTURED_TOOL, &f->options, f->arena, &f->result, &f->e), 0);
    assert_int_equal(f->result.repair, STRUCTURED_NONE);
    assert_string_equal(structured_source_name(f->result.source), "tool");
    assert_true(json_equal(f->result.value, good));
    struct json *bad = tree(f, "{\"name\":null}");
    assert_int_equal(
        structured_accept(bad, STRUCTURED_NATIVE, &f->options, f->arena, &f->result, &f->e),
        -ERR_PARSE);
    assert_true(str_eqc(f->result.failure.raw, "{\"name\":null}"));
    assert_non_null(strstr(f->e.msg, "/name: expected string, got null"));
}

/* Texts of a megabyte made to be looked at again and again. */
static void test_bounded(void **state)
{
    struct fixture *f = *state;
    static const char *const units[] = { "{",
                                         "[",
                                         "{\"",
                                         "[[]",
                                         "```x ```",
                                         "```\n",
                                         "{}[]",
                                         "{\"a\":[",
                                         "\"{",
                                         "``` ",
                                         "~~~",
                                         "[1],",
                                         "{\"name\":1}",
                                         "```json\n{\"a\":1}\n",
                                         "\\\"{",
                                         "{\"name\":{\"name\":" };
    enum { SIZE = 1 << 20 };
    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
        while (text.len < SIZE) {
            buf_adds(&text, units[i]);
        }
        size_t before = arena_used(f->arena);
        assert_int_equal(structured_parse(buf_str(&text), &f->options, f->arena, &f->result, &f->e),
                         -ERR_PARSE);
        assert_true(arena_used(f->arena) - before < SIZE);
    }
}

/* A value that comes late in a long text is still found. */
static void test_long_prose(void **state)
{
    struct fixture *f = *state;
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    for (int i = 0; i < 20000; i++) {
        buf_adds(&text, "Step: look at f(x) {and} \"that\" again.\n");
    }
    buf_adds(&text, JOE);
    expect(f, text.ptr, JOE, "balanced");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_rungs),
        TEST(test_strings_are_respected),
        TEST(test_piece),
        TEST(test_first_valid_wins),
        TEST(test_envelope),
        TEST(test_without_schema),
        TEST(test_scalars_by_schema),
        TEST(test_array_in_items),
        TEST(test_nulls_of_the_strict_form),
        TEST(test_failures),
        TEST(test_best_reason),
        TEST(test_accept),
        TEST(test_bounded),
        TEST(test_long_prose),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
