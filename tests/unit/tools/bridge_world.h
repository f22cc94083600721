/* SPDX-License-Identifier: MIT
 *
 * A world for tests of the bridge: a directory with real transactions, a session, handlers that do
 * as their arguments say, and policies and feedback that are played here.
 */
#pragma once

#include "../workspace/scene.h"
#include "base/json.h"
#include "guard/feedback.h"
#include "guard/guard.h"
#include "io/loop.h"
#include "io/timer.h"
#include "record/state_store.h"
#include "tools/bridge.h"
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
    struct state_store *session;
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

static inline void decide(void *unused)
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

int guard_note(struct guard *g, const struct guard_call *call, struct store_txn *t, struct err *e)
{
    (void)g;
    world->notes++;
    if (world->guard_broken) {
        return ERR(e, ERR_CONFIG, "cannot remember");
    }
    CLEANUP(arena) struct arena *a = arena_new();
    return store_txn_dispatch(t, STR("policy:test"), json_string(a, call->tool), e);
}

struct feedback_round {
    void (*say)(void *arg, struct str text);
    void *arg;
};
static struct feedback_round the_round;

static inline void speak(void *unused)
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

static inline int admit(void *arg, nsec *ret_left, struct err *e)
{
    (void)arg;
    *ret_left = world->left;
    return world->admit == 0 ? 0 : ERR(e, (enum err_code)world->admit, "used up");
}

static inline void began(void *arg, struct str name, struct str call_id)
{
    (void)arg;
    (void)name;
    assert_true(call_id.len > 0);
    world->began++;
}

static inline void invoked(void *arg, const struct bridge_record *r)
{
    (void)arg;
    world->invoked++;
    world->last = *r;
    (void)snprintf(world->last_message, sizeof world->last_message, "%.*s", STR_ARG(r->message));
    (void)snprintf(world->last_id, sizeof world->last_id, "%.*s", STR_ARG(r->call_id));
    (void)snprintf(world->last_policy, sizeof world->last_policy, "%.*s", STR_ARG(r->policy));
}

static inline void on_idle(void *arg)
{
    (void)arg;
    world->idle++;
    assert_false(bridge_busy(world->b));
}

/* --- handlers: the tool's own name says what they do --- */

static inline void write_file(const struct tool_run *run, const char *name, const char *text)
{
    assert_non_null(run->cwd);
    put(world->s, arena_printf(world->s->arena, "%s/%s", run->cwd, name), text);
}

static inline struct json *parse(struct arena *a, const char *text)
{
    struct json *v;
    struct err e;
    if (json_parse(a, str_of(text), NULL, &v, &e) < 0) {
        fail_msg("%s: %s", text, e.msg);
    }
    return v;
}

static inline void give(struct tool_run *run, enum tool_failure f, const char *message,
                        const char *value, const char *state)
{
    struct tool_result r = { .failure = f, .message = str_of(message) };
    r.value = value == NULL ? NULL : parse(run->arena, value);
    r.state = state == NULL ? NULL : parse(run->arena, state);
    tool_run_done(run, &r);
}

/* The arguments of every tool: {message, value, success, state, write: {name: text}, exclude}. */
static inline void do_as_told(struct tool_run *run)
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

static inline void start_now(void *self, struct tool_run *run)
{
    (void)self;
    world->started++;
    do_as_told(run);
}

static inline void start_held(void *self, struct tool_run *run)
{
    (void)self;
    world->started++;
    world->held[world->n_held++] = run;
}

static inline void start_posted(void *self, struct tool_run *run)
{
    (void)self;
    world->started++;
    loop_post(world->loop, (void (*)(void *))do_as_told, run);
}

static inline void cancel_held(void *self, struct tool_run *run)
{
    (void)self;
    world->cancelled++;
    write_file(run, "too-late", "x");
    give(run, TOOL_OK, "I did it nevertheless", NULL, NULL);
}

static inline void cancel_ignored(void *self, struct tool_run *run)
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

static inline void add(struct world *w, const char *name, const char *more,
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

static inline void open_world(struct world *w, struct scene *s, bool guarded)
{
    *w = (struct world) { .s = s, .left = INT64_MAX };
    world = w;
    the_check = (struct guard_check) { 0 };
    the_round = (struct feedback_round) { 0 };
    assert_ok(loop_new(&w->loop, &w->e), &w->e);
    w->session = store_new(&(struct store_opts) { .id = STR("s"), .journal_fd = -1 });
    put(s, "ws/a", "1");
    w->ws_fd = open_dir(s, "ws");
    struct txns_opts o = { .workspace_fd = w->ws_fd, .dir = at(s, "private"), .layers_fd = -1 };
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
        .grace = 20 * NSEC_PER_MS,
        .arg = w,
    });
    add(w, "now", "", &now);
    add(w, "later", "", &posted);
    add(w, "held", "", &held);
}

static inline void close_world(struct world *w)
{
    w->b = bridge_free(w->b);
    assert_int_equal(txns_active(w->txns), 0);
    w->txns = txns_close(w->txns);
    w->session = store_free(w->session);
    (void)close(w->ws_fd);
    w->loop = loop_free(w->loop);
    bool empty = false;
    assert_int_equal(file_dir_is_empty(AT_FDCWD, at(w->s, "private"), &empty, NULL), 0);
    assert_true(empty);
}

static inline void copy_text(char *to, size_t size, struct str text)
{
    assert_true(text.len < size);
    if (text.len > 0) {
        memcpy(to, text.ptr, text.len);
    }
    to[text.len] = '\0';
}

static inline void copy_json(char *to, size_t size, const struct json *v)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    assert_int_equal(json_write(v, JSON_COMPACT, &text, NULL), 0);
    copy_text(to, size, v == NULL ? STR_EMPTY : buf_str(&text));
}

static inline void on_done(void *arg, const struct bridge_answer *a)
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

static inline void on_progress(void *arg, double progress, double total, struct str message)
{
    struct seen *s = arg;
    assert_true(progress == 1 && total == 2 && str_eqc(message, "half"));
    s->progress++;
}

static inline struct bridge_call *call(struct world *w, const char *name, const char *arguments,
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

static inline size_t remembered(struct world *w)
{
    return store_len(w->session, NULL, STR("ToolInvoked"));
}
