/* SPDX-License-Identifier: MIT
 *
 * The output contract: which answers it takes, in both modes, and how it is told to a model.
 */
#include "skill/skill_contract.h"

#include "data/schema.h"
#include "skill_case.h"

static void open_with(struct skill_case *c, const char *output)
{
    case_package(c, RUNNER);
    case_put(c, "hello/assets/output.schema.json", output);
    (void)case_open(c, "hello");
}

static bool accepts(struct skill_case *c, enum skill_mode mode, const char *value)
{
    CLEANUP(schema) struct schema *compiled = NULL;
    struct json *tree = skill_contract(c->arena, c->skill, mode);
    if (schema_compile(tree, NULL, &compiled, &c->e) != 0) {
        fail_msg("%s", c->e.msg);
    }
    return schema_check(compiled, case_json(c, value), NULL, &c->e) == 1;
}

#define FINAL "{\"count\":1,\"report\":\"a\"}"
#define DONE  "{\"__SKILL_DONE__\":true,\"count\":1,\"report\":\"a\"}"
#define QUESTION \
    "{\"__SKILL_DONE__\":false,\"message\":\"which?\",\"ui_hints\":{\"kind\":\"confirm\"}}"

static void test_auto(void **state)
{
    struct skill_case *c = *state;
    open_with(c, OUTPUT);
    assert_true(accepts(c, SKILL_AUTO, FINAL));
    assert_true(accepts(c, SKILL_AUTO, DONE));
    assert_false(accepts(c, SKILL_AUTO, QUESTION));
    assert_false(accepts(c, SKILL_AUTO, "{\"count\":1,\"report\":\"a\",\"more\":1}"));
    assert_false(accepts(c, SKILL_AUTO, "{\"__SKILL_DONE__\":true}"));
    /* the package's own schema is as it was */
    assert_int_equal(
        schema_check(c->skill->schemas[SKILL_OUTPUT].compiled, case_json(c, DONE), NULL, &c->e), 0);
}

static void test_interactive(void **state)
{
    struct skill_case *c = *state;
    open_with(c, OUTPUT);
    assert_true(accepts(c, SKILL_INTERACTIVE, FINAL));
    assert_true(accepts(c, SKILL_INTERACTIVE, DONE));
    assert_true(accepts(c, SKILL_INTERACTIVE, QUESTION));
    assert_false(accepts(c, SKILL_INTERACTIVE,
                         "{\"__SKILL_DONE__\":false,\"message\":\"\","
                         "\"ui_hints\":{}}"));
    assert_false(accepts(c, SKILL_INTERACTIVE, "{\"__SKILL_DONE__\":false,\"message\":\"x\"}"));
}

/* One of several objects, by reference, none of which allows other fields. */
static void test_branches(void **state)
{
    struct skill_case *c = *state;
    open_with(c, "{\"oneOf\":[{\"$ref\":\"#/$defs/a\"},{\"type\":\"object\",\"properties\":{\"b\":{"
                 "\"const\":2}},\"required\":[\"b\"],\"additionalProperties\":false}],\"$defs\":{"
                 "\"a\":{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#/$defs/n\"}},"
                 "\"required\":[\"a\"],\"additionalProperties\":false},\"n\":{\"type\":"
                 "\"integer\"}}}");
    for (unsigned mode = SKILL_AUTO; mode <= SKILL_INTERACTIVE; mode++) {
        assert_true(accepts(c, (enum skill_mode)mode, "{\"a\":1,\"__SKILL_DONE__\":true}"));
        assert_true(accepts(c, (enum skill_mode)mode, "{\"b\":2,\"__SKILL_DONE__\":true}"));
        assert_true(accepts(c, (enum skill_mode)mode, "{\"b\":2}"));
        assert_false(accepts(c, (enum skill_mode)mode, "{\"a\":\"x\",\"__SKILL_DONE__\":true}"));
    }
}

static void test_answers(void **state)
{
    struct skill_case *c = *state;
    struct skill_answer a;
    open_with(c, OUTPUT);
    skill_answer_read(c->arena, c->skill, case_json(c, DONE), &a);
    assert_true(a.done);
    expect_json(c, a.data, FINAL);
    skill_answer_read(c->arena, c->skill, case_json(c, FINAL), &a);
    assert_true(a.done);
    skill_answer_read(c->arena, c->skill, case_json(c, QUESTION), &a);
    assert_false(a.done);
    assert_string_equal(a.message, "which?");
    expect_json(c, a.ui_hints, "{\"kind\":\"confirm\"}");
    /* a package whose own schema has the marker keeps it */
    open_with(c,
              "{\"type\":\"object\",\"properties\":{\"__SKILL_DONE__\":{\"type\":\"boolean\"}}}");
    skill_answer_read(c->arena, c->skill, case_json(c, "{\"__SKILL_DONE__\":true}"), &a);
    expect_json(c, a.data, "{\"__SKILL_DONE__\":true}");
    case_put(c, "plain.md", CARD("plain"));
    assert_null(skill_contract(c->arena, case_open(c, "plain.md"), SKILL_AUTO));
}

static const char *written(struct skill_case *c, enum skill_mode mode)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    assert_int_equal(skill_contract_write(c->skill, mode, NULL, &out, &c->e), 0);
    return arena_dup(c->arena, buf_str(&out));
}

static void test_text(void **state)
{
    struct skill_case *c = *state;
    open_with(c,
              "{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\",\"minimum\":2,"
              "\"description\":\"how | many\\nthere are\"},\"kind\":{\"enum\":[\"a\",\"b\"]},"
              "\"rows\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{\"x\":{"
              "\"type\":[\"number\",\"null\"]}}}},\"file\":{\"type\":\"string\",\"x-type\":"
              "\"file\",\"x-filename\":\"out.md\"}},\"required\":[\"n\"],"
              "\"additionalProperties\":false}");
    assert_string_equal(
        written(c, SKILL_AUTO),
        "| field | type | required | what it is |\n| --- | --- | --- | --- |\n"
        "| `__SKILL_DONE__` | `true` | yes | the task is done |\n"
        "| `n` | integer | yes | how \\| many there are |\n"
        "| `kind` | one of `\"a\"`, `\"b\"` | no |  |\n"
        "| `rows` | array of object | no |  |\n"
        "| `file` | string | no | Path of a file that was written |\n"
        "\nNo other fields are allowed.\n\nFor example:\n\n```json\n{\n"
        "  \"__SKILL_DONE__\": true,\n  \"n\": 2,\n  \"kind\": \"a\",\n  \"rows\": [\n    {\n"
        "      \"x\": 0\n    }\n  ],\n  \"file\": \"artifacts/out.md\"\n}\n```\n");
    assert_null(strstr(written(c, SKILL_AUTO), "\"message\""));
    assert_non_null(strstr(written(c, SKILL_INTERACTIVE), "\"message\""));
}

static void test_text_of_branches(void **state)
{
    struct skill_case *c = *state;
    open_with(c,
              "{\"oneOf\":[{\"$ref\":\"#/$defs/ok\"},{\"type\":\"object\",\"properties\":{\"why\":{"
              "\"type\":\"string\"}}}],\"$defs\":{\"ok\":{\"type\":\"object\",\"properties\":{"
              "\"sum\":{\"type\":\"number\"}}}}}");
    const char *text = written(c, SKILL_AUTO);
    assert_non_null(strstr(text, "Form 1:\n\n| field"));
    assert_non_null(strstr(text, "| `sum` | number |"));
    assert_non_null(strstr(text, "Form 2:\n\n| field"));
    assert_non_null(strstr(text, "| `why` | string |"));
}

/* References that fan out at every level: the walk must not. */
static void test_wide_schemas_end(void **state)
{
    struct skill_case *c = *state;
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    buf_adds(&text, "{\"oneOf\":[{\"$ref\":\"#/$defs/0\"}],\"$defs\":{");
    for (int level = 0; level < 8; level++) {
        buf_addf(&text, "%s\"%d\":{\"anyOf\":[", level > 0 ? "," : "", level);
        for (int i = 0; i < 30; i++) {
            buf_addf(&text, "%s{\"$ref\":\"#/$defs/%d\"}", i > 0 ? "," : "", level + 1);
        }
        buf_adds(&text, "]}");
    }
    buf_adds(&text,
             ",\"8\":{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#/$defs/0\"}}}}}");
    open_with(c, text.ptr);
    (void)skill_contract(c->arena, c->skill, SKILL_INTERACTIVE);
    struct skill_answer a;
    skill_answer_read(c->arena, c->skill, case_json(c, "{}"), &a);
    CLEANUP(buf) struct buf out = BUF_INIT(1 << 18);
    (void)!skill_contract_write(c->skill, SKILL_AUTO, NULL, &out, &c->e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SKILL_TEST(test_auto),
        SKILL_TEST(test_interactive),
        SKILL_TEST(test_branches),
        SKILL_TEST(test_answers),
        SKILL_TEST(test_text),
        SKILL_TEST(test_text_of_branches),
        SKILL_TEST(test_wide_schemas_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
