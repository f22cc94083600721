/* SPDX-License-Identifier: MIT
 *
 * Driver claude-stream against what the real program printed (data/claude, 2.1.197, made short),
 * and against programs that misbehave. Everything the driver does goes into one log, which must be
 * the same however the bytes are cut. GOLDEN_UPDATE=1 writes the logs; read the diff.
 */
#include <fcntl.h>

#include "base/file.h"
#include "dialogue_case.h"

static void start(struct host *h, struct launch_spec *spec)
{
    h->driver = &driver_claude;
    h->original = "sdk_entry";
    h->why = "denied by policy";
    h->about = "mind the gap";
    host_open(h, spec);
    driver_claude.dialogue->begin(h->session);
}

#define INITIALIZED(subtype, rest)                                        \
    "{\"type\":\"control_response\",\"response\":{\"subtype\":\"" subtype \
    "\",\"request_id\":\"cinch_1\"" rest "}}\n"

/* --- what the real program printed --- */

static const struct golden {
    const char *name;
    const char *deny;
    bool has_policies, has_feedback, schema;
    const char *prefix;
} goldens[] = {
    { "subagent", NULL, true, true, false, "mcp__cinch__" },
    { "structured", "Bash", true, true, true, "mcp__cinch__" },
    { "interrupt", NULL, true, true, false, "mcp__cinch__" },
    { "permission", "Write", true, true, false, "mcp__cinch__" },
    { "refused", NULL, false, false, false, "mcp__cinch__" },
    { "replay", "Bash", true, false, false, "mcp__tinyh__" },
};

static void log_report(struct host *h)
{
    const struct agent_report *r = &h->report;
    buf_addf(&h->log, "report '%.*s' session %.*s model %.*s", STR_ARG(r->text),
             STR_ARG(r->session_id), STR_ARG(r->model));
    buf_addf(&h->log, "%s%s error '%.*s'", r->failed ? " failed" : "",
             r->result_seen ? " result" : "", STR_ARG(r->error));
    buf_addf(&h->log, " tokens %lld/%lld/%lld/%lld turns %lld cost %.6f", (long long)r->usage.input,
             (long long)r->usage.output, (long long)r->usage.cache_read,
             (long long)r->usage.cache_write, (long long)r->usage.turns, r->usage.cost_usd);
    log_json(h, "structured", r->structured);
    buf_adds(&h->log, "\n");
}

/* But for the last one. */
static unsigned results_in(struct str input)
{
    unsigned n = 0;
    const char *at = input.ptr;
    while ((at = strstr(at, "{\"type\":\"result\"")) != NULL) {
        at++;
        n++;
    }
    return n > 0 ? n - 1 : 0;
}

static char *play(const struct golden *g, struct str input, size_t step)
{
    struct profile profile = { .mcp = { .prefix = g->prefix } };
    struct host h = { .deny = g->deny, .sequels = results_in(input) };
    struct launch_spec spec = { .profile = &profile,
                                .has_policies = g->has_policies,
                                .has_feedback = g->has_feedback,
                                .output_schema = g->schema ? tree("{type: object}") : NULL };
    start(&h, &spec);
    for (size_t at = 0; at < input.len; at += step) {
        driver_claude.program->feed(h.session, AGENT_STDOUT, str_slice(input, at, at + step));
    }
    finish(&h);
    log_report(&h);
    char *log = arena_dup(arena, buf_str(&h.log));
    stop(&h);
    return log;
}

static struct str contents(const char *path)
{
    struct err e;
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    if (file_read(AT_FDCWD, path, BUF_TEXT, &text, &e) < 0) {
        fail_msg("%s", e.msg);
    }
    return arena_str(arena, buf_str(&text));
}

/* A byte or a few at a time, so that each result is a turn of its own; larger pieces only must not
 * break anything. */
static void test_what_the_real_program_printed(void **state)
{
    for (size_t i = 0; i < ARRAY_LEN(goldens); i++) {
        const struct golden *g = &goldens[i];
        const char *file = arena_printf(arena, DATA_DIR "/%s.log", g->name);
        struct str input = contents(arena_printf(arena, DATA_DIR "/%s.jsonl", g->name));
        print_message("%s\n", g->name);
        if (getenv("GOLDEN_UPDATE") != NULL) {
            char *log = play(g, input, 1);
            assert_int_equal(file_write_atomic(AT_FDCWD, file, str_of(log), 0644, NULL), 0);
        }
        const char *want = contents(file).ptr;
        assert_string_equal(play(g, input, 1), want);
        assert_string_equal(play(g, input, 7), want);
        (void)play(g, input, 1000);
        (void)play(g, input, input.len);
    }
}

/* --- the first words --- */

static void test_first_words(void **state)
{
    static const struct placeholder vars[] = { { .name = "system_prompt",
                                                 .value = { "Be kind.", 8 } } };
    struct host h = { 0 };
    struct launch_spec spec = { .vars = { vars, 1 },
                                .output_schema = tree("{type: object}"),
                                .has_policies = true };
    start(&h, &spec);
    assert_logged(&h, "\"subtype\":\"initialize\"");
    assert_logged(&h, "\"PreToolUse\":[{\"hookCallbackIds\":[\"pre_tool_use\"]");
    assert_not_logged(&h, "PostToolUse");
    assert_logged(&h, "\"jsonSchema\":{\"type\":\"object\"}");
    assert_logged(&h, "\"appendSystemPrompt\":\"Be kind.\"");
    assert_not_logged(&h, "do it");
    feed(&h, INITIALIZED("success", ""));
    assert_logged(&h, "\"role\":\"user\",\"content\":\"do it\"");
    buf_reset(&h.log);
    feed(&h, INITIALIZED("success", ""));
    assert_int_equal(h.log.len, 0);
    stop(&h);

    struct profile profile = { .mcp = { .prefix = "" }, .system_prompt = SYSTEM_PROMPT_REPLACE };
    spec.profile = &profile;
    start(&h, &spec);
    assert_logged(&h, "\"systemPrompt\":[\"Be kind.\"]");
    stop(&h);
    profile.system_prompt = SYSTEM_PROMPT_NONE;
    start(&h, &spec);
    assert_not_logged(&h, "Be kind.");
    stop(&h);
}

static void test_later_turns_differ(void **state)
{
    struct host h = { 0 };
    struct launch_spec spec = { 0 };
    start(&h, &spec);
    feed(&h, INITIALIZED("success", ""));
    assert_true(driver_claude.dialogue->set_option(h.session, DRIVER_OPTION_MODEL, STR("opus")));
    assert_true(driver_claude.dialogue->set_option(h.session, DRIVER_OPTION_MODE, STR("plan")));
    assert_logged(&h, "\"request_id\":\"cinch_2\",\"request\":{\"subtype\":\"set_model\",\"model\":"
                      "\"opus\"}}\n");
    assert_logged(&h, "\"request\":{\"subtype\":\"set_permission_mode\",\"mode\":\"plan\"}}\n");
    feed(&h, "{\"type\":\"control_response\",\"response\":{\"subtype\":\"error\",\"request_id\":"
             "\"cinch_2\",\"error\":\"no such model\"}}\n");
    assert_logged(&h, "entry main error  {\"error\":\"no such model\"}");
    stop(&h);
}

/* Without its hooks a policy would not be asked. */
static void test_nothing_begins_without_hooks(void **state)
{
    struct host h = { 0 };
    struct launch_spec spec = { .has_policies = true };
    start(&h, &spec);
    feed(&h, "{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\",\"request_id\":"
             "\"other\"}}\n" INITIALIZED("error", ",\"error\":\"bad hook\""));
    assert_not_logged(&h, "do it");
    assert_logged(&h, "close");
    driver_claude.end(h.session, &h.report);
    assert_true(h.report.failed);
    assert_true(str_eqc(h.report.error, "it refused to begin: bad hook"));
    stop(&h);
}

static void test_plan(void **state)
{
    static const struct placeholder vars[] = { { .name = "binary", .value = { "claude", 6 } },
                                               { .name = "mcp_url", .value = { "http://x", 8 } },
                                               { .name = "resume", .value = { "abc", 3 } } };
    struct err e;
    struct profile *p;
    struct launch launch;
    const char *text = "name: x\n"
                       "driver: claude-stream\n"
                       "env: {A: 'b'}\n"
                       "argv: ['{binary}', {when: mcp_url, args: [--mcp-config, x]},\n"
                       "  {when: resume, args: [--resume, '{resume}']}]\n";
    assert_int_equal(profile_parse(arena, str_of(text), "p", &p, &e), 0);
    struct launch_spec spec = { .profile = p, .vars = { vars, 1 } };
    assert_int_equal(driver_claude.program->plan(arena, &spec, &launch, &e), 0);
    assert_string_equal(launch.argv[0], "claude");
    assert_null(launch.argv[1]);
    assert_null(launch.stdin_text.ptr);
    assert_string_equal(json_cstring(json_get(launch.env, "A"), ""), "b");
    spec.vars.len = 3;
    assert_int_equal(driver_claude.program->plan(arena, &spec, &launch, &e), 0);
    assert_string_equal(launch.argv[1], "--mcp-config");
    assert_string_equal(launch.argv[4], "abc");
}

/* --- questions --- */

#define HOOK(id, tool, call)                                                              \
    "{\"type\":\"control_request\",\"request_id\":\"" id "\",\"request\":{\"subtype\":"   \
    "\"hook_callback\",\"callback_id\":\"pre_tool_use\",\"input\":{\"tool_name\":\"" tool \
    "\",\"tool_input\":{\"a\":1},\"tool_use_id\":\"" call "\"}}}\n"

static void test_answers_may_come_later(void **state)
{
    struct host h = { .later = true };
    struct launch_spec spec = { .has_policies = true };
    start(&h, &spec);
    buf_reset(&h.log);
    feed(&h, HOOK("q1", "Bash", "t1") HOOK("q2", "Write", "t2"));
    assert_int_equal(h.asks, 2);
    assert_not_logged(&h, "send");
    reply(&h, h.last_ask, false, "not now");
    assert_logged(&h, "\"request_id\":\"q2\",\"response\":{\"hookSpecificOutput\":"
                      "{\"permissionDecision\":\"deny\",\"permissionDecisionReason\":\"not now\"");
    reply(&h, h.last_ask, true, ""); /* once is enough */
    reply(&h, 12345, true, "");
    assert_not_logged(&h, "allow");
    reply(&h, h.last_ask - 1, true, "");
    assert_logged(&h, "\"request_id\":\"q1\",\"response\":{\"hookSpecificOutput\":"
                      "{\"permissionDecision\":\"allow\"");
    stop(&h);
}

static void test_a_cancelled_question_gets_no_answer(void **state)
{
    struct host h = { .later = true };
    struct launch_spec spec = { .has_policies = true };
    start(&h, &spec);
    feed(&h, HOOK("q1", "Bash", "t1"));
    buf_reset(&h.log);
    feed(&h, "{\"type\":\"control_cancel_request\",\"request_id\":\"q1\"}\n");
    feed(&h, "{\"type\":\"control_cancel_request\",\"request_id\":\"nobody\"}\n");
    reply(&h, h.last_ask, true, "");
    assert_int_equal(h.log.len, 0);
    stop(&h);
}

static void test_the_same_question_twice_is_one(void **state)
{
    struct host h = { .later = true };
    struct launch_spec spec = { .has_policies = true };
    start(&h, &spec);
    feed(&h, HOOK("q1", "Bash", "t1") HOOK("q1", "Bash", "t1"));
    assert_int_equal(h.asks, 1);
    stop(&h);
}

static void test_what_cannot_be_asked_is_denied(void **state)
{
    struct host h = { .later = true };
    struct launch_spec spec = { .has_policies = true };
    start(&h, &spec);
    for (int i = 0; i < 300; i++) {
        feed(&h, arena_printf(arena, HOOK("q%d", "Bash", "t"), i));
    }
    assert_int_equal(h.asks, 256);
    assert_logged(&h, "\"request_id\":\"q256\",\"response\":{\"hookSpecificOutput\":"
                      "{\"permissionDecision\":\"deny\"");
    stop(&h);
}

static void test_tools_of_the_run_are_not_asked_about(void **state)
{
    struct profile profile = { .mcp = { .prefix = "mcp__cinch__" } };
    struct host h = { 0 };
    struct launch_spec spec = { .profile = &profile, .has_policies = true, .has_feedback = true };
    start(&h, &spec);
    buf_reset(&h.log);
    feed(&h, HOOK("q1", "mcp__cinch__add_note", "t1"));
    assert_int_equal(h.asks, 0);
    assert_logged(&h, "\"request_id\":\"q1\",\"response\":{}");
    stop(&h);
}

static void test_unknown_requests_get_an_error(void **state)
{
    struct host h = { 0 };
    struct launch_spec spec = { 0 };
    start(&h, &spec);
    buf_reset(&h.log);
    feed(&h, "{\"type\":\"control_request\",\"request_id\":\"a\",\"request\":{\"subtype\":\"x\"}}\n"
             "{\"type\":\"control_request\",\"request_id\":\"b\",\"request\":{\"subtype\":"
             "\"hook_callback\",\"callback_id\":\"h9\"}}\n"
             "{\"type\":\"control_request\",\"request_id\":\"c\"}\n"
             "{\"type\":\"control_request\",\"request\":{\"subtype\":\"x\"}}\n");
    assert_logged(&h, "{\"subtype\":\"error\",\"request_id\":\"a\"");
    assert_logged(&h, "{\"subtype\":\"error\",\"request_id\":\"b\"");
    assert_logged(&h, "{\"subtype\":\"error\",\"request_id\":\"c\"");
    stop(&h);
}

static void test_nobody_is_there_for_questions_to_people(void **state)
{
    struct host h = { 0 };
    struct launch_spec spec = { 0 };
    start(&h, &spec);
    feed(&h, "{\"type\":\"control_request\",\"request_id\":\"a\",\"request\":{\"subtype\":"
             "\"can_use_tool\",\"tool_name\":\"AskUserQuestion\",\"input\":{}}}\n");
    assert_logged(&h, "\"behavior\":\"deny\"");
    feed(&h, "{\"type\":\"control_request\",\"request_id\":\"b\",\"request\":{\"subtype\":"
             "\"can_use_tool\",\"tool_name\":\"Bash\",\"input\":{\"command\":\"ls\"}}}\n");
    assert_logged(&h, "{\"behavior\":\"allow\",\"updatedInput\":{\"command\":\"ls\"}}");
    stop(&h);
}

/* --- turns --- */

#define RESULT(error, rest) \
    "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":" error rest "}\n"

static void test_interrupt(void **state)
{
    struct host h = { 0 };
    struct launch_spec spec = { 0 };
    start(&h, &spec);
    driver_claude.dialogue->interrupt(h.session);
    assert_logged(&h, "\"request_id\":\"cinch_2\",\"request\":{\"subtype\":\"interrupt\"}");
    feed(&h, RESULT("true", ",\"stop_reason\":null"));
    assert_logged(&h, "turn interrupted");
    finish(&h);
    assert_logged(&h, "close");
    assert_true(h.report.failed);
    stop(&h);
}

static void test_another_turn_has_a_result_of_its_own(void **state)
{
    struct host h = { 0 };
    struct launch_spec spec = { 0 };
    start(&h, &spec);
    feed(&h, RESULT("true", ",\"result\":\"API Error: 500\""));
    driver_claude.dialogue->prompt(h.session, STR("try again"));
    assert_logged(&h, "\"role\":\"user\",\"content\":\"try again\"");
    feed(&h, RESULT("false", ",\"result\":\"fine\""));
    finish(&h);
    assert_true(h.report.result_seen);
    assert_true(str_eqc(h.report.text, "fine"));
    assert_int_equal(h.turns, 2);
    stop(&h);
}

static void test_an_old_result_is_not_that_of_a_new_turn(void **state)
{
    struct host h = { 0 };
    struct launch_spec spec = { 0 };
    start(&h, &spec);
    feed(&h, RESULT("false", ",\"result\":\"fine\""));
    driver_claude.dialogue->prompt(h.session, STR("more"));
    driver_claude.end(h.session, &h.report);
    assert_false(h.report.result_seen);
    assert_true(h.report.failed);
    stop(&h);
}

/* Totals of a resumed conversation include its earlier processes, which have reported them. */
static void test_usage_of_a_resumed_conversation(void **state)
{
    struct host h = { 0 };
    struct launch_spec spec = { 0 };
    start(&h, &spec);
    feed(&h, RESULT("false", ",\"usage\":{},\"total_cost_usd\":0.9,"
                             "\"modelUsage\":{\"m\":{\"inputTokens\":900,\"costUSD\":0.9}},"
                             "\"model_usage_since_last_result\":{\"m\":{\"inputTokens\":100,"
                             "\"outputTokens\":7,\"costUSD\":0.25}}"));
    driver_claude.dialogue->prompt(h.session, STR("more"));
    feed(&h, RESULT("false", ",\"usage\":{},\"total_cost_usd\":1.4,"
                             "\"modelUsage\":{\"m\":{\"inputTokens\":905,\"costUSD\":1.4}},"
                             "\"model_usage_since_last_result\":{\"m\":{\"inputTokens\":5,"
                             "\"costUSD\":0.5}}"));
    driver_claude.dialogue->prompt(h.session, STR("more"));
    feed(&h, RESULT("false", ",\"usage\":{},\"total_cost_usd\":1.4,\"modelUsage\":{},"
                             "\"model_usage_since_last_result\":{}"));
    finish(&h);
    assert_int_equal(h.report.usage.input, 105);
    assert_int_equal(h.report.usage.output, 7);
    assert_true(h.report.usage.cost_known);
    assert_true(h.report.usage.cost_usd == 0.75);
    stop(&h);
}

static void test_after_the_end_nothing_is_sent(void **state)
{
    struct host h = { .sequels = 9 };
    struct launch_spec spec = { .has_policies = true };
    start(&h, &spec);
    finish(&h);
    finish(&h);
    buf_reset(&h.log);
    feed(&h, RESULT("false", "") HOOK("q1", "Bash", "t1"));
    assert_int_equal(h.turns, 0);
    assert_not_logged(&h, "send");
    assert_not_logged(&h, "close");
    stop(&h);
}

static void test_tasks_in_the_background_delay_the_end(void **state)
{
    struct host h = { 0 };
    struct launch_spec spec = { 0 };
    start(&h, &spec);
    feed(&h, "{\"type\":\"control_request\",\"request_id\":\"s\",\"request\":{\"subtype\":"
             "\"hook_callback\",\"callback_id\":\"stop\",\"input\":{\"background_tasks\":[{}]}}}"
             "\n" RESULT("false", ""));
    assert_logged(&h, "turn - not settled");
    stop(&h);
}

#define STOPPED(tasks)                                                             \
    "{\"type\":\"control_request\",\"request_id\":\"s\",\"request\":{\"subtype\":" \
    "\"hook_callback\",\"callback_id\":\"stop\",\"input\":{\"background_tasks\":[" tasks "]}}}\n"
#define TASKS(tasks) \
    "{\"type\":\"system\",\"subtype\":\"background_tasks_changed\",\"tasks\":[" tasks "]}\n"

/* A sub-agent in the background may be silent for minutes; the turn that it begins, too. */
static void test_agents_in_the_background(void **state)
{
    struct host h = { 0 };
    struct launch_spec spec = { 0 };
    start(&h, &spec);
    feed(&h, TASKS("{\"task_type\":\"local_agent\"}") TASKS(""));
    assert_int_equal(h.turns, 0);
    feed(&h, STOPPED("{\"type\":\"shell\"},{\"type\":\"subagent\"}") RESULT("false", ""));
    assert_int_equal(h.turns, 1);
    assert_int_equal(h.settle / NSEC_PER_SEC, 600);
    feed(&h, TASKS("{\"task_type\":\"local_agent\"}"));
    assert_int_equal(h.turns, 1);
    feed(&h, TASKS("{\"task_type\":\"local_bash\"}"));
    assert_int_equal(h.turns, 2);
    assert_int_equal(h.settle / NSEC_PER_SEC, 10);
    feed(&h, "{\"type\":\"system\",\"subtype\":\"init\"}\n");
    assert_int_equal(h.settle / NSEC_PER_SEC, 600);
    feed(&h, TASKS(""));
    assert_int_equal(h.turns, 3);
    feed(&h, STOPPED("") RESULT("false", ",\"result\":\"done\""));
    assert_int_equal(h.turns, 4);
    assert_int_equal(h.settle, 0);
    stop(&h);
}

#define STARTED(background)                                                                      \
    "{\"type\":\"system\",\"subtype\":\"task_started\",\"task_id\":\"a\",\"tool_use_id\":\"t\"," \
    "\"prompt\":\"SUB\",\"is_backgrounded\":" background "}\n"
#define SUB_STOPPED                                                                      \
    "{\"type\":\"control_request\",\"request_id\":\"s\",\"request\":{\"subtype\":"       \
    "\"hook_callback\",\"callback_id\":\"subagent_stop\",\"input\":{\"agent_id\":\"a\"," \
    "\"last_assistant_message\":\"below\"}}}\n"

/* In the foreground its prompt is in the stream and its last message is not; in the background it
 * is the other way round. */
static void test_messages_of_a_sub_agent_are_told_once(void **state)
{
    struct host h = { 0 };
    struct launch_spec spec = { 0 };
    start(&h, &spec);
    feed(&h, STARTED("true"));
    assert_logged(&h, "\"text\":\"SUB\"");
    feed(&h, "{\"type\":\"assistant\",\"parent_tool_use_id\":\"t\",\"message\":{\"content\":"
             "[{\"type\":\"text\",\"text\":\"below\"}]}}\n");
    buf_reset(&h.log);
    feed(&h, SUB_STOPPED);
    assert_not_logged(&h, "assistant_message");
    stop(&h);
    h = (struct host) { 0 };
    start(&h, &spec);
    feed(&h, STARTED("false"));
    assert_not_logged(&h, "user_message");
    feed(&h, SUB_STOPPED);
    assert_logged(&h, "assistant_message");
    stop(&h);
}

/* --- misbehaviour --- */

static void test_garbage_is_counted_and_told(void **state)
{
    struct host h = { 0 };
    struct launch_spec spec = { 0 };
    start(&h, &spec);
    for (int i = 0; i < 500; i++) {
        feed(&h, "no json\n{\"type\":\n[1]\n\n\"x\"\n");
    }
    feed(&h, "{\"type\":\"novelty\"}\n{}\n{\"type\":7}\n");
    feed(&h, RESULT("\"yes\"", ""));
    assert_int_equal(h.turns, 0);
    finish(&h);
    assert_int_equal(h.report.unparsable_lines, 2001);
    assert_false(h.report.result_seen);
    size_t entries = 0;
    for (const char *at = h.log.ptr; (at = strstr(at, "parse_error")) != NULL; at++) {
        entries++;
    }
    assert_int_equal(entries, 100);
    stop(&h);
}

static void test_a_huge_line_is_passed_over(void **state)
{
    struct host h = { 0 };
    struct launch_spec spec = { 0 };
    char *block = arena_alloc(arena, 1 << 20);
    memset(block, 'x', 1 << 20);
    start(&h, &spec);
    feed(&h, "{\"type\":\"user\",\"x\":\"");
    for (int i = 0; i < 64; i++) {
        driver_claude.program->feed(h.session, AGENT_STDOUT, str_n(block, 1 << 20));
    }
    feed(&h, "\"}\n" RESULT("false", ",\"result\":\"fine\""));
    finish(&h);
    assert_int_equal(h.report.overlong_lines, 1);
    assert_true(str_eqc(h.report.text, "fine"));
    stop(&h);
}

static void test_many_calls_that_never_end(void **state)
{
    struct host h = { 0 };
    struct launch_spec spec = { 0 };
    start(&h, &spec);
    for (int i = 0; i < 1000; i++) {
        feed(&h, arena_printf(arena,
                              "{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":"
                              "\"tool_use\",\"id\":\"t%d\",\"name\":\"Bash\",\"input\":{}}]}}\n",
                              i));
    }
    buf_reset(&h.log);
    for (int i = 0; i < 1000; i += 999) {
        feed(&h, arena_printf(arena,
                              "{\"type\":\"user\",\"message\":{\"content\":[{\"type\":"
                              "\"tool_result\",\"tool_use_id\":\"t%d\",\"content\":\"x\"}]}}\n",
                              i));
    }
    assert_not_logged(&h, "observed Bash t0");
    assert_logged(&h, "observed Bash t999");
    stop(&h);
}

static void test_the_last_line_may_lack_its_end(void **state)
{
    struct host h = { 0 };
    struct launch_spec spec = { 0 };
    start(&h, &spec);
    feed(&h, "{\"type\":\"result\",\"is_error\":false,\"result\":\"cut here\"}");
    driver_claude.end(h.session, &h.report);
    assert_true(h.report.result_seen);
    assert_true(str_eqc(h.report.text, "cut here"));
    assert_int_equal(h.turns, 0);
    stop(&h);
}

/* The run asks for the report at the end of each turn, when half of the next line may be there. */
static void test_the_report_does_not_cut_lines(void **state)
{
    struct host h = { 0 };
    struct launch_spec spec = { 0 };
    start(&h, &spec);
    feed(&h, RESULT("false", ",\"result\":\"one\"") "{\"type\":\"result\",\"is_error\":false,");
    driver_claude.end(h.session, &h.report);
    assert_true(str_eqc(h.report.text, "one"));
    feed(&h, "\"result\":\"two\"}\n");
    finish(&h);
    assert_true(str_eqc(h.report.text, "two"));
    assert_int_equal(h.report.unparsable_lines, 0);
    stop(&h);
}

static void test_without_a_result_the_last_words_stay(void **state)
{
    struct host h = { 0 };
    struct launch_spec spec = { 0 };
    start(&h, &spec);
    feed(&h, "{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":"
             "\"half of it\"}]}}\n");
    driver_claude.program->feed(h.session, AGENT_STDERR, STR(RESULT("false", "")));
    driver_claude.end(h.session, &h.report);
    assert_false(h.report.result_seen);
    assert_true(h.report.failed);
    assert_true(str_eqc(h.report.error, "it ended without a result"));
    assert_true(str_eqc(h.report.text, "half of it"));
    stop(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_the_real_program_printed),
        cmocka_unit_test(test_first_words),
        cmocka_unit_test(test_later_turns_differ),
        cmocka_unit_test(test_nothing_begins_without_hooks),
        cmocka_unit_test(test_plan),
        cmocka_unit_test(test_answers_may_come_later),
        cmocka_unit_test(test_a_cancelled_question_gets_no_answer),
        cmocka_unit_test(test_the_same_question_twice_is_one),
        cmocka_unit_test(test_what_cannot_be_asked_is_denied),
        cmocka_unit_test(test_tools_of_the_run_are_not_asked_about),
        cmocka_unit_test(test_unknown_requests_get_an_error),
        cmocka_unit_test(test_nobody_is_there_for_questions_to_people),
        cmocka_unit_test(test_interrupt),
        cmocka_unit_test(test_another_turn_has_a_result_of_its_own),
        cmocka_unit_test(test_an_old_result_is_not_that_of_a_new_turn),
        cmocka_unit_test(test_usage_of_a_resumed_conversation),
        cmocka_unit_test(test_after_the_end_nothing_is_sent),
        cmocka_unit_test(test_agents_in_the_background),
        cmocka_unit_test(test_messages_of_a_sub_agent_are_told_once),
        cmocka_unit_test(test_tasks_in_the_background_delay_the_end),
        cmocka_unit_test(test_garbage_is_counted_and_told),
        cmocka_unit_test(test_a_huge_line_is_passed_over),
        cmocka_unit_test(test_many_calls_that_never_end),
        cmocka_unit_test(test_the_last_line_may_lack_its_end),
        cmocka_unit_test(test_the_report_does_not_cut_lines),
        cmocka_unit_test(test_without_a_result_the_last_words_stay),
    };
    return cmocka_run_group_tests(tests, arena_setup, arena_teardown);
}
