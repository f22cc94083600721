/* SPDX-License-Identifier: MIT
 *
 * Growth by doubling up to the buffer's own maximum; see buf.h.
 */
#include "base/buf.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"

void buf_init(struct buf *b, size_t max)
{
    *b = (struct buf)BUF_INIT(max);
}

void buf_done(struct buf *b)
{
    free(b->ptr);
    *b = (struct buf)BUF_INIT(b->max);
}

void buf_reset(struct buf *b)
{
    b->len = 0;
    if (b->ptr != NULL) {
        b->ptr[0] = '\0';
    }
}

int buf_reserve(struct buf *b, size_t n, char **ret, struct err *e)
{
    if (n > b->max || b->len > b->max - n) {
        return ERR(e, ERR_LIMIT, "more than %zu bytes", b->max);
    }
    size_t need = b->len + n + 1;
    if (need > b->cap) {
        size_t cap = b->cap < 64 ? 64 : b->cap;
        while (cap < need) {
            cap *= 2;
        }
        if (cap > b->max + 1 && b->max + 1 >= need) {
            cap = b->max + 1;
        }
        b->ptr = xrealloc(b->ptr, cap);
        b->cap = cap;
    }
    *ret = b->ptr + b->len;
    return 0;
}

void buf_commit(struct buf *b, size_t n)
{
    b->len += n;
    b->ptr[b->len] = '\0';
}

int buf_append(struct buf *b, struct str s, struct err *e)
{
    char *to;
    int r = buf_reserve(b, s.len, &to, e);
    if (r < 0) {
        return r;
    }
    if (s.len > 0) {
        memcpy(to, s.ptr, s.len);
    }
    buf_commit(b, s.len);
    return 0;
}

int buf_append_c(struct buf *b, char c, struct err *e)
{
    char *to;
    int r = buf_reserve(b, 1, &to, e);
    if (r < 0) {
        return r;
    }
    *to = c;
    buf_commit(b, 1);
    return 0;
}

int buf_vprintf(struct buf *b, struct err *e, const char *fmt, va_list ap)
{
    enum { USUAL = 128 };
    va_list again;
    char *to;
    /* What fits is printed once. Room that the bound does not allow is not asked for. */
    size_t room = b->max - b->len < USUAL ? b->max - b->len : USUAL;
    int r = buf_reserve(b, room, &to, e);
    if (r < 0) {
        return r;
    }
    va_copy(again, ap);
    int n = vsnprintf(to, room + 1, fmt, ap);
    if (n < 0) {
        r = ERR(e, ERR_BUG, "bad format");
    } else if ((size_t)n > room) {
        *to = '\0';
        r = buf_reserve(b, (size_t)n, &to, e);
        if (r == 0) {
            (void)vsnprintf(to, (size_t)n + 1, fmt, again);
        }
    }
    if (r == 0) {
        buf_commit(b, (size_t)n);
    }
    va_end(again);
    return r;
}

int buf_printf(struct buf *b, struct err *e, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int r = buf_vprintf(b, e, fmt, ap);
    va_end(ap);
    return r;
}

void buf_consume(struct buf *b, size_t n)
{
    if (n >= b->len) {
        buf_reset(b);
        return;
    }
    memmove(b->ptr, b->ptr + n, b->len - n);
    b->len -= n;
    b->ptr[b->len] = '\0';
}

struct str buf_str(const struct buf *b)
{
    return b->ptr == NULL ? STR_EMPTY : str_n(b->ptr, b->len);
}

char *buf_take(struct buf *b, size_t *ret_len)
{
    char *p = b->ptr == NULL ? xstrdup("") : b->ptr;
    if (ret_len != NULL) {
        *ret_len = b->len;
    }
    *b = (struct buf)BUF_INIT(b->max);
    return p;
}

static void must(int r)
{
    if (r < 0) {
        (void)fprintf(stderr, "cinch: a text of our own making is too long\n");
        abort();
    }
}

void buf_add(struct buf *b, struct str s)
{
    must(buf_append(b, s, NULL));
}

void buf_adds(struct buf *b, const char *cstr)
{
    must(buf_append(b, str_of(cstr), NULL));
}

void buf_addf(struct buf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    must(buf_vprintf(b, NULL, fmt, ap));
    va_end(ap);
}
