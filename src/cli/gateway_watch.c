/* SPDX-License-Identifier: MIT
 *
 * Events, status line and ledger of `cinch gateway`; see gateway_watch.h.
 */
#include "cli/gateway_watch.h"

#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/id.h"
#include "base/json.h"
#include "cli/progress.h"
#include "gateway/account_event.h"
#include "gateway/ledger.h"
#include "gateway/price.h"
#include "io/loop.h"
#include "io/timer.h"
#include "record/write_errors.h"

#define PERIOD      (500 * NSEC_PER_MS)
#define LEDGER_TIME NSEC_PER_SEC
#define WAITING_MAX ((size_t)1 << 20) /* bytes of lines that the reader has not taken */
#define LINE_USUAL  1024              /* most lines are shorter */
#define LAST_TIME   2000              /* ms, for the reader to take the rest at the end */

struct gateway_watch {
    struct gateway_watch_opts opts;
    const struct account *account; /* NULL: not started, or over */
    const struct gateway *gateway;
    struct events events;
    struct loss loss;
    struct buf waiting;
    uint64_t dropped;
    bool closed; /* the reader of the lines has closed its end */
    struct progress progress;
    struct timer *timer;
    bool dirty; /* the ledger is older than the account */
    nsec written;
    int64_t refused;
    struct err ledger_error;
};

/* --- lines --- */

static void flush_lines(struct gateway_watch *w)
{
    struct terminal *out = &w->opts.cli->out;
    size_t done = 0;
    while (done < w->waiting.len && !w->closed && terminal_ready(out)) {
        /* what a pipe takes without blocking once it is ready */
        terminal_write(out, str_slice(buf_str(&w->waiting), done, done + PIPE_BUF));
        w->closed = terminal_flush(out, NULL) < 0;
        done += PIPE_BUF;
    }
    buf_consume(&w->waiting, done < w->waiting.len ? done : w->waiting.len);
}

static void on_line(void *arg, struct str text)
{
    struct gateway_watch *w = arg;
    if (w->closed || w->waiting.len + text.len + 1 > WAITING_MAX) {
        w->dropped++;
        return;
    }
    buf_add(&w->waiting, text);
    buf_adds(&w->waiting, "\n");
    flush_lines(w);
}

/* --- the status line --- */

static void format_cost(const struct gateway_watch *w, struct buf *out)
{
    const struct meter_sum *sum = meter_sum(account_meter(w->account));
    int64_t limit = account_budget(w->account)->limit[BUDGET_COST];
    if (sum->cost > 0 || limit > 0) {
        buf_addf(out, "  $%.4f", price_usd(sum->cost));
    }
    if (limit > 0) {
        buf_addf(out, " of $%.2f", price_usd(limit));
    }
    if (sum->local > 0 && sum->local == sum->calls) {
        buf_adds(out, " (simulated)");
    }
}

static void draw_status(struct gateway_watch *w)
{
    CLEANUP(buf) struct buf line = BUF_INIT(BUF_TEXT);
    const struct meter_sum *sum = meter_sum(account_meter(w->account));
    buf_addf(&line, "%" PRId64 " calls", sum->calls);
    size_t busy = gateway_calls(w->gateway);
    if (busy > 0) {
        buf_addf(&line, ", %zu in progress", busy);
    }
    if (w->refused > 0) {
        buf_addf(&line, ", %" PRId64 " refused", w->refused);
    }
    buf_addf(&line, "  %" PRId64 " tokens in, %" PRId64 " out",
             sum->usage.input + sum->usage.cache_read + sum->usage.cache_write, sum->usage.output);
    format_cost(w, &line);
    progress_line(&w->progress, buf_str(&line), clock_now());
}

/* --- the ledger --- */

static void write_ledger(struct gateway_watch *w)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    const struct ledger_reported none = { .known = false };
    struct err e = { 0 };
    struct json *ledger = ledger_json(a, account_meter(w->account), &none);
    int rc = json_write(ledger, JSON_PRETTY, &text, &e);
    rc = rc < 0 ? rc : buf_append_c(&text, '\n', &e);
    rc = rc < 0 ? rc : file_write_output(w->opts.ledger, buf_str(&text), 0600, &e);
    w->ledger_error = rc < 0 ? e : (struct err) { 0 };
    w->written = clock_now();
    w->dirty = false;
}

static void on_timer(void *arg)
{
    struct gateway_watch *w = arg;
    nsec now = clock_now();
    if (w->account == NULL) {
        return;
    }
    if (w->dirty && w->opts.ledger != NULL && now - w->written >= LEDGER_TIME) {
        write_ledger(w);
    }
    flush_lines(w);
    draw_status(w);
    bool shown = w->opts.cli->err.live && gateway_calls(w->gateway) > 0;
    if (shown || w->waiting.len > 0 || (w->dirty && w->opts.ledger != NULL)) {
        timer_arm(w->timer, now + PERIOD);
    }
}

static void note_change(struct gateway_watch *w)
{
    w->dirty = true;
    if (!timer_armed(w->timer)) {
        timer_arm(w->timer, clock_now() + PERIOD);
    }
}

/* --- what the gateway reports --- */

/* A line that would be dropped is not made; its number is skipped, as that of a dropped one is. */
static bool wants_line(struct gateway_watch *w)
{
    if (w->opts.cli->format != CLI_JSON) {
        return false;
    }
    bool room = !w->closed && w->waiting.len + LINE_USUAL <= WAITING_MAX;
    w->dropped += !room;
    w->events.seq += !room;
    return room;
}

static void on_call(void *arg, const struct exchange_view *x, const struct account_call *c)
{
    struct gateway_watch *w = arg;
    if (wants_line(w)) {
        struct event_model_call ev = account_call_event(x, c);
        events_model_call(&w->events, &ev);
    }
    note_change(w);
}

static void on_refused(void *arg, const struct exchange_view *x, const struct account_refused *r)
{
    struct gateway_watch *w = arg;
    w->refused++;
    if (wants_line(w)) {
        events_gateway_refused(&w->events, (int64_t)x->id, account_refused_kind(r), r->text);
    }
    note_change(w);
}

static void on_throttled(void *arg, const struct exchange_view *x,
                         const struct account_throttled *t)
{
    (void)x;
    struct gateway_watch *w = arg;
    if (wants_line(w)) {
        static const struct event_prompt prompt = { .name = "gateway", .adapter = "gateway" };
        struct event_throttle ev = account_throttle_event(t);
        events_throttled(&w->events, &prompt, &ev);
    }
    note_change(w);
}

/* The listener itself refuses a wrong token or a host that is not allowed. */
static void on_event(void *arg, const struct gateway_event *ev)
{
    struct gateway_watch *w = arg;
    bool by_listener = ev->kind == GATEWAY_REFUSED && ev->filter == NULL;
    if ((by_listener || ev->kind == GATEWAY_EGRESS_DENIED) && wants_line(w)) {
        const char *kind = ev->kind == GATEWAY_EGRESS_DENIED        ? "egress"
                           : ev->status == 401 || ev->status == 407 ? "token"
                                                                    : "request";
        events_gateway_refused(&w->events, ev->view == NULL ? 0 : (int64_t)ev->view->id, kind,
                               ev->why);
    }
}

struct account_port gateway_watch_port(struct gateway_watch *w)
{
    return (struct account_port) {
        .on_call = on_call, .on_refused = on_refused, .on_throttled = on_throttled, .arg = w
    };
}

struct gateway_port gateway_watch_events(struct gateway_watch *w)
{
    return (struct gateway_port) { on_event, w };
}

/* --- life --- */

int gateway_watch_new(const struct gateway_watch_opts *o, struct gateway_watch **ret, struct err *e)
{
    struct gateway_watch *w = xcalloc(1, sizeof *w);
    char id[ID_LEN];
    w->opts = *o;
    buf_init(&w->waiting, WAITING_MAX + PIPE_BUF);
    progress_init(&w->progress, &o->cli->err, PROGRESS_AUTO);
    int rc = timer_new(o->loop, on_timer, w, &w->timer, e);
    const struct events_opts opts = { .run_id = id_new(id),
                                      .redactor = o->redactor,
                                      .loss = &w->loss };
    rc = rc < 0 || o->ledger == NULL ? rc : file_check_output(o->ledger, e);
    rc = rc < 0 ? rc : events_init(&w->events, NULL, &opts, e);
    if (rc < 0) {
        (void)gateway_watch_free(w);
        return rc;
    }
    events_listen(&w->events, on_line, w);
    *ret = w;
    return 0;
}

void gateway_watch_start(struct gateway_watch *w, const struct account *acc,
                         const struct gateway *g)
{
    w->account = acc;
    w->gateway = g;
    if (w->opts.ledger != NULL) { /* a path that cannot be written is reported at once */
        write_ledger(w);
    }
}

static void flush_rest(struct gateway_watch *w)
{
    struct pollfd p = { .fd = fileno(w->opts.cli->out.stream), .events = POLLOUT };
    nsec until = clock_now() + LAST_TIME * NSEC_PER_MS;
    while (w->waiting.len > 0 && !w->closed && clock_now() < until) {
        (void)poll(&p, 1, 100);
        flush_lines(w);
    }
}

int gateway_watch_end(struct gateway_watch *w, struct err *e)
{
    if (w->account == NULL) {
        return 0;
    }
    if (w->opts.ledger != NULL) {
        write_ledger(w);
    }
    w->account = NULL;
    flush_rest(w);
    progress_done(&w->progress);
    if (w->ledger_error.code != ERR_OK) {
        return ERR(e, ERR_OUTPUT, "the ledger was not written: %s", w->ledger_error.msg);
    }
    return 0;
}

struct gateway_watch *gateway_watch_free(struct gateway_watch *w)
{
    if (w != NULL) {
        progress_done(&w->progress);
        w->timer = timer_free(w->timer);
        events_done(&w->events);
        buf_done(&w->waiting);
        free(w);
    }
    return NULL;
}
