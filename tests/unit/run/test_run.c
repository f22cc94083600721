/* SPDX-License-Identifier: MIT
 *
 * Whole runs in this process, of each kind of agent: programs, a model that cinch itself talks to,
 * and agents that converse. The programs are shell scripts, the models are scripts of the gateway;
 * nothing needs a network. What the sandbox holds is tested elsewhere, so most runs have none.
 */
#include "run_case.h"

#include "record/reason.h"
#include "run/recover_run.h"

#define OFF "sandbox: off\nlimits: {timeout: 30}\n"

/* --- programs --- */

static void test_a_program(void **state)
{
    struct scene *s = *state;
    struct run_case c = { 0 };
    put(s, "ws/kept", "one\n");
    run_task(s, &c,
             OFF "name: hello\nprompt: say hello\n"
                 "agent: {command: [sh, -c, 'cat $CINCH_PROMPT_FILE; echo two > made; rm kept; "
                 "echo file > $CINCH_ARTIFACTS_DIR/a.txt']}\n"
                 "env: {set: {GREETING: hi}}\n");
    expect_reason(&c, REASON_SUCCESS);
    assert_int_equal(c.sum.exit_status, 0);
    assert_int_equal(c.phases, 11);
    const struct json *result = read_record(s, &c, "result.json");
    assert_string_equal(json_cstring(json_get(result, "text"), ""), "say hello");
    const char *patch = read_text(s, &c, "diff.patch");
    assert_non_null(strstr(patch, "+two"));
    assert_non_null(strstr(patch, "-one"));
    assert_non_null(read_text(s, &c, "artifacts/a.txt"));
    assert_string_equal(json_cstring(json_get(read_record(s, &c, "state.json"), "state"), ""),
                        "succeeded");
}

static void test_programs_that_fail(void **state)
{
    struct scene *s = *state;
    static const struct {
        const char *agent;
        enum reason reason;
        int status;
    } cases[] = {
        { "[sh, -c, 'echo oops >&2; exit 3']", REASON_FAILURE, 1 },
        { "[sh, -c, 'kill -9 $$']", REASON_FAILURE, 1 },
        { "[no-such-program-at-all]", REASON_NOT_FOUND, 127 },
        { "[/etc/hostname]", REASON_NOT_EXECUTABLE, 126 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct run_case c = { 0 };
        run_task(s, &c,
                 arena_printf(s->arena, OFF "prompt: x\nagent: {command: %s}\n", cases[i].agent));
        expect_reason(&c, cases[i].reason);
        assert_int_equal(c.sum.exit_status, cases[i].status);
        assert_true(c.sum.message[0] != '\0');
    }
}

static void test_deadlines(void **state)
{
    struct scene *s = *state;
    static const char *const limits[] = {
        "{timeout: 0.3, grace: 1}",
        "{timeout: 30, first_output: 0.3, grace: 1}",
        "{timeout: 30, idle: 0.3, grace: 1}",
    };
    for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
        struct run_case c = { 0 };
        run_task(s, &c,
                 arena_printf(s->arena,
                              "sandbox: off\nprompt: x\nagent: {command: [sleep, '1000']}\n"
                              "limits: %s\n",
                              limits[i]));
        expect_reason(&c, REASON_TIMEOUT);
        assert_int_equal(c.sum.exit_status, 124);
        assert_non_null(strstr(read_text(s, &c, "events.jsonl"), "deadline"));
    }
}

static void test_a_deadline_that_has_passed(void **state)
{
    struct scene *s = *state;
    struct run_case c = { 0 };
    run_task(s, &c,
             "sandbox: off\nprompt: x\nagent: {command: ['true']}\n"
             "limits: {deadline: '2020-01-01T00:00:00Z'}\n");
    expect_reason(&c, REASON_TIMEOUT);
}

static void test_cancel(void **state)
{
    struct scene *s = *state;
    struct run_case c = { .cancel = true };
    run_task(s, &c, OFF "prompt: x\nagent: {command: [sleep, '1000']}\n");
    expect_reason(&c, REASON_CANCELLED);
}

static void test_refused(void **state)
{
    struct scene *s = *state;
    static const char *const wrong[] = {
        "prompt: x\nagnet: {}\n",
        "prompt: x\nagent: {adapter: nobody-knows-this}\n",
        "prompt: {text: '{{ missing }}', template: true}\nagent: {command: ['true']}\n",
        "prompt: x\nagent: {command: ['true']}\nsecrets: [NO_SUCH_SECRET_IS_SET]\n",
        "prompt: x\nagent: {command: ['true']}\ngateway: {script: missing.yaml}\n",
        "prompt: x\nagent: {command: ['true']}\ntools: [{name: a}]\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct run_case c = { 0 };
        run_task(s, &c, arena_printf(s->arena, OFF "%s", wrong[i]));
        if (c.result >= 0 && c.sum.exit_status < 64) {
            fail_msg("accepted: %s", wrong[i]);
        }
    }
}

#define NUMBER                                                                                     \
    "prompt: x\noutput: {schema: {type: object, properties: {n: {type: integer}}, required: [n], " \
    "additionalProperties: false}}\n"

static void test_output_schema(void **state)
{
    struct scene *s = *state;
    struct run_case good = { 0 };
    struct run_case bad = { 0 };
    run_task(s, &good, OFF "agent: {command: [echo, '{\"n\": 3}']}\n" NUMBER);
    run_task(s, &bad, OFF "agent: {command: [echo, nothing]}\n" NUMBER);
    assert_int_not_equal(bad.sum.reason, REASON_SUCCESS);
    expect_reason(&good, REASON_SUCCESS);
    const struct json *n = json_get(json_get(read_record(s, &good, "result.json"), "output"), "n");
    assert_int_equal(json_int(n, 0), 3);
}

static void test_artifacts_that_are_required(void **state)
{
    struct scene *s = *state;
    struct run_case c = { 0 };
    run_task(s, &c,
             OFF "prompt: x\nagent: {command: [sh, -c, 'echo done']}\n"
                 "output: {artifacts: [report.md]}\n");
    expect_reason(&c, REASON_FAILURE);
    assert_non_null(strstr(c.sum.message, "report.md"));
}

static void test_secrets_do_not_reach_the_record(void **state)
{
    struct scene *s = *state;
    struct run_case c = { 0 };
    assert_int_equal(setenv("UNIT_TEST_SECRET", "s3cr3t-value-of-the-test", 1), 0);
    run_task(s, &c,
             OFF "prompt: x\nagent: {command: [sh, -c, 'echo $UNIT_TEST_SECRET; "
                 "echo $UNIT_TEST_SECRET > leak; echo $UNIT_TEST_SECRET > "
                 "$CINCH_ARTIFACTS_DIR/leak']}\nsecrets: [UNIT_TEST_SECRET]\n");
    expect_reason(&c, REASON_SUCCESS);
    assert_null(strstr(read_text(s, &c, "stdout.log"), "s3cr3t-value"));
    assert_null(strstr(read_text(s, &c, "diff.patch"), "s3cr3t-value"));
    assert_null(strstr(read_text(s, &c, "artifacts/leak"), "s3cr3t-value"));
    assert_int_equal(unsetenv("UNIT_TEST_SECRET"), 0);
}

static void test_further_turns_of_a_program(void **state)
{
    struct scene *s = *state;
    struct run_case c = { 0 };
    put_script(
        s, "agent.sh",
        "#!/bin/sh\nif [ -e first ]; then echo x > report.md; echo done; else echo x > first; "
        "echo not yet; fi\n");
    run_task(s, &c,
             OFF "prompt: x\nagent: {command: [./agent.sh]}\ncompletion: {files: [report.md]}\n");
    expect_reason(&c, REASON_SUCCESS);
    const char *events = read_text(s, &c, "events.jsonl");
    assert_non_null(strstr(events, "task_completion.incomplete"));
    assert_non_null(strstr(events, "task_completion.complete"));
}

static void test_rounds_are_bounded(void **state)
{
    struct scene *s = *state;
    struct run_case c = { 0 };
    run_task(s, &c,
             OFF "prompt: x\nagent: {command: [echo, done]}\n"
                 "completion: {files: [never], max_rounds: 2}\n");
    expect_reason(&c, REASON_FAILURE);
    assert_non_null(strstr(c.sum.message, "2 further rounds"));
}

static void test_savepoints(void **state)
{
    struct scene *s = *state;
    static const char *const modes[] = { "copy", "in-place" };
    for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
        struct run_case c = { 0 };
        put(s, "ws/a", "one\n");
        run_task(s, &c,
                 arena_printf(s->arena,
                              OFF "prompt: x\nagent: {command: [sh, -c, 'echo x >> a; exit 3']}\n"
                                  "workspace: {mode: %s, savepoint: turn}\n",
                              modes[i]));
        expect_reason(&c, REASON_FAILURE);
        const struct json *turn = read_record(s, &c, "savepoints/turn-1.json");
        assert_true(json_bool(json_get(turn, "restored"), false));
        assert_string_equal(read_text(s, &c, "diff.patch"), "");
    }
}

#define REMEMBER                                                                                \
    "name: remember\nprompt: x\nagent: {command: ['true']}\nsession: {slices: [{name: plan}], " \
    "reducers: [{event: PromptRendered, slice: seen, reducer: replace_latest}]"

static void test_session_state(void **state)
{
    struct scene *s = *state;
    struct run_case c = { 0 };
    struct run_case again = { 0 };
    run_task(s, &c, OFF REMEMBER "}\n");
    expect_reason(&c, REASON_SUCCESS);
    assert_non_null(strstr(read_text(s, &c, "session/after.jsonl"), "seen"));
    run_task(s, &again,
             arena_printf(s->arena, OFF REMEMBER ", restore: %s/session/after.jsonl}\n", c.out));
    expect_reason(&again, REASON_SUCCESS);
}

/* --- a model that cinch talks to --- */

#define API                                                       \
    "agent: {adapter: api-direct, model: m}\nprompt: Do it.\n"    \
    "gateway: {script: model.yaml}\n"                             \
    "tools:\n  - name: write\n    description: writes a file\n"   \
    "    input_schema: {type: object, properties: {name: {type: " \
    "string}, fail: {type: boolean}}, required: [name]}\n"        \
    "    command: [./write.sh]\n"

static void put_tool(struct scene *s)
{
    put_script(s, "write.sh",
               "#!/bin/sh\nargs=$(cat)\necho made > made\n"
               "case $args in *fail*) echo cannot >&2; exit 3;; esac\necho wrote\n");
}

static void test_a_tool_call(void **state)
{
    struct scene *s = *state;
    struct run_case c = { 0 };
    put_tool(s);
    put(s, "model.yaml",
        "side: false\nsteps:\n  - when: {turn: 0}\n    call: {tool: write, args: {name: a}}\n"
        "  - say: all done\n    usage: {input: 10, output: 5}\n");
    run_task(s, &c, OFF API);
    expect_reason(&c, REASON_SUCCESS);
    assert_string_equal(json_cstring(json_get(read_record(s, &c, "result.json"), "text"), ""),
                        "all done");
    assert_non_null(strstr(read_text(s, &c, "diff.patch"), "+made"));
    assert_non_null(strstr(read_text(s, &c, "events.jsonl"), "ToolInvoked"));
    const struct json *metrics = read_record(s, &c, "metrics.json");
    assert_true(json_int(json_get(metrics, "tokens_input"), 0) >= 10);
}

static void test_a_tool_call_that_fails_leaves_nothing(void **state)
{
    struct scene *s = *state;
    struct run_case c = { 0 };
    put_tool(s);
    put(s, "model.yaml",
        "side: false\nsteps:\n  - when: {turn: 0}\n    call: {tool: write, args: {name: a, fail: "
        "true}}\n  - say: gave up\n");
    run_task(s, &c, OFF API);
    expect_reason(&c, REASON_SUCCESS);
    assert_string_equal(read_text(s, &c, "diff.patch"), "");
}

static void test_guards(void **state)
{
    struct scene *s = *state;
    struct run_case c = { 0 };
    put_tool(s);
    put_script(s, "check.sh", "#!/bin/sh\ntest -e ready && exit 0\necho not ready; exit 4\n");
    put(s, "model.yaml",
        "side: false\nsteps:\n  - when: {turn: 0}\n    call: {tool: write, args: {name: a}}\n"
        "  - say: finished\n");
    run_task(s, &c,
             OFF API "policies: [{type: deny, tools: [write], reason: not today}]\n"
                     "feedback: [{type: static, text: hurry, every_n_calls: 1}]\n"
                     "completion: {command: [./check.sh], max_rounds: 1}\n");
    expect_reason(&c, REASON_FAILURE);
    assert_non_null(strstr(c.sum.message, "not complete"));
    assert_non_null(strstr(read_text(s, &c, "events.jsonl"), "not today"));
}

static void test_budget(void **state)
{
    struct scene *s = *state;
    struct run_case c = { 0 };
    put_tool(s);
    put(s, "model.yaml",
        "side: false\nsteps:\n  - call: {tool: write, args: {name: a}}\n    usage: {input: 9, "
        "output: 9}\n");
    run_task(s, &c, "sandbox: off\nlimits: {timeout: 30, calls: 2}\n" API);
    expect_reason(&c, REASON_BUDGET);
    assert_int_equal(c.sum.exit_status, 78);
}

static void test_faults_of_a_provider(void **state)
{
    struct scene *s = *state;
    static const struct {
        const char *fault;
        enum reason reason;
    } cases[] = {
        { "{status: 401}", REASON_AUTH },
        { "{status: 400}", REASON_FAILURE },
    };
    put_tool(s);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct run_case c = { 0 };
        put(s, "model.yaml",
            arena_printf(s->arena, "side: false\nsteps: [{fault: %s}]\n", cases[i].fault));
        run_task(s, &c, OFF API);
        expect_reason(&c, cases[i].reason);
    }
}

/* --- agents that converse --- */

static const char acp_profile[] = "name: talker\ndriver: acp\nbinary: [sh]\nargv: [\"{binary}\", "
                                  "\"{home}/../../ws/talk.sh\"]\nhome: private\n";

/* Answers what a client asks at the start, then `on_prompt` for each prompt. */
static void put_talker(struct scene *s, const char *on_prompt)
{
    put(s, "profiles/talker.yaml", acp_profile);
    put_script(
        s, "ws/talk.sh",
        arena_printf(
            s->arena,
            "#!/bin/sh\nanswer() { echo \"{\\\"jsonrpc\\\":\\\"2.0\\\",\\\"id\\\":$id,"
            "\\\"result\\\":$1}\"; }\n"
            "say() { echo \"{\\\"jsonrpc\\\":\\\"2.0\\\",\\\"method\\\":\\\"session/update\\\","
            "\\\"params\\\":{\\\"sessionId\\\":\\\"s\\\",\\\"update\\\":{\\\"sessionUpdate\\\":"
            "\\\"agent_message_chunk\\\",\\\"content\\\":{\\\"type\\\":\\\"text\\\",\\\"text\\\":"
            "\\\"$1\\\"}}}}\"; }\n"
            "while read -r line; do\n"
            "id=$(printf '%%s' \"$line\" | sed 's/.*\"id\": *\\([0-9]*\\).*/\\1/')\n"
            "case $line in\n"
            "*'\"initialize\"'*) answer '{\"protocolVersion\":1,\"agentCapabilities\":{}}';;\n"
            "*'\"session/new\"'*) answer '{\"sessionId\":\"s\"}';;\n"
            "*'\"session/prompt\"'*) n=$((n+1)); %s;;\n"
            "esac\ndone\n",
            on_prompt));
}

#define TALK "agent: {adapter: talker}\nprompt: talk\n"
#define END  "say fine; answer '{\"stopReason\":\"end_turn\"}'"

static void test_a_dialogue(void **state)
{
    struct scene *s = *state;
    struct run_case c = { 0 };
    put_talker(s, END);
    run_task(s, &c, OFF TALK);
    expect_reason(&c, REASON_SUCCESS);
    assert_string_equal(json_cstring(json_get(read_record(s, &c, "result.json"), "text"), ""),
                        "fine");
}

static void test_further_turns_of_a_dialogue(void **state)
{
    struct scene *s = *state;
    struct run_case c = { 0 };
    put_talker(s, "test $n = 2 && echo x > report.md; " END);
    run_task(s, &c, OFF TALK "completion: {files: [report.md]}\n");
    expect_reason(&c, REASON_SUCCESS);
    const char *turn = "prompt.turn.complete";
    const char *first = strstr(read_text(s, &c, "events.jsonl"), turn);
    assert_non_null(first);
    assert_non_null(strstr(first + 1, turn));
}

static void test_dialogues_that_fail(void **state)
{
    struct scene *s = *state;
    static const struct {
        const char *on_prompt, *limits;
        enum reason reason;
    } cases[] = {
        { "exit 0", "{timeout: 30}", REASON_FAILURE },
        { "exit 7", "{timeout: 30}", REASON_FAILURE },
        { "kill -9 $$", "{timeout: 30}", REASON_FAILURE },
        { "answer '{\"stopReason\":\"refusal\"}'", "{timeout: 30}", REASON_FAILURE },
        { "sleep 1000", "{timeout: 0.5, grace: 0.3}", REASON_TIMEOUT },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct run_case c = { 0 };
        put_talker(s, cases[i].on_prompt);
        run_task(s, &c, arena_printf(s->arena, "sandbox: off\nlimits: %s\n" TALK, cases[i].limits));
        expect_reason(&c, cases[i].reason);
    }
}

static void test_a_dialogue_is_cancelled(void **state)
{
    struct scene *s = *state;
    struct run_case c = { .cancel = true };
    put_talker(s, "sleep 1000");
    run_task(s, &c, "sandbox: off\nlimits: {timeout: 30, grace: 0.3}\n" TALK);
    expect_reason(&c, REASON_CANCELLED);
}

static void test_an_agent_that_stays_after_its_answer(void **state)
{
    struct scene *s = *state;
    struct run_case c = { 0 };
    put_talker(s, END "; exec sleep 1000");
    run_task(s, &c, "sandbox: off\nlimits: {timeout: 30, grace: 0.3}\n" TALK);
    expect_reason(&c, REASON_SUCCESS);
    assert_non_null(strstr(read_text(s, &c, "events.jsonl"), "\"finished\""));
}

/* --- the file contract --- */

static void test_an_adapter_that_keeps_the_file_contract(void **state)
{
    struct scene *s = *state;
    struct run_case c = { 0 };
    const char *programs = getenv("CINCH_TEST_PROGRAMS");
    assert_int_equal(setenv("ADAPTER_KEY", "a-key-of-the-unit-test", 1), 0);
    run_task(s, &c,
             arena_printf(s->arena,
                          OFF "name: t\nprompt: x\nagent: {adapter: contract, command: "
                              "[%s/contract_adapter, honest]}\nsecrets: [ADAPTER_KEY]\n",
                          programs));
    expect_reason(&c, REASON_SUCCESS);
    assert_int_equal(unsetenv("ADAPTER_KEY"), 0);
}

/* --- in a sandbox --- */

static void test_in_a_sandbox(void **state)
{
    struct scene *s = *state;
    struct run_case c = { 0 };
    put_tool(s);
    put(s, "ws/kept", "one\n");
    put(s, "model.yaml",
        "side: false\nsteps:\n  - when: {turn: 0}\n    call: {tool: write, args: {name: a}}\n"
        "  - say: all done\n");
    run_task(s, &c, "limits: {timeout: 30}\n" API);
    if (c.sum.reason == REASON_UNAVAILABLE) {
        skip(); /* no namespaces here */
    }
    expect_reason(&c, REASON_SUCCESS);
    assert_non_null(strstr(read_text(s, &c, "diff.patch"), "+made"));
    struct run_case program = { 0 };
    run_task(s, &program,
             "prompt: x\nlimits: {timeout: 30}\n"
             "agent: {command: [sh, -c, 'echo two > made; rm kept']}\n");
    expect_reason(&program, REASON_SUCCESS);
    assert_non_null(strstr(read_text(s, &program, "diff.patch"), "-one"));
    assert_non_null(
        json_get(json_get(read_record(s, &program, "manifest.json"), "sandbox"), "enforced"));
}

/* --- recovery --- */

static void test_a_closed_record_is_not_recovered(void **state)
{
    struct scene *s = *state;
    struct run_case c = { 0 };
    run_task(s, &c, OFF "prompt: x\nagent: {command: ['true']}\n");
    const char *before = read_text(s, &c, "manifest.json");
    struct err e;
    (void)!run_recover(c.out, NULL, &e);
    assert_string_equal(read_text(s, &c, "manifest.json"), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCENE_TEST(test_a_program),
        SCENE_TEST(test_programs_that_fail),
        SCENE_TEST(test_deadlines),
        SCENE_TEST(test_a_deadline_that_has_passed),
        SCENE_TEST(test_cancel),
        SCENE_TEST(test_refused),
        SCENE_TEST(test_output_schema),
        SCENE_TEST(test_artifacts_that_are_required),
        SCENE_TEST(test_secrets_do_not_reach_the_record),
        SCENE_TEST(test_further_turns_of_a_program),
        SCENE_TEST(test_rounds_are_bounded),
        SCENE_TEST(test_savepoints),
        SCENE_TEST(test_session_state),
        SCENE_TEST(test_a_tool_call),
        SCENE_TEST(test_a_tool_call_that_fails_leaves_nothing),
        SCENE_TEST(test_guards),
        SCENE_TEST(test_budget),
        SCENE_TEST(test_faults_of_a_provider),
        SCENE_TEST(test_a_dialogue),
        SCENE_TEST(test_further_turns_of_a_dialogue),
        SCENE_TEST(test_dialogues_that_fail),
        SCENE_TEST(test_a_dialogue_is_cancelled),
        SCENE_TEST(test_an_agent_that_stays_after_its_answer),
        SCENE_TEST(test_an_adapter_that_keeps_the_file_contract),
        SCENE_TEST(test_in_a_sandbox),
        SCENE_TEST(test_a_closed_record_is_not_recovered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
