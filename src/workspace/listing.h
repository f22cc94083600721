/* SPDX-License-Identifier: MIT
 *
 * struct listing: the sorted names of a directory, without "." and "..".
 *
 *   CLEANUP(listing) struct listing names;
 *   listing_read(&names, fd, e);
 *   for (size_t i = 0; i < names.len; i++) … names.items[i] …
 *
 * Sorted, because the order of readdir() differs from machine to machine; read at once, so that
 * what the loop does to the directory cannot confuse the reading.
 */
#pragma once

#include <stddef.h>

#include "base/err.h"

struct listing {
    char **items;
    size_t len;
    char *text;
};

/* The descriptor stays the caller's; it may have been read before. On failure there is nothing to
 * release. */
int listing_read(struct listing *l, int fd, struct err *e) MUST_USE;
void listing_done(struct listing *l);

/* Opens the directory `name` in fd for reading, not through a link; makes it readable for a moment
 * if it is not: for layers of ours only, never for the user's tree. Returns the descriptor or a
 * negative code. */
int listing_open(int fd, const char *name, struct err *e) MUST_USE;

static inline void cleanup_listing(struct listing *l)
{
    listing_done(l);
}
