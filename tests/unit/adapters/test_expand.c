/* SPDX-License-Identifier: MIT
 *
 * Placeholders: profiles are strict, the user's own words are left alone.
 */
#include "adapters/expand.h"

#include "adapters/profile.h"
#include "values.h"

static const struct placeholder fixed[] = {
    { .name = "model", .value = { "m-1", 3 } },
    { .name = "prompt", .value = { "{model} stays", 13 } },
    { .name = "empty", .value = { NULL, 0 } },
};
static const struct placeholders vars = { fixed, ARRAY_LEN(fixed) };

static void expect_text(const char *text, bool strict, const char *want)
{
    struct err e;
    struct str got;
    assert_int_equal(expand_text(arena, str_of(text), &vars, strict, &got, &e), 0);
    assert_string_equal(got.ptr, want);
}

static void test_text(void **state)
{
    expect_text("", true, "");
    expect_text("--model={model}!", true, "--model=m-1!");
    expect_text("{empty}", true, "");
    expect_text("{empty|x y}, {model|x}, {empty|}", true, "x y, m-1, ");
    expect_text("{empty|x", true, "{empty|x");
    expect_text("{model?x y}, {empty?x}, {model?}", true, "x y, , ");
    expect_text("{model?x", true, "{model?x");
    expect_text("{prompt}", true, "{model} stays"); /* values are not expanded again */
    expect_text("{\"a\": 1} {nobody} {model", false, "{\"a\": 1} {nobody} {model");
    expect_text("{{model}}", false, "{m-1}");
}

static void test_unknown_is_an_error_in_a_profile(void **state)
{
    struct err e;
    struct str got;
    assert_int_equal(expand_text(arena, STR("x {nobody}"), &vars, true, &got, &e), -ERR_CONFIG);
    assert_string_equal(e.msg, "unknown placeholder {nobody}");
}

static void test_trees(void **state)
{
    struct err e;
    struct json *tree;
    struct json *got;
    assert_int_equal(yaml_parse(arena, STR("{'{model}': [1, {a: 'x {model}'}], '{b}': true}"), "t",
                                NULL, &tree, &e),
                     0);
    assert_int_equal(expand_tree(arena, tree, &vars, &got, &e), 0);
    assert_string_equal(json_cstring(json_pointer(got, STR("/m-1/1/a")), ""), "x m-1");
    assert_string_equal(json_cstring(json_pointer(tree, STR("/{model}/1/a")), ""), "x {model}");
    assert_true(json_bool(json_get(got, "{b}"), false)); /* a key need not be a placeholder */
    assert_int_equal(yaml_parse(arena, STR("[['{nobody}']]"), "t", NULL, &tree, &e), 0);
    assert_int_equal(expand_tree(arena, tree, &vars, &got, &e), -ERR_CONFIG);
}

static void test_merged_over(void **state)
{
    struct err e;
    struct json *over;
    struct json *tree;
    assert_int_equal(yaml_parse(arena, STR("{a: {b: 1}, c: 2}"), "t", NULL, &tree, &e), 0);
    struct json *before = tree;
    assert_int_equal(expand_over(arena, NULL, &vars, &tree, &e), 0);
    assert_ptr_equal(tree, before);
    assert_int_equal(yaml_parse(arena, STR("{a: {d: '{model}'}, c: null}"), "t", NULL, &over, &e),
                     0);
    assert_int_equal(expand_over(arena, over, &vars, &tree, &e), 0);
    assert_string_equal(json_cstring(json_pointer(tree, STR("/a/d")), ""), "m-1");
    assert_non_null(json_pointer(tree, STR("/a/b")));
    assert_null(json_get(tree, "c"));
    /* A name that nobody knows leaves the tree as it was. */
    before = tree;
    assert_int_equal(yaml_parse(arena, STR("{a: '{nobody}'}"), "t", NULL, &over, &e), 0);
    assert_int_equal(expand_over(arena, over, &vars, &tree, &e), -ERR_CONFIG);
    assert_ptr_equal(tree, before);
}

static void test_variables(void **state)
{
    struct err e;
    struct json *tree;
    struct json *env = json_object(arena);
    assert_int_equal(expand_env(arena, NULL, &vars, env, &e), 0);
    assert_int_equal(yaml_parse(arena, STR("{A: 'x {model}', B: b}"), "t", NULL, &tree, &e), 0);
    assert_int_equal(expand_env(arena, tree, &vars, env, &e), 0);
    assert_int_equal(json_len(env), 2);
    assert_string_equal(json_cstring(json_get(env, "A"), ""), "x m-1");
    /* What has no value is not set at all; what is meant to be empty is. */
    assert_int_equal(yaml_parse(arena, STR("{D: '{empty}', E: ''}"), "t", NULL, &tree, &e), 0);
    assert_int_equal(expand_env(arena, tree, &vars, env, &e), 0);
    assert_null(json_get(env, "D"));
    assert_string_equal(json_cstring(json_get(env, "E"), "?"), "");
    assert_int_equal(yaml_parse(arena, STR("{C: '{nobody}'}"), "t", NULL, &tree, &e), 0);
    assert_int_equal(expand_env(arena, tree, &vars, env, &e), -ERR_CONFIG);
    assert_string_equal(e.msg, "variable 'C': unknown placeholder {nobody}");
}

static char **expand(const char *argv, const char *command, struct err *e)
{
    struct profile *p;
    struct json *list;
    char **ret = NULL;
    char *text = arena_printf(arena, "name: x\nargv: %s\n", argv);
    assert_int_equal(profile_parse(arena, str_of(text), "p", &p, e), 0);
    assert_int_equal(yaml_parse(arena, str_of(command), "c", NULL, &list, e), 0);
    const struct placeholder with_list[] = {
        fixed[0], fixed[1], fixed[2], { .name = "command", .list = list }
    };
    int r = expand_argv(arena, p, &(struct placeholders) { with_list, 4 }, &ret, e);
    return r < 0 ? NULL : ret;
}

static void test_argv(void **state)
{
    struct err e;
    char **argv = expand("['{command...}', {when: model, args: [-m, '{model}']},"
                         " {when: empty, args: [no]}, {unless: empty, args: [yes]}]",
                         "[prog, '{model}', '{\"j\": 1}']", &e);
    const char *const want[] = { "prog", "m-1", "{\"j\": 1}", "-m", "m-1", "yes", NULL };
    for (size_t i = 0; want[i] != NULL; i++) {
        assert_string_equal(argv[i], want[i]);
    }
    assert_null(argv[6]);
}

static void test_no_command(void **state)
{
    struct err e;
    assert_null(expand("['{command...}']", "[]", &e));
    assert_int_equal(e.code, ERR_USAGE);
    assert_null(expand("['{command...}']", "[\"a\\0b\"]", &e));
    assert_non_null(strstr(e.msg, "NUL"));
    assert_null(expand("['{typo}']", "[]", &e));
    assert_non_null(strstr(e.msg, "unknown placeholder {typo}"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),       cmocka_unit_test(test_unknown_is_an_error_in_a_profile),
        cmocka_unit_test(test_trees),      cmocka_unit_test(test_merged_over),
        cmocka_unit_test(test_variables),  cmocka_unit_test(test_argv),
        cmocka_unit_test(test_no_command),
    };
    return cmocka_run_group_tests(tests, arena_setup, arena_teardown);
}
