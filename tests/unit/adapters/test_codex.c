/* SPDX-License-Identifier: MIT
 *
 * Driver codex-app-server against what the real program printed (data/codex, 0.166.0, made short),
 * and against programs that misbehave. Everything the driver does goes into one log, which must be
 * the same however the bytes are cut. GOLDEN_UPDATE=1 writes the logs; read the diff.
 */
#include <fcntl.h>

#include "base/file.h"
#include "dialogue_case.h"

static struct profile plain = { .mcp = { .prefix = "" } };

static void start(struct host *h, struct launch_spec *spec)
{
    h->driver = &driver_codex;
    h->original = "notification";
    h->judges = true;
    spec->profile = spec->profile == NULL ? &plain : spec->profile;
    spec->workspace = "/workspace";
    host_open(h, spec);
}

#define HELLO  "{\"id\":1,\"result\":{\"userAgent\":\"cinch/0.166.0\",\"codexHome\":\"/h\"}}\n"
#define THREAD "{\"id\":2,\"result\":{\"thread\":{\"id\":\"T\"},\"model\":\"m\"}}\n"
#define TURN   "{\"id\":3,\"result\":{\"turn\":{\"id\":\"U\"}}}\n"
#define GOVERNED                                                \
    HELLO "{\"id\":2,\"result\":{}}\n"                          \
          "{\"id\":3,\"result\":{}}\n"                          \
          "{\"id\":4,\"result\":{\"thread\":{\"id\":\"T\"}}}\n" \
          "{\"id\":5,\"result\":{\"turn\":{\"id\":\"U\"}}}\n"
#define OVER(turn, status, rest)                                                             \
    "{\"method\":\"turn/completed\",\"params\":{\"threadId\":\"T\",\"turn\":{\"id\":\"" turn \
    "\",\"status\":\"" status "\"" rest "}}}\n"
#define SAID(text)                                                                      \
    "{\"method\":\"item/completed\",\"params\":{\"threadId\":\"T\",\"item\":{\"type\":" \
    "\"agentMessage\",\"id\":\"a\",\"text\":\"" text "\"}}}\n"
#define PATCH(id, changes)                                                            \
    "{\"method\":\"item/started\",\"params\":{\"threadId\":\"T\",\"item\":{\"type\":" \
    "\"fileChange\",\"id\":\"" id "\",\"status\":\"inProgress\",\"changes\":[" changes "]}}}\n"
#define ADD(path) "{\"path\":\"" path "\",\"kind\":{\"type\":\"add\"},\"diff\":\"x\"}"
#define MAY_PATCH(n, id)                                                                     \
    "{\"id\":" n ",\"method\":\"item/fileChange/requestApproval\",\"params\":{\"threadId\":" \
    "\"T\",\"itemId\":\"" id "\"}}\n"
#define MAY_RUN(n, command)                                                           \
    "{\"id\":" n ",\"method\":\"item/commandExecution/requestApproval\",\"params\":{" \
    "\"threadId\":\"T\",\"itemId\":\"i\",\"command\":\"" command "\",\"cwd\":\"/w\"}}\n"

/* A session in its first turn. */
static void begin(struct host *h, struct launch_spec *spec)
{
    start(h, spec);
    driver_codex.dialogue->begin(h->session);
    feed(h, spec->has_policies ? GOVERNED : HELLO THREAD TURN);
    buf_reset(&h->log);
}

/* --- what the real program printed --- */

static const struct golden {
    const char *name;
    const char *deny;
    bool has_policies, schema;
} goldens[] = {
    { "tour", NULL, true, true },
    { "approvals", "codex:file_change", true, false },
    { "errors", NULL, false, false },
    { "failures", NULL, false, false },
};

static void log_report(struct host *h)
{
    const struct agent_report *r = &h->report;
    buf_addf(&h->log, "report '%.*s' session %.*s model %.*s", STR_ARG(r->text),
             STR_ARG(r->session_id), STR_ARG(r->model));
    buf_addf(&h->log, "%s%s error '%.*s'", r->failed ? " failed" : "",
             r->result_seen ? " result" : "", STR_ARG(r->error));
    buf_addf(&h->log, " tokens %lld/%lld/%lld/%lld turns %lld", (long long)r->usage.input,
             (long long)r->usage.output, (long long)r->usage.cache_read,
             (long long)r->usage.reasoning, (long long)r->usage.turns);
    log_json(h, "structured", r->structured);
    buf_adds(&h->log, "\n");
}

/* But for the last one. */
static unsigned turns_in(struct str input)
{
    unsigned n = 0;
    const char *at = input.ptr;
    while ((at = strstr(at, "{\"method\":\"turn/completed\"")) != NULL) {
        at++;
        n++;
    }
    return n > 0 ? n - 1 : 0;
}

static char *play(const struct golden *g, struct str input, size_t step)
{
    struct host h = { .deny = g->deny, .sequels = turns_in(input) };
    struct launch_spec spec = { .has_policies = g->has_policies,
                                .has_feedback = true,
                                .output_schema = g->schema ? tree("{type: object}") : NULL };
    start(&h, &spec);
    driver_codex.dialogue->begin(h.session);
    for (size_t at = 0; at < input.len; at += step) {
        driver_codex.program->feed(h.session, AGENT_STDOUT, str_slice(input, at, at + step));
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

/* A byte or a few at a time, so that each turn is followed by the next; larger pieces only must not
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
                                                 .value = { "Be kind.", 8 } },
                                               { .name = "model", .value = { "gpt", 3 } },
                                               { .name = "effort", .value = { "low", 3 } } };
    const struct llm_tool tool = { .name = STR("note"), .description = STR("Notes.") };
    struct host h = { 0 };
    struct launch_spec spec = { .vars = { vars, 3 }, .output_schema = tree("{type: object}") };
    start(&h, &spec);
    driver_codex.dialogue->offer(h.session, (struct driver_tools) { &tool, 1 });
    driver_codex.dialogue->begin(h.session);
    assert_logged(&h, "send {\"id\":1,\"method\":\"initialize\"");
    assert_logged(&h, "\"experimentalApi\":true");
    assert_not_logged(&h, "thread/start");
    feed(&h, HELLO);
    assert_logged(&h, "send {\"method\":\"initialized\"}\nsend {\"id\":2,\"method\":"
                      "\"thread/start\",\"params\":{\"cwd\":\"/workspace\",\"approvalPolicy\":"
                      "\"never\",\"sandbox\":\"danger-full-access\",\"model\":\"gpt\","
                      "\"developerInstructions\":\"Be kind.\",\"dynamicTools\":[{\"type\":"
                      "\"function\",\"name\":\"note\",\"description\":\"Notes.\","
                      "\"inputSchema\":{}}]}}\n");
    feed(&h, THREAD);
    assert_logged(&h, "send {\"id\":3,\"method\":\"turn/start\",\"params\":{\"threadId\":\"T\","
                      "\"input\":[{\"type\":\"text\",\"text\":\"do it\"}],\"outputSchema\":"
                      "{\"type\":\"object\"},\"effort\":\"low\"}}\n");
    buf_reset(&h.log);
    feed(&h, HELLO THREAD); /* again */
    assert_int_equal(h.log.len, 0);
    stop(&h);

    struct profile profile = { .mcp = { .prefix = "" }, .system_prompt = SYSTEM_PROMPT_REPLACE };
    spec.profile = &profile;
    spec.resume = STR("old");
    start(&h, &spec);
    driver_codex.dialogue->begin(h.session);
    feed(&h, HELLO);
    assert_logged(&h, "\"thread/resume\"");
    assert_logged(&h, "\"baseInstructions\":\"Be kind.\",\"threadId\":\"old\"");
    stop(&h);
}

/* Where it would not ask, a policy would be passed by. */
static void test_nothing_begins_without_rules(void **state)
{
    struct host h = { 0 };
    struct launch_spec spec = { .has_policies = true };
    start(&h, &spec);
    driver_codex.dialogue->begin(h.session);
    feed(&h, HELLO);
    assert_logged(&h, "\"fs/createDirectory\",\"params\":{\"path\":\"/h/rules\"");
    feed(&h, "{\"id\":2,\"result\":{}}\n{\"id\":3,\"error\":{\"code\":1,\"message\":\"no\"}}\n");
    assert_logged(&h, "\"fs/writeFile\",\"params\":{\"path\":\"/h/rules/cinch.rules\"");
    assert_not_logged(&h, "thread/start");
    assert_logged(&h, "turn error\nfailed Codex refuses 'fs/writeFile': no\n");
    stop(&h);
    start(&h, &spec);
    driver_codex.dialogue->begin(h.session);
    feed(&h, "{\"id\":1,\"result\":{\"userAgent\":\"x\"}}\n");
    assert_logged(&h, "failed policies cannot be kept");
    stop(&h);
}

static void test_plan(void **state)
{
    static const struct placeholder vars[] = { { .name = "binary", .value = { "codex", 5 } } };
    struct err e;
    struct profile *p;
    struct launch launch;
    const char *text = "name: x\ndriver: codex-app-server\nenv: {A: 'b'}\n"
                       "argv: ['{binary}', app-server]\n";
    assert_int_equal(profile_parse(arena, str_of(text), "p", &p, &e), 0);
    struct launch_spec spec = { .profile = p, .vars = { vars, 1 } };
    assert_int_equal(driver_codex.program->plan(arena, &spec, &launch, &e), 0);
    assert_string_equal(launch.argv[0], "codex");
    assert_string_equal(launch.argv[1], "app-server");
    assert_null(launch.stdin_text.ptr);
    assert_string_equal(json_cstring(json_get(launch.env, "A"), ""), "b");
}

/* --- questions --- */

/* Why it was denied goes ahead of the answer, so that the next request to the model has it. */
static void test_a_denial_says_why_first(void **state)
{
    struct host h = { .deny = "codex:command", .why = "no shells" };
    struct launch_spec spec = { .has_policies = true };
    begin(&h, &spec);
    feed(&h, MAY_RUN("\"q\"", "ls"));
    assert_logged(&h, "ask permission codex:command i  {\"command\":\"ls\",\"cwd\":\"/w\"}\n"
                      "send {\"id\":6,\"method\":\"turn/steer\",\"params\":{\"threadId\":\"T\","
                      "\"expectedTurnId\":\"U\",\"input\":[{\"type\":\"text\",\"text\":"
                      "\"no shells\"}]}}\n");
    assert_not_logged(&h, "decision");
    feed(&h, "{\"id\":6,\"result\":{\"turnId\":\"U\"}}\n");
    assert_logged(&h, "send {\"id\":\"q\",\"result\":{\"decision\":\"decline\"}}\n");
    stop(&h);
}

/* Each file is asked about; one that is denied denies the patch. */
static void test_a_patch_is_asked_about_by_file(void **state)
{
    struct host h = { .later = true };
    struct launch_spec spec = { .has_policies = true };
    begin(&h, &spec);
    feed(&h, PATCH("p", ADD("/w/a") "," ADD("/w/b")) MAY_PATCH("7", "p"));
    assert_int_equal(h.asks, 2);
    reply(&h, h.last_ask, false, "");
    reply(&h, h.last_ask, true, ""); /* once is enough */
    assert_not_logged(&h, "decision");
    reply(&h, h.last_ask - 1, true, "");
    assert_logged(&h, "send {\"id\":7,\"result\":{\"decision\":\"decline\"}}\n");
    buf_reset(&h.log);
    feed(&h, MAY_PATCH("8", "p"));
    reply(&h, h.last_ask, true, "");
    reply(&h, h.last_ask - 1, true, "");
    assert_logged(&h, "send {\"id\":8,\"result\":{\"decision\":\"accept\"}}\n");
    buf_reset(&h.log);
    feed(&h, PATCH("m", "{\"path\":\"/w/a\",\"kind\":{\"type\":\"update\",\"move_path\":\"/w/z\"}}")
                 MAY_PATCH("9", "m"));
    assert_logged(&h, "ask permission codex:file_change m  {\"file_path\":\"/w/a\"");
    assert_logged(&h, "ask permission codex:file_change m  {\"file_path\":\"/w/z\"");
    stop(&h);
}

static void test_what_cannot_be_asked_is_denied(void **state)
{
    struct host h = { .later = true };
    struct launch_spec spec = { .has_policies = true };
    begin(&h, &spec);
    feed(
        &h,
        MAY_PATCH("1", "nobody") MAY_PATCH(
            "2",
            "") "{\"id\":3,\"method\":\"item/commandExecution/requestApproval\",\"params\":{}}\n"
                "{\"id\":4,\"method\":\"mcpServer/elicitation/request\",\"params\":{\"serverName\":"
                "\"s\",\"_meta\":{\"codex_approval_kind\":\"mcp_tool_call\"}}}\n"
                "{\"id\":5,\"method\":\"mcpServer/elicitation/request\",\"params\":{}}\n"
                "{\"id\":6,\"method\":\"item/permissions/requestApproval\",\"params\":{}}\n");
    assert_int_equal(h.asks, 0);
    assert_logged(&h, "{\"id\":1,\"result\":{\"decision\":\"decline\"}}");
    assert_logged(&h, "{\"id\":2,\"result\":{\"decision\":\"decline\"}}");
    assert_logged(&h, "{\"id\":3,\"result\":{\"decision\":\"decline\"}}");
    assert_logged(&h, "{\"id\":4,\"result\":{\"action\":\"decline\"}}");
    assert_logged(&h, "{\"id\":5,\"result\":{\"action\":\"decline\"}}");
    assert_logged(&h, "{\"id\":6,\"error\":{\"code\":-32601");
    for (int i = 0; i < 70; i++) {
        feed(&h, arena_printf(arena, MAY_RUN("%d", "ls"), 100 + i));
    }
    assert_int_equal(h.asks, 64);
    assert_logged(&h, "{\"id\":164,\"result\":{\"decision\":\"decline\"}}");
    stop(&h);
}

#define TOOL(n)                                                                                    \
    "{\"id\":" n ",\"method\":\"item/tool/call\",\"params\":{\"threadId\":\"T\",\"callId\":\"c\"," \
    "\"tool\":\"note\",\"arguments\":{\"a\":1}}}\n"

static void test_tools_of_the_run(void **state)
{
    struct host h = { .later = true };
    struct launch_spec spec = { 0 };
    begin(&h, &spec);
    feed(&h, TOOL("9"));
    assert_logged(&h, "ask tool note c  {\"a\":1}");
    driver_codex.dialogue->reply(h.session, &(struct driver_reply) { .id = h.last_ask,
                                                                     .ok = false,
                                                                     .text = STR("broke"),
                                                                     .feedback = STR("mind") });
    assert_logged(&h, "entry main tool_result  {\"tool_name\":\"note\",\"tool_call_id\":\"c\","
                      "\"bridged\":true,\"error\":\"broke\"}");
    assert_logged(&h, "send {\"id\":9,\"result\":{\"contentItems\":[{\"type\":\"inputText\","
                      "\"text\":\"broke\"},{\"type\":\"inputText\",\"text\":\"mind\"}],"
                      "\"success\":false}}\n");
    stop(&h);
}

#define RAN                                                                             \
    "{\"method\":\"item/completed\",\"params\":{\"threadId\":\"T\",\"item\":{\"type\":" \
    "\"commandExecution\",\"id\":\"i\",\"command\":\"ls\",\"status\":\"completed\"}}}\n"

/* Into the turn; where that is over, with the next one. */
static void test_feedback(void **state)
{
    struct host h = { .about = "mind the gap", .sequels = 1 };
    struct launch_spec spec = { .has_feedback = true };
    begin(&h, &spec);
    feed(&h, RAN);
    assert_logged(&h, "send {\"id\":4,\"method\":\"turn/steer\"");
    feed(&h, "{\"id\":4,\"error\":{\"code\":-32600,\"message\":\"no active turn to steer\"}}\n");
    feed(&h, OVER("U", "completed", ""));
    assert_logged(&h, "\"input\":[{\"type\":\"text\",\"text\":\"mind the gap\\n\\n\"},"
                      "{\"type\":\"text\",\"text\":\"go on\"}]");
    stop(&h);
}

static void test_another_model_for_later_turns(void **state)
{
    struct host h = { .sequels = 1 };
    struct launch_spec spec = { 0 };
    begin(&h, &spec);
    assert_true(driver_codex.dialogue->set_option(h.session, DRIVER_OPTION_MODEL, STR("m-2")));
    assert_false(driver_codex.dialogue->set_option(h.session, DRIVER_OPTION_MODE, STR("never")));
    feed(&h, OVER("U", "completed", ""));
    assert_logged(&h, "\"text\":\"go on\"}],\"model\":\"m-2\"}}\n");
    stop(&h);
}

/* --- ends --- */

static void test_interrupt(void **state)
{
    struct host h = { .later = true };
    struct launch_spec spec = { .has_policies = true };
    begin(&h, &spec);
    feed(&h, MAY_RUN("7", "ls"));
    driver_codex.dialogue->interrupt(h.session);
    driver_codex.dialogue->interrupt(h.session);
    assert_logged(&h, "send {\"id\":7,\"result\":{\"decision\":\"cancel\"}}\n"
                      "send {\"id\":6,\"method\":\"turn/interrupt\",\"params\":{\"threadId\":"
                      "\"T\",\"turnId\":\"U\"}}\n");
    assert_not_logged(&h, "{\"id\":7,\"method\"");
    reply(&h, h.last_ask, true, "");
    assert_not_logged(&h, "accept");
    feed(&h, OVER("U", "interrupted", ""));
    assert_logged(&h, "turn interrupted\n");
    assert_not_logged(&h, "failed");
    stop(&h);

    h = (struct host) { 0 };
    spec.has_policies = false;
    start(&h, &spec);
    driver_codex.dialogue->begin(h.session);
    feed(&h, HELLO THREAD);
    driver_codex.dialogue->interrupt(h.session); /* its turn has no name yet */
    assert_not_logged(&h, "turn/interrupt");
    feed(&h, TURN);
    assert_logged(&h, "turn/interrupt");
    stop(&h);

    h = (struct host) { 0 };
    start(&h, &spec);
    driver_codex.dialogue->begin(h.session);
    driver_codex.dialogue->interrupt(h.session);
    assert_logged(&h, "turn interrupted\n");
    stop(&h);
}

static void test_wrong_and_repeated_ids(void **state)
{
    struct host h = { 0 };
    struct launch_spec spec = { 0 };
    begin(&h, &spec);
    feed(&h, OVER("other", "completed",
                  "") "{\"id\":3,\"result\":{\"turn\":{\"id\":\"V\"}}}\n"
                      "{\"id\":99,\"error\":{\"code\":1,\"message\":\"x\"}}\n"
                      "{\"id\":\"3\",\"error\":{\"code\":1,\"message\":\"x\"}}\n"
                      "{\"method\":\"turn/"
                      "completed\",\"params\":{\"threadId\":\"other\",\"turn\":{\"id\":"
                      "\"U\",\"status\":\"failed\"}}}\n");
    assert_int_equal(h.turns, 0);
    feed(&h, SAID("fine") OVER("U", "completed", "") OVER("U", "failed", ""));
    assert_int_equal(h.turns, 1);
    finish(&h);
    assert_true(h.report.result_seen);
    assert_true(str_eqc(h.report.text, "fine"));
    stop(&h);
}

static void test_garbage(void **state)
{
    struct host h = { 0 };
    struct launch_spec spec = { 0 };
    begin(&h, &spec);
    feed(&h, "Welcome!\n\n{\"id\":\n[1,2]\n\"x\"\n{}\n{\"id\":5,\"method\":7}\n"
             "{\"id\":6,\"method\":\"x\",\"params\":[]}\n");
    assert_logged(&h, "send {\"id\":6,\"error\":{\"code\":-32600");
    feed(&h, SAID("fine") OVER("U", "completed", ""));
    finish(&h);
    assert_true(h.report.result_seen);
    assert_int_equal(h.report.unparsable_lines, 7);
    stop(&h);
}

static void test_a_line_without_end(void **state)
{
    struct host h = { 0 };
    struct launch_spec spec = { 0 };
    size_t n = (size_t)1 << 20;
    char *piece = arena_array(arena, n, 1);
    memset(piece, 'x', n);
    begin(&h, &spec);
    for (int i = 0; i < 65; i++) {
        driver_codex.program->feed(h.session, AGENT_STDOUT, str_n(piece, n));
    }
    feed(&h, "\n");
    assert_logged(&h, "turn error\nfailed Codex sent a line of more than 64 MiB\n");
    stop(&h);
}

static void test_another_version(void **state)
{
    struct host h = { 0 };
    struct launch_spec spec = { 0 };
    start(&h, &spec);
    driver_codex.dialogue->begin(h.session);
    feed(&h, "{\"id\":1,\"result\":{\"server\":\"of tomorrow\"}}\n");
    assert_logged(&h, "turn error\nfailed the program answers 'initialize' as no version");
    stop(&h);
    start(&h, &spec);
    driver_codex.dialogue->begin(h.session);
    feed(&h, HELLO "{\"id\":2,\"result\":{}}\n");
    assert_logged(&h, "failed the answer to 'thread/start' names no thread\n");
    stop(&h);
}

static void test_it_ends_early(void **state)
{
    struct host h = { 0 };
    struct launch_spec spec = { 0 };
    begin(&h, &spec);
    feed(&h, "{\"method\":\"item/agentMessage/delta\",\"params\":{\"delta\":\"half\"}}\n");
    driver_codex.end(h.session, &h.report);
    assert_true(h.report.failed);
    assert_false(h.report.result_seen);
    assert_true(str_eqc(h.report.text, "half"));
    assert_true(str_eqc(h.report.error, "Codex ended before it answered 'turn/start'"));
    stop(&h);
}

/* What a thread has used before it was gone on with is not this run's. */
static void test_usage_of_a_resumed_thread(void **state)
{
    static const char usage[] =
        "{\"method\":\"thread/tokenUsage/updated\",\"params\":{\"threadId\":\"T\",\"tokenUsage\":"
        "{\"total\":{\"inputTokens\":%d,\"cachedInputTokens\":100,\"outputTokens\":%d}}}}\n";
    struct host h = { 0 };
    struct launch_spec spec = { .resume = STR("T") };
    start(&h, &spec);
    driver_codex.dialogue->begin(h.session);
    feed(&h, HELLO);
    feed(&h, arena_printf(arena, usage, 1100, 50));
    feed(&h, THREAD TURN);
    feed(&h, arena_printf(arena, usage, 1300, 70));
    feed(&h, OVER("U", "completed", ""));
    finish(&h);
    assert_int_equal(h.report.usage.input, 200);
    assert_int_equal(h.report.usage.output, 20);
    assert_int_equal(h.report.usage.cache_read, 0);
    stop(&h);

    h = (struct host) { 0 };
    begin(&h, &spec);
    feed(&h,
         "{\"method\":\"thread/tokenUsage/updated\",\"params\":{\"threadId\":\"T\",\"tokenUsage\":"
         "{\"total\":{\"inputTokens\":900,\"outputTokens\":40},"
         "\"last\":{\"inputTokens\":300,\"outputTokens\":10}}}}\n");
    finish(&h);
    assert_int_equal(h.report.usage.input, 300);
    assert_int_equal(h.report.usage.output, 10);
    stop(&h);
}

static void test_other_threads_are_sub_agents(void **state)
{
    struct host h = { 0 };
    struct launch_spec spec = { 0 };
    begin(&h, &spec);
    feed(&h, "{\"method\":\"item/completed\",\"params\":{\"threadId\":\"S\",\"item\":{\"type\":"
             "\"agentMessage\",\"id\":\"a\",\"text\":\"below\"}}}\n");
    assert_logged(&h, "entry subagent:S assistant_message");
    feed(&h, SAID("above") OVER("U", "completed", ""));
    finish(&h);
    assert_true(str_eqc(h.report.text, "above"));
    stop(&h);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(test_##name, arena_setup, arena_teardown)
    const struct CMUnitTest tests[] = {
        CASE(what_the_real_program_printed),
        CASE(first_words),
        CASE(nothing_begins_without_rules),
        CASE(plan),
        CASE(a_denial_says_why_first),
        CASE(a_patch_is_asked_about_by_file),
        CASE(what_cannot_be_asked_is_denied),
        CASE(tools_of_the_run),
        CASE(feedback),
        CASE(another_model_for_later_turns),
        CASE(interrupt),
        CASE(wrong_and_repeated_ids),
        CASE(garbage),
        CASE(a_line_without_end),
        CASE(another_version),
        CASE(it_ends_early),
        CASE(usage_of_a_resumed_thread),
        CASE(other_threads_are_sub_agents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
