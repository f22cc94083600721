/* SPDX-License-Identifier: MIT
 *
 * What is appended to SKILL.md: each section once, in order, and only where it belongs.
 */
#include "skill/skill_patch.h"

#include "skill_case.h"

static const char *patch(struct skill_case *c, enum skill_mode mode, const char *text)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    struct skill_patch p = { .mode = mode, .artifacts_dir = "/r/artifacts" };
    if (skill_patch_write(c->skill, &p, str_of(text), &out, &c->e) != 0) {
        fail_msg("%s", c->e.msg);
    }
    return arena_dup(c->arena, buf_str(&out));
}

static size_t count(const char *text, const char *part)
{
    size_t n = 0;
    for (const char *p = strstr(text, part); p != NULL; p = strstr(p + 1, part)) {
        n++;
    }
    return n;
}

static void test_sections_in_order(void **state)
{
    static const char *const names[] = { "runtime", "artifacts", "output-format", "output-details",
                                         "mode-auto" };
    struct skill_case *c = *state;
    case_package(c, RUNNER);
    (void)case_open(c, "hello");
    const char *text = patch(c, SKILL_AUTO, "Do it.");
    const char *at = text;
    assert_true(str_starts(str_of(text), STR("Do it.\n\n<!-- cinch: runtime -->\n")));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *marker = arena_printf(c->arena, "\n<!-- cinch: %s -->\n", names[i]);
        assert_int_equal(count(text, marker), 1);
        assert_true(strstr(text, marker) >= at);
        at = strstr(text, marker);
    }
    assert_null(strstr(text, "mode-interactive"));
    assert_non_null(strstr(text, "- report (`report`): into `/r/artifacts/`\n"));
    assert_non_null(strstr(text, "| `count` | integer | yes |"));
    assert_non_null(strstr(patch(c, SKILL_INTERACTIVE, ""), "<!-- cinch: mode-interactive -->"));
    assert_null(strstr(patch(c, SKILL_INTERACTIVE, ""), "mode-auto"));
}

static void test_twice_is_once(void **state)
{
    struct skill_case *c = *state;
    case_package(c, RUNNER);
    (void)case_open(c, "hello");
    const char *once = patch(c, SKILL_AUTO, "Do it.\n");
    assert_string_equal(patch(c, SKILL_AUTO, once), once);
    /* each section is guarded by its own marker */
    const char *some = patch(c, SKILL_AUTO, "Do it.\n\n<!-- cinch: output-format -->\nMine.\n");
    assert_int_equal(count(some, "<!-- cinch: output-format -->"), 1);
    assert_int_equal(count(some, "## Answer"), 0);
    assert_int_equal(count(some, "<!-- cinch: runtime -->"), 1);
    /* a text about markers is no marker */
    const char *prose = patch(c, SKILL_AUTO, "Say `<!-- cinch: runtime -->`.\n");
    assert_int_equal(count(prose, "# Runtime rules"), 1);
}

static void test_artifacts_only_if_there_are_any(void **state)
{
    struct skill_case *c = *state;
    case_package(c, RUNNER);
    case_put(c, "hello/assets/output.schema.json", "{\"type\": \"object\"}");
    (void)case_open(c, "hello");
    assert_null(strstr(patch(c, SKILL_AUTO, ""), "artifacts"));
    case_package(
        c, "{\"id\":\"hello\",\"execution_modes\":[\"auto\"],\"artifacts\":[{\"role\":\"log\","
           "\"pattern\":\"*.log\"}]}");
    (void)case_open(c, "hello");
    assert_non_null(
        strstr(patch(c, SKILL_AUTO, ""), "- log (`*.log`): into `/r/artifacts/`, if there is one"));
}

static void test_plain_skill_is_left_alone(void **state)
{
    struct skill_case *c = *state;
    case_put(c, "plain.md", CARD("plain"));
    (void)case_open(c, "plain.md");
    assert_string_equal(patch(c, SKILL_AUTO, "text"), "text");
}

static void test_contract_too_long(void **state)
{
    struct skill_case *c = *state;
    CLEANUP(buf) struct buf schema = BUF_INIT(BUF_TEXT);
    buf_adds(&schema, "{\"type\":\"object\",\"properties\":{");
    for (int i = 0; i < 990; i++) {
        buf_addf(&schema, "%s\"p%d\":{\"description\":\"%0400d\"}", i > 0 ? "," : "", i, 0);
    }
    buf_adds(&schema, "}}");
    case_package(c, RUNNER);
    case_put(c, "hello/assets/output.schema.json", schema.ptr);
    (void)case_open(c, "hello");
    struct skill_patch p = { .mode = SKILL_AUTO };
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    assert_int_equal(skill_patch_write(c->skill, &p, STR("x"), &out, &c->e), -ERR_CONFIG);
    expect_message(c, "skill 'hello': section 'output-details' of the patch");
    assert_int_equal(out.len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SKILL_TEST(test_sections_in_order),
        SKILL_TEST(test_twice_is_once),
        SKILL_TEST(test_artifacts_only_if_there_are_any),
        SKILL_TEST(test_plain_skill_is_left_alone),
        SKILL_TEST(test_contract_too_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
