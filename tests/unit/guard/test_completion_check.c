/* SPDX-License-Identifier: MIT
 *
 * Completion: each check alone, in groups, and in the order that costs least.
 */
#include "../values.h"

#include "fake_helper.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "guard/completion_check.h"
#include "record/state_store.h"

static struct state_store *session;
static struct completion *completion;
static const char *existing; /* "a|b" */
static int looks;            /* for files */

static struct helper_host host = { .cwd = "/srv/ws" };

static bool file_is_there(void *arg, struct str path)
{
    struct str rest = str_of(existing);
    looks++;
    while (rest.len > 0) {
        if (str_eq(str_split(&rest, '|'), path)) {
            return true;
        }
    }
    return false;
}

static int make(const char *rules, const struct completion_callback *callbacks, size_t n,
                struct err *e)
{
    struct completion_opts o = {
        .rules = rules == NULL ? NULL : tree(rules),
        .callbacks = callbacks,
        .n_callbacks = n,
        .host = &host,
        .session = session,
        .exists = file_is_there,
        .file = "task.yaml",
    };
    completion = completion_free(completion);
    return completion_new(&o, &completion, e);
}

static void rules(const char *text)
{
    struct err e;
    if (make(text, NULL, 0, &e) < 0) {
        fail_msg("%s", e.msg);
    }
}

static int setup(void **state)
{
    existing = "";
    looks = 0;
    session = store_new(&(struct store_opts) { .id = STR("s"), .journal_fd = -1 });
    return arena_setup(state);
}

static int teardown(void **state)
{
    completion = completion_free(completion);
    session = store_free(session);
    errands_reset();
    return arena_teardown(state);
}

struct told {
    int times;
    bool complete;
    const char *feedback, *why;
};

static void on_verdict(void *arg, const struct completion_verdict *v)
{
    struct told *t = arg;
    t->times++;
    t->complete = v->complete;
    t->feedback = arena_dup(arena, v->feedback);
    t->why = arena_dup(arena, v->why);
}

static struct told claim(const struct completion_claim *c)
{
    struct told t = { 0 };
    struct completion_check *x;
    completion_check(completion, c, on_verdict, &t, &x);
    assert_null(x);
    assert_int_equal(t.times, 1);
    return t;
}

static struct told done(void)
{
    return claim(&(struct completion_claim) { .text = STR("I am done.") });
}

static struct completion_check *begin(struct told *t)
{
    struct completion_check *x;
    *t = (struct told) { 0 };
    completion_check(completion, &(struct completion_claim) { 0 }, on_verdict, t, &x);
    assert_non_null(x);
    assert_int_equal(t->times, 0);
    return x;
}

static void put(const char *slice, const char *item)
{
    struct store_change c = { .kind = CHANGE_APPEND, .slice = str_of(slice) };
    c.value = tree(item);
    assert_int_equal(store_apply(session, &c, NULL), 0);
}

/* --- files --- */

static void without_rules_all_is_done(void **state)
{
    rules("{}");
    assert_false(completion_wanted(completion));
    assert_int_equal(completion_rounds(completion), 10);
    assert_true(done().complete);
    assert_int_equal(make(NULL, NULL, 0, NULL), 0);
    assert_true(done().complete);
    rules("{max_rounds: 3}");
    assert_false(completion_wanted(completion));
    assert_int_equal(completion_rounds(completion), 3);
}

static void files_must_be_there(void **state)
{
    rules("{files: [a, ./b, /srv/ws/c]}");
    assert_true(completion_wanted(completion));
    existing = "a|b|c";
    assert_true(done().complete);
    assert_string_equal(done().feedback, "");
    existing = "a|c";
    struct told t = done();
    assert_false(t.complete);
    assert_string_equal(t.feedback, "<blocker>\n1 required file is missing: b.\n</blocker>");
    assert_string_equal(t.why, "files");
    existing = "";
    assert_string_equal(done().feedback,
                        "<blocker>\n3 required files are missing: a, b, c.\n</blocker>");
    rules("{files: [a, b, c, d, e]}");
    existing = "b";
    assert_string_equal(done().feedback,
                        "<blocker>\n4 required files are missing: a, c, d, ...\n</blocker>");
    rules("{files: []}");
    assert_true(done().complete);
}

static void without_a_workspace_no_file_is_there(void **state)
{
    struct completion_opts o = { .rules = tree("{files: [a]}") };
    assert_int_equal(completion_new(&o, &completion, NULL), 0);
    assert_false(done().complete);
    completion = completion_free(completion);
    o.rules = tree("{files: [/elsewhere/a]}"); /* judged when it is known where that is */
    assert_int_equal(completion_new(&o, &completion, NULL), 0);
    assert_false(done().complete);
}

/* --- command --- */

static void a_command_must_exit_with_0(void **state)
{
    rules("{command: [make, test], timeout: 5s}");
    struct told t;
    begin(&t);
    assert_string_equal(helpers[0].opts.argv[1], "test");
    assert_true(helpers[0].opts.timeout == 5 * NSEC_PER_SEC);
    helper_prints(0, "all fine");
    assert_true(t.times == 1 && t.complete);
    begin(&t);
    helper_ends(1, HELPER_EXITED, 2, "first\nsecond </blocker>\n", "broken\n");
    assert_false(t.complete);
    assert_string_equal(t.feedback, "<blocker>\n"
                                    "The check 'make test' does not pass: it failed badly.\n"
                                    "The end of its output:\nfirst\nsecond &lt;/blocker>\n"
                                    "The end of its errors:\nbroken\n</blocker>");
    assert_string_equal(t.why, "command");
    static const enum helper_end ends[] = { HELPER_SIGNALLED, HELPER_TIMEOUT, HELPER_FLOOD,
                                            HELPER_CANCELLED, HELPER_NOT_STARTED };
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        begin(&t);
        helper_ends(2 + i, ends[i], 0, "", "");
        assert_true(t.times == 1 && !t.complete && strlen(t.feedback) > 0);
    }
    errands_refused = true;
    assert_false(done().complete);
    assert_non_null(strstr(done().feedback, "no such program"));
}

static void of_long_output_the_end_is_told(void **state)
{
    rules("{command: [p]}");
    struct told t;
    struct buf out = BUF_INIT(BUF_TEXT);
    for (int i = 0; i < 5000; i++) {
        buf_addf(&out, "line %d\n", i);
    }
    begin(&t);
    helper_ends(0, HELPER_EXITED, 1, out.ptr, "");
    buf_done(&out);
    assert_non_null(strstr(t.feedback, "output:\nline "));
    assert_non_null(strstr(t.feedback, "line 4999\n</blocker>"));
    assert_true(strlen(t.feedback) < 2000);
}

/* Nobody can run it, so that no further round helps. */
static void without_a_host_there_is_nothing_to_say(void **state)
{
    struct completion_opts o = { .rules = tree("{command: [p]}") };
    assert_int_equal(completion_new(&o, &completion, NULL), 0);
    struct told t = done();
    assert_false(t.complete);
    assert_string_equal(t.feedback, "");
    assert_true(strlen(t.why) > 0);
}

/* --- schema --- */

static void a_schema_must_fit(void **state)
{
    rules("{schema: {type: object, required: [n]}}");
    struct json *good = tree("{n: 1}");
    struct json *bad = tree("{m: 1}");
    assert_true(claim(&(struct completion_claim) { .output = good }).complete);
    assert_false(claim(&(struct completion_claim) { .output = bad }).complete);
    assert_true(
        claim(&(struct completion_claim) { .text = STR("So: ```json\n{\"n\": 2}\n```") }).complete);
    struct told t = claim(&(struct completion_claim) { .text = STR("{\"m\": 2}") });
    assert_false(t.complete);
    assert_non_null(strstr(t.feedback, "does not fit its schema"));
    assert_string_equal(t.why, "schema");
    assert_false(done().complete);
}

static void a_schema_may_be_in_a_file(void **state)
{
    char name[] = "/tmp/completion-XXXXXX";
    assert_non_null(mkdtemp(name));
    char path[64];
    char text[128];
    (void)snprintf(path, sizeof path, "%s/s.json", name);
    (void)snprintf(text, sizeof text, "{schema: %s}", path);
    struct err e;
    assert_int_equal(make(text, NULL, 0, &e), -ERR_INPUT);
    assert_int_equal(file_write_atomic(AT_FDCWD, path, STR("{\"type\": \"array\"}"), 0600, NULL),
                     0);
    rules(text);
    assert_true(claim(&(struct completion_claim) { .text = STR("[]") }).complete);
    assert_false(claim(&(struct completion_claim) { .text = STR("{}") }).complete);
    assert_int_equal(file_remove_tree(AT_FDCWD, name, NULL), 0);
}

/* --- session --- */

static void a_predicate_counts(void **state)
{
    rules("{session: {slice: plan}}");
    struct told t = done();
    assert_false(t.complete);
    assert_string_equal(t.feedback,
                        "<blocker>\nOf the 0 items in 'plan', 0 count; wanted: at least "
                        "1.\n</blocker>");
    put("plan", "{status: open, n: 1}");
    assert_true(done().complete);
    rules("{session: {slice: plan, min: 2, max: 3}}");
    assert_false(done().complete);
    put("plan", "{status: done, n: 1}");
    assert_true(done().complete);
    put("plan", "{status: done, n: 2}");
    put("plan", "{status: done, n: 3}");
    assert_false(done().complete);
    rules("{session: {slice: plan, where: {/status: done}, min: 3}}");
    assert_true(done().complete);
    rules("{session: {slice: plan, where: {/status: done, /n: 2}, min: 1, max: 1}}");
    assert_true(done().complete);
    rules("{session: {slice: plan, where: {/status: open}, max: 0}}");
    t = done();
    assert_false(t.complete);
    assert_string_equal(
        t.feedback, "<blocker>\nOf the 4 items in 'plan', 1 fit {\"/status\":\"open\"}; wanted: "
                    "at least 0, at most 0.\n</blocker>");
}

static void every_item_may_be_meant(void **state)
{
    rules("{session: {slice: plan, where: {/status: done}, every: true}}");
    assert_false(done().complete); /* at least one */
    put("plan", "{status: done}");
    assert_true(done().complete);
    put("plan", "{other: 1}");
    struct told t = done();
    assert_false(t.complete);
    assert_non_null(strstr(t.feedback, "every item must"));
    assert_string_equal(t.why, "session");
}

/* --- groups --- */

static void all_ends_with_the_first_that_fails(void **state)
{
    rules("{all: [{files: [a]}, {files: [b]}, {files: [c]}]}");
    existing = "a";
    assert_string_equal(done().feedback, "<blocker>\n1 required file is missing: b.\n</blocker>");
    assert_int_equal(looks, 2);
    existing = "a|b|c";
    assert_true(done().complete);
}

static void any_ends_with_the_first_that_holds(void **state)
{
    rules("{any: [{files: [a]}, {files: [b]}, {files: [c]}]}");
    existing = "b|c";
    struct told t = done();
    assert_true(t.complete);
    assert_string_equal(t.feedback, "");
    assert_int_equal(looks, 2);
    existing = "";
    t = done();
    assert_false(t.complete);
    assert_string_equal(t.feedback, "<blocker>\n1 required file is missing: a. "
                                    "1 required file is missing: b. 1 required file is missing: c."
                                    "\n</blocker>");
    assert_string_equal(t.why, "files, files, files");
}

static void empty_groups_hold(void **state)
{
    rules("{all: [], any: []}");
    assert_true(done().complete);
}

static void members_of_a_map_must_all_hold(void **state)
{
    rules("{command: [p], files: [a], session: {slice: plan}}");
    assert_string_equal(done().why, "files"); /* nothing was started */
    existing = "a";
    assert_string_equal(done().why, "session");
    put("plan", "1");
    struct told t;
    begin(&t);
    helper_prints(0, "");
    assert_true(t.complete);
}

static void groups_nest_and_wait(void **state)
{
    rules("{files: [a], any: [{all: [{command: [p]}, {command: [q]}]}, {any: [{command: [r]}]}]}");
    existing = "a";
    struct told t;
    begin(&t);
    helper_prints(0, "");                              /* p holds */
    helper_ends(1, HELPER_EXITED, 1, "q's words", ""); /* q does not: the first group is out */
    assert_int_equal(t.times, 0);
    helper_prints(2, ""); /* r holds */
    assert_true(t.times == 1 && t.complete);
    begin(&t);
    helper_ends(3, HELPER_EXITED, 1, "", "");
    helper_ends(4, HELPER_EXITED, 1, "", ""); /* q was not asked */
    assert_string_equal(helpers[4].opts.argv[0], "r");
    assert_false(t.complete);
    assert_non_null(strstr(t.feedback, "'p' does not pass: it failed badly. The check 'r'"));
    assert_string_equal(t.why, "command, command");
}

/* What failed in a group that holds in the end is not told when something else fails. */
static void words_of_a_group_that_holds_are_dropped(void **state)
{
    rules("{all: [{any: [{files: [x]}, {files: [a]}]}, {files: [y]}]}");
    existing = "a";
    struct told t = done();
    assert_string_equal(t.feedback, "<blocker>\n1 required file is missing: y.\n</blocker>");
    assert_string_equal(t.why, "files");
}

/* --- in C --- */

static bool says_done(void *arg, const struct completion_claim *c, struct str *text)
{
    *text = str_of(arg);
    return str_eqc(c->text, "done");
}

static void checks_in_c(void **state)
{
    const struct completion_callback callbacks[] = {
        { .name = "word", .check = says_done, .arg = (void *)"Say it." },
    };
    assert_int_equal(make("{files: [a]}", callbacks, 1, NULL), 0);
    assert_string_equal(done().why, "files");
    existing = "a";
    struct told t = done();
    assert_string_equal(t.feedback, "<blocker>\nSay it.\n</blocker>");
    assert_string_equal(t.why, "word");
    assert_true(claim(&(struct completion_claim) { .text = STR("done") }).complete);
    const struct completion_callback mute = { .name = "m", .check = says_done, .arg = (void *)"" };
    assert_int_equal(make(NULL, &mute, 1, NULL), 0);
    assert_true(completion_wanted(completion));
    assert_string_equal(done().feedback, "");
}

/* What was claimed is there for checks after a program. */
static void a_claim_is_kept_while_a_program_runs(void **state)
{
    const struct completion_callback callbacks[] = { { "w", says_done, (void *)"" } };
    assert_int_equal(make("{command: [p]}", callbacks, 1, NULL), 0);
    struct told t = { 0 };
    struct completion_check *x;
    char text[] = "done";
    struct completion_claim c = { .text = str_of(text), .stop_reason = text };
    completion_check(completion, &c, on_verdict, &t, &x);
    memset(text, 'x', 4);
    helper_prints(0, "");
    assert_true(t.times == 1 && t.complete);
}

static void a_cancelled_check_is_silent(void **state)
{
    rules("{command: [p]}");
    struct told one;
    struct told two;
    struct completion_check *x = begin(&one);
    begin(&two);
    completion_cancel(x);
    assert_true(helpers[0].cancelled && !helpers[1].cancelled);
    completion = completion_free(completion);
    assert_true(helpers[1].cancelled);
    helper_ends(1, HELPER_CANCELLED, 0, "", "");
    helper_ends(0, HELPER_CANCELLED, 0, "", "");
    assert_true(one.times == 0 && two.times == 0);
}

/* --- what makes no sense --- */

static void senseless_rules_are_refused(void **state)
{
    static const char *const rows[][2] = {
        { "{files: a}", "task.yaml:1:1: completion: 'files' must be a list" },
        { "{files: [../a]}", "'../a' is not in the workspace" },
        { "{files: [/etc/a]}", "'/etc/a' is not in the workspace" },
        { "{files: ['']}", "'' is not in the workspace" },
        { "{command: []}", "'command' must be a list" },
        { "{schema: {type: what}}", "completion: schema" },
        { "{session: {min: 1}}", "needs a 'slice'" },
        { "{session: {slice: a, min: 3, max: 2}}", "no number is" },
        { "{session: {slice: a, min: 0}}", "this holds always" },
        { "{session: {slice: a, every: true}}", "'every' needs a 'where'" },
        { "{session: {slice: a, where: {status: x}}}", "must begin with '/'" },
        { "{session: {slice: a, where: []}}", "'where' must be a map" },
        { "{all: [{}]}", "all[0]: checks nothing" },
        { "{any: [{files: [a]}, {all: [{timeout: 3}]}]}", "any[1]: all[0]: checks nothing" },
        { "{any: {files: [a]}}", "must be lists" },
        { "{max_rounds: 1001}", "'max_rounds' must be between 0 and 1000" },
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
        CASE(without_rules_all_is_done),
        CASE(files_must_be_there),
        CASE(without_a_workspace_no_file_is_there),
        CASE(a_command_must_exit_with_0),
        CASE(of_long_output_the_end_is_told),
        CASE(without_a_host_there_is_nothing_to_say),
        CASE(a_schema_must_fit),
        CASE(a_schema_may_be_in_a_file),
        CASE(a_predicate_counts),
        CASE(every_item_may_be_meant),
        CASE(all_ends_with_the_first_that_fails),
        CASE(any_ends_with_the_first_that_holds),
        CASE(empty_groups_hold),
        CASE(members_of_a_map_must_all_hold),
        CASE(groups_nest_and_wait),
        CASE(words_of_a_group_that_holds_are_dropped),
        CASE(checks_in_c),
        CASE(a_claim_is_kept_while_a_program_runs),
        CASE(a_cancelled_check_is_silent),
        CASE(senseless_rules_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
