/* SPDX-License-Identifier: MIT
 *
 * Plays an answer on the loop; see playback.h. One timer, one place in the answer.
 */
#include "replay/playback.h"

#include <stdlib.h>

#include "base/arena.h"
#include "io/loop.h"
#include "io/timer.h"

struct upstream_call {
    struct playback *playback;
    struct loop *loop;
    struct timer *timer;
    struct upstream_port port;
    size_t next; /* frame */
    bool begun;  /* the head is out */
    bool waited; /* the pause before `next` is over */
    bool paused; /* by the client */
    bool over;   /* no callback any more */
};

struct playback *playback_new(void)
{
    struct playback *p = xcalloc(1, sizeof *p);
    p->arena = arena_new();
    p->status = 200;
    return p;
}

struct playback *playback_free(struct playback *p)
{
    if (p != NULL) {
        arena_free(p->arena);
        free(p);
    }
    return NULL;
}

void playback_field(struct playback *p, struct str name, struct str value)
{
    if (p->n_fields < PLAYBACK_FIELDS_MAX) {
        p->fields[p->n_fields++] = (struct http_field) { name, value };
    }
}

void playback_fail(struct playback *p, enum upstream_error_kind kind, const char *message)
{
    p->headless = true;
    p->end = PLAYBACK_FAILS;
    p->error = (struct upstream_error) { .kind = kind,
                                         .retry_after = -1,
                                         .message = arena_dup(p->arena, str_of(message)) };
}

static void destroy(void *arg)
{
    struct upstream_call *c = arg;
    timer_free(c->timer);
    playback_free(c->playback);
    free(c);
}

static void retire(struct upstream_call *c)
{
    if (!c->over) {
        c->over = true;
        timer_cancel(c->timer);
        loop_retire(c->loop, destroy, c);
    }
}

static void finish(struct upstream_call *c)
{
    const struct playback *p = c->playback;
    if (p->end == PLAYBACK_HANGS) {
        return;
    }
    retire(c); /* first: the callback may cancel, which is then too late */
    if (p->end == PLAYBACK_FAILS) {
        c->port.on_error(c->port.arg, &p->error);
    } else {
        c->port.on_end(c->port.arg);
    }
}

/* True when the pause before the next thing is over; else the timer is armed for it. */
static bool is_due(struct upstream_call *c, nsec wait)
{
    if (c->waited || wait <= 0) {
        return true;
    }
    timer_arm(c->timer, clock_now() + wait);
    return false;
}

/* Goes on until a pause, the client's brake or the end. */
static void step(struct upstream_call *c)
{
    const struct playback *p = c->playback;
    if (!c->begun) {
        if (!is_due(c, p->delay)) {
            return;
        }
        c->begun = true;
        c->waited = false;
        if (!p->headless) {
            struct http_fields fields = { p->fields, p->n_fields };
            c->port.on_head(c->port.arg, p->status, &fields);
        }
    }
    while (!c->over && !c->paused && !p->headless && c->next < p->n_frames) {
        const struct playback_frame *f = &p->frames[c->next];
        if (!is_due(c, f->wait)) {
            return;
        }
        c->waited = false;
        c->next++;
        if (f->bytes.len > 0) {
            c->port.on_data(c->port.arg, f->bytes);
        }
    }
    if (!c->over && !c->paused && is_due(c, p->last_wait)) {
        finish(c);
    }
}

static void on_posted(void *arg)
{
    struct upstream_call *c = arg;
    if (!c->over && !timer_armed(c->timer)) {
        step(c);
    }
}

static void on_timer(void *arg)
{
    struct upstream_call *c = arg;
    c->waited = true;
    if (!c->over) {
        step(c);
    }
}

int playback_start(struct playback *p, struct loop *l, const struct upstream_port *port,
                   struct upstream_call **ret, struct err *e)
{
    struct upstream_call *c = xcalloc(1, sizeof *c);
    *c = (struct upstream_call) { .playback = p, .loop = l, .port = *port };
    int r = timer_new(l, on_timer, c, &c->timer, e);
    if (r < 0) {
        destroy(c);
        return r;
    }
    loop_post(l, on_posted, c);
    *ret = c;
    return 0;
}

void playback_cancel(struct upstream_call *call)
{
    retire(call);
}

void playback_pause(struct upstream_call *call, bool paused)
{
    bool resumed = call->paused && !paused;
    call->paused = paused;
    if (resumed && !call->over) {
        loop_post(call->loop, on_posted, call);
    }
}
