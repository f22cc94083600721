/* SPDX-License-Identifier: MIT
 *
 * Commands of uv for a skill's dependencies, and what is read from its settings and output.
 */
#include "skill/skill_dependencies.h"

#include "skill_case.h"

#define MANIFEST(list) \
    "{\"id\":\"hello\",\"execution_modes\":[\"auto\"],\"runtime\":{\"dependencies\":[" list "]}}"

static struct skill *with(struct skill_case *c, const char *manifest)
{
    case_package(c, manifest);
    return case_open(c, "hello");
}

static void expect_words(const char *const *argv, const char *words)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    for (size_t i = 0; argv[i] != NULL; i++) {
        buf_addf(&text, "%s%s", i > 0 ? "|" : "", argv[i]);
    }
    assert_string_equal(text.ptr == NULL ? "" : text.ptr, words);
}

static void test_commands(void **state)
{
    struct skill_case *c = *state;
    struct skill *s = with(c, MANIFEST("\"pandas>=2\",\"a @ file:///x\""));
    expect_words(skill_uv_venv(c->arena, NULL, "/d"),
                 "uv|venv|--quiet|--color|never|--no-project|--relocatable|/d");
    expect_words(skill_uv_venv(c->arena, "/p", "/d"),
                 "uv|venv|--quiet|--color|never|--no-project|--relocatable|/d|--python|/p");
    expect_words(
        skill_uv_install(c->arena, s, "/d", true),
        "uv|pip|install|--quiet|--color|never|--python|/d/bin/python|--only-binary|:all:|--|"
        "pandas>=2|a @ file:///x");
    expect_words(
        skill_uv_install(c->arena, s, "/d", false),
        "uv|pip|install|--quiet|--color|never|--python|/d/bin/python|--|pandas>=2|a @ file:///x");
}

static const char *key(struct skill_case *c, const struct skill *s, const char *version,
                       const char *python, const char *variable)
{
    const char *variables[] = { "HOME=/h", variable, NULL };
    return skill_dependencies_key(c->arena, s,
                                  &(struct skill_dependencies_key) { .uv_version = version,
                                                                     .python = python,
                                                                     .variables = variables });
}

static void test_key(void **state)
{
    struct skill_case *c = *state;
    struct skill *s = with(c, MANIFEST("\"pandas>=2\",\"b\""));
    const char *first = key(c, s, "uv 1\n", "/p", NULL);
    assert_int_equal(strlen(first), 64);
    assert_string_equal(key(c, s, "uv 1", "/p", "UV_CACHE_DIR=/elsewhere"), first);
    assert_string_not_equal(key(c, s, "uv 2", "/p", NULL), first);
    assert_string_not_equal(key(c, s, "uv 1", "/q", NULL), first);
    assert_string_not_equal(key(c, s, "uv 1", NULL, NULL), first);
    assert_string_not_equal(key(c, s, "uv 1", "/p", "UV_INDEX_URL=http://x"), first);
    s = with(c, MANIFEST("\"b\",\"pandas>=2\""));
    assert_string_equal(key(c, s, "uv 1", "/p", NULL), first);
    s = with(c, MANIFEST("\"b\",\"pandas>=3\""));
    assert_string_not_equal(key(c, s, "uv 1", "/p", NULL), first);
}

static void test_none(void **state)
{
    struct skill_case *c = *state;
    assert_null(skill_dependencies(with(c, RUNNER)));
    assert_null(skill_dependencies(with(c, MANIFEST(""))));
    case_put(c, "plain.md", CARD("plain"));
    assert_null(skill_dependencies(case_open(c, "plain.md")));
}

static void test_failure(void **state)
{
    struct skill_case *c = *state;
    struct skill *s = with(c, MANIFEST("\"pandas>=2\",\"Old_Name[x] ; a\",\"pan\""));
    assert_string_equal(
        skill_uv_failure(
            c->arena, s,
            STR("error: No solution\n  cause: Because old-name==1 is\n\nhint: try it\n")),
        "uv could not install Old_Name[x] ; a: No solution; Because old-name==1 is");
    assert_string_equal(skill_uv_failure(c->arena, s, STR("  × No\n  ╰─▶ Because pandas is\n")),
                        "uv could not install pandas>=2: No; Because pandas is");
    assert_string_equal(skill_uv_failure(c->arena, s, STR_EMPTY),
                        "uv could not install pandas>=2, Old_Name[x] ; a, pan");
    /* whatever it prints: bounded, and text */
    char noise[5000];
    memset(noise, 'x', sizeof noise);
    assert_true(strlen(skill_uv_failure(c->arena, s, str_n(noise, sizeof noise))) < 700);
    memset(noise, 0xe2, sizeof noise);
    assert_true(str_is_utf8(str_of(skill_uv_failure(c->arena, s, str_n(noise, sizeof noise)))));
    assert_true(skill_uv_lacks_wheel(STR("x has no usable wheels")));
    assert_true(skill_uv_lacks_wheel(STR("building source is disabled")));
    assert_false(skill_uv_lacks_wheel(STR("was not found in the package registry")));
}

static void expect_sources(struct skill_case *c, const char *variable, const char *config,
                           const char *hosts, const char *paths)
{
    const char *variables[] = { "PATH=/bin", variable, NULL };
    struct skill_uv_sources sources;
    skill_uv_sources(c->arena, variables, str_of(config), &sources);
    expect_words(sources.hosts, hosts);
    expect_words(sources.paths, paths);
}

static void test_sources(void **state)
{
    struct skill_case *c = *state;
    expect_sources(c, NULL, "", "pypi.org|files.pythonhosted.org", "");
    expect_sources(c, "UV_DEFAULT_INDEX=https://u:p@idx.example:8080/simple?a=@b", "",
                   "idx.example:8080", "");
    expect_sources(c, "UV_INDEX_URL=https://pypi.org/simple", "", "pypi.org|files.pythonhosted.org",
                   "");
    expect_sources(c, "UV_INDEX=one=http://a/x  two=http://b/y", "",
                   "a|b|pypi.org|files.pythonhosted.org", "");
    expect_sources(c, "UV_FIND_LINKS=/w,http://c,file:///v", "",
                   "c|pypi.org|files.pythonhosted.org", "/w|/v");
    expect_sources(c, "UV_DEFAULT_INDEX=", "", "pypi.org|files.pythonhosted.org", "");
    expect_sources(c, NULL, "[[index]]\nurl = \"https://d/s\"\ndefault = true\n", "d", "");
    expect_sources(c, NULL,
                   "[pip]\nindex-url = \"https://e/s\"\nextra-index-url = [\"https://f\"]\n", "e|f",
                   "");
    expect_sources(c, "UV_INDEX=http://a", "not toml", "a|pypi.org|files.pythonhosted.org", "");
    expect_sources(c, "UV_INDEX=http:// :// =://", "", "pypi.org|files.pythonhosted.org", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SKILL_TEST(test_commands), SKILL_TEST(test_key),     SKILL_TEST(test_none),
        SKILL_TEST(test_failure),  SKILL_TEST(test_sources),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
