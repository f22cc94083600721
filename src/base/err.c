/* SPDX-License-Identifier: MIT
 *
 * Filling and wrapping struct err. Truncation of a long message is harmless and silent: the start,
 * which says what failed, survives.
 */
#include "base/err.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *word;
    int exit_status;
    const char *meaning;
} codes[] = {
#define X(code, word, exit, text) [code] = { word, exit, text },
    ERR_LIST(X)
#undef X
};

/* "a: b" cut to the size of a message. */
static void join(char out[sizeof((struct err *)0)->msg], const char *a, const char *b)
{
    size_t size = sizeof((struct err *)0)->msg;
    size_t n = strnlen(a, size - 1);
    memmove(out, a, n);
    for (const char *p = ": "; *p != '\0' && n < size - 1; p++) {
        out[n++] = *p;
    }
    size_t m = strnlen(b, size - 1 - n);
    memcpy(out + n, b, m);
    out[n + m] = '\0';
}

static void fill(struct err *e, enum err_code code, int sys, const char *file, int line)
{
    e->code = code;
    e->sys = sys;
    e->file = file;
    e->line = line;
}

int err_set(struct err *e, enum err_code code, int sys, const char *file, int line, const char *fmt,
            ...)
{
    if (e != NULL) {
        char text[sizeof e->msg]; /* arguments may point into e->msg itself */
        va_list ap;
        va_start(ap, fmt);
        (void)vsnprintf(text, sizeof text, fmt, ap);
        va_end(ap);
        fill(e, code, sys, file, line);
        memcpy(e->msg, text, sizeof text);
    }
    return -(int)code;
}

int err_sys(struct err *e, enum err_code code, const char *file, int line, const char *fmt, ...)
{
    int saved = errno;
    if (e != NULL) {
        char text[sizeof e->msg];
        char why[96];
        va_list ap;
        va_start(ap, fmt);
        (void)vsnprintf(text, sizeof text, fmt, ap);
        va_end(ap);
        fill(e, code, saved, file, line);
        join(e->msg, text, strerror_r(saved, why, sizeof why));
    }
    return -(int)code;
}

int err_wrap(struct err *e, const char *fmt, ...)
{
    if (e == NULL) {
        return -(int)ERR_BUG;
    }
    char context[sizeof e->msg];
    char old[sizeof e->msg];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(context, sizeof context, fmt, ap);
    va_end(ap);
    memcpy(old, e->msg, sizeof old);
    old[sizeof old - 1] = '\0';
    join(e->msg, context, old);
    return -(int)e->code;
}

static enum err_code in_range(enum err_code code)
{
    return (unsigned)code < ARRAY_LEN(codes) ? code : ERR_BUG;
}

const char *err_word(enum err_code code)
{
    return codes[in_range(code)].word;
}

const char *err_meaning(enum err_code code)
{
    return codes[in_range(code)].meaning;
}

int err_exit_status(enum err_code code)
{
    return codes[in_range(code)].exit_status;
}
