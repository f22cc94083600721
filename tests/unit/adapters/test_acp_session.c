/* SPDX-License-Identifier: MIT
 *
 * Driver acp up to the first prompt: versions, logins, servers with tools, sessions new and old,
 * modes and models.
 */
#include "acp_case.h"

static void test_server_over_http(void **state)
{
    struct talk *t = *state;
    static const char *const shim[] = { "/bin/shim", "--port", "1", NULL };
    talk_init(t, "");
    t->spec.mcp = (struct driver_mcp) { .url = "http://h/mcp", .token = "k", .shim = shim };
    talk_begin(t);
    hear(t, ANSWER(1, "{\"protocolVersion\":1,\"agentCapabilities\":{\"mcpCapabilities\":{\"http\":"
                      "true}}}"));
    assert_has(t, "\"mcpServers\":[{\"name\":\"cinch\",\"type\":\"http\",\"url\":\"http://h/mcp\","
                  "\"headers\":[{\"name\":\"Authorization\",\"value\":\"Bearer k\"}]}]");
}

static void test_server_by_a_program(void **state)
{
    struct talk *t = *state;
    static const char *const shim[] = { "/bin/shim", "--port", "1", NULL };
    talk_init(t, "");
    t->spec.mcp = (struct driver_mcp) { .url = "http://h/mcp", .token = "k", .shim = shim };
    talk_begin(t);
    hear(t, INIT);
    assert_has(t, "\"mcpServers\":[{\"name\":\"cinch\",\"command\":\"/bin/shim\",\"args\":["
                  "\"--port\",\"1\"],\"env\":[{\"name\":\"CINCH_MCP_URL\",\"value\":"
                  "\"http://h/mcp\"},{\"name\":\"CINCH_MCP_TOKEN\",\"value\":\"k\"}]}]");
}

/* The profile of an agent that offers HTTP and fails at it. */
static void test_server_by_a_program_although_http_is_offered(void **state)
{
    struct talk *t = *state;
    static const char *const shim[] = { "/bin/shim", NULL };
    talk_init(t, "acp: {mcp_transport: stdio}\n");
    t->spec.mcp = (struct driver_mcp) { .url = "http://h/mcp", .token = "k", .shim = shim };
    talk_begin(t);
    hear(t, ANSWER(1, "{\"protocolVersion\":1,\"agentCapabilities\":{\"mcpCapabilities\":{\"http\":"
                      "true}}}"));
    assert_has(t, "\"mcpServers\":[{\"name\":\"cinch\",\"command\":\"/bin/shim\"");
}

static void expect_wait(struct talk *t, const char *method, int64_t ms)
{
    struct driver_wait w = driver_acp.dialogue->pending(t->session);
    if (method == NULL) {
        assert_null(w.method);
        return;
    }
    assert_string_equal(w.method, method);
    assert_int_equal(w.limit, ms * NSEC_PER_MS);
}

/* What must be answered before the first turn has a deadline of its own, a turn has not. */
static void test_deadlines_before_the_first_turn(void **state)
{
    struct talk *t = *state;
    talk_init(t, "acp: {initialize_ms: 5000, session_ms: 7000}\n");
    talk_begin(t);
    expect_wait(t, "initialize", 5000);
    hear(t, INIT);
    expect_wait(t, "session/new", 7000);
    hear(t, ANSWER(2, "{\"sessionId\":\"s\"}"));
    expect_wait(t, NULL, 0);
}

static void test_server_by_no_way(void **state)
{
    struct talk *t = *state;
    talk_init(t, "");
    t->spec.mcp = (struct driver_mcp) { .url = "http://h/mcp", .token = "k" };
    talk_begin(t);
    hear(t, INIT);
    assert_has(t, "turn error 0\n");
    assert_failed(t, "takes no MCP server over HTTP");
}

static void test_login(void **state)
{
    struct talk *t = *state;
    talk_init(t, "acp: {auth: key}\n");
    talk_begin(t);
    hear(t,
         ANSWER(1, "{\"protocolVersion\":1,\"authMethods\":[{\"id\":\"sso\"},{\"id\":\"key\"}]}"));
    assert_has(t, "\"id\":2,\"method\":\"authenticate\",\"params\":{\"methodId\":\"key\"}}");
    hear(t, ANSWER(2, "{}"));
    assert_has(t, "\"id\":3,\"method\":\"session/new\"");
}

static void test_login_that_is_not_offered(void **state)
{
    struct talk *t = *state;
    talk_init(t, "acp: {auth: key}\n");
    talk_begin(t);
    hear(t, ANSWER(1, "{\"protocolVersion\":1,\"authMethods\":[{\"id\":\"sso\"}]}"));
    assert_failed(t, "does not offer the login 'key', only: sso");
}

static void test_login_that_is_missing(void **state)
{
    struct talk *t = *state;
    talk_init(t, "");
    talk_begin(t);
    hear(t, ANSWER(1, "{\"protocolVersion\":1,\"authMethods\":[{\"id\":\"sso\"}]}"));
    hear(t, "{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":-32000,\"message\":\"no key\"}}");
    assert_failed(t, "wants a login first (it offers: sso): no key");
}

static const struct placeholder choices[] = {
    { .name = "model", .value = { "m2", 2 } },
    { .name = "effort", .value = { "high", 4 } },
    { .name = "system_prompt", .value = { "Be brief.", 9 } },
};

static void test_choices_by_option(void **state)
{
    struct talk *t = *state;
    talk_init(t, "acp: {mode: yolo, governed_mode: ask}\n");
    t->spec.vars = (struct placeholders) { choices, ARRAY_LEN(choices) };
    talk_begin(t);
    hear(t, INIT);
    hear(t,
         ANSWER(2, "{\"sessionId\":\"s1\",\"configOptions\":["
                   "{\"id\":\"mo\",\"category\":\"model\",\"currentValue\":\"m1\",\"options\":["
                   "{\"group\":\"g\",\"options\":[{\"value\":\"m2\"}]}]},"
                   "{\"id\":\"mode\",\"currentValue\":\"ask\",\"options\":[{\"value\":\"yolo\"}]},"
                   "{\"id\":\"e\",\"category\":\"thought_level\",\"options\":[{\"value\":"
                   "\"high\"}]}]}"));
    assert_has(t, "\"id\":3,\"method\":\"session/set_config_option\",\"params\":{\"sessionId\":"
                  "\"s1\",\"configId\":\"mode\",\"value\":\"yolo\"}}");
    hear(t, ANSWER(3, "{}"));
    assert_has(t, "\"id\":4,\"method\":\"session/set_config_option\",\"params\":{\"sessionId\":"
                  "\"s1\",\"configId\":\"mo\",\"value\":\"m2\"}}");
    hear(t, ANSWER(4, "{}"));
    assert_has(t, "\"configId\":\"e\",\"value\":\"high\"");
    assert_not(t, "session/prompt");
    hear(t, ANSWER(5, "{}"));
    assert_has(t, "\"prompt\":[{\"type\":\"text\",\"text\":\"Be brief.\"},{\"type\":\"text\","
                  "\"text\":\"do it\"}]");
    talk_end(t);
    assert_true(str_eqc(t->report.model, "m2"));
}

static void test_choices_by_method(void **state)
{
    struct talk *t = *state;
    talk_init(t, "acp: {mode: yolo, governed_mode: ask}\n");
    t->spec.vars = (struct placeholders) { choices, 1 };
    t->spec.has_policies = true;
    talk_begin(t);
    hear(t, INIT);
    hear(t, ANSWER(2, "{\"sessionId\":\"s1\",\"modes\":{\"currentModeId\":\"yolo\"},"
                      "\"models\":{\"currentModelId\":\"m1\"}}"));
    assert_has(t, "\"method\":\"session/set_mode\",\"params\":{\"sessionId\":\"s1\",\"modeId\":"
                  "\"ask\"}}");
    hear(t, ANSWER(3, "{}"));
    assert_has(t, "\"method\":\"session/set_model\",\"params\":{\"sessionId\":\"s1\",\"modelId\":"
                  "\"m2\"}}");
    hear(t, ANSWER(4, "{}"));
    assert_has(t, "\"id\":5,\"method\":\"session/prompt\"");
}

static void test_a_mode_that_policies_need(void **state)
{
    struct talk *t = *state;
    talk_init(t, "acp: {governed_mode: ask}\n");
    t->spec.has_policies = true;
    talk_begin(t);
    hear(t, INIT);
    hear(t, SESSION);
    hear(t, "{\"jsonrpc\":\"2.0\",\"id\":3,\"error\":{\"code\":1,\"message\":\"no\"}}");
    assert_not(t, "session/prompt");
    assert_failed(t, "does not take the mode 'ask', which its policies need: no");
}

static void test_a_model_that_is_not_offered(void **state)
{
    struct talk *t = *state;
    talk_init(t, "");
    t->spec.vars = (struct placeholders) { choices, 1 };
    talk_begin(t);
    hear(t, INIT);
    hear(t, ANSWER(2, "{\"sessionId\":\"s1\",\"configOptions\":[{\"id\":\"model\",\"options\":["
                      "{\"value\":\"a\"},{\"value\":\"b\"}]}]}"));
    assert_failed(t, "does not offer the model 'm2', only: a, b");
}

static void test_resume(void **state)
{
    struct talk *t = *state;
    talk_init(t, "");
    t->spec.resume = STR("old");
    talk_begin(t);
    hear(t, ANSWER(1, "{\"protocolVersion\":1,\"agentCapabilities\":{\"loadSession\":true,"
                      "\"sessionCapabilities\":{\"resume\":{}}}}"));
    assert_has(t, "\"method\":\"session/resume\",\"params\":{\"sessionId\":\"old\"");
    hear(t, ANSWER(2, "{}"));
    assert_has(t, "\"method\":\"session/prompt\",\"params\":{\"sessionId\":\"old\"");
}

/* What an agent tells while it loads has been told in the run that it comes from. */
static void test_load(void **state)
{
    struct talk *t = *state;
    talk_init(t, "");
    t->spec.resume = STR("s1");
    talk_begin(t);
    hear(t, ANSWER(1, "{\"protocolVersion\":1,\"agentCapabilities\":{\"loadSession\":true}}"));
    assert_has(t, "\"method\":\"session/load\"");
    hear(t, WORDS("old words"));
    hear(t, UPDATE("\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"x\",\"title\":\"old\""));
    hear(t, ANSWER(2, "null"));
    hear(t, WORDS("new words"));
    hear(t, END);
    assert_not(t, "old words");
    assert_not(t, "tool_use");
    talk_end(t);
    assert_true(str_eqc(t->report.text, "new words"));
    assert_true(str_eqc(t->report.session_id, "s1"));
}

/* Offered, and then not known: the other way is taken. */
static void test_resume_that_is_not_there(void **state)
{
    struct talk *t = *state;
    talk_init(t, "");
    t->spec.resume = STR("old");
    talk_begin(t);
    hear(t, ANSWER(1, "{\"protocolVersion\":1,\"agentCapabilities\":{\"loadSession\":true,"
                      "\"sessionCapabilities\":{\"resume\":{}}}}"));
    hear(t, "{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":-32601,\"message\":\"no\"}}");
    assert_has(t, "\"id\":3,\"method\":\"session/load\",\"params\":{\"sessionId\":\"old\"");
    hear(t, "{\"jsonrpc\":\"2.0\",\"id\":3,\"error\":{\"code\":-32601,\"message\":\"no\"}}");
    assert_failed(t, "cannot go on with the conversation 'old'");
}

/* What was said before comes after the answer: nothing of it is an answer to us. */
static void test_load_that_goes_on(void **state)
{
    struct talk *t = *state;
    talk_init(t, "acp: {load_settle_ms: 300}\n");
    t->spec.resume = STR("s1");
    talk_begin(t);
    hear(t, ANSWER(1, "{\"protocolVersion\":1,\"agentCapabilities\":{\"loadSession\":true}}"));
    hear(t, ANSWER(2, "{}"));
    assert_has(t, "pause 300\n");
    hear(t, WORDS("long ago"));
    assert_not(t, "session/prompt");
    driver_acp.dialogue->resume(t->session);
    driver_acp.dialogue->resume(t->session);
    assert_has(t, "\"id\":3,\"method\":\"session/prompt\"");
    assert_not(t, "\"id\":4");
    hear(t, WORDS("now"));
    hear(t, END);
    talk_end(t);
    assert_true(str_eqc(t->report.text, "now"));
    assert_not(t, "long ago");
}

static void test_interrupt_while_it_loads(void **state)
{
    struct talk *t = *state;
    talk_init(t, "acp: {load_settle_ms: 300}\n");
    t->spec.resume = STR("s1");
    talk_begin(t);
    hear(t, ANSWER(1, "{\"protocolVersion\":1,\"agentCapabilities\":{\"loadSession\":true}}"));
    hear(t, ANSWER(2, "{}"));
    driver_acp.dialogue->interrupt(t->session);
    assert_has(t, "turn interrupted 0\n");
    driver_acp.dialogue->resume(t->session);
    assert_not(t, "session/prompt");
}

static void test_resume_that_is_not_offered(void **state)
{
    struct talk *t = *state;
    talk_init(t, "");
    t->spec.resume = STR("s1");
    talk_begin(t);
    hear(t, INIT);
    assert_failed(t, "cannot go on with an earlier conversation");
}

static void test_another_version(void **state)
{
    struct talk *t = *state;
    talk_init(t, "");
    talk_begin(t);
    hear(t, ANSWER(1, "{\"protocolVersion\":2}"));
    assert_has(t, "turn error 0\n");
    assert_failed(t, "speaks version 2 of the Agent Client Protocol, cinch speaks 1");
}

static void test_a_session_without_a_name(void **state)
{
    struct talk *t = *state;
    talk_init(t, "");
    talk_begin(t);
    hear(t, INIT);
    hear(t, ANSWER(2, "{}"));
    assert_failed(t, "has no sessionId");
}

static void test_interrupt_before_the_prompt(void **state)
{
    struct talk *t = *state;
    talk_init(t, "");
    talk_begin(t);
    hear(t, INIT);
    driver_acp.dialogue->interrupt(t->session);
    hear(t, SESSION);
    assert_not(t, "session/prompt");
    assert_not(t, "session/cancel");
    assert_has(t, "turn interrupted 0\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_server_over_http),
        T(test_server_by_a_program),
        T(test_server_by_a_program_although_http_is_offered),
        T(test_deadlines_before_the_first_turn),
        T(test_server_by_no_way),
        T(test_login),
        T(test_login_that_is_not_offered),
        T(test_login_that_is_missing),
        T(test_choices_by_option),
        T(test_choices_by_method),
        T(test_a_mode_that_policies_need),
        T(test_a_model_that_is_not_offered),
        T(test_resume),
        T(test_load),
        T(test_resume_that_is_not_there),
        T(test_load_that_goes_on),
        T(test_interrupt_while_it_loads),
        T(test_resume_that_is_not_offered),
        T(test_another_version),
        T(test_a_session_without_a_name),
        T(test_interrupt_before_the_prompt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
