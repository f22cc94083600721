/* SPDX-License-Identifier: MIT
 *
 * Requests of the gateway to the MCP server and its answers back; see mcp_mount.h. An upstream may
 * not call back from inside start(), the server does so at once: a request begins a round later.
 */
#include "mcp/mcp_mount.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/macro.h"
#include "io/loop.h"
#include "io/timer.h"

struct mcp_mount {
    struct upstream base; /* first */
    struct loop *loop;
    struct mcp *mcp;
    struct timer *timer;
    bool changing; /* the news is on its way */
    bool freed;
};

struct upstream_call {
    struct mcp_mount *mount;
    const struct upstream_request *request; /* until it has begun */
    struct upstream_port port;
    struct mcp_exchange *exchange;
    bool paused;
    bool over;  /* no callback any more */
    bool begun; /* nothing is posted */
};

static struct mcp_mount *self(struct upstream *up)
{
    return (struct mcp_mount *)up;
}

static void destroy_call(void *arg)
{
    free(arg);
}

/* --- answers --- */

static void on_head(void *arg, int status, const struct http_fields *fields)
{
    struct upstream_call *c = arg;
    if (!c->over) {
        c->port.on_head(c->port.arg, status, fields);
    }
}

static void on_data(void *arg, struct str bytes)
{
    struct upstream_call *c = arg;
    if (!c->over) {
        c->port.on_data(c->port.arg, bytes);
    }
}

static void on_end(void *arg)
{
    struct upstream_call *c = arg;
    c->exchange = NULL;
    if (!c->over) {
        c->over = true;
        c->port.on_end(c->port.arg);
        loop_retire(c->mount->loop, destroy_call, c);
    }
}

/* --- requests --- */

static void arm(struct mcp_mount *u)
{
    if (mcp_busy(u->mcp) && !timer_armed(u->timer)) {
        timer_arm(u->timer, clock_now() + MCP_TICK);
    }
}

static void on_tick(void *arg)
{
    struct mcp_mount *u = arg;
    mcp_tick(u->mcp);
    arm(u);
}

static void begin(void *arg)
{
    struct upstream_call *c = arg;
    const struct upstream_request *r = c->request;
    c->begun = true;
    if (c->over) {
        return; /* whoever cancelled it has retired it */
    }
    struct mcp_exchange *x = mcp_begin(
        c->mount->mcp, &(struct mcp_request) { r->method, r->fields, r->body },
        &(struct mcp_answer) { .head = on_head, .data = on_data, .end = on_end, .arg = c });
    if (x == NULL) {
        return;
    }
    if (c->over) { /* cancelled from a callback just now */
        mcp_close(x);
        return;
    }
    c->exchange = x;
    if (c->paused) {
        mcp_pause(x, true);
    }
    arm(c->mount);
}

static int start(struct upstream *up, const struct upstream_request *r,
                 const struct upstream_port *port, struct upstream_call **ret, struct err *e)
{
    struct upstream_call *c = xcalloc(1, sizeof *c);
    (void)e;
    c->mount = self(up);
    c->request = r;
    c->port = *port;
    loop_post(c->mount->loop, begin, c);
    *ret = c;
    return 0;
}

static void cancel(struct upstream_call *c)
{
    c->over = true;
    if (c->exchange != NULL) {
        mcp_close(TAKE_PTR(c->exchange));
    }
    loop_retire(c->mount->loop, destroy_call, c); /* behind what is posted */
}

static void set_paused(struct upstream_call *c, bool paused)
{
    c->paused = paused;
    if (c->exchange != NULL) {
        mcp_pause(c->exchange, paused);
    }
}

/* --- life --- */

static void destroy(void *arg)
{
    struct mcp_mount *u = arg;
    mcp_free(u->mcp);
    free(u);
}

static void retire(struct upstream *up)
{
    struct mcp_mount *u = self(up);
    u->freed = true;
    u->timer = timer_free(u->timer);
    loop_retire(u->loop, destroy, u);
}

static const struct upstream_ops ops = {
    .start = start,
    .cancel = cancel,
    .pause = set_paused,
    .free = retire,
};

int mcp_mount_new(struct loop *l, const struct mcp_opts *opts, struct upstream **ret, struct err *e)
{
    struct mcp_mount *u = xcalloc(1, sizeof *u);
    u->base = (struct upstream) { .ops = &ops, .name = "mcp", .any_format = true, .local = true };
    u->loop = l;
    int rc = timer_new(l, on_tick, u, &u->timer, e);
    if (rc < 0) {
        free(u);
        return rc;
    }
    u->mcp = mcp_new(opts);
    *ret = &u->base;
    return 0;
}

static void tell(void *arg)
{
    struct mcp_mount *u = arg;
    u->changing = false;
    if (!u->freed) {
        mcp_tools_changed(u->mcp);
    }
}

/* A tool may change the list within its call: the news follows its answer. */
void mcp_mount_changed(struct upstream *up)
{
    struct mcp_mount *u = self(up);
    if (!u->changing) {
        u->changing = true;
        loop_post(u->loop, tell, u);
    }
}

void mcp_mount_stop(struct upstream *up)
{
    struct mcp_mount *u = self(up);
    mcp_stop(u->mcp);
    timer_cancel(u->timer);
}
