/* SPDX-License-Identifier: MIT
 *
 * struct inflate: decompresses zlib and gzip data, piece by piece.
 *
 *   struct inflate *x = inflate_new(1 << 30, sink, ctx);
 *   inflate_feed(x, bytes, e);  …  inflate_free(x);
 *
 * What follows the end of the compressed data is ignored; further members of a gzip file are part
 * of it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

struct inflate;

/* Receives decompressed bytes, valid during the call. */
typedef void inflate_sink(void *ctx, struct str bytes);

struct inflate *inflate_new(uint64_t max, inflate_sink *sink, void *ctx);
struct inflate *inflate_free(struct inflate *x); /* accepts NULL, returns NULL */
/* ERR_PARSE when the data is damaged, ERR_LIMIT when it becomes longer than `max`. */
int inflate_feed(struct inflate *x, struct str bytes, struct err *e) MUST_USE;
/* Has the end of the compressed data been seen? */
bool inflate_ended(const struct inflate *x);
