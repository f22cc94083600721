/* SPDX-License-Identifier: MIT
 *
 * struct buf: a growing byte buffer with a hard maximum.
 *
 *  1. struct buf b = BUF_INIT(4096);    declaring equals initialising; the argument is the maximum
 *  2. buf_append(&b, STR("x"), e), buf_printf(&b, e, "%d", 1): ERR_LIMIT once the maximum is
 *     passed, the content is then unchanged
 *  3. buf_done(&b), or CLEANUP(buf) struct buf b = …
 *
 * The content is always followed by a NUL that does not count, so b.ptr can go to a C API once the
 * first append happened. Everything that a foreign process can make grow is a buf.
 * BUF_TEXT is for text that we make ourselves (messages, generated files): 64 MiB.
 */
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

#define BUF_TEXT ((size_t)64 << 20)

struct buf {
    char *ptr;
    size_t len;
    size_t cap;
    size_t max;
};

#define BUF_INIT(maximum) \
    {                     \
        .max = (maximum)  \
    }

void buf_init(struct buf *b, size_t max);
void buf_done(struct buf *b);
void buf_reset(struct buf *b); /* empty, keeps the memory */
int buf_append(struct buf *b, struct str s, struct err *e) MUST_USE;
int buf_append_c(struct buf *b, char c, struct err *e) MUST_USE;
int buf_printf(struct buf *b, struct err *e, const char *fmt, ...) PRINTF_LIKE(3, 4) MUST_USE;
int buf_vprintf(struct buf *b, struct err *e, const char *fmt, va_list ap)
    PRINTF_LIKE(3, 0) MUST_USE;
/* Makes room for n more bytes and returns where to write them; follow with buf_commit(). */
int buf_reserve(struct buf *b, size_t n, char **ret, struct err *e) MUST_USE;
void buf_commit(struct buf *b, size_t n);
void buf_consume(struct buf *b, size_t n); /* drops n bytes from the front */
struct str buf_str(const struct buf *b);
char *buf_take(struct buf *b, size_t *ret_len); /* malloc'ed, NUL-terminated; b is empty after */

/* For text of our own making, where reaching BUF_TEXT would be a bug: abort instead of an error. */
void buf_add(struct buf *b, struct str s);
void buf_adds(struct buf *b, const char *cstr);
void buf_addf(struct buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);

static inline void cleanup_buf(struct buf *b)
{
    buf_done(b);
}
