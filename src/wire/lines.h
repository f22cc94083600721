/* SPDX-License-Identifier: MIT
 *
 * struct lines: bytes in, lines out, whatever the chunks were. A pure codec: no fd, no clock.
 *
 *   struct lines l;
 *   lines_init(&l, 8 << 20);
 *   lines_feed(&l, bytes);                    the bytes must stay valid until lines_next() is dry
 *   while (lines_next(&l, &line)) { … }       without the newline; a '\r' before it is dropped too
 *   if (lines_end(&l, &line)) { … }           what stood after the last newline, once, at the end
 *   lines_done(&l);
 *
 * A returned line is valid until the next call. Memory is bounded by the maximum: a longer line is
 * dropped whole and counted in `overlong`, the lines after it are not affected.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

struct lines {
    struct buf partial; /* start of a line whose end has not come yet */
    struct str input;   /* borrowed: what is left of the last feed */
    bool skipping;      /* inside an overlong line */
    bool handed_out;    /* partial was returned by lines_next and is to be dropped */
    uint64_t overlong;
};

void lines_init(struct lines *l, size_t max);
void lines_done(struct lines *l);
void lines_feed(struct lines *l, struct str bytes);
bool lines_next(struct lines *l, struct str *ret_line);
bool lines_end(struct lines *l, struct str *ret_line);
