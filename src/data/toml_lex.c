/* SPDX-License-Identifier: MIT
 *
 * The lexical level of TOML: positions, white space, comments, the four kinds of strings, keys. The
 * text has passed toml_check_utf8() before any of the others runs, so bytes above 0x7f need no
 * care.
 */
#include "data/toml_priv.h"

#include <stdarg.h>
#include <stdio.h>

static bool is_space(int c)
{
    return c == ' ' || c == '\t';
}

static bool is_bare(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
}

/* Control characters that no part of a document may hold; CR and LF are handled by the callers. */
static bool is_control(int c)
{
    return (c >= 0 && c < 0x20 && c != '\t') || c == 0x7f;
}

/* --- positions and errors --- */

static void advance(const struct toml_parser *p, size_t from, size_t to, uint32_t *line,
                    uint32_t *column)
{
    for (size_t i = from; i < to && i < p->text.len; i++) {
        unsigned char c = (unsigned char)p->text.ptr[i];
        if (c == '\n') {
            (*line)++;
            *column = 1;
        } else if ((c & 0xc0) != 0x80) {
            (*column)++;
        }
    }
}

void toml_position(struct toml_parser *p, size_t offset, uint32_t *ret_line, uint32_t *ret_column)
{
    if (offset > p->mark.offset) {
        advance(p, p->mark.offset, offset, &p->mark.line, &p->mark.column);
        p->mark.offset = offset;
    }
    *ret_line = p->mark.line;
    *ret_column = p->mark.column;
}

static int fail_at(const struct toml_parser *p, enum err_code code, size_t offset, const char *why)
{
    uint32_t line = 1;
    uint32_t column = 1;
    advance(p, p->begin, offset, &line, &column);
    return ERR(p->e, code, "%s:%u:%u: %s", p->name, line, column, why);
}

int toml_fail(const struct toml_parser *p, size_t offset, const char *fmt, ...)
{
    char why[256];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    return fail_at(p, ERR_PARSE, offset, why);
}

int toml_limit(const struct toml_parser *p, size_t offset, const char *fmt, ...)
{
    char why[256];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    return fail_at(p, ERR_LIMIT, offset, why);
}

const char *toml_found(const struct toml_parser *p, char out[TOML_FOUND_LEN])
{
    int c = toml_peek(p);
    if (c < 0) {
        (void)snprintf(out, TOML_FOUND_LEN, "the end of the file");
    } else if (c == '\n' || toml_looking_at(p, "\r\n")) {
        (void)snprintf(out, TOML_FOUND_LEN, "the end of the line");
    } else if (is_control(c) || c == '\t') {
        (void)snprintf(out, TOML_FOUND_LEN, "the byte 0x%02x", (unsigned)c);
    } else {
        int n = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
        (void)snprintf(out, TOML_FOUND_LEN, "'%.*s'", n, p->text.ptr + p->at);
    }
    return out;
}

int toml_check_utf8(const struct toml_parser *p)
{
    size_t good = str_utf8_prefix(p->text);
    if (good < p->text.len) {
        return toml_fail(p, good, "the byte 0x%02x is not valid UTF-8",
                         (unsigned)(unsigned char)p->text.ptr[good]);
    }
    return 0;
}

/* --- between the tokens --- */

int toml_peek(const struct toml_parser *p)
{
    return p->at < p->text.len ? (unsigned char)p->text.ptr[p->at] : -1;
}

bool toml_looking_at(const struct toml_parser *p, const char *word)
{
    size_t len = strlen(word);
    return p->text.len - p->at >= len && memcmp(p->text.ptr + p->at, word, len) == 0;
}

void toml_skip_space(struct toml_parser *p)
{
    while (is_space(toml_peek(p))) {
        p->at++;
    }
}

bool toml_skip_newline(struct toml_parser *p)
{
    if (toml_peek(p) == '\n') {
        p->at++;
        return true;
    }
    if (toml_looking_at(p, "\r\n")) {
        p->at += 2;
        return true;
    }
    return false;
}

static int skip_comment(struct toml_parser *p)
{
    if (toml_peek(p) != '#') {
        return 0;
    }
    while (toml_peek(p) >= 0 && toml_peek(p) != '\n' && !toml_looking_at(p, "\r\n")) {
        if (is_control(toml_peek(p))) {
            char found[TOML_FOUND_LEN];
            return toml_fail(p, p->at, "%s is not allowed in a comment", toml_found(p, found));
        }
        p->at++;
    }
    return 0;
}

int toml_skip_blank(struct toml_parser *p)
{
    for (;;) {
        toml_skip_space(p);
        int r = skip_comment(p);
        if (r < 0) {
            return r;
        }
        if (!toml_skip_newline(p)) {
            return 0;
        }
    }
}

int toml_line_end(struct toml_parser *p)
{
    toml_skip_space(p);
    int r = skip_comment(p);
    if (r < 0) {
        return r;
    }
    if (toml_peek(p) >= 0 && !toml_skip_newline(p)) {
        char found[TOML_FOUND_LEN];
        return toml_fail(p, p->at, "expected the end of the line, found %s", toml_found(p, found));
    }
    return 0;
}

/* --- strings --- */

static int put(struct toml_parser *p, const char *ptr, size_t len)
{
    return buf_append(&p->scratch, str_n(ptr, len), p->e);
}

static int put_scalar_value(struct toml_parser *p, uint32_t c)
{
    char s[4];
    size_t n = 0;
    if (c < 0x80) {
        s[n++] = (char)c;
    } else if (c < 0x800) {
        s[n++] = (char)(0xc0 | (c >> 6));
        s[n++] = (char)(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
        s[n++] = (char)(0xe0 | (c >> 12));
        s[n++] = (char)(0x80 | ((c >> 6) & 0x3f));
        s[n++] = (char)(0x80 | (c & 0x3f));
    } else {
        s[n++] = (char)(0xf0 | (c >> 18));
        s[n++] = (char)(0x80 | ((c >> 12) & 0x3f));
        s[n++] = (char)(0x80 | ((c >> 6) & 0x3f));
        s[n++] = (char)(0x80 | (c & 0x3f));
    }
    return put(p, s, n);
}

static int hex_digit(int c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* \u0041 or \U00000041; the cursor is behind the letter. */
static int unicode_escape(struct toml_parser *p, size_t digits)
{
    size_t start = p->at - 2;
    uint32_t c = 0;
    for (size_t i = 0; i < digits; i++) {
        int d = hex_digit(toml_peek(p));
        if (d < 0) {
            return toml_fail(p, start, "the escape needs %zu hexadecimal digits", digits);
        }
        c = (c << 4) | (uint32_t)d;
        p->at++;
    }
    if (c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff)) {
        return toml_fail(p, start, "U+%04X is not a character", c);
    }
    return put_scalar_value(p, c);
}

/* The cursor is behind the backslash. */
static int escape(struct toml_parser *p)
{
    static const char letters[] = "btnfr\"\\";
    static const char values[] = "\b\t\n\f\r\"\\";
    int c = toml_peek(p);
    const char *hit = c > 0 ? strchr(letters, c) : NULL;
    if (hit != NULL) {
        p->at++;
        return put(p, values + (hit - letters), 1);
    }
    if (c == 'u' || c == 'U') {
        p->at++;
        return unicode_escape(p, c == 'u' ? 4 : 8);
    }
    char found[TOML_FOUND_LEN];
    return toml_fail(p, p->at - 1,
                     "unknown escape: a backslash before %s (use '...' for a string "
                     "without escapes)",
                     toml_found(p, found));
}

/* A backslash at the end of a line of a multi-line string swallows all white space up to the next
 * text. Says whether there was one; the cursor is behind the backslash. */
static bool line_continuation(struct toml_parser *p)
{
    size_t start = p->at;
    toml_skip_space(p);
    if (!toml_skip_newline(p)) {
        p->at = start;
        return false;
    }
    do {
        toml_skip_space(p);
    } while (toml_skip_newline(p));
    return true;
}

/* Copies the bytes that stand for themselves: up to a quote, backslash, control character or CR. */
static int plain_run(struct toml_parser *p, char quote)
{
    size_t start = p->at;
    for (int c = toml_peek(p); c >= 0 && c != quote && !is_control(c); c = toml_peek(p)) {
        if (c == '\\' && quote == '"') {
            break;
        }
        p->at++;
    }
    return put(p, p->text.ptr + start, p->at - start);
}

/* One to five quotes in a multi-line string: one or two are text, three close it, and up to two
 * more before the closing three are text again. */
static int multi_quotes(struct toml_parser *p, char quote, bool *ret_closed)
{
    size_t n = 0;
    while (n < 5 && toml_peek(p) == quote) {
        n++;
        p->at++;
    }
    *ret_closed = n >= 3;
    char text[2] = { quote, quote };
    return put(p, text, n >= 3 ? n - 3 : n);
}

static int multi_line_string(struct toml_parser *p, char quote)
{
    size_t start = p->at;
    p->at += 3;
    (void)toml_skip_newline(p); /* a newline right behind the opening is not part of the text */
    for (bool closed = false; !closed;) {
        int r = plain_run(p, quote);
        int c = toml_peek(p);
        if (r < 0) {
            return r;
        }
        if (c < 0) {
            return toml_fail(p, start, "this string is not closed");
        }
        if (c == quote) {
            r = multi_quotes(p, quote, &closed);
        } else if (toml_skip_newline(p)) {
            r = put(p, "\n", 1); /* CRLF becomes LF: a checkout must not change what a text says */
        } else if (c == '\\') {
            p->at++;
            r = line_continuation(p) ? 0 : escape(p);
        } else {
            char found[TOML_FOUND_LEN];
            r = toml_fail(p, p->at, "%s is not allowed in a string", toml_found(p, found));
        }
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static int single_line_string(struct toml_parser *p, char quote)
{
    size_t start = p->at++;
    for (;;) {
        int r = plain_run(p, quote);
        int c = toml_peek(p);
        if (r < 0) {
            return r;
        }
        if (c == quote) {
            p->at++;
            return 0;
        }
        if (c < 0 || c == '\n' || toml_looking_at(p, "\r\n")) {
            return toml_fail(p, start, "this string is not closed on its line");
        }
        if (c != '\\') {
            char found[TOML_FOUND_LEN];
            return toml_fail(p, p->at, "%s is not allowed in a string", toml_found(p, found));
        }
        p->at++;
        r = escape(p);
        if (r < 0) {
            return r;
        }
    }
}

int toml_string(struct toml_parser *p, struct str *ret)
{
    char quote = (char)toml_peek(p);
    bool multi = toml_looking_at(p, quote == '"' ? "\"\"\"" : "'''");
    buf_reset(&p->scratch);
    int r = multi ? multi_line_string(p, quote) : single_line_string(p, quote);
    if (r == 0) {
        *ret = arena_str(p->arena, buf_str(&p->scratch));
    }
    return r;
}

/* --- keys --- */

static int key_part(struct toml_parser *p, struct str *ret)
{
    int c = toml_peek(p);
    if (c == '"' || c == '\'') {
        if (toml_looking_at(p, "\"\"\"") || toml_looking_at(p, "'''")) {
            return toml_fail(p, p->at, "a key cannot be a multi-line string");
        }
        return toml_string(p, ret);
    }
    size_t start = p->at;
    while (is_bare(toml_peek(p))) {
        p->at++;
    }
    if (p->at == start) {
        char found[TOML_FOUND_LEN];
        return toml_fail(p, start, "expected a key, found %s", toml_found(p, found));
    }
    *ret = arena_str(p->arena, str_n(p->text.ptr + start, p->at - start));
    return 0;
}

static void key_grow(struct toml_parser *p, struct toml_key *k, size_t *cap)
{
    size_t grown = *cap == 0 ? 2 : *cap * 2;
    struct str *parts = arena_array(p->arena, grown, sizeof *parts);
    size_t *starts = arena_array(p->arena, grown, sizeof *starts);
    if (k->len > 0) {
        memcpy(parts, k->parts, k->len * sizeof *parts);
        memcpy(starts, k->starts, k->len * sizeof *starts);
    }
    k->parts = parts;
    k->starts = starts;
    *cap = grown;
}

int toml_key(struct toml_parser *p, struct toml_key *ret)
{
    struct toml_key k = { 0 };
    size_t cap = 0;
    for (;;) {
        toml_skip_space(p);
        if (k.len == p->max_depth) {
            return toml_limit(p, p->at, "a key of more than %zu parts", p->max_depth);
        }
        if (k.len == cap) {
            key_grow(p, &k, &cap);
        }
        k.starts[k.len] = p->at;
        int r = key_part(p, &k.parts[k.len]);
        if (r < 0) {
            return r;
        }
        k.len++;
        k.end = p->at;
        toml_skip_space(p);
        if (toml_peek(p) != '.') {
            *ret = k;
            return 0;
        }
        p->at++;
    }
}
