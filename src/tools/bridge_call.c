/* SPDX-License-Identifier: MIT
 *
 * The way of a call: bridge_call() → admit() → on_decided() → start() → tool_run_done() →
 * conclude() → answer(). Whatever goes wrong on the way leads to conclude() at once, so that there
 * is one place where things are undone, recorded and told.
 */
#include <stdarg.h>
#include <stdlib.h>

#include "base/id.h"
#include "base/json.h"
#include "base/macro.h"
#include "data/schema.h"
#include "guard/feedback.h"
#include "guard/guard.h"
#include "io/loop.h"
#include "io/timer.h"
#include "record/state_store.h"
#include "tools/bridge_priv.h"
#include "tools/tool_state.h"
#include "workspace/txn.h"

/* Handlers that keep the time themselves know more about why: they come first. */
#define SLACK (100 * NSEC_PER_MS)

/* Of arguments that do not fit, for the model. */
enum { REASONS_MAX = 8 << 10 };

static struct bridge_call *call_of(struct tool_run *run)
{
    return CONTAINER_OF(run, struct bridge_call, run);
}

/* --- the end --- */

static void leave(struct bridge_call *c)
{
    c->phase = CALL_DONE;
    if (c->txn != NULL) {
        c->txn = txn_rollback(c->txn);
    }
    bridge_unlink(c);
    loop_retire(c->b->opts.loop, bridge_call_destroy, c);
}

void bridge_call_lose(struct bridge_call *c)
{
    struct bridge *b = c->b;
    c->phase = CALL_LOST;
    c->txn = txn_rollback(c->txn);
    bridge_unlink(c);
    c->prev = NULL;
    c->next = b->lost;
    if (b->lost != NULL) {
        b->lost->prev = c;
    }
    b->lost = c;
}

/* Its handler has ended after all. */
static void bury(struct bridge_call *c)
{
    struct bridge *b = c->b;
    *(c->prev != NULL ? &c->prev->next : &b->lost) = c->next;
    if (c->next != NULL) {
        c->next->prev = c->prev;
    }
    c->phase = CALL_DONE;
    loop_retire(b->opts.loop, bridge_call_destroy, c);
}

static void answer(struct bridge_call *c)
{
    const struct bridge_request *r = &c->request;
    if (!c->working) {
        leave(c);
    } else if (c->b->stopped) {
        bridge_call_lose(c);
    } else {
        c->phase = CALL_ABANDONED;
    }
    r->done(r->arg, &c->answer); /* the call is still there: its memory goes from the loop */
}

static void on_feedback(void *arg, struct str text)
{
    struct bridge_call *c = arg;
    c->round = NULL;
    c->answer.feedback = arena_str(c->arena, bridge_text(c->arena, text));
    answer(c);
}

static void ask_feedback(struct bridge_call *c)
{
    const struct bridge *b = c->b;
    const struct bridge_record *r = &c->record;
    struct feedback_round *round = NULL;
    c->phase = CALL_FEEDBACK;
    if (b->opts.feedback == NULL || b->stopped || r->tool == NULL || r->tool->quiet ||
        r->failure == TOOL_CANCELLED) {
        answer(c);
        return;
    }
    struct feedback_call call = { .tool = r->name,
                                  .arguments = r->arguments,
                                  .success = r->failure == TOOL_OK };
    feedback_after(b->opts.feedback, &call, on_feedback, c, &round);
    if (c->phase == CALL_FEEDBACK) {
        c->round = round;
    }
}

/* In the call's own transaction if it has one: it is written to the journal together with the
 * rest, and a LOG stays after an abort. */
static int remember(struct bridge_call *c, struct err *e)
{
    const struct bridge_opts *o = &c->b->opts;
    CLEANUP(arena) struct arena *a = arena_new();
    struct store_txn *t = TAKE_PTR(c->session);
    struct json *v = bridge_record_json(a, &c->record);
    if (o->prompt_name != NULL) {
        json_setc(a, v, "prompt_name", json_cstr(a, o->prompt_name));
    }
    if (o->adapter != NULL) {
        json_setc(a, v, "adapter", json_cstr(a, o->adapter));
    }
    if (t == NULL) {
        return store_dispatch(o->session, STR("ToolInvoked"), v, e);
    }
    int r = store_txn_dispatch(t, STR("ToolInvoked"), v, e);
    if (r == 0 && c->record.failure == TOOL_OK) {
        return store_commit(t, e);
    }
    int aborted = store_abort(t, r < 0 ? NULL : e);
    return r < 0 ? r : aborted;
}

/* An outcome that is a message and nothing else. */
static void say(struct bridge_call *c, enum tool_failure f, struct str message)
{
    struct bridge_record *r = &c->record;
    r->failure = f;
    r->message = arena_str(c->arena, bridge_text(c->arena, message));
    r->text = r->message;
    r->value = NULL;
    c->answer = (struct bridge_answer) { 0 };
}

/* The outcome is in the record: undone is what must be, remembered what was, and then it is told.
 */
static void conclude(struct bridge_call *c)
{
    struct err e;
    const struct bridge_opts *o = &c->b->opts;
    struct bridge_record *r = &c->record;
    c->phase = CALL_BUSY;
    if (!c->working && c->txn != NULL) {
        c->txn = txn_rollback(c->txn); /* what was committed is gone from here */
    }
    c->timer = timer_free(c->timer);
    r->took = clock_now() - c->began;
    if (remember(c, &e) < 0 && r->failure == TOOL_OK) {
        say(c, TOOL_INTERNAL,
            str_of(arena_printf(c->arena, "the session could not be saved: %s", e.msg)));
    }
    c->answer.failure = r->failure;
    c->answer.is_error = r->failure != TOOL_OK;
    c->answer.text = r->text;
    if (o->invoked != NULL) {
        o->invoked(o->arg, r);
    }
    r->value = NULL; /* was borrowed */
    ask_feedback(c);
}

PRINTF_LIKE(3, 4)
static void fail(struct bridge_call *c, enum tool_failure f, const char *fmt, ...)
{
    va_list ap;
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    va_start(ap, fmt);
    (void)!buf_vprintf(&text, NULL, fmt, ap);
    va_end(ap);
    say(c, f, buf_str(&text));
    conclude(c);
}

/* --- what the handler says --- */

/* Whether the value fits; `why` says what does not. */
static bool fits(struct schema *s, const struct json *value, struct arena *a, struct buf *why)
{
    struct err e;
    struct schema_result r;
    if (schema_validate(s, value, NULL, a, &r, &e) < 0) {
        buf_addf(why, "it could not be checked: %s", e.msg);
        return false;
    }
    if (!r.valid) {
        (void)!schema_result_write(&r, why, NULL); /* at most shortened */
        why->len = str_trim(buf_str(why)).len;
    }
    return r.valid;
}

static int check_output(struct bridge_call *c, const struct json *value, struct err *e)
{
    const struct tool *t = c->record.tool;
    CLEANUP(buf) struct buf why = BUF_INIT(REASONS_MAX);
    if (t->output == NULL) {
        return 0;
    }
    if (!fits(t->output, value == NULL ? json_null(c->arena) : value, c->arena, &why)) {
        return ERR(e, ERR_CONFIG, "its value does not fit the output schema: %.*s",
                   STR_ARG(buf_str(&why)));
    }
    return 0;
}

static struct guard_call guard_call_of(const struct bridge_call *c)
{
    const struct bridge_record *r = &c->record;
    return (struct guard_call) {
        .tool = r->name,
        .section = r->tool->section,
        .arguments = r->arguments,
        .call_id = r->call_id,
    };
}

static int commit_files(struct bridge_call *c, enum tool_failure *why, struct err *e)
{
    struct txn_report report;
    if (c->txn == NULL) {
        return 0;
    }
    int r = txn_commit(TAKE_PTR(c->txn), &report, e);
    if (r == -ERR_EXISTS) {
        *why = TOOL_CONFLICT;
        return ERR(e, ERR_EXISTS,
                   "'%s' was changed by something else while the tool was working on it; nothing "
                   "of this call was kept: look at the file again, then try again",
                   report.conflict);
    }
    c->record.files = r < 0 ? 0 : report.files + report.removed;
    return r;
}

/* What the model reads: the message, then the rendered value. */
static struct str message_and_value(struct arena *a, const struct tool_result *result,
                                    struct str value)
{
    struct str message = result->message;
    if (result->exclude_value || value.len == 0) {
        return message;
    }
    if (str_trim(message).len == 0 || str_eq(message, value)) {
        return value;
    }
    return str_of(arena_printf(a, "%.*s\n%.*s", STR_ARG(message), STR_ARG(value)));
}

/* Everything that may still turn a success into a failure; the last of it is the commit. */
static int accept(struct bridge_call *c, const struct tool_result *result, enum tool_failure *why,
                  struct err *e)
{
    const struct bridge_opts *o = &c->b->opts;
    const struct tool *t = c->record.tool;
    struct json *content = NULL;
    struct str text;
    *why = TOOL_BAD_OUTPUT;
    int r = tool_state_apply(c->session, result->state, e);
    r = r < 0 ? r : check_output(c, result->value, e);
    if (r == 0 && result->content != NULL) {
        r = bridge_content(c->arena, result->content, &content, &c->record.text, e);
    }
    if (r < 0) {
        return r;
    }
    *why = TOOL_FLOOD;
    r = tool_render_bounded(c->arena, result->value, t->max_output, &text, e);
    if (r < 0) {
        return r;
    }
    *why = TOOL_INTERNAL;
    struct guard_call call = guard_call_of(c);
    r = o->guard == NULL ? 0 : guard_note(o->guard, &call, c->session, e);
    r = r < 0 ? r : commit_files(c, why, e);
    if (r < 0) {
        return r;
    }
    if (content == NULL) {
        struct str shown = message_and_value(c->arena, result, text);
        c->record.text = arena_str(c->arena, bridge_text(c->arena, shown));
    }
    c->answer.content = content;
    c->answer.structured = tool_structured(c->arena, t, result->value);
    return 0;
}

/* A failure as the handler tells it: what went wrong, then what it gave nevertheless. */
static void tell_failure(struct bridge_call *c, const struct tool_result *result)
{
    struct str message = result->message, text;
    if (message.len == 0) {
        message = str_of(tool_failure_word(result->failure));
    }
    say(c, result->failure, message);
    if (tool_render_bounded(c->arena, result->value, BRIDGE_TEXT_MAX, &text, NULL) == 0) {
        c->record.value = result->value;
        struct tool_result both = { .message = c->record.message,
                                    .exclude_value = result->exclude_value };
        c->record.text = bridge_text(c->arena, message_and_value(c->arena, &both, text));
    }
    struct json *content;
    if (result->content != NULL &&
        bridge_content(c->arena, result->content, &content, &c->record.text, NULL) == 0) {
        c->answer.content = content;
    }
    conclude(c);
}

static void tell_end(struct bridge_call *c)
{
    if (c->cause == TOOL_TIMEOUT) {
        fail(c, TOOL_TIMEOUT,
             "the tool took longer than %g s and was stopped; nothing of it was "
             "kept",
             (double)(c->run.timeout / NSEC_PER_MS) / 1000);
    } else {
        fail(c, c->cause, "the call was cancelled; nothing of it was kept");
    }
}

void tool_run_done(struct tool_run *run, const struct tool_result *result)
{
    struct bridge_call *c = call_of(run);
    struct err e;
    enum tool_failure why;
    c->working = false;
    if (c->phase == CALL_LOST) {
        bury(c);
        return;
    }
    if (c->phase == CALL_ABANDONED) {
        leave(c);
        return;
    }
    if (c->phase == CALL_FEEDBACK) {
        c->txn = txn_rollback(c->txn); /* abandoned, and its answer is on the way */
        return;
    }
    c->record.exclude_value = result->exclude_value;
    c->record.leaked = result->leaked;
    if (c->cause != TOOL_OK) {
        tell_end(c);
    } else if (result->failure != TOOL_OK) {
        tell_failure(c, result);
    } else if (accept(c, result, &why, &e) < 0) {
        fail(c, why, "the tool '%.*s' has failed: %s", STR_ARG(c->record.name), e.msg);
    } else {
        c->record.failure = TOOL_OK;
        c->record.message = arena_str(c->arena, bridge_text(c->arena, result->message));
        c->record.value = result->value;
        conclude(c);
    }
}

void tool_run_progress(struct tool_run *run, double progress, double total, struct str message)
{
    struct bridge_call *c = call_of(run);
    if (c->phase == CALL_RUNNING && c->request.progress != NULL) {
        c->request.progress(c->request.arg, progress, total, message);
    }
}

/* --- ending early --- */

static void end(struct bridge_call *c, enum tool_failure cause)
{
    const struct tool *t = c->record.tool;
    c->cause = cause;
    c->phase = CALL_ENDING;
    if (t->handler->cancel == NULL) {
        tell_end(c);
        return;
    }
    nsec grace = c->b->opts.grace;
    timer_arm(c->timer, clock_now() + (grace == 0 ? BRIDGE_GRACE : grace));
    t->handler->cancel(t->self, &c->run); /* may be over when it returns */
}

static void on_timer(void *arg)
{
    struct bridge_call *c = arg;
    if (c->phase == CALL_RUNNING) {
        end(c, TOOL_TIMEOUT);
    } else if (c->phase == CALL_ENDING) {
        tell_end(c);
    }
}

void bridge_cancel(struct bridge_call *c)
{
    switch (c->phase) {
    case CALL_QUEUED:
        c->b->queued--;
        fail(c, TOOL_CANCELLED, "the call was cancelled before it started");
        return;
    case CALL_POLICY:
        if (c->check != NULL) {
            guard_cancel(TAKE_PTR(c->check));
            fail(c, TOOL_CANCELLED, "the call was cancelled before it started");
        }
        return;
    case CALL_RUNNING:
        end(c, TOOL_CANCELLED);
        return;
    case CALL_FEEDBACK: /* it is over already: only nobody waits for feedback */
        if (c->round != NULL) {
            feedback_cancel(TAKE_PTR(c->round));
            answer(c);
        }
        return;
    case CALL_BUSY:
    case CALL_ENDING:
    case CALL_ABANDONED:
    case CALL_LOST:
    case CALL_DONE:
        return;
    }
}

void bridge_call_forget(struct bridge_call *c)
{
    if (c->phase == CALL_ENDING) {
        tell_end(c); /* lost, as the bridge is stopped */
    } else {
        bridge_call_lose(c);
    }
}

/* --- the way to the handler --- */

/* The layer, or else the copy, in which a call works. */
static void find_place(struct bridge_call *c)
{
    const struct bridge_opts *o = &c->b->opts;
    if (c->txn == NULL) {
        return;
    }
    c->run.layer = o->layer == NULL ? txn_layer(c->txn) : o->layer(o->arg, c->arena, c->txn);
    c->run.cwd = c->run.layer == NULL ? txn_copy(c->txn) : NULL;
}

static void start(struct bridge_call *c, nsec left)
{
    struct err e;
    const struct bridge_opts *o = &c->b->opts;
    const struct tool *t = c->record.tool;
    int r = timer_new(o->loop, on_timer, c, &c->timer, &e);
    if (r == 0 && o->txns != NULL && !t->reads_only) {
        r = txn_begin(o->txns, &c->txn, &e);
    }
    if (r < 0) {
        fail(c, TOOL_INTERNAL, "the call could not start: %s", e.msg);
        return;
    }
    c->session = store_begin(o->session);
    c->run = (struct tool_run) {
        .tool = t,
        .call_id = c->record.call_id,
        .arguments = c->record.arguments,
        .meta = c->request.meta,
        .host = o->host,
        .session = c->session,
        .timeout = t->timeout < left ? t->timeout : left,
        .arena = c->arena,
    };
    find_place(c);
    c->phase = CALL_RUNNING;
    c->working = true;
    timer_arm(c->timer, clock_now() + c->run.timeout + SLACK);
    t->handler->start(t->self, &c->run); /* may be over when it returns */
}

static void on_decided(void *arg, const struct guard_decision *d)
{
    struct bridge_call *c = arg;
    const struct bridge_opts *o = &c->b->opts;
    struct err e;
    nsec left = INT64_MAX;
    c->check = NULL;
    c->phase = CALL_BUSY;
    if (!d->allowed) {
        c->record.policy = arena_str(c->arena, d->policy);
        fail(c, TOOL_DENIED, "%.*s",
             STR_ARG(d->reason.len > 0 ? d->reason : STR("Denied by policy.")));
        return;
    }
    int r = o->admit == NULL ? 0 : o->admit(o->arg, &left, &e);
    if (r == -ERR_TIMEOUT || (r == 0 && left <= 0)) {
        fail(c, TOOL_DEADLINE, "no time is left for this: finish now");
    } else if (r == -ERR_BUDGET) {
        fail(c, TOOL_BUDGET, "no budget is left for this: finish now");
    } else if (r < 0) {
        fail(c, TOOL_INTERNAL, "%s", e.msg);
    } else if (c->b->stopped) {
        fail(c, TOOL_CANCELLED, "the run has ended");
    } else {
        start(c, left);
    }
}

void bridge_call_admit(struct bridge_call *c)
{
    const struct bridge_opts *o = &c->b->opts;
    struct guard_check *check = NULL;
    c->phase = CALL_POLICY;
    if (o->guard == NULL) {
        on_decided(c, &(struct guard_decision) { .allowed = true });
        return;
    }
    struct guard_call call = guard_call_of(c);
    guard_check(o->guard, &call, on_decided, c, &check);
    if (c->phase == CALL_POLICY) {
        c->check = check;
    }
}

static void enqueue(struct bridge_call *c)
{
    struct bridge *b = c->b;
    if (b->placed < BRIDGE_CALLS_MAX && b->queued == 0) {
        b->placed++;
        c->placed = true;
        bridge_call_admit(c);
    } else if (b->queued < BRIDGE_QUEUE_MAX) {
        c->phase = CALL_QUEUED;
        b->queued++;
    } else {
        fail(c, TOOL_INTERNAL, "too many calls are under way: try again later");
    }
}

static bool arguments_fit(struct bridge_call *c)
{
    const struct bridge_record *r = &c->record;
    CLEANUP(buf) struct buf why = BUF_INIT(REASONS_MAX);
    if (!json_is(r->arguments, JSON_OBJECT)) {
        fail(c, TOOL_INVALID, "Validation error: the arguments must be an object");
        return false;
    }
    if (!fits(r->tool->input, r->arguments, c->arena, &why)) {
        fail(c, TOOL_INVALID,
             "Validation error: the arguments do not fit the schema of '%.*s': "
             "%.*s",
             STR_ARG(r->name), STR_ARG(buf_str(&why)));
        return false;
    }
    return true;
}

static void look_up(struct bridge_call *c)
{
    const struct bridge_tool *t = bridge_look_up(c->b, c->record.name);
    struct str name = str_slice(c->record.name, 0, MCP_NAME_MAX);
    if (c->b->stopped) {
        fail(c, TOOL_CANCELLED, "the run has ended");
    } else if (t == NULL) {
        fail(c, TOOL_UNKNOWN, "there is no tool '%.*s'", STR_ARG(name));
    } else if (!t->offered) {
        fail(c, TOOL_UNKNOWN, "the tool '%.*s' is not available now: its section is not open",
             STR_ARG(name));
    } else {
        c->record.tool = &t->tool;
        if (arguments_fit(c)) {
            enqueue(c);
        }
    }
}

void bridge_call(struct bridge *b, const struct bridge_request *r, struct bridge_call **ret)
{
    char id[ID_LEN];
    struct bridge_call *c = xcalloc(1, sizeof *c);
    struct arena *a = arena_new();
    c->b = b;
    c->arena = a;
    c->began = clock_now();
    c->request = *r;
    c->request.meta = r->meta == NULL ? NULL : json_copy(a, r->meta);
    c->record.name = arena_str(a, r->name);
    c->record.call_id = arena_str(a, r->call_id.len > 0 ? r->call_id : str_of(id_new(id)));
    c->record.arguments = r->arguments == NULL ? json_object(a) : json_copy(a, r->arguments);
    bridge_link(c);
    if (b->opts.began != NULL) {
        b->opts.began(b->opts.arg, c->record.name, c->record.call_id);
    }
    look_up(c);
    if (ret != NULL) {
        bool over = c->phase == CALL_DONE || c->phase == CALL_ABANDONED || c->phase == CALL_LOST;
        *ret = over ? NULL : c;
    }
}
