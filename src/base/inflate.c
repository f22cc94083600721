/* SPDX-License-Identifier: MIT
 *
 * Decompression by zlib; see inflate.h.
 */
#include "base/inflate.h"

#include <limits.h>
#include <stdlib.h>
#define ZLIB_CONST
#include <zlib.h>

#include "base/arena.h"

enum { EITHER_HEADER = 15 + 32 /* window bits of zlib: zlib or gzip, found out by itself */ };

struct inflate {
    z_stream z;
    inflate_sink *sink;
    void *ctx;
    uint64_t max;
    uint64_t passed;
    bool ended;
};

struct inflate *inflate_new(uint64_t max, inflate_sink *sink, void *ctx)
{
    struct inflate *x = xcalloc(1, sizeof *x);
    *x = (struct inflate) { .sink = sink, .ctx = ctx, .max = max };
    if (inflateInit2(&x->z, EITHER_HEADER) != Z_OK) {
        abort(); /* out of memory, as everywhere */
    }
    return x;
}

struct inflate *inflate_free(struct inflate *x)
{
    if (x != NULL) {
        (void)inflateEnd(&x->z);
        free(x);
    }
    return NULL;
}

bool inflate_ended(const struct inflate *x)
{
    return x->ended;
}

/* Decompresses into one buffer; 1: there may be more. */
static int inflate_some(struct inflate *x, struct err *e)
{
    unsigned char out[32768];
    x->z.next_out = out;
    x->z.avail_out = sizeof out;
    int rc = inflate(&x->z, Z_NO_FLUSH);
    size_t n = sizeof out - x->z.avail_out;
    if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR) {
        return ERR(e, ERR_PARSE, "compressed data is damaged: %s",
                   x->z.msg == NULL ? "unknown" : x->z.msg);
    }
    x->passed += n;
    if (x->passed > x->max) {
        return ERR(e, ERR_LIMIT, "decompressed data has more than %llu bytes",
                   (unsigned long long)x->max);
    }
    if (n > 0) {
        x->sink(x->ctx, str_n((const char *)out, n));
    }
    x->ended = rc == Z_STREAM_END;
    if (x->ended && x->z.avail_in > 0 && x->z.next_in[0] == 0x1F) {
        (void)inflateReset(&x->z);
        x->ended = false;
    }
    return rc == Z_BUF_ERROR || x->ended ? 0 : 1;
}

int inflate_feed(struct inflate *x, struct str bytes, struct err *e)
{
    int r = 0;
    while (r == 0 && bytes.len > 0 && !x->ended) {
        size_t n = bytes.len < INT_MAX ? bytes.len : INT_MAX;
        x->z.next_in = (const unsigned char *)bytes.ptr;
        x->z.avail_in = (unsigned)n;
        bytes = str_slice(bytes, n, bytes.len);
        do {
            r = inflate_some(x, e);
        } while (r > 0);
    }
    return r;
}
