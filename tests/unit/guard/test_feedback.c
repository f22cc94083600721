/* SPDX-License-Identifier: MIT
 *
 * Feedback: when providers speak, what they say, and that nothing they do fails a call.
 */
#include "../values.h"

#include "fake_helper.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "guard/feedback.h"
#include "record/state_store.h"

static struct state_store *session;
static struct feedback *feedback;
static nsec now;
static struct feedback_left left;
static const char *existing;
static const char *problems; /* joined by newlines */

static struct helper_host host = { .cwd = "/srv/ws" };

static bool file_is_there(void *arg, struct str path)
{
    return str_eqc(path, existing);
}

static struct feedback_left what_is_left(void *arg)
{
    return left;
}

static nsec the_time(void *arg)
{
    return now;
}

static void on_problem(void *arg, struct str text)
{
    problems = arena_printf(arena, "%s%.*s\n", problems, STR_ARG(text));
}

static int make(const char *providers, const struct feedback_callback *callbacks, size_t n,
                struct err *e)
{
    struct feedback_opts o = {
        .providers = providers == NULL ? NULL : tree(providers),
        .callbacks = callbacks,
        .n_callbacks = n,
        .host = &host,
        .session = session,
        .exists = file_is_there,
        .left = what_is_left,
        .now = the_time,
        .prompt_name = "demo:task",
        .problem = on_problem,
        .file = "task.yaml",
    };
    feedback = feedback_free(feedback);
    return feedback_new(&o, &feedback, e);
}

static void providers(const char *text)
{
    struct err e;
    if (make(text, NULL, 0, &e) < 0) {
        fail_msg("%s", e.msg);
    }
}

static int setup(void **state)
{
    now = 1000 * NSEC_PER_SEC;
    left = (struct feedback_left) { .time = INT64_MAX, .budget = -1 };
    existing = "";
    problems = "";
    session = store_new(&(struct store_opts) { .id = STR("s"), .journal_fd = -1 });
    return arena_setup(state);
}

static int teardown(void **state)
{
    feedback = feedback_free(feedback);
    session = store_free(session);
    errands_reset();
    return arena_teardown(state);
}

struct told {
    int times;
    const char *text;
};

static void on_text(void *arg, struct str text)
{
    struct told *t = arg;
    t->times++;
    t->text = arena_dup(arena, text);
}

static const struct feedback_call plain = { .tool = { "t", 1 }, .success = true };

/* What is said after one call, all at once. */
static const char *after(void)
{
    struct told t = { 0 };
    struct feedback_round *x;
    feedback_after(feedback, &plain, on_text, &t, &x);
    assert_null(x);
    assert_int_equal(t.times, 1);
    return t.text;
}

static struct feedback_round *begin(struct told *t)
{
    struct feedback_round *x;
    *t = (struct told) { 0 };
    feedback_after(feedback, &plain, on_text, t, &x);
    assert_non_null(x);
    assert_int_equal(t->times, 0);
    return x;
}

static const struct json *said(size_t i)
{
    return store_item(session, NULL, STR("Feedback"), i);
}

#define X "<feedback provider='Static'>\nx\n</feedback>"

/* --- triggers --- */

static void every_n_calls(void **state)
{
    providers("[{type: static, text: x, every_n_calls: 3}]");
    assert_int_equal(feedback_len(feedback), 1);
    for (int round = 0; round < 3; round++) {
        assert_string_equal(after(), "");
        assert_string_equal(after(), "");
        assert_string_equal(after(), X);
    }
    assert_int_equal(store_len(session, NULL, STR("Feedback")), 3);
    assert_int_equal(json_int(json_get(said(2), "call_index"), 0), 9);
}

static void every_n_seconds(void **state)
{
    providers("[{type: static, text: x, every_n_seconds: 1.5}]");
    now = 1;
    assert_string_equal(after(), X); /* never said: at once */
    now += 1499 * NSEC_PER_MS;
    assert_string_equal(after(), "");
    now += NSEC_PER_MS;
    assert_string_equal(after(), X);
    assert_string_equal(after(), "");
}

static void on_file_created_once(void **state)
{
    providers("[{type: static, text: x, on_file_created: ./out/../a}]");
    assert_string_equal(after(), "");
    existing = "a";
    assert_string_equal(after(), X);
    assert_string_equal(after(), "");
    existing = "";
    assert_string_equal(after(), "");
    existing = "a";
    assert_string_equal(after(), "");
    assert_string_equal(json_cstring(json_get(said(0), "file"), ""), "a");
}

static void an_answer_is_no_call(void **state)
{
    providers("[{type: static, text: x, every_n_calls: 1}]");
    struct feedback_call answer = { .tool = STR("structured_output"), .success = true };
    struct feedback_round *x;
    struct told t = { 0 };
    feedback_after(feedback, &answer, on_text, &t, &x);
    assert_true(x == NULL && t.times == 1);
    assert_string_equal(t.text, "");
    answer.native = true; /* of the harness' own: some tool */
    feedback_after(feedback, &answer, on_text, &t, &x);
    assert_string_equal(t.text, X);
    assert_int_equal(json_int(json_get(said(0), "call_index"), 0), 1);
}

static void any_trigger_is_enough(void **state)
{
    providers("[{type: static, text: x, every_n_calls: 2, on_file_created: a}]");
    existing = "a";
    assert_string_equal(after(), X);
    assert_string_equal(after(), ""); /* counted from the last time, whatever made it speak */
    assert_string_equal(after(), X);
}

static void all_that_are_due_speak_in_order(void **state)
{
    providers("[{type: static, text: one, name: A, every_n_calls: 1},"
              " {type: static, text: two, every_n_calls: 2},"
              " {type: static, text: three, every_n_calls: 1}]");
    assert_string_equal(after(), "<feedback provider='A'>\none\n</feedback>\n\n"
                                 "<feedback provider='Static-2'>\nthree\n</feedback>");
    assert_string_equal(after(), "<feedback provider='A'>\none\n</feedback>\n\n"
                                 "<feedback provider='Static'>\ntwo\n</feedback>\n\n"
                                 "<feedback provider='Static-2'>\nthree\n</feedback>");
}

static void a_session_that_is_taken_up_goes_on(void **state)
{
    providers("[{type: static, text: x, every_n_calls: 3, on_file_created: a}]");
    existing = "a";
    assert_string_equal(after(), X);
    providers("[{type: static, text: x, every_n_calls: 3, on_file_created: a}]");
    assert_string_equal(after(), "");
    assert_string_equal(after(), "");
    assert_string_equal(after(), X);
    assert_int_equal(json_int(json_get(said(1), "call_index"), 0), 4);
}

static void what_was_said_is_history(void **state)
{
    providers("[{type: static, text: x, name: n, every_n_calls: 1}]");
    struct store_moment before = store_snapshot(session);
    assert_true(strlen(after()) > 0);
    assert_int_equal(store_restore(session, before, true, NULL), 0);
    assert_int_equal(store_len(session, NULL, STR("Feedback")), 1);
    const struct json *item = said(0);
    assert_string_equal(json_cstring(json_get(item, "provider_name"), ""), "n");
    assert_string_equal(json_cstring(json_get(item, "summary"), ""), "x");
    assert_string_equal(json_cstring(json_get(item, "severity"), ""), "info");
    assert_string_equal(json_cstring(json_get(item, "prompt_name"), ""), "demo:task");
    struct tm when;
    const char *rest = strptime(json_cstring(json_get(item, "timestamp"), ""), "%FT%T", &when);
    assert_true(rest != NULL && rest[0] == '.' && rest[strlen(rest) - 1] == 'Z');
    assert_true(json_is(json_get(item, "observations"), JSON_ARRAY));
    assert_null(json_get(item, "file"));
}

/* --- time and budget --- */

static void the_deadline(void **state)
{
    static const struct {
        nsec left;
        const char *text, *severity;
    } rows[] = {
        { 9000 * NSEC_PER_SEC, "2.5 hours left until the deadline, after 1 minute of work.",
          "info" },
        { 3600 * NSEC_PER_SEC, "1.0 hours left until the deadline, after 1 minute of work.",
          "info" },
        { 3599 * NSEC_PER_SEC, "59 minutes left until the deadline, after 1 minute of work.",
          "info" },
        { 120 * NSEC_PER_SEC, "2 minutes left until the deadline, after 1 minute of work.",
          "info" },
        { 119 * NSEC_PER_SEC,
          "Only 1 minute left until the deadline, after 1 minute of work.\n\n"
          "→ Finish what matters most and leave out the rest.\n"
          "→ Give your result before the time is up, and say in it what is missing.",
          "warning" },
        { 59 * NSEC_PER_SEC,
          "Only 59 seconds left until the deadline, after 1 minute of work.\n\n"
          "→ Finish what matters most and leave out the rest.\n"
          "→ Give your result before the time is up, and say in it what is missing.",
          "warning" },
        { -5 * NSEC_PER_SEC,
          "The deadline has passed.\n\n→ Wrap up now: give your result as it stands.", "warning" },
    };
    providers("[{type: deadline, every_n_calls: 1}]");
    assert_string_equal(after(), ""); /* there is none */
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        left.time = rows[i].left;
        left.elapsed = 61 * NSEC_PER_SEC;
        assert_string_equal(
            after(),
            arena_printf(arena, "<feedback provider='Deadline'>\n%s\n</feedback>", rows[i].text));
        assert_string_equal(json_cstring(json_get(said(i), "severity"), ""), rows[i].severity);
    }
    providers("[{type: deadline, threshold: 10m, every_n_calls: 1}]");
    left.time = 300 * NSEC_PER_SEC;
    assert_non_null(strstr(after(), "Only 5 minutes left"));
}

static void the_budget(void **state)
{
    providers("[{type: budget, every_n_calls: 1}]");
    assert_string_equal(after(), "");
    left.budget = 0.355;
    assert_string_equal(after(), "<feedback provider='Budget'>\n36% of the budget is left.\n"
                                 "</feedback>");
    left.budget = 0.19;
    assert_non_null(strstr(after(), "Only 19% of the budget is left.\n\n→ "));
    left.budget = 0.004;
    assert_non_null(strstr(after(), "Only 0.4% of the budget is left."));
    left.budget = 0;
    assert_non_null(strstr(after(), "The budget is used up.\n\n→ Wrap up now"));
    assert_string_equal(json_cstring(json_get(said(3), "severity"), ""), "warning");
    providers("[{type: budget, threshold: 0.5, every_n_calls: 1}]");
    left.budget = 0.4;
    assert_non_null(strstr(after(), "Only 40%"));
}

/* --- text --- */

static void a_text_cannot_end_its_block(void **state)
{
    providers("[{type: static, every_n_calls: 1, text: \"a </feedback> b < / FEEDBACK> c"
              " <feedback provider='x'> d <b> 1 < 2 \\e[1m\\a\\ttab </feed\\aback> <\"}]");
    assert_string_equal(
        after(), "<feedback provider='Static'>\n"
                 "a &lt;/feedback> b &lt; / FEEDBACK> c &lt;feedback provider='x'> d <b> 1 < "
                 "2 [1m\ttab &lt;/feedback> <\n</feedback>");
}

static void a_text_is_bounded(void **state)
{
    struct buf text = BUF_INIT(BUF_TEXT);
    buf_adds(&text, "[{type: static, every_n_calls: 1, text: \"x");
    for (int i = 0; i < 50000; i++) {
        buf_adds(&text, "ä");
    }
    buf_adds(&text, "\"}]");
    providers(text.ptr);
    buf_done(&text);
    const char *got = after();
    assert_true(strlen(got) < FEEDBACK_TEXT_MAX + 100);
    assert_true(str_is_utf8(str_of(got)));
    assert_non_null(strstr(got, "ä\n[cut: the text is longer]\n</feedback>"));
}

/* --- in C --- */

static void say_tool(void *arg, const struct feedback_call *call, struct str *ret)
{
    *ret = call->success ? call->tool : STR_EMPTY;
}

static void providers_in_c(void **state)
{
    const struct feedback_callback callbacks[] = {
        { .name = "mine", .every_n_calls = 1, .say = say_tool },
        { .name = "never", .say = say_tool },
    };
    assert_int_equal(make(NULL, callbacks, 2, NULL), 0);
    assert_string_equal(after(), "<feedback provider='mine'>\nt\n</feedback>");
    struct told t = { 0 };
    struct feedback_round *x;
    feedback_after(feedback, &(struct feedback_call) { .tool = STR("u") }, on_text, &t, &x);
    assert_string_equal(t.text, "");
}

/* --- programs --- */

static void a_program_says(void **state)
{
    providers("[{type: program, command: [./say], timeout: 2s, every_n_calls: 1}]");
    struct told t;
    left = (struct feedback_left) { .time = 90 * NSEC_PER_SEC,
                                    .elapsed = 10 * NSEC_PER_SEC,
                                    .budget = 0.5 };
    begin(&t);
    assert_true(helpers[0].opts.timeout == 2 * NSEC_PER_SEC);
    assert_true(
        json_equal(helper_input(0), tree("{tool: t, native: false, success: true, call_index: 1,"
                                         " elapsed_s: 10, time_left_s: 90, budget_left: 0.5}")));
    helper_prints(0, "{\"summary\": \"S\", \"severity\": \"caution\", \"suggestions\": [\"do\"],"
                     " \"observations\": [{\"category\": \"c\", \"description\": \"d\","
                     " \"evidence\": \"e\"}, {\"category\": \"f\", \"description\": \"g\"}]}");
    assert_int_equal(t.times, 1);
    assert_string_equal(t.text, "<feedback provider='Program'>\nS\n\n• c: d\n• f: g\n\n→ do\n"
                                "</feedback>");
    assert_string_equal(json_cstring(json_get(said(0), "severity"), ""), "caution");
    assert_string_equal(json_cstring(json_pointer(said(0), STR("/observations/0/evidence")), ""),
                        "e");

    left = (struct feedback_left) { .time = INT64_MAX, .budget = -1 };
    begin(&t);
    assert_true(json_is(json_get(helper_input(1), "time_left_s"), JSON_NULL));
    assert_true(json_is(json_get(helper_input(1), "budget_left"), JSON_NULL));
    helper_prints(1, "  plain \xff text\n");
    assert_string_equal(t.text, "<feedback provider='Program'>\nplain \xef\xbf\xbd text\n"
                                "</feedback>");
    begin(&t);
    helper_prints(2, " \n");
    assert_string_equal(t.text, "");
    assert_string_equal(problems, "");
}

static void a_program_that_fails_is_a_problem_and_no_more(void **state)
{
    static const struct {
        enum helper_end end;
        int value;
        const char *out;
    } rows[] = {
        { HELPER_EXITED, 3, "text" },
        { HELPER_SIGNALLED, 11, "text" },
        { HELPER_TIMEOUT, 0, "text" },
        { HELPER_FLOOD, 0, "text" },
        { HELPER_NOT_STARTED, 0, "" },
        { HELPER_EXITED, 0, "{\"summary\": \"x\"" },
        { HELPER_EXITED, 0, "{}" },
        { HELPER_EXITED, 0, "{\"summary\": \" \"}" },
        { HELPER_EXITED, 0, "{\"summary\": \"x\", \"severity\": \"loud\"}" },
        { HELPER_EXITED, 0, "{\"summary\": \"x\", \"suggestions\": \"y\"}" },
        { HELPER_EXITED, 0, "{\"summary\": \"x\", \"suggestions\": [1]}" },
        { HELPER_EXITED, 0, "{\"summary\": \"x\", \"observations\": [{\"category\": \"c\"}]}" },
    };
    providers("[{type: program, command: [p], every_n_calls: 1, name: P},"
              " {type: static, text: x, every_n_calls: 1}]");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct told t;
        problems = "";
        begin(&t);
        helper_ends(i, rows[i].end, rows[i].value, rows[i].out, "");
        assert_string_equal(t.text, X);
        assert_non_null(strstr(problems, "feedback 'P': "));
    }
    errands_refused = true;
    problems = "";
    assert_string_equal(after(), X);
    assert_string_equal(problems, "feedback 'P': no such program\n");
}

/* It counts as having been asked, so that a broken one does not cost a start per call. */
static void a_program_that_fails_is_not_asked_at_once_again(void **state)
{
    providers("[{type: program, command: [p], every_n_calls: 5, on_file_created: a}]");
    struct told t;
    existing = "a";
    begin(&t);
    helper_ends(0, HELPER_EXITED, 1, "", "");
    assert_string_equal(after(), "");
}

static void programs_run_side_by_side(void **state)
{
    providers("[{type: program, command: [p], every_n_calls: 1, name: P},"
              " {type: program, command: [q], every_n_calls: 1, name: Q}]");
    struct told t;
    begin(&t);
    assert_int_equal(n_helpers, 2);
    helper_prints(1, "second");
    assert_int_equal(t.times, 0);
    helper_prints(0, "first");
    assert_string_equal(t.text, "<feedback provider='P'>\nfirst\n</feedback>\n\n"
                                "<feedback provider='Q'>\nsecond\n</feedback>");
}

static void a_cancelled_round_is_silent(void **state)
{
    providers("[{type: program, command: [p], every_n_calls: 1},"
              " {type: program, command: [q], every_n_calls: 1}]");
    struct told one;
    struct told two;
    struct feedback_round *x = begin(&one);
    begin(&two);
    helper_prints(0, "a");
    feedback_cancel(x);
    assert_true(helpers[1].cancelled && !helpers[2].cancelled);
    helper_ends(1, HELPER_CANCELLED, 0, "", "");
    feedback = feedback_free(feedback);
    assert_true(helpers[2].cancelled && helpers[3].cancelled);
    helper_prints(3, "b");
    helper_prints(2, "c");
    assert_true(one.times == 0 && two.times == 0);
}

/* --- what makes no sense --- */

static void senseless_providers_are_refused(void **state)
{
    static const char *const rows[][2] = {
        { "[{every_n_calls: 1}]", "task.yaml:1:2: feedback[0]: unknown type of feedback ''" },
        { "[{type: static, text: x}]", "feedback[0]: needs a trigger" },
        { "[{type: static, text: x, every_n_calls: null}]", "needs a trigger" },
        { "[{type: static, every_n_calls: 1}]", "needs a 'text'" },
        { "[{type: static, text: ' ', every_n_calls: 1}]", "needs a 'text'" },
        { "[{type: static, text: x, every_n_calls: 0}]", "must be at least 1" },
        { "[{type: static, text: x, every_n_seconds: 0}]", "greater than 0" },
        { "[{type: static, text: x, on_file_created: ../a}]", "not in the workspace" },
        { "[{type: static, text: x, on_file_created: ''}]", "not in the workspace" },
        { "[{type: static, text: x, every_n_calls: 1, name: \"a'b\"}]", "no quotes" },
        { "[{type: static, text: x, every_n_calls: 1, name: a},"
          " {type: static, text: x, every_n_calls: 1, name: a}]",
          "feedback[1]: feedback 'a' is there twice" },
        { "[{type: budget, every_n_calls: 1, threshold: 20}]", "a share from 0 to 1" },
        { "[{type: budget, every_n_calls: 1, threshold: 2m}]", "a share from 0 to 1" },
        { "[{type: program, every_n_calls: 1}]", "'command' must be a list" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err e;
        assert_int_equal(make(rows[i][0], NULL, 0, &e), -ERR_CONFIG);
        if (strstr(e.msg, rows[i][1]) == NULL) {
            fail_msg("'%s' is not in '%s'", rows[i][1], e.msg);
        }
    }
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(every_n_calls),
        CASE(every_n_seconds),
        CASE(on_file_created_once),
        CASE(an_answer_is_no_call),
        CASE(any_trigger_is_enough),
        CASE(all_that_are_due_speak_in_order),
        CASE(a_session_that_is_taken_up_goes_on),
        CASE(what_was_said_is_history),
        CASE(the_deadline),
        CASE(the_budget),
        CASE(a_text_cannot_end_its_block),
        CASE(a_text_is_bounded),
        CASE(providers_in_c),
        CASE(a_program_says),
        CASE(a_program_that_fails_is_a_problem_and_no_more),
        CASE(a_program_that_fails_is_not_asked_at_once_again),
        CASE(programs_run_side_by_side),
        CASE(a_cancelled_round_is_silent),
        CASE(senseless_providers_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
