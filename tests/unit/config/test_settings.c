/* SPDX-License-Identifier: MIT
 *
 * From files and a request to typed settings: order of layers, shorthands, paths, and what is
 * refused.
 */
#include "config/settings.h"

#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "config/settings_priv.h"
#include "data/yaml.h"

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
    assert_string_equal(s.adapter, "basic");
    assert_string_equal(s.profile->name, "basic");
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

static const char whole[] =
    "name: whole\n"
    "metadata: {owner: me, tags: [a]}\n"
    "agent:\n"
    "  sampling: {temperature: 0.5, max_tokens: 100, top_p: 0.9, presence_penalty: -1,\n"
    "             frequency_penalty: 1, stop: END, seed: 0}\n"
    "  effort: high\n"
    "prompt: {ns: demo, key: review, sections: [{key: a, title: A}]}\n"
    "params: {repo: x}\n"
    "skills: [one, {path: two.zip, name: other}]\n"
    "inputs: {doc: a.txt}\n"
    "tools: [{name: run_tests, description: Runs them., command: [./t], timeout: 10s}]\n"
    "policies: [{type: deny, tools: [x]}]\n"
    "feedback: [{type: deadline, every_n_seconds: 30}]\n"
    "completion: {files: [a], any: [{command: ['true']}, {all: [{command: [./c], schema: s}]}]}\n"
    "output: {schema: out.json, artifacts: [report.md, {path: b, required: false}]}\n"
    "workspace: {mode: overlay, ref: HEAD, context: [c], mounts: [{source: d, target: /d}]}\n"
    "sandbox: {mode: read-only, read: [/r], write: [w], deny: [s], net: [a.example], memory: 2G,\n"
    "          pids: 10, cpus: 1.5, allow_degraded: true}\n"
    "limits: {tokens_input: 1, tokens_output: 2, tokens_total: 3, usd: 0.5, calls: 4}\n"
    "throttle: {max_attempts: 2}\n"
    "gateway: {upstream: 'http://u', routes: [{model: 'm*', upstream: 'http://v', key: K}],\n"
    "          script: s.yaml, record: true, replay_speed: 1}\n";

static void test_every_key_has_a_field(void **state)
{
    struct settings s;
    put("sub/task.yaml", whole);
    load(&(struct settings_input) { .task_file = "sub/task.yaml" }, &s);
    assert_true(s.sampling.temperature == 0.5 && s.sampling.top_p == 0.9);
    assert_true(s.sampling.presence_penalty == -1 && s.sampling.frequency_penalty == 1);
    assert_true(s.sampling.max_tokens == 100 && s.sampling.seed == 0);
    assert_string_equal(json_cstring(json_item(s.sampling.stop, 0), ""), "END");
    assert_string_equal(s.sampling.effort, "high");
    assert_int_equal(json_len(json_get(s.prompt, "sections")), 1);
    assert_string_equal(json_cstring(json_get(s.params, "repo"), ""), "x");
    assert_string_equal(json_cstring(json_get(json_item(s.skills, 0), "path"), ""),
                        below("sub/one"));
    assert_string_equal(json_cstring(json_get(json_item(s.skills, 1), "name"), ""), "other");
    assert_string_equal(json_cstring(json_item(json_get(json_item(s.tools, 0), "command"), 0), ""),
                        below("sub/t"));
    assert_int_equal(json_len(s.policies) + json_len(s.feedback), 2);
    assert_int_equal(json_len(s.completion), 2);
    assert_string_equal(json_cstring(json_pointer(s.completion, STR("/files/0")), ""), "a");
    assert_string_equal(json_cstring(json_pointer(s.completion, STR("/any/0/command/0")), ""),
                        "true");
    const struct json *deep = json_pointer(s.completion, STR("/any/1/all/0"));
    assert_string_equal(json_cstring(json_pointer(deep, STR("/command/0")), ""), below("sub/c"));
    assert_string_equal(json_cstring(json_get(deep, "schema"), ""), below("sub/s"));
    assert_string_equal(json_cstring(s.output_schema, ""), below("sub/out.json"));
    assert_string_equal(json_cstring(json_get(json_item(s.artifacts, 0), "path"), ""), "report.md");
    assert_int_equal(s.view.mode, WORKSPACE_OVERLAY);
    assert_string_equal(s.view.ref, "HEAD");
    assert_string_equal(json_cstring(json_item(s.view.context, 0), ""), below("sub/c"));
    assert_string_equal(json_cstring(json_get(json_item(s.view.mounts, 0), "source"), ""),
                        below("sub/d"));
    assert_int_equal(s.sandbox.mode, SANDBOX_READ_ONLY);
    assert_string_equal(json_cstring(json_item(s.sandbox.read, 0), ""), "/r");
    assert_string_equal(json_cstring(json_item(s.sandbox.write, 0), ""), below("sub/w"));
    assert_int_equal(s.sandbox.net, SANDBOX_NET_HOSTS);
    assert_string_equal(json_cstring(json_item(s.sandbox.hosts, 0), ""), "a.example");
    assert_true(s.sandbox.memory == INT64_C(2) << 30 && s.sandbox.pids == 10);
    assert_true(s.sandbox.cpus == 1.5 && s.sandbox.allow_degraded == TRI_TRUE);
    assert_true(s.budget.tokens_input == 1 && s.budget.tokens_output == 2);
    assert_true(s.budget.tokens_total == 3 && s.budget.usd == 0.5 && s.budget.calls == 4);
    assert_true(s.throttle.max_attempts == 2 && s.throttle.base == 500 * NSEC_PER_MS);
    assert_true(s.throttle.cap == 8 * NSEC_PER_SEC && s.throttle.total == 30 * NSEC_PER_SEC);
    assert_string_equal(s.gateway.upstream, "http://u");
    assert_int_equal(json_len(s.gateway.routes), 1);
    assert_string_equal(s.gateway.script, below("sub/s.yaml"));
    assert_true(s.gateway.record == TRI_TRUE && s.gateway.replay_speed == 1);
    struct settings_origin o = settings_origin(&s, arena, "prompt", "sections");
    assert_string_equal(o.layer, "task");
    assert_string_equal(o.dir, "sub");
}

static void test_what_is_not_said(void **state)
{
    struct settings s;
    load(&(struct settings_input) { 0 }, &s);
    assert_true(isnan(s.sampling.temperature) && s.sampling.seed == -1);
    assert_null(s.sampling.stop);
    assert_null(s.sampling.effort);
    assert_int_equal(s.view.mode, WORKSPACE_SNAPSHOT);
    assert_int_equal(s.sandbox.mode, SANDBOX_WORKSPACE_WRITE);
    assert_int_equal(s.sandbox.net, SANDBOX_NET_NONE);
    assert_true(s.budget.usd == 0 && s.budget.calls == 0);
    assert_int_equal(s.throttle.max_attempts, 5);
    assert_null(s.gateway.upstream);
    load(&(struct settings_input) { .request = request("{sandbox: off, gateway: 'http://x'}") },
         &s);
    assert_int_equal(s.sandbox.mode, SANDBOX_OFF);
    assert_string_equal(s.gateway.upstream, "http://x");
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
    put("task.yaml", "eval: {run_number: 100}\n");
    refuse(&in, ERR_CONFIG, "task.yaml:1:20: 'eval.run_number' must be between 1 and 99");
    put("task.yaml", "sandbox: {pids: 5000000}\n");
    refuse(&in, ERR_CONFIG, "'sandbox.pids' must be between 1 and 4194304");
    put("task.yaml", "prompt: {text: a, file: b}\n");
    refuse(&in, ERR_USAGE, "given twice");
    put("task.json", "{\"limits\": {\"timeout\": NaN}}");
    refuse(&(struct settings_input) { .task_file = "task.json" }, ERR_PARSE, "task.json:1:");
    refuse(&(struct settings_input) { .task_file = "none.yaml" }, ERR_INPUT, "none.yaml");
    refuse(&(struct settings_input) { .request = request("{limits: {timeout: 0}}") }, ERR_USAGE,
           "command line");
}

/* Each line is a task file, and what its refusal says. */
static void test_wrong_definitions(void **state)
{
    static const char *const lines[][2] = {
        { "tools: [{name: a, description: x, command: [y]},\n"
          "        {name: a, description: x, command: [y]}]",
          "task.yaml:2:16: tool 'a' is there twice; the first is in line 1" },
        { "tools: [{name: A b, description: x, command: [y]}]",
          "task.yaml:1:16: the name of a tool" },
        { "tools: [{name: read_section, description: x, command: [y]}]", "is built in" },
        { "tools: [{name: a, description: x}]", "needs either 'command' or 'mcp'" },
        { "tools: [{name: a, command: [y]}]", "1 to 200 ASCII" },
        { "tools: [{name: a, description: x, command: [y], input_schema: {type: what}}]",
          "input_schema" },
        { "tools: [{nme: a}]", "unknown key 'tools[0].nme' (did you mean 'name'?)" },
        { "tools: {a: 1}", "'tools' must be a list" },
        { "policies: [{tools: [a]}]", "policies[0] needs a 'type'" },
        { "policies: [{type: deny}]", "a policy of type 'deny' needs 'tools'" },
        { "policies: [{type: none}]", "must be one of sequential_dependency" },
        { "feedback: [{type: static, text: x}]", "needs a trigger" },
        { "feedback: [{type: static, every_n_calls: 1}]", "needs a 'text'" },
        { "completion: {command: [x, true]}",
          "task.yaml:1:27: 'completion.command' must be a list of strings, but item 2 is boolean" },
        { "session: {slices: [{policy: log}]}", "session.slices[0] needs a 'name'" },
        { "session: {slices: [{name: a}, {name: a}]}", "slice 'a' is there twice" },
        { "session: {slices: [{name: ToolInvoked}]}", "is built in" },
        { "session: {slices: [{name: a, policy: keep}]}", "must be one of state|log" },
        { "session: {reducers: [{event: a, slice: b}]}", "session.reducers[0] needs a 'reducer'" },
        { "session: {reducers: [{event: a, slice: 'policy:x', reducer: append_all}]}",
          "is built in" },
        { "session: {reducers: [{event: a, slice: b, reducer: upsert_by}]}", "needs 'key'" },
        { "session: {reducers: [{event: a, slice: b, reducer: upsert_by, key: id}]}",
          "a JSON pointer" },
        { "completion: {filse: [a]}", "unknown key 'completion.filse' (did you mean 'files'?)" },
        { "completion: {any: [{session: {slice: a, mn: 1}}]}",
          "unknown key 'completion.any[0].session.mn' (did you mean 'min'?)" },
        { "completion: {session: {slice: a, min: -1}}", "must be a whole number" },
        { "policies: [{type: program, command: [a], sandbox: 1}]", "must be true or false" },
        { "agent: {sampling: {temperature: 3}}",
          "'agent.sampling.temperature' must be between 0 and 2" },
        { "agent: {sampling: {temprature: 1}}", "did you mean 'temperature'?" },
        { "agent: {effort: huge}", "'agent.effort' must be one of" },
        { "sandbox: {net: some}", "'sandbox.net' must be one of none|open, or a list of strings" },
        { "sandbox: {memory: lots}", "'sandbox.memory' must be a size" },
        { "sandbox: jail", "'sandbox.mode' must be one of" },
        { "output: {schema: {type: 5}}", "output.schema" },
        { "output: {schema: 5}", "must be a map, or the name of a file" },
        { "output: {artifacts: [../x]}", "must be relative" },
        { "output: {artifacts: [/x]}", "must be relative" },
        { "secrets: ['TOKEN=abc']", "never by its value" },
        { "gateway: {routes: [{model: a}]}", "gateway.routes[0] needs a 'upstream'" },
        { "workspace: {mounts: [{source: a}]}", "needs a 'target'" },
        { "limits: {tokens_total: -1}", "'limits.tokens_total' must be a whole number" },
        { "skills: [{path: a, name: Not This}]", "the name of a skill" },
    };
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        put("task.yaml", lines[i][0]);
        refuse(&(struct settings_input) { .task_file = "task.yaml" }, ERR_CONFIG, lines[i][1]);
    }
}

static void refuse_project(const char *text, const char *message)
{
    put(".cinch/config.yaml", text);
    refuse(&(struct settings_input) { 0 }, ERR_CONFIG, message);
}

/* Every key that only a user may set is refused in a project file, with its name and its place. */
static void test_project_sets_only_what_it_may(void **state)
{
    static const char *const allowed[] = { "version", "name",   "description",
                                           "agent",   "limits", "eval" };
    for (const struct shape *s = settings_shape(arena, settings_table, 0); s->kind != SHAPE_END;
         s++) {
        bool may = false;
        for (size_t i = 0; i < ARRAY_LEN(allowed); i++) {
            may = may || strcmp(s->key, allowed[i]) == 0;
        }
        if (!may) {
            refuse_project(arena_printf(arena, "{name: x, %s: {}}", s->key),
                           arena_printf(arena,
                                        "/.cinch/config.yaml:1:11: a project file may not "
                                        "set '%s';",
                                        s->key));
        }
    }
    static const char *const lines[][2] = {
        { "sandbox: off", "'sandbox'" },
        { "output: out", "'output'" },
        { "gateway: 'http://x'", "'gateway'" },
        { "home: shared", "'home'" },
        { "agent: {auth: host}", "'agent.auth'" },
        { "agent: {command: [./x]}", "'agent.command'" },
        { "agent: {adapter: command, args: [x]}", "'agent.args'" },
        { "agent: {sampling: {seed: 1}}", "'agent.sampling'" },
        { "limits: {usd: 1000}", "'limits.usd'" },
        { "limits: {calls: 1}", "'limits.calls'" },
        { "eval: {strict: false}", "'eval.strict'" },
        { "eval: {tools_enabled: true}", "'eval.tools_enabled'" },
    };
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        refuse_project(lines[i][0], "config.yaml:1:");
        refuse_project(lines[i][0],
                       arena_printf(arena, "a project file may not set %s;", lines[i][1]));
    }
    refuse_project("limits: {timout: 1}", "unknown key 'limits.timout' (did you mean 'timeout'?)");
    refuse_project("agent: [x]", "'agent' must be a map");
}

/* `null` removes a setting of another layer: `limits: null` would remove the user's budget. */
static void test_project_removes_nothing(void **state)
{
    struct settings s;
    struct settings_input in = { .user_dir = "user" };
    put("user/config.yaml", "{limits: {usd: 2, timeout: 60}}");
    refuse_project("limits: null", "config.yaml:1:1: 'limits' is null");
    refuse_project("name: x\nagent:\n", "config.yaml:2:1: 'agent' is null");
    refuse_project("limits: {timeout: null}", "config.yaml:1:10: 'limits.timeout' is null");
    put(".cinch/config.yaml", "limits: {timeout: 90}");
    load(&in, &s);
    assert_true(s.budget.usd == 2 && s.timeout == 90 * NSEC_PER_SEC);
}

/* The adapter of a project file is an installed profile, never a program or an image. */
static void test_project_adapter(void **state)
{
    static const char *const refused[] = {
        "exec:evil.sh", "exec:/bin/sh", "image:x",    "image:oci-archive:x.tar", "contract", "evil",
        "./evil.sh",    "\"\"",         "evil\\u0000"
    };
    put("bin/cinch-adapter-evil", "#!/bin/sh\n");
    assert_int_equal(chmod("bin/cinch-adapter-evil", 0755), 0);
    const char *path = arena_dup(arena, str_of(getenv("PATH")));
    assert_int_equal(setenv("PATH", below("bin"), 1), 0);
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        refuse_project(arena_printf(arena, "agent: {adapter: %s}", refused[i]),
                       "'agent.adapter' of a project file must be the name of an installed");
    }
    assert_int_equal(setenv("PATH", path, 1), 0);
    struct settings s;
    put("profiles/own.yaml", "name: own\nbinary: [sh]\nargv: ['{binary}', '{args...}']\n");
    const char *const dirs[] = { "profiles", NULL };
    put(".cinch/config.yaml", "agent: {adapter: own, model: m}\neval: {tier: T0}\n");
    load(&(struct settings_input) { .adapter_dirs = dirs }, &s);
    assert_string_equal(s.adapter, "own");
    assert_string_equal(s.profile->name, "own");
}

/* A project's adapter is below the task and the command line, above the user's file; a command that
 * the user gave is not replaced. */
static void test_project_adapter_among_layers(void **state)
{
    struct settings s;
    put("profiles/own.yaml", "name: own\nbinary: [sh]\nargv: ['{binary}', '{args...}']\n");
    put("profiles/two.yaml", "name: two\nbinary: [sh]\nargv: ['{binary}', '{args...}']\n");
    put(".cinch/config.yaml", "agent: {adapter: own}\n");
    put("user/config.yaml", "agent: {adapter: two}\n");
    const char *const dirs[] = { "profiles", NULL };
    struct settings_input in = { .adapter_dirs = dirs, .user_dir = "user" };
    load(&in, &s);
    assert_string_equal(s.adapter, "own");
    assert_string_equal(s.profile->name, "own");
    in.request = request("{agent: {adapter: two}}");
    load(&in, &s);
    assert_string_equal(s.adapter, "two");
    assert_string_equal(s.profile->name, "two");
    in.user_dir = NULL;
    in.request = request("{}");
    in.rest = request("[prog, -x]");
    load(&in, &s);
    assert_string_equal(s.adapter, "command");
    assert_string_equal(s.profile->name, "command");
    assert_string_equal(json_cstring(json_item(s.command, 0), ""), "prog");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_defaults, setup, teardown),
        cmocka_unit_test_setup_teardown(test_task_file_with_shorthands, setup, teardown),
        cmocka_unit_test_setup_teardown(test_every_key_has_a_field, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_is_not_said, setup, teardown),
        cmocka_unit_test_setup_teardown(test_wrong_definitions, setup, teardown),
        cmocka_unit_test_setup_teardown(test_project_sets_only_what_it_may, setup, teardown),
        cmocka_unit_test_setup_teardown(test_project_removes_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_project_adapter, setup, teardown),
        cmocka_unit_test_setup_teardown(test_project_adapter_among_layers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_order_of_layers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rest_is_command_or_arguments, setup, teardown),
        cmocka_unit_test_setup_teardown(test_evaluation_dictionary, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_is_refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
