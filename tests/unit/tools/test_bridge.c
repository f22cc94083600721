/* SPDX-License-Identifier: MIT
 *
 * The bridge with handlers that behave in every way, on real transactions: files in a private copy
 * of a directory, state in a session. Policies and feedback are played by this file.
 */
#include "tools/bridge.h"

#include "../workspace/scene.h"
#include "base/json.h"
#include "io/loop.h"
#include "io/timer.h"
#include "tools/feedback.h"
#include "tools/guard.h"
#include "tools/session.h"
#include "workspace/txn.h"

struct seen {
    int done;
    bool is_error;
    enum tool_failure failure;
    char text[BRIDGE_TEXT_MAX + 1];
    char feedback[64];
    char structured[256];
    char content[256];
    int progress;
};

struct world {
    struct scene *s;
    struct loop *loop;
    struct session *session;
    struct txns *txns;
    struct bridge *b;
    int ws_fd;
    struct err e;
    /* what the parts around it do */
    nsec left;
    int admit;
    bool deny, guard_later, guard_broken;
    bool feedback_later;
    /* what they saw */
    int checks, notes, feedbacks, began, invoked, idle;
    int started, cancelled; /* of handlers */
    struct bridge_record last;
    char last_message[600], last_id[64], last_policy[64];
    struct tool_run *held[BRIDGE_CALLS_MAX + 8];
    int n_held;
};

static struct world *world; /* one test at a time */

/* --- the parts around the bridge --- */

struct guard_check {
    void (*decided)(void *arg, const struct guard_decision *d);
    void *arg;
};
static struct guard_check the_check;

static void decide(void *unused)
{
    (void)unused;
    struct guard_decision d = { !world->deny, STR("no_way"), STR("not today") };
    if (the_check.decided != NULL) {
        the_check.decided(the_check.arg, &d);
    }
}

void guard_check(struct guard *g, const struct guard_call *call,
                 void (*decided)(void *arg, const struct guard_decision *d), void *arg,
                 struct guard_check **ret)
{
    (void)g;
    assert_true(call->arguments != NULL && call->call_id.len > 0);
    world->checks++;
    the_check = (struct guard_check) { decided, arg };
    *ret = world->guard_later ? &the_check : NULL;
    if (!world->guard_later) {
        decide(NULL);
    }
}

void guard_cancel(struct guard_check *c)
{
    c->decided = NULL;
}

int guard_note(struct guard *g, const struct guard_call *call, struct session_txn *t, struct err *e)
{
    (void)g;
    world->notes++;
    if (world->guard_broken) {
        return ERR(e, ERR_CONFIG, "cannot remember");
    }
    CLEANUP(arena) struct arena *a = arena_new();
    return session_txn_dispatch(t, STR("policy:test"), json_string(a, call->tool), e);
}

struct feedback_round {
    void (*say)(void *arg, struct str text);
    void *arg;
};
static struct feedback_round the_round;

static void speak(void *unused)
{
    (void)unused;
    if (the_round.say != NULL) {
        the_round.say(the_round.arg, STR("hurry up"));
    }
}

void feedback_after(struct feedback *f, const struct feedback_call *call,
                    void (*say)(void *arg, struct str text), void *arg, struct feedback_round **ret)
{
    (void)f;
    (void)call;
    world->feedbacks++;
    the_round = (struct feedback_round) { say, arg };
    *ret = world->feedback_later ? &the_round : NULL;
    if (!world->feedback_later) {
        speak(NULL);
    }
}

void feedback_cancel(struct feedback_round *x)
{
    x->say = NULL;
}

static int admit(void *arg, nsec *ret_left, struct err *e)
{
    (void)arg;
    *ret_left = world->left;
    return world->admit == 0 ? 0 : ERR(e, (enum err_code)world->admit, "used up");
}

static void began(void *arg, struct str name, struct str call_id)
{
    (void)arg;
    (void)name;
    assert_true(call_id.len > 0);
    world->began++;
}

static void invoked(void *arg, const struct bridge_record *r)
{
    (void)arg;
    world->invoked++;
    world->last = *r;
    (void)snprintf(world->last_message, sizeof world->last_message, "%.*s", STR_ARG(r->message));
    (void)snprintf(world->last_id, sizeof world->last_id, "%.*s", STR_ARG(r->call_id));
    (void)snprintf(world->last_policy, sizeof world->last_policy, "%.*s", STR_ARG(r->policy));
}

static void on_idle(void *arg)
{
    (void)arg;
    world->idle++;
    assert_false(bridge_busy(world->b));
}

/* --- handlers: the tool's own name says what they do --- */

static void write_file(const struct tool_run *run, const char *name, const char *text)
{
    assert_non_null(run->cwd);
    put(world->s, arena_printf(world->s->arena, "%s/%s", run->cwd, name), text);
}

static struct json *parse(struct arena *a, const char *text)
{
    struct json *v;
    struct err e;
    if (json_parse(a, str_of(text), NULL, &v, &e) < 0) {
        fail_msg("%s: %s", text, e.msg);
    }
    return v;
}

static void give(struct tool_run *run, enum tool_failure f, const char *message, const char *value,
                 const char *state)
{
    struct tool_result r = { .failure = f, .message = str_of(message) };
    r.value = value == NULL ? NULL : parse(run->arena, value);
    r.state = state == NULL ? NULL : parse(run->arena, state);
    tool_run_done(run, &r);
}

/* The arguments of every tool: {message, value, success, state, write: {name: text}, exclude}. */
static void do_as_told(struct tool_run *run)
{
    const struct json *a = run->arguments;
    const struct json *files = json_get(a, "write");
    for (size_t i = 0; i < json_len(files); i++) {
        write_file(run, files->object.members[i].key.ptr,
                   json_cstring(files->object.members[i].value, ""));
    }
    tool_run_progress(run, 1, 2, STR("half"));
    struct tool_result r = {
        .failure = json_bool(json_get(a, "success"), true) ? TOOL_OK : TOOL_FAILED,
        .message = json_str(json_get(a, "message"), STR_EMPTY),
        .value = json_get(a, "value"),
        .state = json_get(a, "state"),
        .content = json_get(a, "content"),
        .exclude_value = json_bool(json_get(a, "exclude"), false),
    };
    tool_run_done(run, &r);
}

static void start_now(void *self, struct tool_run *run)
{
    (void)self;
    world->started++;
    do_as_told(run);
}

static void start_held(void *self, struct tool_run *run)
{
    (void)self;
    world->started++;
    world->held[world->n_held++] = run;
}

static void start_posted(void *self, struct tool_run *run)
{
    (void)self;
    world->started++;
    loop_post(world->loop, (void (*)(void *))do_as_told, run);
}

static void cancel_held(void *self, struct tool_run *run)
{
    (void)self;
    world->cancelled++;
    write_file(run, "too-late", "x");
    give(run, TOOL_OK, "I did it nevertheless", NULL, NULL);
}

static void cancel_ignored(void *self, struct tool_run *run)
{
    (void)self;
    (void)run;
    world->cancelled++;
}

static const struct tool_handler now = { "callback", start_now, NULL, NULL };
static const struct tool_handler posted = { "callback", start_posted, NULL, NULL };
static const struct tool_handler held = { "callback", start_held, cancel_held, NULL };
static const struct tool_handler deaf = { "callback", start_held, cancel_ignored, NULL };
static const struct tool_handler mute = { "callback", start_held, NULL, NULL };

static void add(struct world *w, const char *name, const char *more,
                const struct tool_handler *handler)
{
    struct tool t;
    CLEANUP(arena) struct arena *a = arena_new();
    char text[1024];
    (void)snprintf(text, sizeof text,
                   "{\"name\":\"%s\",\"description\":\"d\",\"input_schema\":{\"properties\":"
                   "{\"message\":{},\"value\":{},\"success\":{\"type\":\"boolean\"},\"state\":{},"
                   "\"write\":{},\"exclude\":{},\"content\":{}}}%s}",
                   name, more);
    assert_ok(tool_define(a, parse(a, text), &t, &w->e), &w->e);
    t.handler = handler;
    assert_ok(bridge_add(w->b, &t, &w->e), &w->e);
}

/* --- a world and calls in it --- */

static void open_world(struct world *w, struct scene *s, bool guarded)
{
    *w = (struct world) { .s = s, .left = INT64_MAX };
    world = w;
    the_check = (struct guard_check) { 0 };
    the_round = (struct feedback_round) { 0 };
    assert_ok(loop_new(&w->loop, &w->e), &w->e);
    w->session = session_new(&(struct session_opts) { .id = STR("s"), .journal_fd = -1 });
    put(s, "ws/a", "1");
    w->ws_fd = open_dir(s, "ws");
    struct txns_opts o = { .workspace_fd = w->ws_fd, .dir = at(s, "private") };
    assert_ok(txns_open(&o, &w->txns, &w->e), &w->e);
    w->b = bridge_new(&(struct bridge_opts) {
        .loop = w->loop,
        .session = w->session,
        .txns = w->txns,
        .guard = guarded ? (struct guard *)w : NULL,
        .feedback = guarded ? (struct feedback *)w : NULL,
        .admit = admit,
        .began = began,
        .invoked = invoked,
        .idle = on_idle,
        .prompt_name = "demo",
        .arg = w,
    });
    add(w, "now", "", &now);
    add(w, "later", "", &posted);
    add(w, "held", "", &held);
}

static void close_world(struct world *w)
{
    w->b = bridge_free(w->b);
    assert_int_equal(txns_active(w->txns), 0);
    w->txns = txns_close(w->txns);
    w->session = session_free(w->session);
    (void)close(w->ws_fd);
    w->loop = loop_free(w->loop);
    bool empty = false;
    assert_int_equal(file_dir_is_empty(AT_FDCWD, at(w->s, "private"), &empty, NULL), 0);
    assert_true(empty);
}

static void copy_text(char *to, size_t size, struct str text)
{
    assert_true(text.len < size);
    if (text.len > 0) {
        memcpy(to, text.ptr, text.len);
    }
    to[text.len] = '\0';
}

static void copy_json(char *to, size_t size, const struct json *v)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    assert_int_equal(json_write(v, JSON_COMPACT, &text, NULL), 0);
    copy_text(to, size, v == NULL ? STR_EMPTY : buf_str(&text));
}

static void on_done(void *arg, const struct bridge_answer *a)
{
    struct seen *s = arg;
    s->done++;
    s->is_error = a->is_error;
    s->failure = a->failure;
    assert_int_equal(a->is_error, a->failure != TOOL_OK);
    copy_text(s->text, sizeof s->text, a->text);
    copy_text(s->feedback, sizeof s->feedback, a->feedback);
    copy_json(s->structured, sizeof s->structured, a->structured);
    copy_json(s->content, sizeof s->content, a->content);
}

static void on_progress(void *arg, double progress, double total, struct str message)
{
    struct seen *s = arg;
    assert_true(progress == 1 && total == 2 && str_eqc(message, "half"));
    s->progress++;
}

static struct bridge_call *call(struct world *w, const char *name, const char *arguments,
                                struct seen *s)
{
    struct bridge_call *c = NULL;
    CLEANUP(arena) struct arena *a = arena_new();
    *s = (struct seen) { 0 };
    bridge_call(w->b,
                &(struct bridge_request) { .name = str_of(name),
                                           .arguments = parse(a, arguments),
                                           .done = on_done,
                                           .progress = on_progress,
                                           .arg = s },
                &c);
    assert_true((c == NULL) == (s->done == 1));
    return c;
}

static size_t remembered(struct world *w)
{
    return session_len(w->session, NULL, STR("ToolInvoked"));
}

/* --- the tests --- */

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
    assert_string_equal(s.text, "{\"n\":1}");
    assert_string_equal(s.feedback, "hurry up");
    assert_string_equal(s.structured, "");
    assert_int_equal(s.progress, 1);
    assert_string_equal(text_of(w.s, "ws/a"), "2");
    assert_string_equal(text_of(w.s, "ws/d/new"), "3");
    assert_int_equal(session_len(w.session, NULL, STR("plan")), 1);
    assert_int_equal(session_len(w.session, NULL, STR("policy:test")), 1);
    assert_int_equal(w.began, 1);
    assert_int_equal(w.checks, 1);
    assert_int_equal(w.notes, 1);
    assert_int_equal(w.invoked, 1);
    assert_int_equal(w.last.files, 2);
    assert_string_equal(w.last_message, "m");
    assert_int_equal(strlen(w.last_id), 36); /* made up */
    const struct json *log = session_latest(w.session, NULL, STR("ToolInvoked"));
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
        assert_int_equal(session_len(w.session, NULL, STR("plan")), 0);
        assert_int_equal(session_len(w.session, NULL, STR("policy:test")), 0);
        assert_int_equal(w.last.files, 0);
        assert_int_equal(remembered(&w), i + 1);
        const struct json *log = session_latest(w.session, NULL, STR("ToolInvoked"));
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
    assert_int_equal(session_len(w.session, NULL, STR("plan")), 1);
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
    assert_int_equal(session_len(w.session, w.held[1]->session, STR("plan")), 0);
    give(w.held[1], TOOL_FAILED, "no", NULL, NULL);
    assert_string_equal(text_of(w.s, "ws/x"), "first"); /* undoing one leaves the other alone */
    assert_false(there(w.s, "ws/y"));
    give(w.held[2], TOOL_OK, "", NULL, "[{\"op\":\"clear\",\"slice\":\"plan\"}]");
    assert_int_equal(s[2].failure, TOOL_CONFLICT);
    assert_non_null(strstr(s[2].text, "'x' was changed by something else"));
    assert_non_null(strstr(s[2].text, "try again"));
    assert_string_equal(text_of(w.s, "ws/x"), "first");
    assert_int_equal(session_len(w.session, NULL, STR("plan")), 1);
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

/* The time is over: of the tool, or of the run. */
static void test_timeout(void **state)
{
    struct world w;
    struct seen s;
    open_world(&w, *state, false);
    add(&w, "short", ",\"timeout\":0.05", &held);
    call(&w, "short", "{}", &s);
    assert_true(w.held[0]->timeout == 50 * NSEC_PER_MS);
    write_file(w.held[0], "a", "2");
    loop_run(w.loop);
    assert_int_equal(s.failure, TOOL_TIMEOUT);
    assert_non_null(strstr(s.text, "longer than 0.05 s"));
    assert_int_equal(w.cancelled, 1);
    assert_string_equal(text_of(w.s, "ws/a"), "1");
    w.left = 30 * NSEC_PER_MS;
    call(&w, "held", "{}", &s);
    assert_true(w.held[1]->timeout == 30 * NSEC_PER_MS);
    loop_run(w.loop);
    assert_int_equal(s.failure, TOOL_TIMEOUT);
    close_world(&w);
}

/* A handler that cannot be stopped does not hold up the model, and never commits. */
static void test_left_behind(void **state)
{
    struct world w;
    struct seen s;
    open_world(&w, *state, false);
    add(&w, "mute", ",\"timeout\":0.01", &mute);
    call(&w, "mute", "{}", &s);
    write_file(w.held[0], "a", "2");
    loop_run(w.loop);
    assert_int_equal(s.failure, TOOL_TIMEOUT);
    assert_int_equal(s.done, 1);
    assert_true(bridge_busy(w.b));
    assert_int_equal(txns_active(w.txns), 1); /* it still works there */
    give(w.held[0], TOOL_OK, "at last", NULL, "[{\"op\":\"append\",\"slice\":\"p\",\"value\":1}]");
    assert_int_equal(s.done, 1);
    assert_int_equal(w.invoked, 1);
    assert_false(bridge_busy(w.b));
    assert_int_equal(txns_active(w.txns), 0);
    assert_string_equal(text_of(w.s, "ws/a"), "1");
    assert_int_equal(session_len(w.session, NULL, STR("p")), 0);
    add(&w, "deaf", "", &deaf);
    call(&w, "deaf", "{}", &s); /* bridge_free() forgets it */
    bridge_stop(w.b);
    assert_int_equal(w.cancelled, 1);
    assert_int_equal(s.done, 0);
    w.b = bridge_free(w.b);
    assert_int_equal(s.failure, TOOL_CANCELLED);
    close_world(&w);
}

static void test_queue(void **state)
{
    struct world w;
    struct seen *s = xcalloc(BRIDGE_CALLS_MAX + BRIDGE_QUEUE_MAX + 1, sizeof *s);
    open_world(&w, *state, false);
    struct bridge_call *third = NULL;
    for (int i = 0; i < BRIDGE_CALLS_MAX + BRIDGE_QUEUE_MAX; i++) {
        struct bridge_call *c =
            call(&w, i < BRIDGE_CALLS_MAX ? "held" : "now", "{\"message\":\"m\"}", &s[i]);
        third = i == BRIDGE_CALLS_MAX + 2 ? c : third;
    }
    struct seen *refused = &s[BRIDGE_CALLS_MAX + BRIDGE_QUEUE_MAX];
    assert_int_equal(w.started, BRIDGE_CALLS_MAX);
    call(&w, "now", "{}", refused);
    assert_int_equal(refused->failure, TOOL_INTERNAL);
    assert_non_null(strstr(refused->text, "too many calls"));
    bridge_cancel(third);
    assert_int_equal(s[BRIDGE_CALLS_MAX + 2].failure, TOOL_CANCELLED);
    give(w.held[5], TOOL_OK, "", NULL, NULL);
    loop_post(w.loop, (void (*)(void *))loop_stop, w.loop);
    loop_run(w.loop);
    assert_int_equal(w.started, BRIDGE_CALLS_MAX + BRIDGE_QUEUE_MAX - 1);
    assert_int_equal(s[BRIDGE_CALLS_MAX + BRIDGE_QUEUE_MAX - 1].done, 1);
    call(&w, "now", "{\"message\":\"m\"}", refused); /* there is room again, and no queue */
    assert_int_equal(refused->done, 1);
    assert_int_equal(refused->failure, TOOL_OK);
    bridge_stop(w.b);
    assert_int_equal(w.cancelled, BRIDGE_CALLS_MAX - 1);
    assert_false(bridge_busy(w.b));
    loop_run(w.loop);
    assert_int_equal(w.idle, 1);
    call(&w, "now", "{}", &s[0]);
    assert_int_equal(s[0].failure, TOOL_CANCELLED);
    assert_int_equal(w.invoked, BRIDGE_CALLS_MAX + BRIDGE_QUEUE_MAX + 3);
    close_world(&w);
    free(s);
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
        SCENE_TEST(test_timeout),
        SCENE_TEST(test_left_behind),
        SCENE_TEST(test_queue),
        SCENE_TEST(test_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
