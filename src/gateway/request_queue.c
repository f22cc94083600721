/* SPDX-License-Identifier: MIT
 *
 * First come, first served; see turns.h.
 */
#include "gateway/request_queue.h"

#include "base/err.h"
#include "gateway/body.h"
#include "io/loop.h"
#include "io/timer.h"

static struct turn *take_first(struct request_queue *q)
{
    struct turn *t = q->first;
    q->first = t->next;
    q->last = q->first == NULL ? NULL : q->last;
    t->next = NULL;
    t->waits = false;
    return t;
}

/* Until when the first one waits. */
static nsec patience(const struct request_queue *q)
{
    nsec quiet = q->freed + QUEUE_QUIET;
    return q->first->until < quiet ? q->first->until : quiet;
}

static void look(struct request_queue *q)
{
    nsec now = clock_now();
    while (q->first != NULL && (body_fits(q->room, q->first->len) || patience(q) <= now)) {
        struct turn *t = take_first(q);
        t->fn(t->arg);
    }
    if (q->first != NULL) {
        timer_arm(q->timer, patience(q));
    } else if (q->timer != NULL) {
        timer_cancel(q->timer);
    }
}

static void on_timer(void *arg)
{
    look(arg);
}

static void on_posted(void *arg)
{
    struct request_queue *q = arg;
    q->posted = false;
    look(q);
}

static void on_freed(void *arg, nsec held)
{
    enum { SMOOTH = 8 };
    struct request_queue *q = arg;
    q->freed = clock_now();
    q->held += (held - q->held) / SMOOTH;
    if (q->first != NULL && !q->posted) {
        q->posted = true;
        loop_post(q->loop, on_posted, q);
    }
}

void queue_init(struct request_queue *q, struct loop *l, struct body_room *room)
{
    *q = (struct request_queue) { .loop = l, .room = room, .freed = -QUEUE_QUIET };
    room->freed = on_freed;
    room->arg = q;
}

void queue_done(struct request_queue *q)
{
    while (q->first != NULL) {
        (void)take_first(q);
    }
    q->timer = timer_free(q->timer);
}

bool queue_join(struct request_queue *q, struct turn *t, size_t len)
{
    nsec now = clock_now();
    bool fits = len < BODY_SPILL_MIN || (q->first == NULL && body_fits(q->room, len));
    bool useless = len > q->room->bound || q->held > QUEUE_FAST || now - q->freed >= QUEUE_QUIET;
    if (fits || useless || q->room->dir == NULL ||
        (q->timer == NULL && timer_new(q->loop, on_timer, q, &q->timer, NULL) < 0)) {
        return false;
    }
    t->next = NULL;
    t->len = len;
    t->until = now + QUEUE_PATIENCE;
    t->waits = true;
    if (q->first == NULL) {
        q->first = t;
        timer_arm(q->timer, patience(q));
    } else {
        q->last->next = t;
    }
    q->last = t;
    return true;
}

void queue_leave(struct request_queue *q, struct turn *t)
{
    struct turn *before = NULL;
    if (!t->waits) {
        return;
    }
    for (struct turn *at = q->first; at != t; at = at->next) {
        before = at;
    }
    *(before != NULL ? &before->next : &q->first) = t->next;
    q->last = q->last == t ? before : q->last;
    t->next = NULL;
    t->waits = false;
}
