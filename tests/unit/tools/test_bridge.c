/* SPDX-License-Identifier: MIT
 *
 * The bridge with handlers that behave in every way: what stays of a call, what is told, and what
 * never even begins.
 */
#include "tools/bridge.h"

#include "bridge_world.h"

static void test_success(void **state)
{
    struct world w;
    struct seen s;
    open_world(&w, *state, true);
    call(&w, "now",
         "{\"message\":\"m\",\"value\":{\"n\":1},\"write\":{\"a\":\"2\",\"d/new\":\"3\"},"
         "\"state\":[{\"op\":\"append\",\"slice\":\"plan\",\"value\":7}]}",
         &s);
    assert_int_equal(s.done, 1);
    assert_false(s.is_error);
    assert_string_equal(s.text, "m\n{\"n\":1}");
    assert_string_equal(s.feedback, "hurry up");
    assert_string_equal(s.structured, "");
    assert_int_equal(s.progress, 1);
    assert_string_equal(text_of(w.s, "ws/a"), "2");
    assert_string_equal(text_of(w.s, "ws/d/new"), "3");
    assert_int_equal(store_len(w.session, NULL, STR("plan")), 1);
    assert_int_equal(store_len(w.session, NULL, STR("policy:test")), 1);
    assert_int_equal(w.began, 1);
    assert_int_equal(w.checks, 1);
    assert_int_equal(w.notes, 1);
    assert_int_equal(w.invoked, 1);
    assert_int_equal(w.last.files, 2);
    assert_string_equal(w.last_message, "m");
    assert_int_equal(strlen(w.last_id), 36); /* made up */
    const struct json *log = store_latest(w.session, NULL, STR("ToolInvoked"));
    assert_true(str_eqc(json_str(json_get(log, "name"), STR_EMPTY), "now"));
    assert_true(str_eqc(json_str(json_get(log, "prompt_name"), STR_EMPTY), "demo"));
    assert_true(str_eqc(json_str(json_get(log, "call_id"), STR_EMPTY), w.last_id));
    assert_true(json_bool(json_pointer(log, STR("/result/success")), false));
    assert_int_equal(json_int(json_pointer(log, STR("/result/value/n")), 0), 1);
    close_world(&w);
}

/* The handler says no, the output is wrong, the state is wrong, the value is too large, the guard
 * cannot remember: nothing stays but the log. */
static void test_failures_leave_nothing(void **state)
{
    static const struct {
        const char *tool, *arguments, *says;
        enum tool_failure failure;
        bool broken;
    } cases[] = {
        { "now",
          "{\"success\":false,\"message\":\"no\",\"write\":{\"a\":\"2\"},\"state\":[{\"op\":"
          "\"append\",\"slice\":\"plan\",\"value\":7}]}",
          "no", TOOL_FAILED, false },
        { "typed",
          "{\"value\":{\"n\":\"1\"},\"write\":{\"a\":\"2\"},\"state\":[{\"op\":\"append\",\"slice"
          "\":\"plan\",\"value\":7}]}",
          "/n: expected integer", TOOL_BAD_OUTPUT, false },
        { "typed", "{\"message\":\"nothing\",\"write\":{\"a\":\"2\"}}", "does not fit",
          TOOL_BAD_OUTPUT, false },
        { "now",
          "{\"write\":{\"a\":\"2\"},\"state\":[{\"op\":\"append\",\"slice\":\"plan\",\"value\":7},"
          "{\"op\":\"push\"}]}",
          "state: change 2: 'op'", TOOL_BAD_OUTPUT, false },
        { "now",
          "{\"write\":{\"a\":\"2\"},\"state\":[{\"op\":\"append\",\"slice\":\"policy:x\",\"value\":"
          "7}]}",
          "not a tool's to change", TOOL_BAD_OUTPUT, false },
        { "small", "{\"value\":\"0123456789abcdef\",\"write\":{\"a\":\"2\"}}", "more than 10 bytes",
          TOOL_FLOOD, false },
        { "now", "{\"content\":[{\"text\":\"x\"}],\"write\":{\"a\":\"2\"}}", "has no type",
          TOOL_BAD_OUTPUT, false },
        { "now", "{\"message\":\"m\",\"write\":{\"a\":\"2\"}}", "cannot remember", TOOL_INTERNAL,
          true },
    };
    struct world w;
    struct seen s;
    open_world(&w, *state, true);
    add(&w, "typed",
        ",\"output_schema\":{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"}}}",
        &now);
    add(&w, "small", ",\"max_output\":10", &now);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        w.guard_broken = cases[i].broken;
        call(&w, cases[i].tool, cases[i].arguments, &s);
        assert_int_equal(s.done, 1);
        assert_int_equal(s.failure, cases[i].failure);
        assert_non_null(strstr(s.text, cases[i].says));
        assert_string_equal(text_of(w.s, "ws/a"), "1");
        assert_int_equal(store_len(w.session, NULL, STR("plan")), 0);
        assert_int_equal(store_len(w.session, NULL, STR("policy:test")), 0);
        assert_int_equal(w.last.files, 0);
        assert_int_equal(remembered(&w), i + 1);
        const struct json *log = store_latest(w.session, NULL, STR("ToolInvoked"));
        assert_false(json_bool(json_pointer(log, STR("/result/success")), true));
        assert_true(str_eqc(json_str(json_pointer(log, STR("/result/failure")), STR_EMPTY),
                            tool_failure_word(cases[i].failure)));
    }
    close_world(&w);
}

/* What is not allowed never begins: no handler, no transaction, not even its directory. */
static void test_refused_never_begins(void **state)
{
    struct world w;
    struct seen s;
    struct stat before, after;
    const struct timespec long_ago[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };
    open_world(&w, *state, true);
    assert_int_equal(utimensat(AT_FDCWD, at(w.s, "private"), long_ago, 0), 0);
    assert_int_equal(stat(at(w.s, "private"), &before), 0);
    call(&w, "nothing", "{}", &s);
    assert_int_equal(s.failure, TOOL_UNKNOWN);
    call(&w, "now", "{\"extra\":1}", &s);
    assert_int_equal(s.failure, TOOL_INVALID);
    assert_non_null(strstr(s.text, "extra"));
    call(&w, "now", "{\"success\":\"true\"}", &s);
    assert_int_equal(s.failure, TOOL_INVALID);
    assert_non_null(strstr(s.text, "/success: expected boolean"));
    call(&w, "now", "[1]", &s);
    assert_int_equal(s.failure, TOOL_INVALID);
    assert_int_equal(w.checks, 0);
    w.deny = true;
    call(&w, "now", "{}", &s);
    assert_int_equal(s.failure, TOOL_DENIED);
    assert_string_equal(s.text, "not today");
    assert_string_equal(w.last_policy, "no_way");
    w.deny = false;
    w.admit = ERR_TIMEOUT;
    call(&w, "now", "{}", &s);
    assert_int_equal(s.failure, TOOL_DEADLINE);
    w.admit = ERR_BUDGET;
    call(&w, "now", "{}", &s);
    assert_int_equal(s.failure, TOOL_BUDGET);
    w.admit = 0;
    w.left = 0;
    call(&w, "now", "{}", &s);
    assert_int_equal(s.failure, TOOL_DEADLINE);
    assert_int_equal(w.started, 0);
    assert_int_equal(w.notes, 0);
    /* a transaction that began and was undone has made and removed a directory there */
    assert_int_equal(stat(at(w.s, "private"), &after), 0);
    assert_memory_equal(&before.st_mtim, &after.st_mtim, sizeof before.st_mtim);
    assert_int_equal(w.invoked, 8);
    assert_int_equal(w.began, 8);
    assert_int_equal(remembered(&w), 8);
    close_world(&w);
}

static void test_text_of_answers(void **state)
{
    struct world w;
    static struct seen s;
    open_world(&w, *state, false);
    call(&w, "now", "{\"message\":\"m\",\"value\":\"as it is\"}", &s);
    assert_string_equal(s.text, "m\nas it is");
    call(&w, "now", "{\"message\":\"same\",\"value\":\"same\"}", &s);
    assert_string_equal(s.text, "same");
    call(&w, "now", "{\"value\":\"as it is\"}", &s);
    assert_string_equal(s.text, "as it is");
    call(&w, "now", "{\"message\":\"m\",\"value\":{\"a\":1},\"exclude\":true}", &s);
    assert_string_equal(s.text, "m");
    call(&w, "now", "{\"message\":\"m\",\"value\":null}", &s);
    assert_string_equal(s.text, "m");
    call(&w, "now", "{\"message\":\"m\",\"value\":\"\"}", &s);
    assert_string_equal(s.text, "m");
    call(&w, "now", "{\"success\":false,\"message\":\"why\",\"value\":[1]}", &s);
    assert_string_equal(s.text, "why\n[1]");
    call(&w, "now", "{\"success\":false}", &s);
    assert_string_equal(s.text, "failed");
    call(&w, "now",
         "{\"content\":[{\"type\":\"text\",\"text\":\"x\"},{\"type\":\"image\",\"data\":\"\"}]}",
         &s);
    assert_string_equal(s.content, "[{\"type\":\"text\",\"text\":\"x\"},{\"type\":\"image\","
                                   "\"data\":\"\"}]");
    assert_string_equal(s.text, "x");
    close_world(&w);
}

static void test_long_and_broken_text(void **state)
{
    struct world w;
    static struct seen s;
    open_world(&w, *state, false);
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    buf_adds(&text, "x");
    for (size_t i = 0; i < BRIDGE_TEXT_MAX / 2; i++) {
        buf_adds(&text, "\xc3\xa4"); /* at odd places, so that a cut would fall between its bytes */
    }
    call(&w, "held", "{}", &s);
    struct tool_result r = { .message = buf_str(&text) };
    tool_run_done(w.held[0], &r);
    assert_true(strlen(s.text) <= BRIDGE_TEXT_MAX);
    assert_true(str_is_utf8(str_of(s.text)));
    assert_null(strstr(s.text, "\xef\xbf\xbd"));
    assert_non_null(strstr(s.text, "[cut: these are the first "));
    assert_non_null(strstr(s.text, " of 262145 bytes]"));
    call(&w, "held", "{}", &s);
    r.message = STR("a\xff\x62\xe2\x82");
    tool_run_done(w.held[1], &r);
    assert_string_equal(s.text, "a\xef\xbf\xbd"
                                "b\xef\xbf\xbd\xef\xbf\xbd");
    close_world(&w);
}

static void test_structured(void **state)
{
    struct world w;
    struct seen s;
    open_world(&w, *state, false);
    add(&w, "object", ",\"output_schema\":{\"type\":\"object\"}", &now);
    add(&w, "list", ",\"output_schema\":{\"type\":\"array\"}", &now);
    call(&w, "object", "{\"value\":{\"n\":1}}", &s);
    assert_string_equal(s.structured, "{\"n\":1}");
    assert_string_equal(s.text, "{\"n\":1}");
    call(&w, "list", "{\"value\":[1]}", &s);
    assert_string_equal(s.structured, "{\"result\":[1]}");
    assert_string_equal(s.text, "[1]");
    call(&w, "list", "{\"value\":[1],\"success\":false}", &s);
    assert_string_equal(s.structured, "");
    close_world(&w);
}

/* Guard, handler and feedback each take their time. */
static void test_later(void **state)
{
    struct world w;
    struct seen s;
    open_world(&w, *state, true);
    w.guard_later = w.feedback_later = true;
    assert_non_null(call(&w, "later", "{\"write\":{\"a\":\"2\"}}", &s));
    assert_int_equal(w.started, 0);
    assert_int_equal(txns_active(w.txns), 0);
    decide(NULL);
    assert_int_equal(w.started, 1);
    assert_int_equal(txns_active(w.txns), 1);
    assert_true(bridge_busy(w.b));
    loop_run(w.loop);
    assert_int_equal(w.invoked, 1);
    assert_string_equal(text_of(w.s, "ws/a"), "2");
    assert_int_equal(s.done, 0);
    speak(NULL);
    assert_int_equal(s.done, 1);
    assert_false(bridge_busy(w.b));
    call(&w, "later", "{\"success\":false}", &s);
    decide(NULL);
    loop_run(w.loop);
    assert_int_equal(s.done, 0);
    assert_int_equal(txns_active(w.txns), 0); /* undone before anybody else is asked */
    speak(NULL);
    assert_int_equal(s.failure, TOOL_FAILED);
    close_world(&w);
}

static void look_at_files(void *self, struct tool_run *run)
{
    (void)self;
    assert_int_equal(txns_active(world->txns), 0);
    assert_true(run->cwd == NULL && run->layer == NULL && run->session != NULL);
    give(run, TOOL_OK, "m", NULL, "[{\"op\":\"append\",\"slice\":\"plan\",\"value\":1}]");
}

/* One that changes no files has a transaction on the session only; a quiet one gets no feedback. */
static void test_reads_only_and_quiet(void **state)
{
    static const struct tool_handler looking = { "builtin", look_at_files, NULL, NULL };
    struct world w;
    struct seen s;
    struct tool t;
    CLEANUP(arena) struct arena *a = arena_new();
    open_world(&w, *state, true);
    assert_ok(tool_define(a, parse(a, "{\"name\":\"look\",\"description\":\"d\"}"), &t, &w.e),
              &w.e);
    t.handler = &looking;
    t.reads_only = t.quiet = true;
    assert_ok(bridge_add(w.b, &t, &w.e), &w.e);
    call(&w, "look", "{}", &s);
    assert_int_equal(s.failure, TOOL_OK);
    assert_int_equal(w.feedbacks, 0);
    assert_string_equal(s.feedback, "");
    assert_int_equal(store_len(w.session, NULL, STR("plan")), 1);
    close_world(&w);
}

static void test_parallel_calls_are_apart(void **state)
{
    struct world w;
    struct seen s[3];
    open_world(&w, *state, false);
    for (int i = 0; i < 3; i++) {
        call(&w, "held", "{}", &s[i]);
    }
    write_file(w.held[0], "x", "first");
    write_file(w.held[1], "y", "second");
    write_file(w.held[2], "x", "third");
    give(w.held[0], TOOL_OK, "", NULL, "[{\"op\":\"append\",\"slice\":\"plan\",\"value\":1}]");
    assert_false(there(w.s, arena_printf(w.s->arena, "%s/x", w.held[1]->cwd)));
    assert_int_equal(store_len(w.session, w.held[1]->session, STR("plan")), 0);
    give(w.held[1], TOOL_FAILED, "no", NULL, NULL);
    assert_string_equal(text_of(w.s, "ws/x"), "first"); /* undoing one leaves the other alone */
    assert_false(there(w.s, "ws/y"));
    give(w.held[2], TOOL_OK, "", NULL, "[{\"op\":\"clear\",\"slice\":\"plan\"}]");
    assert_int_equal(s[2].failure, TOOL_CONFLICT);
    assert_non_null(strstr(s[2].text, "'x' was changed by something else"));
    assert_non_null(strstr(s[2].text, "try again"));
    assert_string_equal(text_of(w.s, "ws/x"), "first");
    assert_int_equal(store_len(w.session, NULL, STR("plan")), 1);
    assert_int_equal(remembered(&w), 3);
    close_world(&w);
}

static void test_cancel_in_every_phase(void **state)
{
    struct world w;
    struct seen s;
    open_world(&w, *state, true);
    w.guard_later = true;
    bridge_cancel(call(&w, "held", "{}", &s));
    assert_int_equal(s.failure, TOOL_CANCELLED);
    assert_int_equal(w.started, 0);
    w.guard_later = false;
    struct bridge_call *c = call(&w, "held", "{}", &s);
    write_file(w.held[0], "a", "2");
    bridge_cancel(c);
    assert_int_equal(s.failure, TOOL_CANCELLED);
    assert_int_equal(w.cancelled, 1);
    assert_string_equal(text_of(w.s, "ws/a"), "1");
    assert_false(there(w.s, "ws/too-late"));
    assert_int_equal(w.feedbacks, 0);
    w.feedback_later = true;
    c = call(&w, "now", "{\"message\":\"m\",\"write\":{\"a\":\"2\"}}", &s);
    assert_int_equal(s.done, 0);
    bridge_cancel(c); /* too late to undo: what happened is told */
    assert_int_equal(s.failure, TOOL_OK);
    assert_string_equal(text_of(w.s, "ws/a"), "2");
    assert_int_equal(w.invoked, 3);
    close_world(&w);
}

static void test_list(void **state)
{
    struct world w;
    struct tool t = { .name = STR("now") };
    struct seen s;
    open_world(&w, *state, false);
    assert_int_equal(bridge_add(w.b, &t, &w.e), -ERR_EXISTS);
    assert_int_equal(bridge_tools_len(w.b), 3);
    uint64_t version = bridge_version(w.b);
    const char *const some[] = { "held", "new", NULL };
    bridge_offer(w.b, some);
    assert_true(bridge_version(w.b) != version);
    assert_int_equal(bridge_tools_len(w.b), 1);
    assert_null(bridge_find(w.b, STR("now")));
    call(&w, "now", "{}", &s);
    assert_int_equal(s.failure, TOOL_UNKNOWN);
    assert_non_null(strstr(s.text, "not available now"));
    add(&w, "new", "", &now);
    assert_int_equal(bridge_tools_len(w.b), 2);
    assert_true(str_eqc(bridge_tool(w.b, 1)->name, "new"));
    assert_null(bridge_tool(w.b, 2));
    bridge_offer(w.b, NULL);
    assert_int_equal(bridge_tools_len(w.b), 4);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCENE_TEST(test_success),
        SCENE_TEST(test_failures_leave_nothing),
        SCENE_TEST(test_refused_never_begins),
        SCENE_TEST(test_text_of_answers),
        SCENE_TEST(test_long_and_broken_text),
        SCENE_TEST(test_structured),
        SCENE_TEST(test_later),
        SCENE_TEST(test_reads_only_and_quiet),
        SCENE_TEST(test_parallel_calls_are_apart),
        SCENE_TEST(test_cancel_in_every_phase),
        SCENE_TEST(test_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
