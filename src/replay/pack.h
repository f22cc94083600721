/* SPDX-License-Identifier: MIT
 *
 * Lines in zstd frames: what a cassette is made of. A file is a row of frames, each of them whole
 * lines; `zstd -dc` reads it too.
 *
 *   struct packer *p = packer_new();
 *   packer_add(p, text, &out, e) …  packer_end(p, &out, e);     one frame, appended to out
 *
 *   while ((r = pack_frame(&rest, &frame, e)) > 0) {            the next frame, not yet unpacked
 *       struct unpacker *u = unpacker_new(frame, max);
 *       while ((r = unpacker_line(u, &line, e)) > 0) …          its lines
 *       unpacker_free(u);
 *   }
 *
 * For foreign files: memory is bounded by the longest line (PACK_LINE_MAX), work by `max` bytes of
 * text a frame, whatever the frame promises. zstd.h is included by pack.c only.
 */
#pragma once

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

/* A request of 64 MiB, escaped as a JSON string, with room. */
#define PACK_LINE_MAX ((size_t)96 << 20)

struct packer;
struct packer *packer_new(void);
struct packer *packer_free(struct packer *p); /* accepts NULL, returns NULL */
int packer_add(struct packer *p, struct str text, struct buf *out, struct err *e) MUST_USE;
int packer_end(struct packer *p, struct buf *out, struct err *e) MUST_USE;
/* A frame of a text that is there as a whole: a small one costs little, where a packer clears
 * tables of a megabyte for what may come. */
int pack_whole(struct str text, struct buf *out, struct err *e) MUST_USE;

/* Cuts the first frame off *rest. 1: there is one; 0: nothing is left, or only a torn end, which
 * stays in *rest; ERR_PARSE: no zstd. */
int pack_frame(struct str *rest, struct str *ret, struct err *e) MUST_USE;

struct unpacker;
struct unpacker *unpacker_new(struct str frame, size_t max); /* the frame is borrowed */
struct unpacker *unpacker_free(struct unpacker *u);          /* accepts NULL, returns NULL */
/* 1 and a line without its end, valid until the next call; 0 at the end; ERR_PARSE for damaged
 * data or a last line without end; ERR_LIMIT beyond the bounds. */
int unpacker_line(struct unpacker *u, struct str *ret, struct err *e) MUST_USE;

static inline void cleanup_packer(struct packer **p)
{
    *p = packer_free(*p);
}
static inline void cleanup_unpacker(struct unpacker **u)
{
    *u = unpacker_free(*u);
}
