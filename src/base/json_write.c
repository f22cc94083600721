/* SPDX-License-Identifier: MIT
 *
 * struct json into text. No recursion: the way back up is a stack on the heap, so a tree of any
 * depth can be written; a tree that contains itself (a bug) ends at the buffer's maximum.
 */
#include "base/json.h"

#include <math.h>
#include <stdlib.h>

#include "base/json_reader.h"

/* --- strings --- */

/* The bytes at p that belong together: *ret_valid says whether they are a UTF-8 character or the
 * longest piece of a broken one (which then becomes one U+FFFD, as the Unicode standard advises).
 */
static size_t utf8_piece(const unsigned char *p, size_t left, bool *ret_valid)
{
    unsigned char c = p[0];
    size_t want = c < 0x80 ? 1 : c >= 0xc2 && c <= 0xdf ? 2 : (c & 0xf0) == 0xe0 ? 3 : 4;
    *ret_valid = false;
    if ((c >= 0x80 && c < 0xc2) || c > 0xf4) {
        return 1;
    }
    /* Only the second byte has bounds of its own: overlong forms, surrogates, beyond U+10FFFF. */
    unsigned char low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
    unsigned char high = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
    for (size_t i = 1; i < want; i++) {
        if (i >= left || p[i] < low || p[i] > high) {
            return i;
        }
        low = 0x80;
        high = 0xbf;
    }
    *ret_valid = true;
    return want;
}

/* What stands for the ASCII character c inside quotes, or an empty str when c may stand itself. */
static struct str escape_of(unsigned char c, char scratch[8])
{
    static const char hex[] = "0123456789abcdef";
    switch (c) {
    case '"':
        return STR("\\\"");
    case '\\':
        return STR("\\\\");
    case '\b':
        return STR("\\b");
    case '\f':
        return STR("\\f");
    case '\n':
        return STR("\\n");
    case '\r':
        return STR("\\r");
    case '\t':
        return STR("\\t");
    default:
        break;
    }
    if (c >= 0x20) {
        return STR_EMPTY;
    }
    memcpy(scratch, "\\u00", 4);
    scratch[4] = hex[c >> 4];
    scratch[5] = hex[c & 0xf];
    return str_n(scratch, 6);
}

/* No half a value stays behind a failure. Returns r. */
static int undo_if(int r, struct buf *out, size_t len)
{
    if (r < 0 && out->ptr != NULL) {
        out->len = len;
        out->ptr[len] = '\0';
    }
    return r;
}

/* True for bytes that a string may hold as they are: ASCII but for control characters, the quote
 * and the backslash. */
static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

/* How many bytes from here on are plain: nearly all of most strings, so eight are looked at
 * together. */
static size_t plain_run(const unsigned char *p, size_t n)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    const uint64_t top = ones * 0x80;
    size_t i = 0;
    for (; i + sizeof(uint64_t) <= n; i += sizeof(uint64_t)) {
        uint64_t w;
        memcpy(&w, p + i, sizeof w);
        uint64_t quote = w ^ ones * '"', slash = w ^ ones * '\\';
        uint64_t odd = w | (w - ones * 0x20) | (quote - ones) | (slash - ones);
        if ((odd & top) != 0) {
            break;
        }
    }
    while (i < n && is_plain(p[i])) {
        i++;
    }
    return i;
}

/* The common case: `s` in quotes, with one check of the room. */
static int write_plain(struct str s, struct buf *out, struct err *e)
{
    char *to;
    int r = buf_reserve(out, s.len + 2, &to, e);
    if (r < 0) {
        return r;
    }
    to[0] = '"';
    if (s.len > 0) {
        memcpy(to + 1, s.ptr, s.len);
    }
    to[s.len + 1] = '"';
    buf_commit(out, s.len + 2);
    return 0;
}

int json_write_string(struct str s, struct buf *out, struct err *e)
{
    size_t start = out->len;
    const unsigned char *p = (const unsigned char *)s.ptr;
    size_t clean = 0; /* start of the run that can be copied as it is */
    size_t i = plain_run(p, s.len);
    if (i == s.len) {
        return write_plain(s, out, e);
    }
    int r = buf_append_c(out, '"', e);
    while (r == 0 && i < s.len) {
        char scratch[8];
        bool valid;
        size_t n = utf8_piece(p + i, s.len - i, &valid);
        struct str instead = !valid ? STR("\xef\xbf\xbd") : escape_of(p[i], scratch);
        if (instead.len > 0) {
            r = buf_append(out, str_slice(s, clean, i), e);
            r = r == 0 ? buf_append(out, instead, e) : r;
            clean = i + n;
        }
        i += n;
        i += plain_run(p + i, s.len - i);
    }
    if (r == 0 && clean < s.len) {
        r = buf_append(out, str_slice(s, clean, s.len), e);
    }
    r = r == 0 ? buf_append_c(out, '"', e) : r;
    return undo_if(r, out, start);
}

/* --- trees --- */

struct frame {
    const struct json *container;
    size_t next; /* child to write */
};

struct writer {
    struct buf *out;
    bool pretty;
    struct frame *frames;
    size_t depth, cap;
};

static void push(struct writer *w, const struct json *container)
{
    if (w->depth == w->cap) {
        w->cap = w->cap == 0 ? 32 : w->cap * 2;
        w->frames = xrealloc(w->frames, w->cap * sizeof *w->frames);
    }
    w->frames[w->depth++] = (struct frame) { .container = container };
}

static int new_line(struct writer *w, struct err *e)
{
    if (!w->pretty) {
        return 0;
    }
    char *to;
    size_t n = 1 + 2 * w->depth;
    int r = buf_reserve(w->out, n, &to, e);
    if (r < 0) {
        return r;
    }
    memset(to, ' ', n);
    to[0] = '\n';
    buf_commit(w->out, n);
    return 0;
}

static int write_integer(int64_t n, struct buf *out, struct err *e)
{
    char text[24]; /* 20 are needed */
    char *p = text + sizeof text;
    uint64_t left = n < 0 ? -(uint64_t)n : (uint64_t)n;
    do {
        *--p = (char)('0' + left % 10);
        left /= 10;
    } while (left > 0);
    if (n < 0) {
        *--p = '-';
    }
    return buf_append(out, str_n(p, (size_t)(text + sizeof text - p)), e);
}

static int write_real(double d, struct buf *out, struct err *e)
{
    char text[JSON_REAL_LEN];
    return buf_append(out, isfinite(d) ? str_of(json_format_real(d, text)) : STR("null"), e);
}

/* A scalar, or the opening of a container, which then is on the stack unless it is empty. */
static int write_value(struct writer *w, const struct json *v, struct err *e)
{
    if (v == NULL) {
        return buf_append(w->out, STR("null"), e);
    }
    bool is_array = v->type == JSON_ARRAY;
    switch (v->type) {
    case JSON_NULL:
        return buf_append(w->out, STR("null"), e);
    case JSON_BOOL:
        return buf_append(w->out, v->boolean ? STR("true") : STR("false"), e);
    case JSON_INT:
        return write_integer(v->integer, w->out, e);
    case JSON_REAL:
        return write_real(v->real, w->out, e);
    case JSON_STRING:
        return json_write_string(v->string, w->out, e);
    case JSON_ARRAY:
    case JSON_OBJECT:
        if (json_len(v) == 0) {
            return buf_append(w->out, is_array ? STR("[]") : STR("{}"), e);
        }
        push(w, v);
        return buf_append_c(w->out, is_array ? '[' : '{', e);
    }
    return ERR(e, ERR_BUG, "json value of unknown type %d", (int)v->type);
}

static int write_key(struct writer *w, const struct json_member *m, struct err *e)
{
    int r = json_write_string(m->key, w->out, e);
    return r == 0 ? buf_append(w->out, w->pretty ? STR(": ") : STR(":"), e) : r;
}

/* The next child of the innermost open container, or its end. */
static int write_next(struct writer *w, struct err *e)
{
    struct frame *top = &w->frames[w->depth - 1];
    const struct json *c = top->container;
    size_t i = top->next++;
    bool is_array = c->type == JSON_ARRAY;
    if (i == json_len(c)) {
        w->depth--;
        int r = new_line(w, e);
        return r == 0 ? buf_append_c(w->out, is_array ? ']' : '}', e) : r;
    }
    int r = i > 0 ? buf_append_c(w->out, ',', e) : 0;
    r = r == 0 ? new_line(w, e) : r;
    if (r == 0 && !is_array) {
        r = write_key(w, &c->object.members[i], e);
    }
    /* `top` is not valid behind this call: the stack may move. */
    return r == 0 ? write_value(w, is_array ? c->array.items[i] : c->object.members[i].value, e)
                  : r;
}

int json_write(const struct json *v, enum json_style style, struct buf *out, struct err *e)
{
    size_t start = out->len;
    struct writer w = { .out = out, .pretty = style == JSON_PRETTY };
    int r = write_value(&w, v, e);
    while (r == 0 && w.depth > 0) {
        r = write_next(&w, e);
    }
    free(w.frames);
    r = r == 0 && w.pretty ? buf_append_c(out, '\n', e) : r;
    return undo_if(r, out, start);
}
