/* SPDX-License-Identifier: MIT
 *
 * Driver acp with hand-written agents: turns, permissions, files, what is told of them, and agents
 * that misbehave. test_acp_session.c has what comes before the prompt, test_acp_golden.c real
 * agents.
 */
#include "acp_case.h"

static void test_conversation(void **state)
{
    struct talk *t = *state;
    open_talk(t, "");
    assert_has(t, "send {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{"
                  "\"protocolVersion\":1,\"clientCapabilities\":{\"fs\":{\"readTextFile\":true,"
                  "\"writeTextFile\":true},\"terminal\":false}");
    assert_has(t, "\"method\":\"session/new\",\"params\":{\"cwd\":\"/workspace\","
                  "\"mcpServers\":[]}}");
    assert_has(t, "\"id\":3,\"method\":\"session/prompt\",\"params\":{\"sessionId\":\"s1\","
                  "\"prompt\":[{\"type\":\"text\",\"text\":\"do it\"}]}}");
    hear(t, WORDS("I am "));
    hear(t, WORDS("done."));
    assert_int_equal(t->turns, 0);
    t->say = "and now that";
    hear(t, END);
    assert_int_equal(t->turns, 1);
    assert_has(t, "entry assistant_message {\"text\":\"I am done.\"}\n");
    assert_not(t, "user_message"); /* who says it tells it */
    assert_has(t, "\"id\":4,\"method\":\"session/prompt\"");
    hear(t, WORDS("That, too."));
    hear(t, ANSWER(4, "{\"stopReason\":\"end_turn\"}"));
    driver_acp.dialogue->finish(t->session);
    assert_has(t, "turn end_turn 0\nclose\n");
    talk_end(t);
    assert_true(t->report.result_seen && t->report.told && !t->report.failed);
    assert_true(str_eqc(t->report.text, "That, too."));
    assert_true(str_eqc(t->report.session_id, "s1"));
    assert_int_equal(t->report.usage.turns, 2);
}

/* --- permissions --- */

static void test_permission_by_kind(void **state)
{
    struct talk *t = *state;
    talk_init(t, "");
    t->spec.has_policies = true;
    talk_begin(t);
    hear(t, INIT);
    hear(t, SESSION);
    hear(t, PERMISSION(7, OPTION("A", "allow_always") "," OPTION("n", "reject_always") "," OPTION(
                              "a", "allow_once") "," OPTION("N", "reject_once")));
    assert_has(t, "ask permission acp:execute {\"command\":\"ls\"}\n");
    assert_has(t,
               "\"id\":7,\"result\":{\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"a\"}}}");
    t->deny = true;
    hear(t, PERMISSION("x", OPTION("a", "allow_once") "," OPTION("N", "reject_once")));
    assert_has(t, "\"id\":\"x\",\"result\":{\"outcome\":{\"outcome\":\"selected\","
                  "\"optionId\":\"N\"}}}");
    /* Nothing there that says no. */
    hear(t, PERMISSION(9, OPTION("a", "allow_once")));
    assert_has(t, "\"id\":9,\"result\":{\"outcome\":{\"outcome\":\"cancelled\"}}}");
    /* Nor, of a kind that is known, that says yes. */
    t->deny = false;
    hear(t, PERMISSION(10, OPTION("a", "maybe") "," OPTION("N", "reject_once")));
    assert_has(t, "\"id\":10,\"result\":{\"outcome\":{\"outcome\":\"cancelled\"}}}");
}

static void test_permission_when_nothing_governs(void **state)
{
    struct talk *t = *state;
    open_talk(t, "");
    hear(t, PERMISSION(7, OPTION("N", "reject_once") "," OPTION("A", "allow_always")));
    assert_not(t, "ask ");
    assert_has(t, "\"optionId\":\"A\"");
}

/* The bridge decides about our own tools; but not everything that says so is one. */
static void test_our_own_tools(void **state)
{
    struct talk *t = *state;
    talk_init(t, "mcp: {prefix: cinch_}\n");
    t->spec.has_policies = true;
    talk_begin(t);
    hear(t, INIT);
    hear(t, SESSION);
    hear(t, UPDATE("\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"1\",\"title\":\"cinch_add\","
                   "\"kind\":\"other\",\"status\":\"completed\",\"rawInput\":{\"a\":1}"));
    assert_has(t, "entry tool_use {\"tool_name\":\"cinch_add\",\"tool_call_id\":\"1\",\"kind\":"
                  "\"other\",\"bridged\":true,\"input\":{\"a\":1}}");
    assert_not(t, "observed");
    hear(t, UPDATE("\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"2\",\"title\":\"cinch_add\","
                   "\"kind\":\"execute\",\"status\":\"completed\""));
    assert_has(t, "observed acp:execute 2 ok");
    hear(t, UPDATE("\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"3\",\"title\":"
                   "\"cinch_add; rm x\",\"kind\":\"other\",\"status\":\"completed\","
                   "\"rawInput\":{\"server\":\"cinch\"}"));
    assert_has(t, "observed acp:cinch_add; rm x 3 ok");
}

/* A profile that does not know the agent knows how agents name tools of servers. */
static void test_our_own_tools_of_any_agent(void **state)
{
    struct talk *t = *state;
    open_talk(t, "");
    hear(t, UPDATE("\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"1\",\"title\":"
                   "\"mcp__cinch__add\",\"kind\":\"other\",\"status\":\"completed\""));
    hear(t, UPDATE("\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"2\",\"title\":\"cinch_add\","
                   "\"kind\":\"other\",\"status\":\"completed\""));
    assert_not(t, "observed");
    hear(t, UPDATE("\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"3\",\"title\":\"cinch_\","
                   "\"kind\":\"other\",\"status\":\"completed\""));
    assert_has(t, "observed acp:cinch_ 3 ok");
}

static void test_late_decision(void **state)
{
    struct talk *t = *state;
    talk_init(t, "");
    t->spec.has_policies = true;
    t->by_hand = true;
    talk_begin(t);
    hear(t, INIT);
    hear(t, SESSION);
    hear(t, PERMISSION(7, OPTION("a", "allow_once")));
    uint64_t first = t->last_ask;
    driver_acp.dialogue->interrupt(t->session);
    assert_has(t, "\"method\":\"session/cancel\",\"params\":{\"sessionId\":\"s1\"}}\n"
                  "send {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"outcome\":{\"outcome\":"
                  "\"cancelled\"}}}\n");
    driver_acp.dialogue->interrupt(t->session);
    driver_acp.dialogue->reply(t->session, &(struct driver_reply) { .id = first, .ok = true });
    driver_acp.dialogue->reply(t->session, &(struct driver_reply) { .id = 999, .ok = true });
    assert_not(t, "\"optionId\"");
    /* Who asks now is told the same at once. */
    hear(t, PERMISSION(8, OPTION("a", "allow_once")));
    assert_has(t, "\"id\":8,\"result\":{\"outcome\":{\"outcome\":\"cancelled\"}}}");
    hear(t, ANSWER(3, "{\"stopReason\":\"cancelled\"}"));
    assert_has(t, "turn interrupted 0\n");
    talk_end(t);
    assert_false(t->report.failed);
}

static void test_too_many_questions(void **state)
{
    struct talk *t = *state;
    talk_init(t, "");
    t->spec.has_policies = true;
    t->by_hand = true;
    talk_begin(t);
    hear(t, INIT);
    hear(t, SESSION);
    for (int i = 0; i < 100; i++) {
        hear(t, PERMISSION(7, OPTION("a", "allow_once")));
    }
    assert_has(t, "\"outcome\":\"cancelled\"");
    assert_int_equal(t->last_ask, 64);
}

/* --- files --- */

static void test_files(void **state)
{
    struct talk *t = *state;
    open_talk(t, "");
    hear(t, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"fs/read_text_file\",\"params\":{"
            "\"sessionId\":\"s1\",\"path\":\"/workspace/a\",\"line\":3,\"limit\":2}}");
    assert_has(t, "ask read /workspace/a 3+2\nsend {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{"
                  "\"content\":\"as told\"}}");
    hear(t, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"fs/write_text_file\",\"params\":{"
            "\"sessionId\":\"s1\",\"path\":\"/workspace/a\",\"content\":\"x\"}}");
    assert_has(t, "ask write /workspace/a\nsend {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}");
    t->deny = true;
    hear(t, "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"fs/read_text_file\",\"params\":{"
            "\"path\":\"/etc/shadow\"}}");
    assert_has(t, "\"id\":3,\"error\":{\"code\":-32002,\"message\":\"as told\"}}");
    hear(t, "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"fs/write_text_file\",\"params\":{}}");
    assert_has(t, "\"id\":4,\"error\":{\"code\":-32602");
}

static void test_what_is_not_offered(void **state)
{
    struct talk *t = *state;
    open_talk(t, "acp: {fs: false}\n");
    hear(t, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"fs/read_text_file\",\"params\":{}}");
    hear(t, "{\"jsonrpc\":\"2.0\",\"id\":\"u\",\"method\":\"terminal/create\",\"params\":{}}");
    assert_has(t, "\"id\":1,\"error\":{\"code\":-32601");
    assert_has(t, "\"id\":\"u\",\"error\":{\"code\":-32601,\"message\":\"cinch does not offer "
                  "'terminal/create'\"}}");
    assert_not(t, "ask ");
}

/* --- updates --- */

static void test_every_kind_of_update(void **state)
{
    struct talk *t = *state;
    open_talk(t, "");
    hear(t, UPDATE("\"sessionUpdate\":\"user_message_chunk\",\"content\":{\"type\":\"text\","
                   "\"text\":\"do it\"}"));
    hear(t, UPDATE("\"sessionUpdate\":\"agent_thought_chunk\",\"content\":{\"type\":\"text\","
                   "\"text\":\"hm\"}"));
    hear(t, UPDATE("\"sessionUpdate\":\"plan\",\"entries\":[{\"content\":\"a\",\"status\":"
                   "\"pending\"}]"));
    hear(t, UPDATE("\"sessionUpdate\":\"available_commands_update\",\"availableCommands\":[{"
                   "\"name\":\"init\"}]"));
    hear(t, UPDATE("\"sessionUpdate\":\"current_mode_update\",\"currentModeId\":\"plan\""));
    hear(t, UPDATE("\"sessionUpdate\":\"config_option_update\",\"configOptions\":[{\"id\":"
                   "\"model\",\"category\":\"model\",\"currentValue\":\"m9\"}]"));
    hear(t, UPDATE("\"sessionUpdate\":\"session_info_update\",\"title\":\"T\""));
    hear(t, UPDATE("\"sessionUpdate\":\"usage_update\",\"used\":5,\"size\":10,\"cost\":{"
                   "\"amount\":0.5,\"currency\":\"USD\"}"));
    hear(t, UPDATE("\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"image\","
                   "\"data\":\"AAAA\",\"mimeType\":\"image/png\"}"));
    hear(t, UPDATE("\"sessionUpdate\":\"of_tomorrow\""));
    hear(t, "{\"jsonrpc\":\"2.0\",\"method\":\"_vendor/note\",\"params\":{}}");
    hear(t, ANSWER(3, "{\"stopReason\":\"end_turn\",\"usage\":{\"inputTokens\":7,\"outputTokens\":"
                      "2,\"cachedReadTokens\":1}}"));
    assert_not(t, "entry user_message");
    assert_not(t, "AAAA");
    assert_has(t, "entry thinking {\"text\":\"hm\"}");
    assert_has(t,
               "{\"subtype\":\"plan\",\"entries\":[{\"content\":\"a\",\"status\":\"pending\"}]}");
    assert_has(t, "{\"subtype\":\"available_commands\",\"commands\":[\"init\"]}");
    assert_has(t, "{\"subtype\":\"mode\",\"mode\":\"plan\"}");
    assert_has(t, "{\"subtype\":\"config_options\",\"options\":{\"model\":\"m9\"}}");
    assert_has(t, "{\"subtype\":\"session_info\",\"title\":\"T\"}");
    assert_has(t, "token_usage {\"cost_usd\":0.5,\"context_tokens\":5,\"context_size\":10}");
    assert_has(t, "{\"content\":{\"type\":\"image\",\"mimeType\":\"image/png\"}}");
    assert_has(t, "entry unknown {\"session_update\":\"of_tomorrow\"} raw");
    assert_has(t, "entry unknown {\"method\":\"_vendor/note\"} raw");
    assert_has(t, "entry token_usage {\"input_tokens\":7,\"output_tokens\":2,"
                  "\"cache_read_tokens\":1,");
    talk_end(t);
    assert_true(str_eqc(t->report.model, "m9"));
    assert_true(t->report.usage.cost_known && t->report.usage.cost_usd > 0.4);
    assert_int_equal(t->report.usage.input, 7);
}

static void test_another_conversation(void **state)
{
    struct talk *t = *state;
    open_talk(t, "");
    hear(t, "{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"s2\","
            "\"update\":{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\","
            "\"text\":\"not for us\"}}}}");
    hear(t, WORDS("for us"));
    hear(t, END);
    assert_not(t, "not for us");
}

static void test_the_text_is_the_last_message(void **state)
{
    struct talk *t = *state;
    open_talk(t, "");
    hear(t, WORDS("I will look."));
    hear(t, UPDATE("\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"1\",\"title\":\"read\","
                   "\"kind\":\"read\",\"status\":\"in_progress\""));
    hear(t, UPDATE("\"sessionUpdate\":\"tool_call_update\",\"toolCallId\":\"1\",\"status\":"
                   "\"completed\",\"content\":[{\"type\":\"content\",\"content\":{\"type\":"
                   "\"text\",\"text\":\"found\"}}]"));
    hear(t, WORDS("It is 4."));
    hear(t, END);
    assert_has(t, "observed acp:read 1 ok {\"title\":\"read\"} \"found\"\n");
    talk_end(t);
    assert_true(str_eqc(t->report.text, "It is 4."));
}

static void test_words_after_the_end(void **state)
{
    struct talk *t = *state;
    open_talk(t, "acp: {settle_ms: 200}\n");
    hear(t, WORDS("almost "));
    hear(t, END);
    assert_has(t, "turn end_turn 200\n");
    hear(t, WORDS("done"));
    talk_end(t);
    assert_true(str_eqc(t->report.text, "almost done"));
    assert_has(t, "entry assistant_message {\"text\":\"almost done\"}");
}

static void test_calls_without_an_end(void **state)
{
    struct talk *t = *state;
    open_talk(t, "");
    hear(t, UPDATE("\"sessionUpdate\":\"tool_call\",\"title\":\"sleep\",\"kind\":\"execute\""));
    hear(t, UPDATE("\"sessionUpdate\":\"tool_call\",\"title\":\"wait\""));
    hear(t, UPDATE("\"sessionUpdate\":\"tool_call_update\",\"status\":\"failed\",\"rawOutput\":"
                   "\"too long\""));
    hear(t, END);
    assert_has(t, "observed acp:wait _tc_2 failed {\"title\":\"wait\"} \"too long\"\n");
    assert_has(t, "observed acp:execute _tc_1 failed");
    assert_has(t, "\"status\":\"pending\",\"output\":\"\"}");
}

static void test_many_calls(void **state)
{
    struct talk *t = *state;
    open_talk(t, "");
    for (int i = 0; i < 1000; i++) {
        hear(t, arena_printf(t->arena,
                             UPDATE("\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"%d\","
                                    "\"title\":\"t\""),
                             i));
    }
    assert_has(t, "observed acp:t 871 failed");
    assert_not(t, "observed acp:t 872 ");
}

static void test_feedback_goes_with_the_next_prompt(void **state)
{
    struct talk *t = *state;
    talk_init(t, "");
    t->spec.has_feedback = true;
    talk_begin(t);
    hear(t, INIT);
    hear(t, SESSION);
    hear(t, UPDATE("\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"1\",\"title\":\"read\","
                   "\"status\":\"completed\""));
    assert_has(t, "ask feedback acp:read");
    t->say = "go on";
    hear(t, END);
    assert_has(t, "{\"subtype\":\"feedback\",\"text\":\"as told\\n\\n\"}");
    assert_has(t, "\"prompt\":[{\"type\":\"text\",\"text\":\"as told\\n\\n\"},{\"type\":\"text\","
                  "\"text\":\"go on\"}]");
}

static void test_long_texts(void **state)
{
    struct talk *t = *state;
    char *big = arena_alloc(t->arena == NULL ? (t->arena = arena_new()) : t->arena, 3000001);
    struct arena *first = t->arena;
    memset(big, 'x', 3000000);
    open_talk(t, "");
    for (int i = 0; i < 3; i++) {
        hear(t, arena_printf(first, WORDS("%s%d"), big, i));
    }
    hear(t, END);
    talk_end(t);
    assert_true(t->report.text_truncated);
    assert_true(t->report.text.len <= 4u << 20);
    assert_true(str_ends(t->report.text, STR("xx2")));
    arena_free(first);
}

/* --- ends --- */

static void test_reasons_to_stop(void **state)
{
    static const struct {
        const char *reason, *turn, *error;
    } cases[] = {
        { "max_tokens", "turn max_tokens 0\n", "limit of tokens" },
        { "max_turn_requests", "turn max_turns 0\n", "so often" },
        { "refusal", "turn refusal 0\n", "refused" },
        { "tomorrow", "turn error 0\n", "'tomorrow'" },
        { "cancelled", "turn cancelled 0\n", NULL },
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct talk t;
        open_talk(&t, "");
        hear(&t, WORDS("x"));
        hear(&t, arena_printf(t.arena, ANSWER(3, "{\"stopReason\":\"%s\"}"), cases[i].reason));
        assert_has(&t, cases[i].turn);
        if (cases[i].error != NULL) {
            assert_failed(&t, cases[i].error);
        }
        talk_done(&t);
    }
}

static void test_an_answer_without_a_word(void **state)
{
    struct talk *t = *state;
    open_talk(t, "");
    hear(t, END);
    assert_failed(t, "ended its turn without a word");
}

static void test_an_error_can_be_made_good(void **state)
{
    struct talk *t = *state;
    open_talk(t, "");
    hear(t, "{\"jsonrpc\":\"2.0\",\"id\":3,\"error\":{\"code\":-32603,\"message\":\"Internal "
            "error\",\"data\":{\"details\":\"overloaded\"}}}");
    assert_has(t, "entry error {\"error\":\"overloaded\",\"method\":\"session/prompt\",\"code\":"
                  "-32603");
    assert_has(t, "turn error 0\n");
    driver_acp.dialogue->prompt(t->session, STR("again"));
    hear(t, WORDS("fine"));
    hear(t, ANSWER(4, "{\"stopReason\":\"end_turn\"}"));
    talk_end(t);
    assert_false(t->report.failed);
    assert_true(t->report.result_seen);
}

static void test_an_error_that_stays(void **state)
{
    struct talk *t = *state;
    open_talk(t, "");
    hear(t, "{\"jsonrpc\":\"2.0\",\"id\":3,\"error\":{\"code\":500,\"message\":"
            "\"{\\\"error\\\":{\\\"code\\\":500,\\\"message\\\":\\\"boom\\\"}}\"}}");
    assert_failed(t, "boom");
    assert_true(str_eqc(t->report.error, "boom"));
}

static void test_it_ends_too_soon(void **state)
{
    static const char *const names[] = { "initialize", "session/new", "session/prompt" };
    static const char *const lines[] = { INIT, SESSION };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct talk t;
        talk_init(&t, "");
        talk_begin(&t);
        for (size_t j = 0; j < i; j++) {
            hear(&t, lines[j]);
        }
        assert_failed(&t, arena_printf(t.arena, "ended before it answered '%s'", names[i]));
        talk_done(&t);
    }
}

/* --- agents that misbehave --- */

static void test_noise(void **state)
{
    struct talk *t = *state;
    talk_init(t, "");
    talk_begin(t);
    hear(t, "Welcome to the agent!");
    hear(t, "{\"half\": ");
    hear(t, "[]");
    hear(t, "{\"jsonrpc\":\"2.0\"}");
    hear(t, "{\"jsonrpc\":\"1.0\",\"id\":1,\"result\":{}}");
    hear(t, "\xff\xfe");
    hear(t, "");
    driver_acp.program->feed(t->session, AGENT_STDERR, STR("{\"not\":\"ours\"}\n"));
    hear(t, INIT);
    hear(t, SESSION);
    hear(t, WORDS("x"));
    hear(t, END);
    talk_end(t);
    assert_true(t->report.result_seen);
    assert_int_equal(t->report.unparsable_lines, 6);
}

static void test_wrong_and_repeated_ids(void **state)
{
    struct talk *t = *state;
    talk_init(t, "");
    talk_begin(t);
    hear(t, ANSWER(9, "{\"protocolVersion\":1}"));
    hear(t, ANSWER("1", "{\"protocolVersion\":1}"));
    assert_not(t, "session/new");
    hear(t, INIT);
    hear(t, INIT);
    hear(t, SESSION);
    hear(t, SESSION);
    hear(t, WORDS("x"));
    hear(t, END);
    hear(t, END);
    assert_int_equal(t->turns, 1);
    assert_not(t, "\"id\":4");
}

static void test_a_line_without_end(void **state)
{
    struct talk *t = *state;
    static char block[1 << 20];
    memset(block, 'x', sizeof block);
    open_talk(t, "");
    for (int i = 0; i < 64 && t->turns == 0; i++) {
        driver_acp.program->feed(t->session, AGENT_STDOUT, str_n(block, sizeof block));
    }
    assert_int_equal(t->turns, 0);
    driver_acp.program->feed(t->session, AGENT_STDOUT, STR("x"));
    assert_int_equal(t->turns, 1);
    driver_acp.dialogue->prompt(t->session, STR("are you there?")); /* is told that nobody is */
    assert_int_equal(t->turns, 2);
    assert_failed(t, "a line of more than 64 MiB");
    assert_int_equal(t->report.overlong_lines, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_conversation),
        T(test_permission_by_kind),
        T(test_permission_when_nothing_governs),
        T(test_our_own_tools),
        T(test_our_own_tools_of_any_agent),
        T(test_late_decision),
        T(test_too_many_questions),
        T(test_files),
        T(test_what_is_not_offered),
        T(test_every_kind_of_update),
        T(test_another_conversation),
        T(test_the_text_is_the_last_message),
        T(test_words_after_the_end),
        T(test_calls_without_an_end),
        T(test_many_calls),
        T(test_feedback_goes_with_the_next_prompt),
        T(test_long_texts),
        cmocka_unit_test(test_reasons_to_stop),
        T(test_an_answer_without_a_word),
        T(test_an_error_can_be_made_good),
        T(test_an_error_that_stays),
        cmocka_unit_test(test_it_ends_too_soon),
        T(test_noise),
        T(test_wrong_and_repeated_ids),
        T(test_a_line_without_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
