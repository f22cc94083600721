/* SPDX-License-Identifier: MIT
 *
 * From files and a request to typed settings: order of layers, shorthands, paths, and what is
 * refused.
 */
#include "run/settings.h"

#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/yaml.h"

static struct arena *arena;
static char root[] = "/tmp/cinch-settings-XXXXXX";

static int setup(void **state)
{
    arena = arena_new();
    (void)snprintf(root, sizeof root, "/tmp/cinch-settings-XXXXXX");
    return mkdtemp(root) == NULL || chdir(root) < 0 ? -1 : 0;
}

static int teardown(void **state)
{
    arena = arena_free(arena);
    return chdir("/") < 0 ? -1 : file_remove_tree(AT_FDCWD, root, NULL);
}

static void put(const char *name, const char *text)
{
    char *slash = strrchr(arena_dup(arena, str_of(name)), '/');
    if (slash != NULL) {
        const char *dir = arena_dup(arena, str_n(name, (size_t)(strrchr(name, '/') - name)));
        assert_int_equal(file_mkdirs(AT_FDCWD, dir, 0755, NULL), 0);
    }
    assert_int_equal(file_write_atomic(AT_FDCWD, name, str_of(text), 0644, NULL), 0);
}

static struct json *request(const char *text)
{
    struct json *t;
    struct err e;
    if (yaml_parse(arena, str_of(text), "request", NULL, &t, &e) < 0) {
        fail_msg("%s", e.msg);
    }
    return t;
}

static void load(const struct settings_input *in, struct settings *s)
{
    struct err e = { 0 };
    if (settings_load(arena, in, s, &e) < 0) {
        fail_msg("%s", e.msg);
    }
}

static void refuse(const struct settings_input *in, enum err_code code, const char *message)
{
    struct err e = { 0 };
    struct settings s;
    assert_int_equal(settings_load(arena, in, &s, &e), -(int)code);
    if (strstr(e.msg, message) == NULL) {
        fail_msg("expected '%s' in '%s'", message, e.msg);
    }
}

static const char *below(const char *name)
{
    return arena_printf(arena, "%s/%s", root, name);
}

static void test_defaults(void **state)
{
    struct settings s;
    load(&(struct settings_input) { 0 }, &s);
    assert_null(s.adapter);
    assert_null(s.profile);
    assert_true(s.timeout == 3600 * NSEC_PER_SEC && s.grace == 5 * NSEC_PER_SEC && s.idle == 0);
    assert_string_equal(s.workspace, root);
    assert_null(s.output_dir);
    assert_string_equal(s.exit_profile, "native");
    assert_int_equal(settings_adapter(&s, &(struct err) { 0 }), -ERR_USAGE);
}

static void test_task_file_with_shorthands(void **state)
{
    struct settings s;
    put("sub/task.yaml", "agent: {command: [./run, '{prompt}'], model: m}\n"
                         "prompt: do it\n"
                         "workspace: ws\n"
                         "output: out\n"
                         "secrets: [TOKEN]\n"
                         "limits: {timeout: 10m, idle: 1.5}\n"
                         "eval: {tools_enabled: false, run_number: 7}\n");
    load(&(struct settings_input) { .task_file = "sub/task.yaml" }, &s);
    assert_string_equal(s.adapter, "command");
    assert_string_equal(json_cstring(json_item(s.command, 0), ""), below("sub/run"));
    assert_true(str_eqc(s.prompt_text, "do it"));
    assert_string_equal(s.workspace, below("sub/ws"));
    assert_string_equal(s.output_dir, below("sub/out"));
    assert_string_equal(json_cstring(json_item(s.secret_names, 0), ""), "TOKEN");
    assert_true(s.timeout == 600 * NSEC_PER_SEC && s.idle == 1500 * NSEC_PER_MS);
    assert_int_equal(s.tools_enabled, TRI_FALSE);
    assert_int_equal(s.delegation_enabled, TRI_UNSET);
    assert_int_equal(s.run_number, 7);
}

static void test_order_of_layers(void **state)
{
    struct settings s;
    struct settings_input in = { .site_dir = "site", .user_dir = "user" };
    put("site/config.yaml", "{agent: {model: site}, limits: {grace: 1, drain: 1, idle: 1}}");
    put("user/config.yaml", "{agent: {model: user}, limits: {drain: 2, idle: 2}}");
    put(".cinch/config.yaml", "{limits: {idle: 3}}");
    load(&in, &s);
    assert_string_equal(s.model, "user");
    assert_true(s.grace == NSEC_PER_SEC && s.drain == 2 * NSEC_PER_SEC &&
                s.idle == 3 * NSEC_PER_SEC);

    put("user/models/v_m.yaml", "{limits: {idle: 4, first_output: 4}}");
    put("user/tiers/T1.yaml", "{limits: {first_output: 5}}");
    put("task.yaml", "{agent: {model: v/m}, eval: {tier: T1}, limits: {grace: null, drain: 6}}");
    in.task_file = "task.yaml";
    in.request = request("{limits: {drain: 7}}");
    load(&in, &s);
    assert_true(s.idle == 4 * NSEC_PER_SEC && s.first_output == 5 * NSEC_PER_SEC);
    assert_true(s.grace == 0 && s.drain == 7 * NSEC_PER_SEC);

    put("site/enforced.yaml", "{limits: {drain: 8}}");
    in.request = request("{limits: {drain: 7}}");
    load(&in, &s);
    assert_true(s.drain == 8 * NSEC_PER_SEC);
}

static void test_rest_is_command_or_arguments(void **state)
{
    struct settings s;
    put("profiles/own.yaml", "name: own\nbinary: [sh]\nargv: ['{binary}', '{args...}']\n");
    const char *const dirs[] = { "profiles", NULL };
    const struct json *rest = request("[./prog, -x]");
    load(&(struct settings_input) { .rest = rest, .request = request("{}") }, &s);
    assert_string_equal(s.adapter, "command");
    assert_string_equal(json_cstring(json_item(s.command, 0), ""), below("prog"));
    assert_null(s.args);
    load(&(struct settings_input) { .rest = rest,
                                    .request = request("{agent: {adapter: own}}"),
                                    .adapter_dirs = dirs },
         &s);
    assert_null(s.command);
    assert_string_equal(json_cstring(json_item(s.args, 0), ""), "./prog");
}

static void test_evaluation_dictionary(void **state)
{
    struct settings s;
    put("dict.json", "{\"tier_id\": \"T1\", \"tier_prompt\": null, \"tools_enabled\": false,"
                     " \"test_id\": \"t-1\", \"api_keys\": {\"X_API_KEY\": \"v\"}, \"other\": 1}");
    load(&(struct settings_input) { .config_file = "dict.json" }, &s);
    assert_string_equal(s.tier, "T1");
    assert_null(s.tier_prompt);
    assert_int_equal(s.tools_enabled, TRI_FALSE);
    assert_string_equal(s.test_id, "t-1");
    assert_int_equal(json_int(json_get(json_get(s.tree, "config"), "other"), 0), 1);
    assert_null(json_get(json_get(s.tree, "config"), "api_keys"));
    assert_string_equal(json_cstring(json_get(s.api_keys, "X_API_KEY"), ""), "v");
}

static void test_what_is_refused(void **state)
{
    struct settings_input in = { .task_file = "task.yaml" };
    put("task.yaml", "limts: {}\n");
    refuse(&in, ERR_CONFIG, "task.yaml:1:1: unknown key 'limts' (did you mean 'limits'?)");
    put("task.yaml", "limits:\n  timeout: soon\n");
    refuse(&in, ERR_CONFIG, "task.yaml:2:12: 'limits.timeout' must be a duration");
    put("task.yaml", "limits: {timeout: -1}\n");
    refuse(&in, ERR_CONFIG, "limits.timeout");
    put("task.yaml", "limits: {timeout: 0}\n");
    refuse(&in, ERR_CONFIG, "task.yaml:1:19: the timeout must be greater than 0");
    put("task.yaml", "a: 1\na: 2\n");
    refuse(&in, ERR_PARSE, "task.yaml:2:1");
    put("task.yaml", "a:\n\tb: 1\n");
    refuse(&in, ERR_PARSE, "task.yaml:2:");
    put("task.yaml", "prompt: {text: a, file: b}\n");
    refuse(&in, ERR_USAGE, "given twice");
    put("task.json", "{\"limits\": {\"timeout\": NaN}}");
    refuse(&(struct settings_input) { .task_file = "task.json" }, ERR_PARSE, "task.json:1:");
    refuse(&(struct settings_input) { .task_file = "none.yaml" }, ERR_INPUT, "none.yaml");
    refuse(&(struct settings_input) { .request = request("{limits: {timeout: 0}}") }, ERR_USAGE,
           "command line");
    put(".cinch/config.yaml", "env: {inherit: true}\n");
    refuse(&(struct settings_input) { 0 }, ERR_CONFIG, "unknown key 'env'");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_defaults, setup, teardown),
        cmocka_unit_test_setup_teardown(test_task_file_with_shorthands, setup, teardown),
        cmocka_unit_test_setup_teardown(test_order_of_layers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rest_is_command_or_arguments, setup, teardown),
        cmocka_unit_test_setup_teardown(test_evaluation_dictionary, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_is_refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
