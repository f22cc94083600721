/* SPDX-License-Identifier: MIT
 *
 * struct turns: who wants to send a large body while memory is full of others waits for its turn.
 * Its bytes stay where they are, in the socket: that costs nothing, while a file for them costs
 * more than all the rest of a call. Where answers come at once, room is free again within
 * milliseconds. Models think for longer: so nobody waits where bodies are held for more than
 * TURNS_FAST, where none has gone for TURNS_QUIET, or for more than TURNS_PATIENCE. Then it is a
 * file after all.
 *
 *   turns_init(&q, loop, &room);                  room.freed is its own from here on
 *   t.fn = go_on, t.arg = self;
 *   if (!turns_join(&q, &t, len)) go_on(self);    else fn is called, from the loop
 *   turns_leave(&q, &t);                          before that: it will not be called
 *   turns_done(&q);                               nobody waits any more
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"

#define TURNS_FAST     (50 * NSEC_PER_MS)
#define TURNS_QUIET    (100 * NSEC_PER_MS)
#define TURNS_PATIENCE NSEC_PER_SEC

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

struct turns {
    struct loop *loop;
    struct body_room *room;
    struct timer *timer; /* of the first one; NULL until somebody waited */
    struct turn *first, *last;
    nsec freed;  /* room was last given back */
    nsec held;   /* for how long bodies stay, of late */
    bool posted; /* they will be looked at */
};

void turns_init(struct turns *q, struct loop *l, struct body_room *room);
void turns_done(struct turns *q);
/* False: there is room for so many bytes, or no use in waiting for it. */
bool turns_join(struct turns *q, struct turn *t, size_t len);
void turns_leave(struct turns *q, struct turn *t); /* also of who does not wait */
