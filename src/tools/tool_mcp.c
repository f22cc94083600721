/* SPDX-License-Identifier: MIT
 *
 * An upstream MCP server during a run: it is started, asked for its tools, called, and started
 * again when it died. A call waits while the server is on its way up, and while a list is on its
 * way that may take its tool away.
 */
#include "tools/tool_mcp.h"

#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "io/loop.h"
#include "io/timer.h"
#include "mcp/mcp_stdio.h"
#include "proc/helper_program.h"
#include "tools/tool_mcp_priv.h"

enum state {
    DOWN,     /* not there; a call may bring it up */
    STARTING, /* handshake and first list */
    UP,
    STOPPING,
    STOPPED,
};

/* What the bridge knows as struct tool_run. */
struct call {
    struct toolserver *s;
    struct call *prev, *next;
    struct served *tool;
    struct tool_run *run;
    struct timer *timer;
    uint64_t key; /* 0: waits for the server */
};

struct toolserver {
    struct arena *arena;
    struct loop *loop;
    struct helper_host host;
    struct toolserver_opts opts;
    struct toolserver_plan plan;
    enum state state;
    struct mcp_transport *transport;
    struct mcp_client *client;
    struct timer *timer; /* of the start */
    struct served_list served;
    bool chosen; /* `served` is what was approved */
    bool told;   /* ready or failed */
    bool posted; /* something of ours is on the loop's list */
    bool freed;
    int restarts;
    struct call *calls;
    struct buf stderr_tail;
    struct json *list; /* the first one, as it came */
    bool told_strays, told_refused;
};

static const struct tool_handler handler;

static void go(struct call *c);

const char *toolserver_event_word(enum toolserver_event ev)
{
    static const char *const words[] = {
        [TOOLSERVER_REFUSED] = "refused",     [TOOLSERVER_MISSING] = "missing",
        [TOOLSERVER_CHANGED] = "changed",     [TOOLSERVER_DIED] = "died",
        [TOOLSERVER_RESTARTED] = "restarted", [TOOLSERVER_NOISE] = "noise",
    };
    return (size_t)ev < ARRAY_LEN(words) ? words[ev] : "";
}

struct str toolserver_name(const struct toolserver *s)
{
    return s->plan.name;
}

static void report(void *arg, enum toolserver_event ev, struct str tool, const char *text)
{
    struct toolserver *s = arg;
    if (s->opts.event != NULL) {
        s->opts.event(s->opts.arg, s, ev, tool, text);
    }
}

/* Told once for each kind, however often it happens. */
static void report_noise(struct toolserver *s)
{
    const struct mcp_client_stats n = mcp_client_stats(s->client);
    if (n.strays + n.broken > 0 && !s->told_strays) {
        s->told_strays = true;
        report(s, TOOLSERVER_NOISE, STR_EMPTY,
               "it sends answers that nobody waits for, or what is no message");
    }
    if (n.refused > 0 && !s->told_refused) {
        s->told_refused = true;
        report(s, TOOLSERVER_NOISE, STR_EMPTY, "it asks for what was not offered to it");
    }
}

/* --- calls --- */

static void finish(struct call *c, const struct tool_result *r)
{
    struct toolserver *s = c->s;
    *(c->prev != NULL ? &c->prev->next : &s->calls) = c->next;
    if (c->next != NULL) {
        c->next->prev = c->prev;
    }
    struct tool_run *run = c->run;
    c->timer = timer_free(c->timer);
    free(c);
    tool_run_done(run, r);
}

static void finish_with(struct call *c, enum tool_failure f, const char *message)
{
    finish(c, &(struct tool_result) { .failure = f, .message = str_of(message) });
}

static void on_answer(void *arg, const struct mcp_client_answer *a)
{
    struct call *c = arg;
    struct tool_result r;
    toolserver_read(c->run->arena, a, c->run->tool->max_output, &r);
    finish(c, &r);
}

static void on_progress(void *arg, double progress, double total, struct str message)
{
    struct call *c = arg;
    tool_run_progress(c->run, progress, total, message);
}

static void on_call_timeout(void *arg)
{
    struct call *c = arg;
    struct toolserver *s = c->s;
    struct err e = { 0 };
    bool listing = s->state == UP && c->key == 0;
    if (c->key != 0) {
        mcp_client_cancel(s->client, c->key, "it took too long");
    }
    finish_with(c, TOOL_TIMEOUT, "the server did not answer in time");
    if (listing && s->state == UP) { /* no call can go on without the list */
        (void)ERR(&e, ERR_TIMEOUT, "the server did not list its tools in time");
        mcp_client_end(s->client, &e);
    }
}

/* Of what the harness says about its request only the trace goes to somebody else's server. */
static struct json *trace_of(struct arena *a, const struct json *meta)
{
    static const char *const keys[] = { "traceparent", "tracestate", "baggage" };
    struct json *some = json_object(a);
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        const struct json *v = json_get(meta, keys[i]);
        if (json_is(v, JSON_STRING)) {
            json_setc(a, some, keys[i], json_copy(a, v));
        }
    }
    return some;
}

static void send_call(struct call *c)
{
    struct err e = { 0 };
    const struct mcp_client_call call = {
        .name = c->tool->upstream,
        .arguments = c->run->arguments,
        .schema = c->tool->schema,
        .meta = trace_of(c->run->arena, c->run->meta),
        .done = on_answer,
        .progress = on_progress,
        .arg = c,
    };
    if (mcp_client_call(c->s->client, &call, &c->key, &e) < 0) {
        finish_with(c, e.code == ERR_LIMIT ? TOOL_FLOOD : TOOL_CRASHED, e.msg);
    }
}

/* Calls that waited; each may end at once and take others along. */
static void go_all(struct toolserver *s)
{
    struct call *c = s->calls;
    while (c != NULL) {
        if (c->key == 0) {
            go(c);
            c = s->calls; /* the list may be another one */
            while (c != NULL && c->key != 0) {
                c = c->next;
            }
        } else {
            c = c->next;
        }
    }
}

static void go(struct call *c)
{
    if (c->tool->refused != NULL) {
        const char *why = arena_printf(c->run->arena, "this tool is refused: %s", c->tool->refused);
        finish_with(c, TOOL_FAILED, why);
    } else {
        send_call(c);
    }
}

/* --- the connection --- */

static void free_client(void *arg)
{
    (void)mcp_client_free(arg);
}

/* The transport may be in the middle of telling us something, and so may the client. */
static void disconnect(struct toolserver *s)
{
    timer_cancel(s->timer);
    if (s->transport != NULL && s->plan.argv != NULL) {
        buf_reset(&s->stderr_tail);
        buf_add(&s->stderr_tail, mcp_stdio_stderr(s->transport));
    }
    if (s->transport != NULL) {
        s->transport->ops->free(TAKE_PTR(s->transport));
    }
    if (s->client != NULL) {
        loop_retire(s->loop, free_client, TAKE_PTR(s->client));
    }
}

static void tell_failed(struct toolserver *s, const struct err *why)
{
    struct err e = *why;
    if (!s->told) {
        s->told = true;
        (void)err_wrap(&e, "tool '%.*s'", STR_ARG(s->plan.name));
        s->opts.failed(s->opts.arg, s, &e);
    }
}

/* The client has failed, and has told the calls that it knew of. */
static void on_failed(void *arg, const struct err *why)
{
    struct toolserver *s = arg;
    const struct err reason = *why;
    bool was_up = s->state == UP;
    if (s->state == STOPPING || s->state == STOPPED) {
        return;
    }
    report_noise(s);
    s->state = DOWN;
    disconnect(s);
    while (s->calls != NULL) {
        enum tool_failure f = reason.code == ERR_LIMIT ? TOOL_FLOOD : TOOL_CRASHED;
        finish_with(s->calls, f, reason.msg);
    }
    if (was_up) {
        report(s, TOOLSERVER_DIED, STR_EMPTY, reason.msg);
    }
    tell_failed(s, &reason);
}

static void on_listed(void *arg, const struct json *list)
{
    struct toolserver *s = arg;
    bool first = !s->chosen;
    if (s->state == STARTING) {
        timer_cancel(s->timer);
        s->state = UP;
    }
    if (first) {
        s->chosen = true;
        s->list = json_copy(s->arena, list);
        served_choose(s->arena, &s->plan, list, &s->served, report, s);
        s->told = true;
        for (size_t i = 0; i < s->served.len; i++) {
            s->served.items[i].server = s;
            s->served.tools[i].handler = &handler;
        }
        s->opts.ready(s->opts.arg, s, s->served.tools, s->served.len);
    } else {
        served_compare(s->arena, &s->served, list, report, s);
    }
    if (s->state == UP) {
        go_all(s);
    }
}

static void on_changed(void *arg)
{
    (void)arg; /* the next call asks */
}

static int on_send(void *arg, const struct mcp_outgoing *m, struct err *e)
{
    struct toolserver *s = arg;
    if (s->transport == NULL) {
        return ERR(e, ERR_UNAVAILABLE, "the server is not running");
    }
    return s->transport->ops->send(s->transport, m, e);
}

static void on_drop(void *arg, uint64_t key)
{
    struct toolserver *s = arg;
    if (s->transport != NULL) {
        s->transport->ops->drop(s->transport, key);
    }
}

static void on_message(void *arg, struct str text)
{
    struct toolserver *s = arg;
    if (s->client != NULL && s->state != STOPPING) {
        mcp_client_feed(s->client, text);
    }
}

static void on_lost(void *arg, uint64_t key, const struct err *why)
{
    struct toolserver *s = arg;
    if (s->client != NULL && s->state != STOPPING) {
        mcp_client_lost(s->client, key, why);
    }
}

static void tell_stopped(struct toolserver *s)
{
    s->state = STOPPED;
    disconnect(s);
    if (s->opts.stopped != NULL) {
        s->opts.stopped(s->opts.arg, s);
    }
}

static void on_end(void *arg, const struct err *why)
{
    struct toolserver *s = arg;
    struct err gone = { 0 };
    if (s->state == STOPPING) {
        tell_stopped(s);
        return;
    }
    (void)ERR(&gone, ERR_UPSTREAM, "the server has exited");
    if (s->client != NULL) {
        mcp_client_end(s->client, why == NULL ? &gone : why);
    }
}

static void on_start_timeout(void *arg)
{
    struct toolserver *s = arg;
    struct err e = { 0 };
    (void)ERR(&e, ERR_TIMEOUT, "the server was not ready within %.6g seconds",
              (double)s->plan.start_timeout / (double)NSEC_PER_SEC);
    mcp_client_end(s->client, &e);
}

static int open_transport(struct toolserver *s, struct err *e)
{
    const struct mcp_transport_port port = {
        .on_message = on_message, .on_lost = on_lost, .on_end = on_end, .arg = s
    };
    if (s->plan.argv != NULL) {
        const struct mcp_stdio_opts o = { .host = &s->host,
                                          .argv = s->plan.argv,
                                          .env = s->plan.env,
                                          .outside = s->plan.outside,
                                          .port = port };
        return mcp_stdio_new(&o, &s->transport, e);
    }
    if (s->opts.http == NULL) {
        return ERR(e, ERR_UNSUPPORTED, "a server over HTTP cannot be used here");
    }
    const struct mcp_http_opts o = {
        .loop = s->loop, .url = s->plan.url, .headers = s->plan.headers, .port = port
    };
    return s->opts.http(&o, &s->transport, e);
}

static int connect_server(struct toolserver *s, struct err *e)
{
    const struct mcp_client_opts o = {
        .name = "cinch",
        .version = CINCH_VERSION,
        .discover_first = s->plan.url != NULL,
        .port = { .send = on_send,
                  .drop = on_drop,
                  .listed = on_listed,
                  .changed = on_changed,
                  .failed = on_failed,
                  .arg = s },
    };
    int rc = open_transport(s, e);
    if (rc < 0) {
        return rc;
    }
    s->state = STARTING;
    s->client = mcp_client_new(&o);
    timer_arm(s->timer, clock_now() + s->plan.start_timeout);
    return 0;
}

/* --- the handler --- */

/* Brings a server that died up again, or says why not. */
static int revive(struct toolserver *s, struct err *e)
{
    if (s->restarts >= TOOLSERVER_RESTARTS_MAX) {
        return ERR(e, ERR_UNAVAILABLE, "the server exited again after %d restarts", s->restarts);
    }
    s->restarts++;
    int rc = connect_server(s, e);
    if (rc == 0) {
        report(s, TOOLSERVER_RESTARTED, STR_EMPTY, "the server is started again");
        mcp_client_start(s->client);
    }
    return rc;
}

static void start(void *self, struct tool_run *run)
{
    struct served *tool = self;
    struct toolserver *s = tool->server;
    struct err e = { 0 };
    struct call *c = xcalloc(1, sizeof *c);
    c->s = s;
    c->tool = tool;
    c->run = run;
    run->user = c;
    c->next = s->calls;
    if (c->next != NULL) {
        c->next->prev = c;
    }
    s->calls = c;
    if (timer_new(s->loop, on_call_timeout, c, &c->timer, &e) < 0) {
        finish_with(c, TOOL_INTERNAL, e.msg);
        return;
    }
    timer_arm(c->timer, clock_now() + run->timeout);
    if (s->state == STOPPING || s->state == STOPPED) {
        finish_with(c, TOOL_CANCELLED, "the run is ending");
    } else if (s->state == DOWN) {
        if (revive(s, &e) < 0) {
            finish_with(c, TOOL_CRASHED, e.msg);
        }
    } else if (s->state == UP && mcp_client_ready(s->client)) {
        report_noise(s);
        go(c);
    } else if (s->state == UP) {
        mcp_client_list(s->client); /* it goes on when the list is there */
    }
}

static void cancel(void *self, struct tool_run *run)
{
    (void)self;
    struct call *c = run->user;
    if (c->key != 0) {
        mcp_client_cancel(c->s->client, c->key, "the caller does not want it any more");
    }
    finish_with(c, TOOL_CANCELLED, "cancelled");
}

static const struct tool_handler handler = {
    .kind = "mcp",
    .start = start,
    .cancel = cancel,
    .is_foreign = true,
};

/* --- life --- */

static void destroy(void *arg)
{
    struct toolserver *s = arg;
    buf_done(&s->stderr_tail);
    arena_free(s->arena);
    free(s);
}

/* `failed` may come from the first message already: not from inside of toolserver_open(). */
static void begin(void *arg)
{
    struct toolserver *s = arg;
    s->posted = false;
    if (s->freed) {
        destroy(s);
    } else if (s->state == STARTING) {
        mcp_client_start(s->client);
    } else if (s->state == STOPPING && s->transport == NULL) {
        tell_stopped(s);
    }
}

int toolserver_open(const struct toolserver_opts *o, struct toolserver **ret, struct err *e)
{
    struct toolserver *s = xcalloc(1, sizeof *s);
    s->arena = arena_new();
    s->loop = o->host->loop;
    s->host = *o->host;
    s->opts = *o;
    buf_init(&s->stderr_tail, MCP_STDIO_STDERR_MAX);
    int rc = toolserver_plan(s->arena, o->definition, o->secret, o->arg, &s->plan, e);
    rc = rc < 0 ? rc : timer_new(s->loop, on_start_timeout, s, &s->timer, e);
    if (rc == 0 && connect_server(s, e) < 0) {
        rc = err_wrap(e, "tool '%.*s'", STR_ARG(s->plan.name));
    }
    if (rc < 0) {
        s->timer = timer_free(s->timer);
        destroy(s);
        return rc;
    }
    s->posted = true;
    loop_post(s->loop, begin, s);
    *ret = s;
    return 0;
}

void toolserver_stop(struct toolserver *s)
{
    if (s->state == STOPPING || s->state == STOPPED) {
        return;
    }
    while (s->calls != NULL) {
        cancel(NULL, s->calls->run);
    }
    s->state = STOPPING;
    s->told = true;
    timer_cancel(s->timer);
    if (s->transport != NULL) {
        s->transport->ops->close(s->transport);
    } else if (!s->posted) {
        s->posted = true;
        loop_post(s->loop, begin, s);
    }
}

void toolserver_kill(struct toolserver *s)
{
    if (s->state == STOPPING && s->transport != NULL && s->transport->ops->kill != NULL) {
        s->transport->ops->kill(s->transport);
    }
}

struct toolserver *toolserver_free(struct toolserver *s)
{
    if (s == NULL) {
        return NULL;
    }
    s->state = STOPPED;
    s->told = true;
    while (s->calls != NULL) {
        finish_with(s->calls, TOOL_CANCELLED, "the run is ending");
    }
    disconnect(s);
    s->timer = timer_free(s->timer);
    s->freed = true;
    if (!s->posted) {
        loop_retire(s->loop, destroy, s);
    }
    return NULL;
}

static const struct served *offered(const struct toolserver *s, const struct json *tool,
                                    const char *pin)
{
    struct str name = json_str(json_get(tool, "name"), STR_EMPTY);
    for (size_t i = 0; i < s->served.len; i++) {
        const struct served *x = &s->served.items[i];
        if (str_eq(x->upstream, name) && strcmp(x->pin, pin) == 0) {
            return x;
        }
    }
    return NULL;
}

struct json *toolserver_list(const struct toolserver *s, struct arena *a)
{
    struct json *list = s->list == NULL ? json_array(a) : json_copy(a, s->list);
    for (size_t i = 0; i < json_len(list); i++) {
        char pin[SHA256_HEX];
        struct json *tool = json_item(list, i);
        if (!json_is(tool, JSON_OBJECT)) {
            continue;
        }
        mcp_pin(tool, pin);
        const struct served *x = offered(s, tool, pin);
        json_setc(a, tool, "pin", json_cstr(a, pin));
        json_setc(a, tool, "offered", x == NULL ? json_null(a) : json_string(a, x->name));
    }
    return list;
}
