/* SPDX-License-Identifier: MIT
 *
 * struct request_queue: a request with a large body waits while memory is full of others. Its
 * bytes stay in the socket, which costs nothing, while a temporary file costs more than the rest
 * of the call. With a fast upstream, room is free again within milliseconds. With a slow one a
 * request does not wait: when bodies are held for longer than QUEUE_FAST, when none has left for
 * QUEUE_QUIET, or after QUEUE_PATIENCE, the body goes to a file.
 *
 *   queue_init(&q, loop, &room);                  room.freed is its own from here on
 *   t.fn = go_on, t.arg = self;
 *   if (!queue_join(&q, &t, len)) go_on(self);    else fn is called, from the loop
 *   queue_leave(&q, &t);                          before that: it will not be called
 *   queue_done(&q);                               nobody waits any more
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"

#define QUEUE_FAST     (50 * NSEC_PER_MS)
#define QUEUE_QUIET    (100 * NSEC_PER_MS)
#define QUEUE_PATIENCE NSEC_PER_SEC

struct body_room;
struct loop;
struct timer;

struct turn {
    void (*fn)(void *arg);
    void *arg;
    struct turn *next;
    size_t len;
    nsec until;
    bool waits;
};

struct request_queue {
    struct loop *loop;
    struct body_room *room;
    struct timer *timer; /* of the first one; NULL until somebody waited */
    struct turn *first, *last;
    nsec freed;  /* room was last given back */
    nsec held;   /* for how long bodies stay, of late */
    bool posted; /* they will be looked at */
};

void queue_init(struct request_queue *q, struct loop *l, struct body_room *room);
void queue_done(struct request_queue *q);
/* False: there is room for so many bytes, or no use in waiting for it. */
bool queue_join(struct request_queue *q, struct turn *t, size_t len);
void queue_leave(struct request_queue *q, struct turn *t); /* also of who does not wait */
