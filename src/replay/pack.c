/* SPDX-License-Identifier: MIT
 *
 * zstd behind a small border; see pack.h.
 */
#include "replay/pack.h"

#include <stdlib.h>
#include <zstd.h>

#include "base/arena.h"

/* Conversations repeat themselves; a higher level than 3 gains some percent and costs double. */
enum { LEVEL = 3 };
/* A frame that asks for a larger window is refused: 128 MiB, as zstd itself limits it. */
enum { WINDOW_LOG_MAX = 27 };

struct packer {
    ZSTD_CCtx *zstd;
};

static ZSTD_CCtx *new_context(void)
{
    ZSTD_CCtx *zstd = ZSTD_createCCtx();
    if (zstd == NULL) {
        abort(); /* out of memory, as xmalloc */
    }
    (void)ZSTD_CCtx_setParameter(zstd, ZSTD_c_compressionLevel, LEVEL);
    (void)ZSTD_CCtx_setParameter(zstd, ZSTD_c_checksumFlag, 1);
    return zstd;
}

struct packer *packer_new(void)
{
    struct packer *p = xcalloc(1, sizeof *p);
    p->zstd = new_context();
    return p;
}

struct packer *packer_free(struct packer *p)
{
    if (p != NULL) {
        ZSTD_freeCCtx(p->zstd);
        free(p);
    }
    return NULL;
}

static int compress(struct packer *p, struct str text, ZSTD_EndDirective how, struct buf *out,
                    struct err *e)
{
    ZSTD_inBuffer in = { text.ptr, text.len, 0 };
    for (;;) {
        char *to = NULL;
        size_t room = ZSTD_CStreamOutSize();
        int r = buf_reserve(out, room, &to, e);
        if (r < 0) {
            return r;
        }
        ZSTD_outBuffer o = { to, room, 0 };
        size_t left = ZSTD_compressStream2(p->zstd, &o, &in, how);
        if (ZSTD_isError(left)) {
            return ERR(e, ERR_BUG, "zstd: %s", ZSTD_getErrorName(left));
        }
        buf_commit(out, o.pos);
        if (how == ZSTD_e_end ? left == 0 : in.pos == in.size) {
            return 0;
        }
    }
}

int packer_add(struct packer *p, struct str text, struct buf *out, struct err *e)
{
    return compress(p, text, ZSTD_e_continue, out, e);
}

int packer_end(struct packer *p, struct buf *out, struct err *e)
{
    return compress(p, STR_EMPTY, ZSTD_e_end, out, e);
}

int pack_whole(struct str text, struct buf *out, struct err *e)
{
    char *to = NULL;
    size_t room = ZSTD_compressBound(text.len);
    int r = buf_reserve(out, room, &to, e);
    if (r < 0) {
        return r;
    }
    ZSTD_CCtx *zstd = new_context();
    size_t n = ZSTD_compress2(zstd, to, room, text.ptr, text.len);
    ZSTD_freeCCtx(zstd);
    if (ZSTD_isError(n)) {
        return ERR(e, ERR_BUG, "zstd: %s", ZSTD_getErrorName(n));
    }
    buf_commit(out, n);
    return 0;
}

int pack_frame(struct str *rest, struct str *ret, struct err *e)
{
    static const char magic[4] = "\x28\xb5\x2f\xfd";
    if (rest->len < sizeof magic) {
        return rest->len == 0 || memcmp(rest->ptr, magic, rest->len) == 0
                   ? 0
                   : ERR(e, ERR_PARSE, "no zstd data");
    }
    if (memcmp(rest->ptr, magic, sizeof magic) != 0) {
        return ERR(e, ERR_PARSE, "no zstd frame");
    }
    size_t n = ZSTD_findFrameCompressedSize(rest->ptr, rest->len);
    if (ZSTD_isError(n)) {
        return 0; /* begins as a frame and does not end: the writer died, or it is damaged */
    }
    *ret = str_slice(*rest, 0, n);
    *rest = str_slice(*rest, n, rest->len);
    return 1;
}

struct unpacker {
    ZSTD_DCtx *zstd;
    ZSTD_inBuffer in;
    struct buf text;
    size_t used;    /* bytes of `text` that were given out */
    size_t scanned; /* bytes that hold no line end */
    size_t total, max;
    bool ended;
};

struct unpacker *unpacker_new(struct str frame, size_t max)
{
    struct unpacker *u = xcalloc(1, sizeof *u);
    *u = (struct unpacker) {
        .zstd = ZSTD_createDCtx(),
        .in = { frame.ptr, frame.len, 0 },
        .text = BUF_INIT(PACK_LINE_MAX),
        .max = max,
    };
    if (u->zstd == NULL) {
        abort(); /* out of memory, as xmalloc */
    }
    (void)ZSTD_DCtx_setParameter(u->zstd, ZSTD_d_windowLogMax, WINDOW_LOG_MAX);
    return u;
}

struct unpacker *unpacker_free(struct unpacker *u)
{
    if (u != NULL) {
        ZSTD_freeDCtx(u->zstd);
        buf_done(&u->text);
        free(u);
    }
    return NULL;
}

/* Unpacks a block more. */
static int refill(struct unpacker *u, struct err *e)
{
    char *to = NULL;
    buf_consume(&u->text, u->used);
    u->scanned -= u->used;
    u->used = 0;
    /* By little until the line proves to be long: the first line of a frame is all that is wanted
     * when a file is opened. */
    size_t room = u->text.len < 4096 ? 4096 : ZSTD_DStreamOutSize();
    room = room < PACK_LINE_MAX - u->text.len ? room : PACK_LINE_MAX - u->text.len;
    if (room == 0) {
        return ERR(e, ERR_LIMIT, "a line longer than %zu MiB", PACK_LINE_MAX >> 20);
    }
    int r = buf_reserve(&u->text, room, &to, e);
    if (r < 0) {
        return r;
    }
    ZSTD_outBuffer out = { to, room, 0 };
    size_t left = ZSTD_decompressStream(u->zstd, &out, &u->in);
    if (ZSTD_isError(left)) {
        return ERR(e, ERR_PARSE, "zstd: %s", ZSTD_getErrorName(left));
    }
    buf_commit(&u->text, out.pos);
    u->total += out.pos;
    if (u->total > u->max) {
        return ERR(e, ERR_LIMIT, "more than %zu MiB of text", u->max >> 20);
    }
    if (left == 0 && u->in.pos == u->in.size) {
        u->ended = true;
    } else if (out.pos == 0 && u->in.pos == u->in.size) {
        return ERR(e, ERR_PARSE, "zstd: the frame is incomplete");
    }
    return 0;
}

int unpacker_line(struct unpacker *u, struct str *ret, struct err *e)
{
    for (;;) {
        struct str fresh = str_slice(buf_str(&u->text), u->scanned, u->text.len);
        const char *end = fresh.len > 0 ? memchr(fresh.ptr, '\n', fresh.len) : NULL;
        if (end != NULL) {
            *ret = str_n(u->text.ptr + u->used, (size_t)(end - u->text.ptr) - u->used);
            u->used = u->scanned = (size_t)(end - u->text.ptr) + 1;
            return 1;
        }
        u->scanned = u->text.len;
        if (u->ended) {
            return u->used == u->text.len ? 0 : ERR(e, ERR_PARSE, "the last line is incomplete");
        }
        int r = refill(u, e);
        if (r < 0) {
            return r;
        }
    }
}
