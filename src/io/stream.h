/* SPDX-License-Identifier: MIT
 *
 * struct stream: a connected socket, both ways, with backpressure both ways.
 *
 *   stream_new(loop, fd, &(struct stream_opts){ .port = { … } }, &s, e);
 *   … on_bytes(self, chunk) …                    at most one read a round of the loop, or two
 *   stream_pause(s); stream_resume(s);           the peer is held back meanwhile
 *   stream_write(s, pieces, n, e);               what the socket does not take now is queued
 *   stream_offer(s, pieces, n);                  what it does not take now stays with the caller
 *   stream_finish(s);                            no more to write: the peer sees the end
 *   stream_free(s);                              closes at once, drops what is queued
 *
 * Who says by on_room() where to read to is read from once more in the same round if it was all
 * taken: a short first read, to see what comes, and the rest to its place.
 *
 * Takes over fd. A chunk is valid until the callback returns. The bound of the queue is soft: a
 * write is taken whole as long as less than `max` bytes wait, so that memory is bounded by `max`
 * and one write more. Who produces stops while stream_queued() is large and goes on in on_drained.
 *
 * on_end comes at most once: the peer will send no more (NULL), or the connection is broken (why).
 * After NULL, writing is still possible; after an error, and when a write finds the peer gone, the
 * stream is dead (stream_dead()) and what is written is dropped. When only writing fails, that is
 * told by on_end too.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"

struct loop;
struct stream;

struct stream_port {
    void (*on_bytes)(void *arg, struct str chunk);
    void (*on_end)(void *arg, const struct err *why);
    void (*on_drained)(void *arg); /* a queue that was not empty is, or the socket takes what it
                                      refused from an offer; may be NULL */
    void *arg;
    /* Where the next bytes shall be read to, and at most how many: for who would copy them there
     * anyway. NULL: to a buffer of the loop. Comes before every read; may be NULL. */
    char *(*on_room)(void *arg, size_t *len);
};

struct stream_opts {
    size_t max; /* bytes that may wait; 0 means 1 MiB */
    struct stream_port port;
};

#define STREAM_PIECES_MAX 8

/* On failure fd stays the caller's. */
int stream_new(struct loop *l, int fd, const struct stream_opts *opts, struct stream **ret,
               struct err *e) MUST_USE;
struct stream *stream_free(struct stream *s); /* accepts NULL, returns NULL */
/* At most STREAM_PIECES_MAX pieces, sent in one go where the socket takes them. ERR_LIMIT when the
 * queue is full: nothing of it was taken. */
int stream_write(struct stream *s, const struct str *pieces, size_t n, struct err *e) MUST_USE;
/* The number of bytes that were taken, without any copy: for who keeps the bytes anyway. When it is
 * less than all, on_drained comes once the socket takes more. 0 while something is queued; all of
 * them when the stream is dead. */
size_t stream_offer(struct stream *s, const struct str *pieces, size_t n);
void stream_finish(struct stream *s);
void stream_pause(struct stream *s);
void stream_resume(struct stream *s);
size_t stream_queued(const struct stream *s);
bool stream_dead(const struct stream *s);
