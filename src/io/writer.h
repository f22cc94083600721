/* SPDX-License-Identifier: MIT
 *
 * struct writer: bytes into a pipe or socket that may not take them at once.
 *
 *   writer_new(loop, fd, &(struct writer_opts){ .max = 1 << 20, .port = { … } }, &w, e);
 *   writer_write(w, bytes, e);    what the pipe does not take now is queued; ERR_LIMIT beyond max
 *   writer_close(w);              closes the descriptor once the queue is out
 *   writer_free(w);               closes it at once, drops the queue
 *
 * Takes over fd. on_drained comes whenever a queue that was not empty has become empty. on_end
 * comes exactly once, after writer_close() with all bytes gone (NULL), or because the reading side
 * went away. The latter is an ordinary end (a child need not read its input) and gives NULL too;
 * writer_lost() tells how many bytes nobody took. Any other failure comes as an error.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"

struct loop;
struct writer;

struct writer_port {
    void (*on_drained)(void *arg); /* may be NULL */
    void (*on_end)(void *arg, const struct err *why);
    void *arg;
};

struct writer_opts {
    size_t max; /* bytes that may wait; 0 means 1 MiB */
    struct writer_port port;
};

/* On failure fd stays the caller's. */
int writer_new(struct loop *l, int fd, const struct writer_opts *opts, struct writer **ret,
               struct err *e) MUST_USE;
struct writer *writer_free(struct writer *w); /* accepts NULL, returns NULL */
/* All or nothing: when ERR_LIMIT comes back, none of the bytes is queued. After the end of the
 * stream bytes are dropped and counted as lost, which is no error. */
int writer_write(struct writer *w, struct str bytes, struct err *e) MUST_USE;
void writer_close(struct writer *w);
bool writer_ended(const struct writer *w);
size_t writer_queued(const struct writer *w);
size_t writer_lost(const struct writer *w);
