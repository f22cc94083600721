/* SPDX-License-Identifier: MIT
 *
 * struct body: the bytes of one request, from the first that comes until nobody needs them. They
 * lie in memory while the room that all bodies share suffices. A large one that finds no room goes
 * to an unlinked file and is mapped: whoever reads it sees no difference, and the kernel may take
 * its pages back.
 *
 *   struct body_room room = { .bound = 6 << 20, .dir = "/var/tmp" };     one for all of them
 *   body_init(&b, &room, max);
 *   body_expect(&b, len);                   if that is known: its room is taken at once
 *   body_add(&b, bytes, e) …                as they come; ERR_LIMIT beyond max
 *   body_close(&b, e);                      complete
 *   … body_str(&b) …                        valid until body_done()
 *   body_rest(&b);                          it was read: its pages need not stay
 *   body_done(&b);
 *
 * Who reads from a socket can spare the copy: body_space() says where the next bytes will lie, and
 * body_add() sees that they are there already.
 *
 * Without a directory, or where no file can be made there, memory is all there is.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"

/* A file for less than this is not worth its cost. */
#define BODY_SPILL_MIN ((size_t)16 << 10)

struct body_room {
    size_t bound;     /* for memory of all bodies; small ones may exceed it */
    size_t held;      /* in memory now, or expected there */
    const char *dir;  /* for files; NULL: none */
    uint64_t spilled; /* bodies that went to a file */
    /* A body has given room back that it held for so long; may be NULL. */
    void (*freed)(void *arg, nsec held);
    void *arg;
};

struct body {
    struct body_room *room;
    struct buf mem;
    size_t max;
    size_t len;
    size_t counted; /* in room->held … */
    nsec since;     /* … and from when on */
    bool aside;     /* it was seen from the start that memory has no room */
    int fd;         /* -1: in memory */
    char *map;      /* NULL: not yet complete, or in memory */
};

void body_init(struct body *b, struct body_room *room, size_t max);
void body_done(struct body *b);               /* leaves an empty one */
void body_expect(struct body *b, size_t len); /* so many are said to come */
/* Would so many find room in memory now? Always, where they need not. */
bool body_fits(const struct body_room *room, size_t len);
/* Where the next bytes would be put, and how many of those that are expected have room there. NULL:
 * nowhere yet. */
char *body_space(struct body *b, size_t *ret_len);
int body_add(struct body *b, struct str bytes, struct err *e) MUST_USE;
int body_close(struct body *b, struct err *e) MUST_USE;
/* Takes over what was made in memory; closed at once. */
int body_adopt(struct body *b, struct buf *from, struct err *e) MUST_USE;
struct str body_str(const struct body *b);
void body_rest(struct body *b);
