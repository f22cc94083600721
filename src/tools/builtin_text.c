/* SPDX-License-Identifier: MIT
 *
 * What the built-in tools do to text: windows, excerpts, replacements, patterns.
 */
#include <stdint.h>
#include <string.h>

#include "tools/builtin.h"

#define REPLACEMENT "\xEF\xBF\xBD" /* U+FFFD */

bool builtin_is_binary(struct str head)
{
    return memchr(head.ptr, '\0', str_slice(head, 0, 8192).len) != NULL;
}

size_t builtin_add_line(struct buf *out, struct str line, size_t max)
{
    struct str shown = str_slice(line, 0, max);
    size_t bad = 0;
    if (shown.len < line.len) { /* do not cut inside of a character */
        while (shown.len > 0 && ((unsigned char)line.ptr[shown.len] & 0xC0) == 0x80) {
            shown.len--;
        }
        shown.len = shown.len == 0 ? max : shown.len;
    }
    for (size_t left = shown.len; left > 0; left = shown.len) {
        size_t good = str_utf8_prefix(shown);
        buf_add(out, str_slice(shown, 0, good));
        shown = str_slice(shown, good, shown.len);
        if (shown.len > 0) {
            buf_adds(out, REPLACEMENT);
            shown = str_slice(shown, 1, shown.len);
            bad++;
        }
    }
    if (line.len > max) {
        buf_addf(out, " … [line cut: %zu bytes]", line.len);
    }
    return bad;
}

/* --- excerpts --- */

void builtin_excerpt_add(struct builtin_excerpt *x, struct str bytes)
{
    size_t room = sizeof x->head - x->head_len;
    struct str head = str_slice(bytes, 0, room);
    if (bytes.len == 0) {
        return; /* there may be no pointer */
    }
    x->total += bytes.len;
    memcpy(x->head + x->head_len, head.ptr, head.len);
    x->head_len += head.len;
    struct str rest = str_slice(bytes, head.len, bytes.len);
    if (rest.len > sizeof x->tail) {
        rest = str_slice(rest, rest.len - sizeof x->tail, rest.len);
    }
    while (rest.len > 0) {
        size_t n = sizeof x->tail - x->tail_at;
        n = n < rest.len ? n : rest.len;
        memcpy(x->tail + x->tail_at, rest.ptr, n);
        x->tail_at = (x->tail_at + n) % sizeof x->tail;
        rest = str_slice(rest, n, rest.len);
    }
}

/* Characters that a border cuts in two are shown as U+FFFD. */
static void add_text(struct buf *out, struct str text)
{
    (void)builtin_add_line(out, text, text.len);
}

void builtin_excerpt_write(const struct builtin_excerpt *x, struct buf *out)
{
    unsigned long long beyond = x->total - x->head_len;
    if (beyond <= sizeof x->tail) { /* nothing is missing: one text */
        CLEANUP(buf) struct buf whole = BUF_INIT(BUF_TEXT);
        buf_add(&whole, str_n(x->head, x->head_len));
        buf_add(&whole, str_n(x->tail, (size_t)beyond));
        add_text(out, buf_str(&whole));
        return;
    }
    add_text(out, str_n(x->head, x->head_len));
    buf_addf(out, "\n[… %llu bytes left out …]\n", beyond - sizeof x->tail);
    CLEANUP(buf) struct buf last = BUF_INIT(BUF_TEXT);
    buf_add(&last, str_n(x->tail + x->tail_at, sizeof x->tail - x->tail_at));
    buf_add(&last, str_n(x->tail, x->tail_at));
    add_text(out, buf_str(&last));
}

/* --- replacements --- */

static void with_crlf(struct str text, struct buf *out)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == '\n' && (i == 0 || text.ptr[i - 1] != '\r')) {
            buf_adds(out, "\r");
        }
        buf_add(out, str_n(text.ptr + i, 1));
    }
}

static size_t count(struct str text, struct str from)
{
    size_t n = 0;
    for (size_t at = str_find(text, from); at < text.len; at = str_find(text, from)) {
        text = str_slice(text, at + from.len, text.len);
        n++;
    }
    return n;
}

static void replace(struct str text, struct str from, struct str to, struct buf *out)
{
    for (size_t at = str_find(text, from); at < text.len; at = str_find(text, from)) {
        buf_add(out, str_slice(text, 0, at));
        buf_add(out, to);
        text = str_slice(text, at + from.len, text.len);
    }
    buf_add(out, text);
}

size_t builtin_replace_text(const struct builtin_replace *r, struct buf *out)
{
    CLEANUP(buf) struct buf from = BUF_INIT(BUF_TEXT);
    CLEANUP(buf) struct buf to = BUF_INIT(BUF_TEXT);
    struct str old = r->from, new = r->to;
    if (old.len == 0) {
        return 0;
    }
    size_t n = count(r->text, old);
    if (n == 0 && str_find(r->text, STR("\r\n")) < r->text.len) {
        with_crlf(r->from, &from);
        with_crlf(r->to, &to);
        old = buf_str(&from);
        new = buf_str(&to);
        n = count(r->text, old);
    }
    bool wanted = n == 1 || (n > 1 && r->all);
    if (wanted && r->text.len + n * new.len > BUILTIN_WRITE_MAX) {
        return SIZE_MAX;
    }
    if (wanted) {
        replace(r->text, old, new, out);
    }
    return n;
}

size_t builtin_line_of(struct str text, size_t offset)
{
    size_t line = 1;
    for (size_t i = 0; i < offset && i < text.len; i++) {
        line += text.ptr[i] == '\n';
    }
    return line;
}

static bool lines_match(struct str text, struct str from)
{
    while (from.len > 0) {
        if (text.len == 0) {
            return false;
        }
        if (!str_eq(str_trim(str_split(&text, '\n')), str_trim(str_split(&from, '\n')))) {
            return false;
        }
    }
    return true;
}

size_t builtin_near_match(struct str text, struct str from)
{
    struct str first = STR_EMPTY;
    while (from.len > 0 &&
           first.len == 0) { /* lines without text at its beginning match anywhere */
        struct str rest = from;
        first = str_trim(str_split(&rest, '\n'));
        from = first.len == 0 ? rest : from;
    }
    for (size_t line = 1; first.len > 0 && text.len > 0; line++) {
        struct str rest = text;
        struct str here = str_trim(str_split(&rest, '\n'));
        if (str_eq(here, first) && lines_match(text, from)) {
            return line;
        }
        text = rest;
    }
    return 0;
}

/* --- patterns --- */

void builtin_pattern(struct str pattern, bool literal, struct buf *out)
{
    bool in_class = false;
    for (size_t i = 0; i < pattern.len; i++) {
        char c = pattern.ptr[i];
        char next = i + 1 < pattern.len ? pattern.ptr[i + 1] : '\0';
        if (literal) {
            buf_adds(out, strchr("\\^$.[]|()*+?{}", c) != NULL ? "\\" : "");
            buf_add(out, str_n(&c, 1));
        } else if (c == '\\' && (next == 'd' || next == 'D')) {
            buf_adds(out, in_class ? "0-9" : next == 'd' ? "[0-9]" : "[^0-9]");
            i++;
        } else if (c == '\\' && next != '\0' && !in_class) {
            buf_add(out, str_n(pattern.ptr + i, 2));
            i++;
        } else {
            in_class = in_class ? c != ']' : c == '[';
            buf_add(out, str_n(&c, 1));
        }
    }
}
