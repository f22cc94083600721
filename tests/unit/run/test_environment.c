/* SPDX-License-Identifier: MIT
 *
 * The child gets what was said and nothing else.
 */
#include "run/environment.h"
#include "values.h"

static const char *value(const struct environment *env, const char *name)
{
    size_t n = strlen(name);
    for (char **p = env->envp; *p != NULL; p++) {
        if (strncmp(*p, name, n) == 0 && (*p)[n] == '=') {
            return *p + n + 1;
        }
    }
    return NULL;
}

static const char *const caller[] = {
    "PATH=/bin", "HOME=/home/me", "LC_ALL=C",         "SECRET_THING=zzzzzzzz",
    "EXTRA=1",   "CLAUDECODE=1",  "XDG_DATA_HOME=/x", "bad name=value",
    NULL
};
static const struct secrets none = { 0 };

static void build(struct environment_input in, struct environment *ret)
{
    struct err e;
    in.caller = caller;
    in.secrets = in.secrets == NULL ? &none : in.secrets;
    in.timeout = in.settings->timeout;
    if (environment_build(arena, &in, ret, &e) < 0) {
        fail_msg("%s", e.msg);
    }
}

static void test_clean_by_default(void **state)
{
    struct environment env;
    struct settings s = { .timeout = 1500 * NSEC_PER_MS };
    build((struct environment_input) { .settings = &s, .home = "/run/home" }, &env);
    assert_string_equal(value(&env, "PATH"), "/bin");
    assert_string_equal(value(&env, "LC_ALL"), "C");
    assert_string_equal(value(&env, "HOME"), "/run/home");
    assert_string_equal(value(&env, "TERM"), "dumb");
    assert_string_equal(value(&env, "GIT_TERMINAL_PROMPT"), "0");
    assert_string_equal(value(&env, "RUN_NUMBER"), "01");
    assert_string_equal(value(&env, "TIMEOUT"), "2");
    assert_null(value(&env, "EXTRA"));
    assert_null(value(&env, "SECRET_THING"));
    assert_null(value(&env, "MODEL"));
    assert_null(value(&env, "TOOLS_ENABLED"));
}

static void test_inherit(void **state)
{
    struct environment env;
    struct settings s = { .timeout = 1, .env_inherit = true };
    build((struct environment_input) { .settings = &s }, &env);
    assert_string_equal(value(&env, "EXTRA"), "1");
    assert_string_equal(value(&env, "HOME"), "/home/me");
    assert_string_equal(value(&env, "XDG_DATA_HOME"), "/x");
    assert_null(value(&env, "CLAUDECODE"));
    assert_string_equal(value(&env, "TERM"), "dumb");
    build((struct environment_input) { .settings = &s, .home = "/h" }, &env);
    assert_null(value(&env, "XDG_DATA_HOME"));
}

static void test_order_and_contract(void **state)
{
    struct environment env;
    struct settings s = {
        .timeout = 600 * NSEC_PER_SEC,
        .model = "m",
        .tier = "T2",
        .test_id = "t",
        .run_number = 9,
        .tools_enabled = TRI_TRUE,
        .delegation_enabled = TRI_FALSE,
        .env_pass = tree("[EXTRA, NOT_THERE]"),
        .env_set = tree("{TERM: xterm, N: 5, Z_TOKEN: hidden-value}"),
    };
    struct secret one = { "K", { "sec", 3 }, true };
    struct secrets secrets = { .items = &one, .len = 1 };
    build((struct environment_input) { .settings = &s,
                                       .secrets = &secrets,
                                       .adapter_env = tree("{TERM: vt100, A: b}") },
          &env);
    assert_string_equal(value(&env, "TERM"), "xterm");
    assert_string_equal(value(&env, "A"), "b");
    assert_string_equal(value(&env, "N"), "5");
    assert_string_equal(value(&env, "EXTRA"), "1");
    assert_string_equal(value(&env, "K"), "sec");
    assert_string_equal(value(&env, "MODEL"), "m");
    assert_string_equal(value(&env, "TIER"), "T2");
    assert_string_equal(value(&env, "TEST_ID"), "t");
    assert_string_equal(value(&env, "RUN_NUMBER"), "09");
    assert_string_equal(value(&env, "TIMEOUT"), "600");
    assert_string_equal(value(&env, "TOOLS_ENABLED"), "true");
    assert_string_equal(value(&env, "DELEGATION_ENABLED"), "false");

    CLEANUP(buf) struct buf shown = BUF_INIT(BUF_TEXT);
    assert_int_equal(json_write(env.names, JSON_COMPACT, &shown, NULL), 0);
    assert_null(strstr(shown.ptr, "\"sec\""));
    assert_null(strstr(shown.ptr, "hidden-value"));
    assert_non_null(strstr(shown.ptr, "{\"name\":\"N\",\"value\":\"5\",\"origin\":\"task\"}"));
}

static void test_bad_names(void **state)
{
    struct err e;
    struct environment env;
    struct settings s = { .timeout = 1, .env_set = tree("{'A=B': x}") };
    struct environment_input in = { .settings = &s, .secrets = &none, .caller = caller };
    assert_int_equal(environment_build(arena, &in, &env, &e), -ERR_CONFIG);
    s.env_set = tree("{A: \"x\\0y\"}");
    assert_int_equal(environment_build(arena, &in, &env, &e), -ERR_CONFIG);
    s.env_set = NULL;
    s.env_pass = tree("['1A']");
    assert_int_equal(environment_build(arena, &in, &env, &e), -ERR_CONFIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_clean_by_default, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(test_inherit, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(test_order_and_contract, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(test_bad_names, arena_setup, arena_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
