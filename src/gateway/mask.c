/* SPDX-License-Identifier: MIT
 *
 * Overwriting a secret in a stream.
 */
#include "gateway/mask.h"

#include "base/arena.h"

void mask_init(struct mask *m, struct str secret, void (*out)(void *arg, struct str bytes),
               void *arg)
{
    *m = (struct mask) { .secret = secret, .out = out, .arg = arg };
    buf_init(&m->held, SIZE_MAX / 2); /* a piece and a secret */
}

void mask_done(struct mask *m)
{
    buf_done(&m->held);
}

static void tell(struct mask *m, struct str bytes)
{
    if (bytes.len > 0) {
        m->out(m->arg, bytes);
    }
}

static void tell_stars(struct mask *m)
{
    static const char stars[] = "********************************";
    for (size_t left = m->secret.len; left > 0;) {
        size_t n = left < sizeof stars - 1 ? left : sizeof stars - 1;
        tell(m, str_n(stars, n));
        left -= n;
    }
}

/* How many of the last bytes may be the beginning of the secret. */
static size_t open_end(const struct mask *m, struct str s)
{
    size_t at = s.len >= m->secret.len ? s.len - m->secret.len + 1 : 0;
    while (at < s.len) {
        const char *hit = memchr(s.ptr + at, m->secret.ptr[0], s.len - at);
        if (hit == NULL) {
            return 0;
        }
        at = (size_t)(hit - s.ptr);
        if (memcmp(hit, m->secret.ptr, s.len - at) == 0) {
            return s.len - at;
        }
        at++;
    }
    return 0;
}

/* What cannot be told yet is left in `held`. */
static void pass(struct mask *m, struct str s)
{
    for (;;) {
        size_t at = str_find(s, m->secret);
        if (at >= s.len) {
            break;
        }
        tell(m, str_slice(s, 0, at));
        tell_stars(m);
        s = str_slice(s, at + m->secret.len, s.len);
    }
    size_t n = open_end(m, s);
    tell(m, str_slice(s, 0, s.len - n));
    if (n > 0) {
        buf_add(&m->held, str_slice(s, s.len - n, s.len));
    }
}

void mask_feed(struct mask *m, struct str bytes)
{
    if (m->secret.len == 0 || bytes.len == 0) {
        tell(m, bytes);
        return;
    }
    if (m->held.len == 0) {
        pass(m, bytes);
        return;
    }
    struct buf whole = m->held; /* rare: a piece ended like the secret begins */
    buf_init(&m->held, whole.max);
    buf_add(&whole, bytes);
    pass(m, buf_str(&whole));
    buf_done(&whole);
}

void mask_end(struct mask *m)
{
    struct buf rest = m->held;
    buf_init(&m->held, rest.max);
    tell(m, buf_str(&rest));
    buf_done(&rest);
}

struct str mask_text(struct arena *a, struct str secret, struct str text)
{
    size_t at = secret.len == 0 ? text.len : str_find(text, secret);
    if (at >= text.len) {
        return text;
    }
    char *copy = arena_dup(a, text);
    for (; at < text.len; at += str_find(str_slice(text, at, text.len), secret)) {
        memset(copy + at, '*', secret.len);
        at += secret.len;
    }
    return str_n(copy, text.len);
}
