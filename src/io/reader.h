/* SPDX-License-Identifier: MIT
 *
 * struct reader: the bytes that come out of a pipe or socket, as they come.
 *
 *   reader_new(loop, fd, &(struct reader_port){ on_bytes, on_end, self }, &r, e);
 *   … on_bytes(self, chunk) …  on_end(self, NULL)
 *   reader_free(r);
 *
 * Takes over fd. One read of at most 256 KiB per round of the loop, so that one chatty child cannot
 * starve others, into a buffer that all readers share: a chunk is valid until the callback returns.
 * on_end comes exactly once, with NULL at end of file or the error of read(); the descriptor is
 * closed then. While paused nothing is read and the end is not seen; the writer blocks once the
 * pipe is full.
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"

struct loop;
struct reader;

struct reader_port {
    void (*on_bytes)(void *arg, struct str chunk);
    void (*on_end)(void *arg, const struct err *why);
    void *arg;
};

/* On failure fd stays the caller's. */
int reader_new(struct loop *l, int fd, const struct reader_port *port, struct reader **ret,
               struct err *e) MUST_USE;
struct reader *reader_free(
    struct reader *r); /* accepts NULL, returns NULL; closes the descriptor */
void reader_pause(struct reader *r);
void reader_resume(struct reader *r);
bool reader_ended(const struct reader *r);
