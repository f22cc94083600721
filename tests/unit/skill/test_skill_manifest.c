/* SPDX-License-Identifier: MIT
 *
 * assets/runner.json: what it may say, and the line that is wrong where it says something else.
 */
#include "skill/skill_manifest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"

static struct arena *arena;
static struct skill_manifest m;
static struct err e;

static int set_up(void **state)
{
    arena = arena_new();
    return 0;
}

static int tear_down(void **state)
{
    arena = arena_free(arena);
    return 0;
}

static void expect_good(const char *text)
{
    if (skill_manifest_parse(arena, str_of(text), "runner.json", &m, &e) != 0) {
        fail_msg("%s", e.msg);
    }
}

static void expect_bad(const char *text, const char *message)
{
    assert_int_equal(skill_manifest_parse(arena, str_of(text), "runner.json", &m, &e), -ERR_CONFIG);
    if (strstr(e.msg, message) == NULL) {
        fail_msg("'%s' does not say '%s'", e.msg, message);
    }
}

/* The least there must be, and something more. */
static const char *with(const char *more)
{
    return arena_printf(arena, "{\"id\": \"a\", \"execution_modes\": [\"auto\"],\n%s}", more);
}

static void test_all_fields(void **state)
{
    expect_good(
        "{\"id\": \"pdf-x\", \"version\": \"1.20.3\", \"name\": \"anything\","
        "\"execution_modes\": [\"interactive\", \"auto\"], \"max_attempt\": 3,"
        "\"engines\": [\"codex\", \"claude\"], \"unsupported_engines\": [\"gemini\"],"
        "\"schemas\": {\"input\": \"assets/in.json\", \"output\": \"out.json\"},"
        "\"entrypoint\": {\"prompts\": {\"common\": \"x\"}, \"result_json_filename\": \"r\"},"
        "\"engine_configs\": {\"codex\": \"c.toml\"},"
        "\"mcp\": {\"required_servers\": [\"zotero\"]},"
        "\"runtime\": {\"language\": \"python\", \"dependencies\": [\"pandas>=2\", \"x\"],"
        "\"default_options\": {\"a\": 1}},"
        "\"artifacts\": [{\"role\": \"r\", \"pattern\": \"*.md\", \"required\": true}]}");
    assert_string_equal(m.id, "pdf-x");
    assert_string_equal(m.version, "1.20.3");
    assert_int_equal(m.modes, SKILL_AUTO | SKILL_INTERACTIVE);
    assert_int_equal(m.max_attempt, 3);
    assert_string_equal(m.schemas[SKILL_INPUT], "assets/in.json");
    assert_null(m.schemas[SKILL_PARAMETER]);
    assert_string_equal(m.schemas[SKILL_OUTPUT], "out.json");
    assert_string_equal(m.result_json_filename, "r");
    assert_int_equal(json_len(m.dependencies), 2);
    assert_int_equal(json_len(m.required_servers), 1);
    assert_int_equal(json_len(m.artifacts), 1);
}

static void test_required(void **state)
{
    expect_good("{\"id\": \"a\", \"execution_modes\": [\"auto\"]}");
    assert_null(m.version);
    expect_bad("{\"execution_modes\": [\"auto\"]}", "runner.json:1:1: 'id' is missing");
    expect_good("{\"id\": \"a\"}"); /* from before there were modes */
    expect_bad("{\"id\": \"a\", \"execution_modes\": []}", "runner.json:1:32: 'execution_modes'");
    expect_bad("{\"id\": \"a\", \"execution_modes\": [\"batch\"]}",
               "'auto' and 'interactive' only");
    expect_bad("{\"id\": \"a\", \"execution_modes\": [\"auto\", \"auto\"]}", "twice");
    expect_bad("{\"id\": \"A b\", \"execution_modes\": [\"auto\"]}",
               "runner.json:1:8: 'id' must be");
    expect_bad("{\"id\": 4, \"execution_modes\": [\"auto\"]}", "'id' must be a string");
}

static void test_syntax(void **state)
{
    expect_bad("", "runner.json:1:1: ");
    expect_bad("{\n\"id\": \"a\",\n}", "runner.json:2:10: ");
    expect_bad("{\"id\": \"a\", \"id\": \"b\"}", "runner.json:1:13: ");
    expect_bad("[]", "runner.json:1:1: must be an object");
}

static void test_versions(void **state)
{
    static const char *const bad[] = { "1.", ".1", "1..2", "v1", "1.0-beta", "x" };
    expect_good(with("\"version\": \"0\""));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        expect_bad(with(arena_printf(arena, "\"version\": \"%s\"", bad[i])),
                   "runner.json:2:12: 'version' must be numbers");
    }
    expect_bad(with("\"version\": 1.0"), "'version' must be a string");
}

static void test_engines(void **state)
{
    expect_good(with("\"engines\": [\"codex\"]"));
    assert_true(skill_manifest_allows(&m, STR("codex")));
    assert_false(skill_manifest_allows(&m, STR("claude")));
    expect_good(with("\"unsupported_engines\": [\"codex\"]"));
    assert_false(skill_manifest_allows(&m, STR("codex")));
    assert_true(skill_manifest_allows(&m, STR("something-new")));
    expect_good(with("\"other\": 1"));
    assert_true(skill_manifest_allows(&m, STR("codex")));
    expect_bad(with("\"engines\": []"), "'engines' is empty");
    expect_bad(with("\"engines\": [\"a\"], \"unsupported_engines\": [\"b\", \"a\"]"),
               "runner.json:2:48: 'unsupported_engines' names an engine that 'engines' allows");
    expect_bad(with("\"unsupport_engine\": [\"a\"]"), "now spelt 'unsupported_engines'");
    expect_bad(with("\"engines\": \"codex\""), "must be a list");
    expect_bad(with("\"engines\": [1]"), "must hold strings");
}

static void test_paths_stay_inside(void **state)
{
    static const char *const bad[] = { "/etc/passwd", "../x.json", "a/../../x", "a\\\\b", "C:/x" };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        expect_bad(with(arena_printf(arena, "\"schemas\": {\"output\": \"%s\"}", bad[i])),
                   "'schemas.output' must be a path inside the package");
        expect_bad(with(arena_printf(arena, "\"engine_configs\": {\"codex\": \"%s\"}", bad[i])),
                   "'engine_configs' must be a path inside the package");
    }
}

static void test_types(void **state)
{
    static const char *const list[][2] = {
        { "\"max_attempt\": 0", "'max_attempt' must be a whole number from 1" },
        { "\"max_attempt\": 1.5", "'max_attempt' must be" },
        { "\"schemas\": []", "'schemas' must be an object" },
        { "\"schemas\": {\"input\": 1}", "'schemas.input' must be a string" },
        { "\"entrypoint\": 1", "'entrypoint' must be an object" },
        { "\"entrypoint\": {\"prompts\": []}", "'entrypoint.prompts' must be an object" },
        { "\"entrypoint\": {\"prompts\": {\"a\": 1}}", "templates, which are strings" },
        { "\"runtime\": {\"dependencies\": \"x\"}", "'runtime.dependencies' must be a list" },
        { "\"runtime\": {\"dependencies\": [\"--index-url=x\"]}", "must not begin with '-'" },
        { "\"runtime\": {\"dependencies\": [\"a\\nb\"]}", "control character" },
        { "\"runtime\": {\"default_options\": 1}", "'runtime.default_options' must be an object" },
        { "\"mcp\": {\"required_servers\": [\"\"]}", "'mcp.required_servers' must hold strings" },
        { "\"artifacts\": {}", "'artifacts' must be a list" },
        { "\"artifacts\": [{\"role\": \"a\"}]", "'role' and 'pattern'" },
        { "\"engine_configs\": {\"a\": 1}", "must map engines to paths" },
    };
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        expect_bad(with(list[i][0]), list[i][1]);
        assert_non_null(strstr(e.msg, "runner.json:2:"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_all_fields, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_required, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_syntax, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_versions, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_engines, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_paths_stay_inside, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_types, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
