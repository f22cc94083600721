/* SPDX-License-Identifier: MIT
 *
 * How each engine is told to use a skill, and the command line that brings its dependencies.
 */
#include "skill/skill_engine.h"

#include "skill_case.h"

static void expect_invoke(const char *invoke, const char *dir, const char *line)
{
    CLEANUP(buf) struct buf out = BUF_INIT(1000);
    struct skill_engine engine = { .name = "x", .invoke = invoke };
    assert_int_equal(skill_engine_invoke(&engine, "pdf", dir, &out, NULL), 0);
    assert_string_equal(out.ptr, line);
}

static void test_invoke(void **state)
{
    (void)state;
    expect_invoke("${skill}", "/s", "$pdf");
    expect_invoke("/{skill}", "/s", "/pdf");
    expect_invoke("/{skill} invoke", "/s", "/pdf invoke");
    expect_invoke("Use the skill named {skill}.", "/s", "Use the skill named pdf.");
    expect_invoke("Go.", "/s", "Go.");
    expect_invoke(NULL, NULL, "Use the skill named pdf.");
    expect_invoke(NULL, "/s/pdf",
                  "Use the skill named pdf: read /s/pdf/SKILL.md first and do what it says.");
}

static void expect_argv(const char *const *argv, const char *words)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    for (size_t i = 0; argv[i] != NULL; i++) {
        buf_addf(&text, "%s%s", i > 0 ? "|" : "", argv[i]);
    }
    assert_string_equal(text.ptr == NULL ? "" : text.ptr, words);
}

static void test_dependencies(void **state)
{
    struct skill_case *c = *state;
    case_package(c,
                 "{\"id\":\"hello\",\"execution_modes\":[\"auto\"],\"runtime\":{\"dependencies\":["
                 "\"pandas>=2\",\"a b\"]}}");
    struct skill *s = case_open(c, "hello");
    expect_argv(skill_runtime_prefix(c->arena, s), "uv|run|--with|pandas>=2|--with|a b|--");
    expect_argv(skill_runtime_probe(c->arena, s),
                "uv|run|--with|pandas>=2|--with|a b|--|python|-c|print('ok')");
    const char *key = skill_probe_key(c->arena, s, "uv 0.5.1\n");
    assert_int_equal(strlen(key), 64);
    /* the order of the list does not matter, its content and the version do */
    case_package(c,
                 "{\"id\":\"hello\",\"execution_modes\":[\"auto\"],\"runtime\":{\"dependencies\":["
                 "\"a b\",\"pandas>=2\"]}}");
    s = case_open(c, "hello");
    assert_string_equal(skill_probe_key(c->arena, s, "uv 0.5.1"), key);
    assert_string_not_equal(skill_probe_key(c->arena, s, "uv 0.5.2"), key);
    case_package(c,
                 "{\"id\":\"hello\",\"execution_modes\":[\"auto\"],\"runtime\":{\"dependencies\":["
                 "\"a b\",\"pandas>=3\"]}}");
    s = case_open(c, "hello");
    assert_string_not_equal(skill_probe_key(c->arena, s, "uv 0.5.1"), key);
}

static void test_no_dependencies(void **state)
{
    struct skill_case *c = *state;
    case_package(c, RUNNER);
    expect_argv(skill_runtime_prefix(c->arena, case_open(c, "hello")), "");
    assert_null(skill_runtime_probe(c->arena, c->skill));
    assert_non_null(skill_probe_key(c->arena, c->skill, "uv 1"));
    case_put(c, "plain.md", CARD("plain"));
    expect_argv(skill_runtime_prefix(c->arena, case_open(c, "plain.md")), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SKILL_TEST(test_invoke),
        SKILL_TEST(test_dependencies),
        SKILL_TEST(test_no_dependencies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
