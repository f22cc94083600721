/* SPDX-License-Identifier: MIT
 *
 * Profiles are data that strangers write: every mistake is named with its place, and the built-in
 * ones load.
 */
#include "adapters/profile.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "values.h"

static struct profile *parse(const char *text)
{
    struct err e;
    struct profile *p = NULL;
    if (profile_parse(arena, str_of(text), "p.yaml", &p, &e) < 0) {
        fail_msg("%s", e.msg);
    }
    return p;
}

static void refuse(const char *text, const char *message)
{
    struct err e = { 0 };
    struct profile *p;
    assert_int_equal(profile_parse(arena, str_of(text), "p.yaml", &p, &e), -ERR_CONFIG);
    if (strstr(e.msg, message) == NULL) {
        fail_msg("expected '%s' in '%s'", message, e.msg);
    }
}

static void test_defaults(void **state)
{
    struct profile *p = parse("name: x\nargv: [a]\n");
    assert_string_equal(p->driver, "oneshot");
    assert_string_equal(p->title, "x");
    assert_int_equal(p->prompt, PROMPT_FILE);
    assert_int_equal(p->home, HOME_PRIVATE);
    assert_null(p->trust.style);
    assert_string_equal(p->mcp.prefix, "");
    assert_null(p->acp.auth);
    assert_true(p->acp.fs);
    assert_int_equal(p->acp.model, ACP_MODEL_AUTO);
    assert_int_equal(p->argv_len, 1);
}

static void test_everything(void **state)
{
    struct profile *p =
        parse("name: x\n"
              "title: T\n"
              "binary: [one, two]\n"
              "argv: ['{binary}', {when: model, args: [-m, '{model}']}]\n"
              "prompt: stdin\n"
              "home: shared\n"
              "system_prompt: replace\n"
              "files: [{name: s, path: .x/s.toml, format: toml}]\n"
              "trust: {style: codex, file: .codex/config.toml}\n"
              "gateway: {format: chat, upstream: 'https://x', key: X_KEY,\n"
              "  env: {X_URL: '{gateway_url}/v1'}, files: {s: {a: 1}}}\n"
              "acp: {auth: key, mode: yolo, governed_mode: ask, fs: false,\n"
              "  model: set_model, settle_ms: 200, stays: true, tool_name: [/_meta/n]}\n"
              "mcp: {prefix: x_, env: {T: '{mcp_token}'},\n"
              "  files: {s: {u: '{mcp_url}'}}}\n");
    assert_string_equal(p->gateway.format, "chat");
    assert_string_equal(p->gateway.upstream, "https://x");
    assert_string_equal(p->gateway.key, "X_KEY");
    assert_int_equal(json_len(p->gateway.env), 1);
    assert_int_equal(p->system_prompt, SYSTEM_PROMPT_REPLACE);
    assert_string_equal(p->mcp.prefix, "x_");
    assert_string_equal(p->acp.auth, "key");
    assert_string_equal(p->acp.mode, "yolo");
    assert_string_equal(p->acp.governed_mode, "ask");
    assert_false(p->acp.fs);
    assert_int_equal(p->acp.model, ACP_MODEL_METHOD);
    assert_int_equal(p->acp.settle_ms, 200);
    assert_true(p->acp.stays);
    assert_int_equal(json_len(p->acp.tool_name), 1);
    assert_int_equal(json_len(p->mcp.env), 1);
    assert_string_equal(json_cstring(json_pointer(p->mcp.files, STR("/s/u")), ""), "{mcp_url}");
    assert_int_equal(json_len(p->binary), 2);
    assert_string_equal(p->argv[1].when, "model");
    assert_int_equal(p->prompt, PROMPT_STDIN);
    assert_int_equal(p->home, HOME_SHARED);
    assert_int_equal(p->files[0].format, CONFIG_TOML);
    assert_string_equal(p->trust.file, ".codex/config.toml");
}

static void test_mistakes_are_named_with_their_place(void **state)
{
    refuse("name: x\nargv: [a]\ncapabilities: [transcripts]\n", "p.yaml:3:16: 'capabilities'");
    refuse("name: x\nargv: [a]\nlacks: {tool_policy: no}\n", "'lacks' names 'tool_policy'");
    refuse("name: x\nargv: [a]\ntried: 1.0.0\nunverified: because\n", "either tested ('tried'");
    refuse("name: x\nargv: [a]\ntested: {since: '1.0'}\n", "'tested' needs 'since' and 'until'");
    refuse("name: x\nargv: [a]\nversions: {since: '1.0'}\n", "'versions' must be a list");
    refuse("name: x\nargv: [a]\nversions: [{env: {A: b}}]\n", "needs 'since' or 'until'");
    refuse("name: x\nargv: [a]\nversions: [{until: '1.0', name: y}]\n", "neither 'name' nor");
    refuse("name: x\nargv: [a]\nversions: [{until: '1.0', evn: {A: b}}]\n", "unknown key 'evn'");
    refuse("name: x\nargv: [a]\noutput: {pattern: '('}\n", "'output.pattern'");
    refuse("name: x\nargv: [a]\ngateway: {files: {s: {}}}\n", "p.yaml:3:22: 'gateway.files' names");
    refuse("name: x\nargv: [a]\nmcp: {files: {s: {}}}\n", "p.yaml:3:18: 'mcp.files' names");
    refuse("name: x\nargv: [a]\npromt: file\n", "p.yaml:3:1: unknown key 'promt'");
    refuse("name: x\nargv: [a]\npromt: file\n", "did you mean 'prompt'?");
    refuse("name: x\nargv: [a]\nprompt: fax\n", "file|argument|stdin");
    refuse("name: x\n", "argv");
    refuse("argv: [a]\n", "needs 'name'");
    refuse("name: x\nargv: [{when: model}]\n", "needs 'args'");
    refuse("name: x\nargv: [a]\nfiles: [{name: s, path: ../s}]\n", "must stay below");
    refuse("name: x\nargv: [a]\nfiles: [{name: s, path: /s}]\n", "must stay below");
    refuse("name: x\nargv: [a]\nfiles: [{path: s}]\n", "needs 'name'");
    refuse("name: x\nargv: [a]\ntrust: {style: codex}\n", "needs 'file'");
    refuse("name: x\nargv: [a]\noutput: {rules: [{txt: /a}]}\n",
           "unknown key 'output.rules[0].txt'");
    refuse("- 1\n", "expected a map");
}

static void test_built_in_profiles_load(void **state)
{
    struct profile_list list;
    const struct profile *p;
    struct err e;
    assert_int_equal(profile_load_all(arena, NULL, &list, &e), 0);
    assert_int_equal(profile_require(&list, STR("command"), &p, &e), 0);
    assert_string_equal(p->source, "built in");
    assert_int_equal(profile_require(&list, STR("comand"), &p, &e), -ERR_UNAVAILABLE);
    assert_non_null(strstr(e.msg, "did you mean 'command'?"));
    assert_int_equal(profile_require(&list, STR("zzzzzzzz"), &p, &e), -ERR_UNAVAILABLE);
}

/* By name the same profiles are found, though hardly any of them is read. */
static void test_by_name(void **state)
{
    struct profile_list all;
    struct profile_list named;
    const struct profile *p;
    struct err e;
    assert_int_equal(profile_load_all(arena, NULL, &all, &e), 0);
    assert_int_equal(profile_load_named(arena, NULL, &named, &e), 0);
    assert_int_equal(named.len, 0);
    for (size_t i = 0; i < all.len; i++) {
        p = profile_find(&named, str_of(all.items[i]->name));
        assert_non_null(p);
        assert_string_equal(p->name, all.items[i]->name);
        assert_string_equal(p->source, "built in");
        assert_ptr_equal(profile_find(&named, str_of(p->name)), p);
    }
    assert_int_equal(profile_require(&named, STR("comand"), &p, &e), -ERR_UNAVAILABLE);
    assert_non_null(strstr(e.msg, "did you mean 'command'?"));
    assert_null(profile_find(&named, STR("")));
}

static void test_a_directory_adds_and_overrides(void **state)
{
    char dir[] = "/tmp/cinch-profile-XXXXXX";
    char path[128];
    struct err e;
    struct profile_list list;
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/mine.yaml", dir);
    assert_int_equal(
        file_write_atomic(AT_FDCWD, path, STR("name: command\ntitle: Mine\nargv: [a]\n"), 0644, &e),
        0);
    const char *const dirs[] = { "/nonexistent", dir, NULL };
    assert_int_equal(profile_load_all(arena, dirs, &list, &e), 0);
    assert_string_equal(profile_find(&list, STR("command"))->title, "Mine");
    assert_int_equal(profile_load_named(arena, dirs, &list, &e), 0);
    assert_string_equal(profile_find(&list, STR("command"))->title, "Mine");

    assert_int_equal(file_write_atomic(AT_FDCWD, path, STR("name: [\n"), 0644, &e), 0);
    assert_true(profile_load_all(arena, dirs, &list, &e) < 0);
    assert_non_null(strstr(e.msg, "mine.yaml"));
    assert_int_equal(file_remove_tree(AT_FDCWD, dir, &e), 0);
}

static void test_project_config(void **state)
{
    struct profile *p = parse("name: x\n"
                              "argv: [a]\n"
                              "files: [{name: s, path: s.json, always: true, locked: true},"
                              "        {name: t, path: t.json}]\n"
                              "project_config:\n"
                              "  env: {A: b}\n"
                              "  files: {s: {trust: '{workspace}'}}\n"
                              "  session: {meta: 1}\n"
                              "  trusted: {env: {C: d}, files: {t: {x: 1}}}\n"
                              "  skill_commands: {files: {s: {y: 2}}}\n"
                              "  instructions: [{from: [A.md, B.md], to: .x/A.md},"
                              "                 {nested: C.md, to: .x/rules}]\n"
                              "  skills: [.x/skills]\n");
    assert_true(p->files[0].always && p->files[0].locked);
    assert_false(p->files[1].always || p->files[1].locked);
    assert_int_equal(json_len(p->project.env), 1);
    assert_non_null(json_get(p->project.files, "s"));
    assert_non_null(json_get(p->project.session, "meta"));
    assert_non_null(json_get(p->project.trusted_env, "C"));
    assert_non_null(json_get(p->project.trusted_files, "t"));
    assert_non_null(json_get(p->project.skill_command_files, "s"));
    assert_int_equal(json_len(p->project.instructions), 2);
    assert_int_equal(json_len(p->project.skills), 1);
}

static void test_bad_project_config(void **state)
{
#define BEGIN "name: x\nargv: [a]\nproject_config: "
    refuse(BEGIN "{files: {s: {}}}\n", "which 'files' does not list");
    refuse(BEGIN "{trusted: {files: {s: {}}}}\n", "project_config.trusted.files");
    refuse(BEGIN "{skill_commands: {files: {s: {}}}}\n", "project_config.skill_commands.files");
    refuse(BEGIN "{obey: true}\n", "unknown key");
    refuse(BEGIN "{instructions: [{from: [A.md]}]}\n", "'instructions' need 'from'");
    refuse(BEGIN "{instructions: [{to: A.md}]}\n", "'instructions' need 'from'");
    refuse(BEGIN "{instructions: [{from: [A], nested: B, to: C}]}\n", "'instructions' need");
    refuse(BEGIN "{instructions: [{from: [../A.md], to: A.md}]}\n", "'instructions' need");
    refuse(BEGIN "{instructions: [{from: [A.md], to: /etc/A.md}]}\n", "'instructions' need");
    refuse(BEGIN "{instructions: [{nested: a/B.md, to: x}]}\n", "'instructions' need");
    refuse(BEGIN "{skills: [/etc]}\n", "must be relative and must not lead out");
#undef BEGIN
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_everything),
        cmocka_unit_test(test_mistakes_are_named_with_their_place),
        cmocka_unit_test(test_built_in_profiles_load),
        cmocka_unit_test(test_by_name),
        cmocka_unit_test(test_project_config),
        cmocka_unit_test(test_bad_project_config),
        cmocka_unit_test(test_a_directory_adds_and_overrides),
    };
    return cmocka_run_group_tests(tests, arena_setup, arena_teardown);
}
