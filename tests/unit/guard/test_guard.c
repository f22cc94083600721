/* SPDX-License-Identifier: MIT
 *
 * Policies: each kind allows and denies what it says, and remembers in the session and nowhere
 * else. Those that are programs are in test_guard_program.c.
 */
#include "guard_case.h"

/* --- names, scopes and order --- */

static void without_policies_everything_is_allowed(void **state)
{
    policies("[]");
    assert_int_equal(guard_len(guard), 0);
    allows("anything", NULL);
    assert_int_equal(make(NULL, NULL, 0, NULL), 0);
    allows("anything", NULL);
}

static void names_are_patterns(void **state)
{
    policies("[{type: deny, tools: [Bash, 'rm_*']}]");
    denies("Bash", NULL, "Denied by policy.");
    denies("rm_all", NULL, "Denied by policy.");
    allows("bash", NULL);
    allows("xrm_all", NULL);
    policies("[{type: allow, tools: [read_*], reason: Only reading.}]");
    allows("read_file", NULL);
    denies("write_file", NULL, "Only reading.");
    allows("structured_output", NULL);
    allows("open_sections", NULL);
    policies("[{type: deny, tools: [structured_output]}]");
    denies("structured_output", NULL, "Denied by policy.");
}

static void native_tools_can_be_meant_alone(void **state)
{
    policies("[{type: deny, tools: ['native:B*']}]");
    struct guard_call call = call_of("Bash", NULL);
    assert_true(ask_call(&call).allowed);
    call.native = true;
    assert_false(ask_call(&call).allowed);
    call.tool = STR("Read");
    assert_true(ask_call(&call).allowed);
    policies("[{type: allow, tools: [mine]}]");
    assert_false(ask_call(&call).allowed);
    call.tool = STR("structured_output"); /* not ours, whatever it calls itself */
    assert_false(ask_call(&call).allowed);
    policies("[{type: allow, tools: [mine, 'native:*']}]");
    assert_true(ask_call(&call).allowed);
    denies("other", NULL, "Denied by policy.");
}

static void tools_can_be_meant_by_their_kind(void **state)
{
    struct guard_call call = call_of("acp:Bash", NULL);
    call.native = true;
    policies("[{type: deny, tools: ['acp:execute']}]");
    assert_true(ask_call(&call).allowed);
    call.kind = STR("acp:execute");
    assert_false(ask_call(&call).allowed);
    policies("[{type: deny, tools: ['native:acp:exec*']}]");
    assert_false(ask_call(&call).allowed);
    policies("[{type: deny, tools: ['acp:Bash']}]");
    assert_false(ask_call(&call).allowed);
    policies("[{type: allow, tools: ['acp:execute']}]");
    assert_true(ask_call(&call).allowed);
    call.kind = STR("acp:edit");
    assert_false(ask_call(&call).allowed);
}

/* "a" is a tool of the task, "Bash" one of the harness; what begins with "later" may come. */
static enum guard_tool find_task(void *arg, struct str name)
{
    return str_eqc(name, "a")               ? GUARD_TOOL_EXISTS
           : str_starts(name, STR("later")) ? GUARD_TOOL_UNSURE
                                            : GUARD_TOOL_MISSING;
}

static enum guard_tool find_native(void *arg, struct str name)
{
    return str_eqc(name, "Bash") ? GUARD_TOOL_EXISTS : GUARD_TOOL_MISSING;
}

static void names_that_no_tool_has(void **state)
{
    static const struct guard_tools tools = { find_task, find_native, NULL };
    struct guard_unmatched list[1];
    struct err e;
    static const char *const good[] = {
        "[]",
        "[{type: deny, tools: [a, Bash, 'native:Bash', 'b*', 'native:?']}]",
        "[{type: sequential_dependency, depends: {a: [Bash], 'x*': [a]}}]",
        "[{type: read_before_write}]",
    };
    static const char *const bad[] = {
        "[{type: allow, tools: [a]}, {type: deny, tools: [a, bash]}]",
        "[{type: allow, tools: [a]}, {type: deny, tools: ['native:a']}]",
        "[{type: allow, tools: [a]}, {type: rate, tools: ['native:later'], calls: 1}]",
        "[{type: allow, tools: [a]}, {type: sequential_dependency, depends: {b: [a]}}]",
        "[{type: allow, tools: [a]}, {type: sequential_dependency, depends: {a: [b]}}]",
        "[{type: allow, tools: [a]}, {type: read_before_write, write_tools: [b]}]",
    };
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        policies(good[i]);
        assert_int_equal(guard_check_names(guard, &tools, &e), 0);
        assert_int_equal(guard_unmatched_names(guard, &tools, list, 1), 0);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        policies(bad[i]);
        assert_int_equal(guard_check_names(guard, &tools, &e), -ERR_CONFIG);
        assert_non_null(strstr(e.msg, "policies[1]"));
    }
    policies("[{type: deny, tools: [later, later_too, a]}]");
    assert_int_equal(guard_check_names(guard, &tools, &e), 0);
    assert_int_equal(guard_unmatched_names(guard, &tools, list, 1), 2);
    denies("later", NULL, "Denied by policy.");
    assert_int_equal(guard_unmatched_names(guard, &tools, list, 1), 1);
    assert_true(str_eqc(list[0].name, "later_too"));
}

static void a_section_limits_the_scope(void **state)
{
    policies("[{type: deny, tools: ['*'], section: guide}]");
    struct guard_call call = call_of("a", NULL);
    assert_true(ask_call(&call).allowed);
    call.section = STR("guide");
    assert_false(ask_call(&call).allowed);
    call.section = STR("guide.deep");
    assert_false(ask_call(&call).allowed);
    call.section = STR("guideline");
    assert_true(ask_call(&call).allowed);
    policies("[{type: deny, tools: ['*'], section: guide/deep}]");
    call.section = STR("guide.deep");
    assert_false(ask_call(&call).allowed);
    call.native = true;
    assert_true(ask_call(&call).allowed);
}

static void sections_come_first_and_the_first_denial_wins(void **state)
{
    policies("[{type: deny, tools: [a], name: prompt, reason: P},"
             " {type: deny, tools: [a], name: later, reason: L},"
             " {type: deny, tools: [a], name: own, section: guide, reason: S}]");
    struct guard_call call = call_of("a", NULL);
    call.section = STR("guide");
    struct told t = ask_call(&call);
    assert_string_equal(t.policy, "own");
    assert_string_equal(t.reason, "S");
    call.section = STR_EMPTY;
    assert_string_equal(ask_call(&call).policy, "prompt");
}

static void all_must_allow(void **state)
{
    policies("[{type: allow, tools: [a, b]}, {type: allow, tools: [b, c]}]");
    allows("b", NULL);
    denies("a", NULL, "Denied by policy.");
    denies("c", NULL, "Denied by policy.");
    assert_string_equal(ask("a", NULL).policy, "allow-2");
}

static bool odd(void *arg, const struct guard_call *call, struct str *reason)
{
    *reason = STR("even");
    return call->tool.len % 2 == 1;
}

static void policies_in_c(void **state)
{
    const struct guard_callback callbacks[] = { { "odd", odd, NULL }, { NULL, odd, NULL } };
    assert_int_equal(make("[{type: deny, tools: [x], name: odd}]", callbacks, 2, NULL), 0);
    allows("abc", NULL);
    denies("ab", NULL, "even");
    assert_string_equal(ask("ab", NULL).policy, "odd-2");
    denies("x", NULL, "Denied by policy.");
}

/* --- arguments --- */

static void arguments_by_pattern(void **state)
{
    policies("[{type: arguments, tools: [w], rules: [{pointer: /path, pattern: '^src/'}]}]");
    allows("w", "{path: src/a}");
    allows("other", "{path: /etc}");
    denies("w", "{path: lib/src/}", "Tool 'w': argument '/path' must match the pattern ^src/");
    denies("w", "{}", "Tool 'w': argument '/path' is missing.");
    denies("w", NULL, "Tool 'w': argument '/path' is missing.");
    denies("w", "{path: [src/]}", "Tool 'w': argument '/path' must be a plain value.");
    policies("[{type: arguments, rules: [{pointer: /n, pattern: '^(true|1[0-9]|null)$'}]}]");
    allows("w", "{n: true}");
    allows("w", "{n: 12}");
    allows("w", "{n: null}");
    denies("w", "{n: 2}", "Tool 'w': argument '/n' must match the pattern ^(true|1[0-9]|null)$");
}

static void arguments_by_schema(void **state)
{
    policies(
        "[{type: arguments, reason: Too big., rules: [{schema: {properties: {n: {maximum: 5}}}},"
        " {pointer: /tags/0, schema: {enum: [a]}}]}]");
    allows("w", "{n: 5, tags: [a]}");
    denies("w", "{n: 6, tags: [a]}", "Too big.");
    denies("w", "{n: 5, tags: [b]}", "Too big.");
    policies("[{type: arguments, rules: [{pointer: /o, schema: {required: [x]}}]}]");
    struct told t = ask("w", "{o: {}}");
    assert_false(t.allowed);
    assert_non_null(strstr(t.reason, "Tool 'w': arguments are not allowed: /o"));
}

static void a_pattern_that_runs_away_is_a_denial(void **state)
{
    char text[6000] = "{path: \"";
    size_t at = strlen(text);
    memset(text + at, 'a', 5000);
    memcpy(text + at + 5000, "!\"}", 4);
    policies("[{type: arguments, rules: [{pointer: /path, pattern: '^(a+)+$'}]}]");
    struct told t = ask("w", text);
    assert_false(t.allowed);
    assert_string_equal(t.reason, "Denied by policy.");
    assert_non_null(strstr(t.detail, "pattern on '/path'"));
}

/* --- sequence --- */

static void what_depends_waits(void **state)
{
    policies(
        "[{type: sequential_dependency, depends: {deploy: [test, build], 'push_*': [build]}}]");
    allows("build", NULL);
    denies("deploy", NULL, "Tool 'deploy' requires: build, test");
    denies("push_it", NULL, "Tool 'push_it' requires: build");
    succeeded("build", NULL);
    denies("deploy", NULL, "Tool 'deploy' requires: test");
    allows("push_it", NULL);
    succeeded("other", NULL);
    succeeded("test", NULL);
    succeeded("test", NULL);
    allows("deploy", NULL);
    /* Only what somebody waits for is remembered, and once. */
    assert_int_equal(store_len(session, NULL, STR("policy:sequential_dependency")), 2);
}

static void what_was_rolled_back_did_not_happen(void **state)
{
    policies("[{type: sequential_dependency, depends: {deploy: [build]}}]");
    struct guard_call build = call_of("build", NULL);
    struct store_txn *t = store_begin(session);
    assert_int_equal(guard_note(guard, &build, t, NULL), 0);
    denies("deploy", NULL, "Tool 'deploy' requires: build"); /* not committed */
    assert_int_equal(store_abort(t, NULL), 0);
    denies("deploy", NULL, "Tool 'deploy' requires: build");

    struct store_moment before = store_snapshot(session);
    succeeded("build", NULL);
    allows("deploy", NULL);
    assert_int_equal(store_restore(session, before, true, NULL), 0);
    denies("deploy", NULL, "Tool 'deploy' requires: build");
    succeeded("build", NULL);
    allows("deploy", NULL);
}

static void the_state_of_a_policy_is_its_own(void **state)
{
    policies("[{type: sequential_dependency, name: one, depends: {a: [b]}},"
             " {type: sequential_dependency, depends: {c: [d]}},"
             " {type: sequential_dependency, depends: {c: [b]}}]");
    succeeded("b", NULL);
    assert_int_equal(store_len(session, NULL, STR("policy:one")), 1);
    assert_int_equal(store_len(session, NULL, STR("policy:sequential_dependency")), 0);
    assert_int_equal(store_len(session, NULL, STR("policy:sequential_dependency-2")), 1);
    allows("a", NULL);
    denies("c", NULL, "Tool 'c' requires: d");
}

/* A section's policy restrains the tools of the section, and sees all. */
static void prerequisites_may_be_elsewhere(void **state)
{
    policies("[{type: sequential_dependency, section: guide, depends: {deploy: [build]}}]");
    struct guard_call call = call_of("deploy", NULL);
    call.section = STR("guide");
    assert_false(ask_call(&call).allowed);
    succeeded("build", NULL);
    assert_true(ask_call(&call).allowed);
}

static void everything_may_wait_for_one(void **state)
{
    policies("[{type: sequential_dependency, depends: {'*': [setup]}}]");
    denies("a", NULL, "Tool 'a' requires: setup");
    allows("setup", NULL);
    succeeded("setup", NULL);
    allows("a", NULL);
}

static void a_restored_session_is_believed(void **state)
{
    policies("[{type: sequential_dependency, depends: {deploy: [build]}}]");
    succeeded("build", NULL);
    struct json *saved = store_save(session, arena, STR("2026-01-01T00:00:00Z"), true);
    saved = json_copy(arena, saved);
    guard = guard_free(guard);
    store_free(session);
    session = store_new(&(struct store_opts) { .id = STR("s2"), .journal_fd = -1 });
    policies("[{type: sequential_dependency, depends: {deploy: [build]}}]");
    denies("deploy", NULL, "Tool 'deploy' requires: build");
    assert_int_equal(store_load(session, saved, NULL), 0);
    allows("deploy", NULL);
}

/* --- files --- */

static void what_is_there_must_be_read_first(void **state)
{
    policies("[{type: read_before_write}]");
    existing = "a|b/c|d";
    allows("write_file", "{path: new}");
    denies("write_file", "{path: a}", "File 'a' must be read before overwriting.");
    denies("edit_file", "{file_path: /srv/ws/a}", "File 'a' must be read before overwriting.");
    allows("read_file", "{path: a}");
    allows("delete_file", "{path: a}"); /* none of its tools */
    succeeded("read_file", "{path: ./b/../a}");
    allows("write_file", "{path: a}");
    allows("edit_file", "{path: ./a}");
    allows("Write", "{file_path: /srv/ws/x/../a}");
    denies("write_file", "{path: b/c}", "File 'b/c' must be read before overwriting.");
    succeeded("Read", "{file_path: /srv/ws//b/c}");
    allows("write_file", "{path: b/c}");
    denies("acp:write_file", "{filePath: d}", "File 'd' must be read before overwriting.");
    denies("write_file", "{paths: [a, d]}", "File 'd' must be read before overwriting.");
    denies("write_file", "{changes: [{path: d}]}", "File 'd' must be read before overwriting.");
    denies("write_file", "{path: a, file_path: d}", "File 'd' must be read before overwriting.");
}

static void what_was_written_is_known(void **state)
{
    policies("[{type: read_before_write}]");
    allows("write_file", "{path: new}");
    succeeded("write_file", "{path: new}");
    existing = "new";
    allows("write_file", "{path: new}");
}

static void nothing_outside_is_written(void **state)
{
    policies("[{type: read_before_write}]");
    denies("write_file", "{path: ../x}", "Path '../x' is not in the workspace.");
    denies("write_file", "{path: a/../../x}", "Path 'a/../../x' is not in the workspace.");
    denies("write_file", "{path: /etc/passwd}", "Path '/etc/passwd' is not in the workspace.");
    denies("write_file", "{path: /srv/wsx/a}", "Path '/srv/wsx/a' is not in the workspace.");
    denies("write_file", "{path: ''}", "Path '' is not in the workspace.");
    denies("write_file", "{path: [a]}", "Tool 'write_file' does not say which file it writes.");
    denies("write_file", NULL, "Tool 'write_file' does not say which file it writes.");
    allows("write_file", "{path: ../ws/x}");
    allows("read_file", "{path: /etc/passwd}");
    succeeded("read_file", "{path: /etc/passwd}");
    succeeded("read_file", "{path: ../x}");
    assert_int_equal(store_len(session, NULL, STR("policy:read_before_write")), 0);
}

static void names_of_its_tools_can_be_given(void **state)
{
    policies(
        "[{type: read_before_write, read_tools: ['see*'], write_tools: [put], reason: Look!}]");
    existing = "a";
    allows("write_file", "{path: a}");
    denies("put", "{path: a}", "Look!");
    succeeded("read_file", "{path: a}");
    denies("put", "{path: a}", "Look!");
    succeeded("see_it", "{path: a}");
    allows("put", "{path: a}");
}

static void ten_thousand_reads_cost_as_one(void **state)
{
    policies("[{type: read_before_write}]");
    existing = "f9999|x";
    for (int i = 0; i < 10000; i++) {
        char text[40];
        (void)snprintf(text, sizeof text, "{path: f%d}", i);
        succeeded("read_file", text);
    }
    allows("write_file", "{path: f9999}");
    denies("write_file", "{path: x}", "File 'x' must be read before overwriting.");
    /* It went back: all of it is learnt anew. */
    struct store_moment before = store_snapshot(session);
    succeeded("read_file", "{path: x}");
    allows("write_file", "{path: x}");
    assert_int_equal(store_restore(session, before, true, NULL), 0);
    denies("write_file", "{path: x}", "File 'x' must be read before overwriting.");
    allows("write_file", "{path: f9999}");
}

/* A tool cannot make the guard believe by writing nonsense. */
static void nonsense_in_the_slice_grants_nothing(void **state)
{
    policies("[{type: read_before_write}, {type: sequential_dependency, depends: {a: [b]}},"
             " {type: rate, calls: 2}]");
    static const char *const slices[] = { "policy:read_before_write", "policy:rate",
                                          "policy:sequential_dependency" };
    existing = "a";
    for (size_t i = 0; i < ARRAY_LEN(slices); i++) {
        struct store_change c = {
            .kind = CHANGE_EXTEND,
            .slice = str_of(slices[i]),
            .value = tree("[null, 1, [], {path: 3, tool: [], at_ms: x}, {path: \"a\\0b\"},"
                          " {at_ms: -9223372036854775807, tool: \"\\0\"}]"),
        };
        assert_int_equal(store_apply(session, &c, NULL), 0);
    }
    denies("write_file", "{path: a}", "File 'a' must be read before overwriting.");
    denies("a", NULL, "Tool 'a' requires: b");
}

/* --- rate --- */

static void calls_are_counted_in_a_sliding_window(void **state)
{
    policies("[{type: rate, tools: [t, u], calls: 2, per: 60s}]");
    allows("t", NULL);
    now += 30 * NSEC_PER_SEC;
    allows("t", NULL);
    denies("t", NULL, "Tool 't' may be called 2 times in 60 seconds. Try again in 30 seconds.");
    allows("u", NULL); /* each tool for itself */
    allows("v", NULL);
    now += 30 * NSEC_PER_SEC - 1;
    denies("t", NULL, "Tool 't' may be called 2 times in 60 seconds. Try again in 1 second.");
    now += 1;
    allows("t", NULL);
    denies("t", NULL, "Tool 't' may be called 2 times in 60 seconds. Try again in 30 seconds.");
    now += 30 * NSEC_PER_SEC;
    allows("t", NULL);
    now += 600 * NSEC_PER_SEC;
    allows("t", NULL);
    allows("t", NULL);
    denies("t", NULL, "Tool 't' may be called 2 times in 60 seconds. Try again in 60 seconds.");
}

static void calls_of_the_whole_run(void **state)
{
    policies("[{type: rate, tools: [t], calls: 20}]");
    for (int i = 0; i < 20; i++) {
        allows("t", NULL);
        now += 100 * NSEC_PER_SEC;
    }
    denies("t", NULL, "Tool 't' may be called 20 times, and was.");
}

/* What another policy denies does not count. */
static void only_what_happens_is_counted(void **state)
{
    policies("[{type: rate, calls: 1}, {type: arguments, rules: [{pointer: /ok, pattern: yes}]}]");
    for (int i = 0; i < 5; i++) {
        denies("t", "{}", "Tool 't': argument '/ok' is missing.");
    }
    allows("t", "{ok: 'yes'}");
    denies("t", "{ok: 'yes'}", "Tool 't' may be called 1 times, and was.");
}

static void going_back_gives_no_calls_back(void **state)
{
    policies("[{type: rate, calls: 1}]");
    struct store_moment before = store_snapshot(session);
    allows("t", NULL);
    succeeded("t", NULL);
    assert_int_equal(store_restore(session, before, true, NULL), 0);
    assert_false(ask("t", NULL).allowed);
    /* Another run that takes up the session counts what succeeded. */
    allows("u", NULL);
    succeeded("u", NULL);
    policies("[{type: rate, calls: 1}]");
    assert_false(ask("u", NULL).allowed);
    allows("v", NULL);
}

static void calls_of_another_run_are_counted_once(void **state)
{
    policies("[{type: rate, calls: 2}]");
    allows("u", NULL);
    succeeded("u", NULL);
    policies("[{type: rate, calls: 2}]");
    allows("v", NULL);
    struct store_moment before = store_snapshot(session);
    succeeded("v", NULL);
    allows("w", NULL);
    assert_int_equal(store_restore(session, before, true, NULL), 0);
    allows("u", NULL);
    assert_false(ask("u", NULL).allowed);
}

/* --- what makes no sense --- */

static void senseless_policies_are_refused(void **state)
{
    static const char *const rows[][2] = {
        { "[{tools: [a]}]", "task.yaml:1:2: policies[0]: unknown type of policy ''" },
        { "[{type: deny, tools: [a]}, {type: nothing}]",
          "policies[1]: unknown type of policy 'nothing'" },
        { "[{type: deny}]", "needs 'tools'" },
        { "[{type: allow, tools: []}]", "'tools' must be a list" },
        { "[{type: allow, tools: ['']}]", "item 1 of 'tools'" },
        { "[{type: deny, tools: [a], section: none}]", "there is no section 'none'" },
        { "[{type: deny, tools: [a], name: x}, {type: deny, tools: [b], name: x}]", "twice" },
        { "[{type: arguments}]", "'rules' must be a list" },
        { "[{type: arguments, rules: [{pointer: /a}]}]", "rules[0]: needs 'pattern' or 'schema'" },
        { "[{type: arguments, rules: [{pattern: a}]}]", "needs a 'pointer'" },
        { "[{type: arguments, rules: [{pointer: a, pattern: b}]}]", "must begin with '/'" },
        { "[{type: arguments, rules: [{pointer: /a, pattern: '('}]}]", "rules[0]: pattern '('" },
        { "[{type: arguments, rules: [{schema: {type: what}}]}]", "rules[0]: schema" },
        { "[{type: sequential_dependency}]", "'depends' must be a map" },
        { "[{type: sequential_dependency, depends: {a: []}}]", "'a' needs a list" },
        { "[{type: sequential_dependency, depends: {a: ['b*']}}]", "by their full names" },
        { "[{type: sequential_dependency, depends: {a: [a]}}]", "'a' depends on itself" },
        { "[{type: sequential_dependency, depends: {a: [b], b: [c], c: [a]}}]",
          "would wait for itself" },
        { "[{type: sequential_dependency, depends: {'*': [b, c]}}]", "would wait for itself" },
        { "[{type: read_before_write, write_tools: []}]", "'write_tools' must be a list" },
        { "[{type: rate}]", "'calls' must be between 1" },
        { "[{type: rate, calls: 0}]", "'calls' must be between 1" },
        { "[{type: rate, calls: 1, per: 0}]", "'per' must be greater than 0" },
        { "[{type: program}]", "'command' must be a list" },
        { "[{type: program, command: ['']}]", "'command' must be a list" },
        { "[{type: program, command: [a, 1]}]", "item 2 of 'command'" },
        { "[{type: program, command: [a], timeout: 0}]", "'timeout' must be greater than 0" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        refused(rows[i][0], rows[i][1]);
    }
}

static void a_slice_that_is_taken_is_an_error(void **state)
{
    assert_int_equal(store_declare(session, STR("policy:rate"), SLICE_LOG, NULL), 0);
    struct err e;
    assert_int_equal(make("[{type: rate, calls: 1}]", NULL, 0, &e), -ERR_EXISTS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(without_policies_everything_is_allowed),
        CASE(names_are_patterns),
        CASE(native_tools_can_be_meant_alone),
        CASE(tools_can_be_meant_by_their_kind),
        CASE(names_that_no_tool_has),
        CASE(a_section_limits_the_scope),
        CASE(sections_come_first_and_the_first_denial_wins),
        CASE(all_must_allow),
        CASE(policies_in_c),
        CASE(arguments_by_pattern),
        CASE(arguments_by_schema),
        CASE(a_pattern_that_runs_away_is_a_denial),
        CASE(what_depends_waits),
        CASE(what_was_rolled_back_did_not_happen),
        CASE(the_state_of_a_policy_is_its_own),
        CASE(prerequisites_may_be_elsewhere),
        CASE(everything_may_wait_for_one),
        CASE(a_restored_session_is_believed),
        CASE(what_is_there_must_be_read_first),
        CASE(what_was_written_is_known),
        CASE(nothing_outside_is_written),
        CASE(names_of_its_tools_can_be_given),
        CASE(ten_thousand_reads_cost_as_one),
        CASE(nonsense_in_the_slice_grants_nothing),
        CASE(calls_are_counted_in_a_sliding_window),
        CASE(calls_of_the_whole_run),
        CASE(only_what_happens_is_counted),
        CASE(going_back_gives_no_calls_back),
        CASE(calls_of_another_run_are_counted_once),
        CASE(senseless_policies_are_refused),
        CASE(a_slice_that_is_taken_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
