/* SPDX-License-Identifier: MIT
 *
 * Driver acp and terminals: what an agent may have run, under which names, what it is told about
 * them, and what is refused.
 */
#include "acp_case.h"

#define ON "acp: {terminal: true}\n"
#define REQUEST(id, method, params)                                          \
    "{\"jsonrpc\":\"2.0\",\"id\":" #id ",\"method\":\"terminal/" method "\"" \
    ",\"params\":{\"sessionId\":\"s1\"," params "}}"
#define ABOUT(id, method, name) REQUEST(id, method, "\"terminalId\":\"" name "\"")

static void answer(struct talk *t, bool ok, const char *text, const struct driver_terminal *state)
{
    struct driver_reply reply = {
        .id = t->last_ask, .ok = ok, .text = str_of(text), .terminal = state
    };
    driver_acp.dialogue->reply(t->session, &reply);
}

static void open_by_hand(struct talk *t, const char *sections)
{
    open_talk(t, sections);
    t->by_hand = true;
}

static void test_not_offered(void **state)
{
    struct talk *t = *state;
    open_talk(t, "");
    assert_has(t, "\"terminal\":false");
    hear(t, REQUEST(7, "create", "\"command\":\"ls\""));
    assert_has(t, "\"id\":7,\"error\":{\"code\":-32601");
    assert_not(t, "ask terminal");
}

static void test_life(void **state)
{
    struct talk *t = *state;
    open_by_hand(t, ON);
    assert_has(t, "\"terminal\":true");
    hear(t, REQUEST(7, "create",
                    "\"command\":\"make\",\"args\":[\"-j\",\"2\"],\"cwd\":\"/workspace/sub\","
                    "\"env\":[{\"name\":\"A\",\"value\":\"b\"}],\"outputByteLimit\":10"));
    assert_has(t, "ask terminal /workspace/sub 0 of 1 10 [\"make\",\"-j\",\"2\"]{\"A\":\"b\"}\n");
    answer(t, true, "", NULL);
    assert_has(t, "\"id\":7,\"result\":{\"terminalId\":\"terminal-1\"}");
    hear(t, ABOUT(8, "output", "terminal-1"));
    answer(t, true, "so far", &(struct driver_terminal) { .truncated = true });
    assert_has(t, "\"id\":8,\"result\":{\"output\":\"so far\",\"truncated\":true}");
    hear(t, ABOUT(9, "kill", "terminal-1"));
    answer(t, true, "", NULL);
    assert_has(t, "\"id\":9,\"result\":{}");
    hear(t, ABOUT(10, "wait_for_exit", "terminal-1"));
    answer(t, true, "",
           &(struct driver_terminal) { .ended = true, .exit_code = -1, .signal = "SIGTERM" });
    assert_has(t, "\"id\":10,\"result\":{\"exitCode\":null,\"signal\":\"SIGTERM\"}");
    hear(t, ABOUT(11, "output", "terminal-1"));
    answer(t, true, "all", &(struct driver_terminal) { .ended = true, .exit_code = 3 });
    assert_has(
        t,
        "\"output\":\"all\",\"truncated\":false,\"exitStatus\":{\"exitCode\":3,\"signal\":null}");
    hear(t, ABOUT(12, "release", "terminal-1"));
    answer(t, true, "", NULL);
    hear(t, ABOUT(13, "output", "terminal-1"));
    assert_has(t, "\"id\":13,\"error\":{\"code\":-32002");
}

/* What a model wrote as one line is for a shell; a name is not. */
static void test_a_line_for_a_shell(void **state)
{
    struct talk *t = *state;
    open_talk(t, ON);
    hear(t, REQUEST(7, "create", "\"command\":\"ls | wc\""));
    hear(t, REQUEST(8, "create", "\"command\":\"ls\""));
    hear(t, REQUEST(9, "create", "\"command\":\"a b\",\"args\":[\"$x\"]"));
    assert_has(t, " [\"/bin/sh\",\"-c\",\"ls | wc\"]{}\n");
    assert_has(t, " [\"ls\"]{}\n");
    assert_has(t, " [\"a b\",\"$x\"]{}\n");
    assert_has(t, " 1048576 ");
}

static void test_what_is_no_command(void **state)
{
    static const char *const bad[] = {
        REQUEST(7, "create", "\"command\":\"\""),
        REQUEST(7, "create", "\"command\":1"),
        REQUEST(7, "create", "\"command\":\"a\\u0000b\""),
        REQUEST(7, "create", "\"command\":\"a\",\"args\":[1]"),
        REQUEST(7, "create", "\"command\":\"a\",\"args\":{\"x\":\"y\"}"),
        REQUEST(7, "create", "\"command\":\"a\",\"env\":[{\"name\":\"A\"}]"),
        REQUEST(7, "create", "\"command\":\"a\",\"cwd\":\"/w\\u0000\""),
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct talk t;
        open_talk(&t, ON);
        hear(&t, bad[i]);
        assert_has(&t, "\"id\":7,\"error\":{\"code\":-32602");
        assert_not(&t, "ask terminal");
        talk_done(&t);
    }
    (void)state;
}

/* A policy is asked before anything runs, about what would run. */
static void test_policy(void **state)
{
    struct talk *t = *state;
    talk_init(t, ON);
    t->spec.has_policies = true;
    talk_begin(t);
    hear(t, INIT);
    hear(t, SESSION);
    t->by_hand = true;
    hear(t, REQUEST(7, "create", "\"command\":\"rm\",\"args\":[\"x\"]"));
    assert_has(t, "ask permission acp:terminal {\"command\":\"rm\",\"args\":[\"x\"]}\n");
    assert_not(t, "ask terminal");
    answer(t, false, "no commands", NULL);
    assert_has(t, "\"id\":7,\"error\":{\"code\":-32603,\"message\":\"no commands\"}");
    hear(t, REQUEST(8, "create", "\"command\":\"ls\""));
    answer(t, true, "", NULL);
    assert_has(t, "ask terminal  0 of 1 1048576 [\"ls\"]{}\n");
    answer(t, true, "", NULL);
    assert_has(t, "\"id\":8,\"result\":{\"terminalId\":\"terminal-1\"}");
    /* One that is called off while a policy thinks. */
    hear(t, REQUEST(9, "create", "\"command\":\"ls\""));
    driver_acp.dialogue->interrupt(t->session);
    assert_has(t, "\"id\":9,\"error\":");
    answer(t, true, "", NULL);
    assert_not(t, "0 of 2");
}

static void test_one_that_cannot_start(void **state)
{
    struct talk *t = *state;
    open_by_hand(t, ON);
    hear(t, REQUEST(7, "create", "\"command\":\"ls\""));
    answer(t, false, "no such program", NULL);
    assert_has(t, "\"id\":7,\"error\":{\"code\":-32603,\"message\":\"no such program\"}");
    hear(t, ABOUT(8, "output", "terminal-1"));
    assert_has(t, "\"id\":8,\"error\":{\"code\":-32002");
}

static void test_too_many(void **state)
{
    struct talk *t = *state;
    open_talk(t, ON);
    for (int i = 0; i < 32; i++) {
        hear(t, REQUEST(7, "create", "\"command\":\"ls\""));
    }
    assert_has(t, "terminal-32");
    hear(t, REQUEST(40, "create", "\"command\":\"ls\""));
    assert_has(t, "\"id\":40,\"error\":");
    hear(t, ABOUT(41, "release", "terminal-5"));
    hear(t, REQUEST(42, "create", "\"command\":\"ls\""));
    assert_has(t, "\"id\":42,\"result\":{\"terminalId\":\"terminal-33\"}");
}

/* Nothing is started for an agent whose turn is over. */
static void test_after_the_turn(void **state)
{
    struct talk *t = *state;
    open_talk(t, ON);
    hear(t, WORDS("done"));
    hear(t, END);
    hear(t, REQUEST(7, "create", "\"command\":\"ls\""));
    assert_has(t, "\"id\":7,\"error\":");
    assert_not(t, "ask terminal");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_not_offered),        T(test_life),           T(test_a_line_for_a_shell),
        T(test_what_is_no_command), T(test_policy),         T(test_one_that_cannot_start),
        T(test_too_many),           T(test_after_the_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
