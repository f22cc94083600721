/* SPDX-License-Identifier: MIT
 *
 * One-shot timers. libuv counts milliseconds of a cached clock; the real deadline is kept beside it
 * and checked, so that a timer is never early. A deadline that moves away, as that of a connection
 * does with every byte, is only noted: libuv's timer fires once for the old one and is set anew.
 */
#include "io/timer.h"

#include <stdlib.h>

#include "base/arena.h"
#include "io/loop_priv.h"

struct timer {
    uv_timer_t handle;
    void (*fn)(void *arg);
    void *arg;
    nsec deadline;
    uint64_t due; /* for libuv, in milliseconds; not after the deadline while it is active */
};

static void on_uv_timer(uv_timer_t *h)
{
    struct timer *t = h->data;
    if (clock_now() < t->deadline) {
        timer_arm(t, t->deadline);
        return;
    }
    t->fn(t->arg);
}

int timer_new(struct loop *l, void (*fn)(void *arg), void *arg, struct timer **ret, struct err *e)
{
    struct timer *t = xcalloc(1, sizeof *t);
    int rc = uv_timer_init(&l->uv, &t->handle);
    if (rc < 0) {
        free(t);
        return loop_error(rc, "create a timer", e);
    }
    t->handle.data = t;
    t->fn = fn;
    t->arg = arg;
    *ret = t;
    return 0;
}

struct timer *timer_free(struct timer *t)
{
    if (t != NULL) {
        loop_close_and_free((uv_handle_t *)&t->handle);
    }
    return NULL;
}

void timer_arm(struct timer *t, nsec deadline)
{
    uint64_t due = deadline <= 0 ? 0 : (uint64_t)((deadline - 1) / NSEC_PER_MS + 1);
    uint64_t now = uv_now(t->handle.loop); /* the same clock; libuv adds it again */
    t->deadline = deadline;
    if (timer_armed(t) && t->due <= due) {
        return;
    }
    t->due = due;
    (void)uv_timer_start(&t->handle, on_uv_timer, due > now ? due - now : 0, 0);
}

void timer_cancel(struct timer *t)
{
    (void)uv_timer_stop(&t->handle);
}

bool timer_armed(const struct timer *t)
{
    return uv_is_active((const uv_handle_t *)&t->handle) != 0;
}
