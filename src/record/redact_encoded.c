/* SPDX-License-Identifier: MIT
 *
 * Secrets that are written with escapes or broken into lines. Which characters are escaped, and
 * where lines end, is up to the writer, so there is no fixed set of patterns. Such an occurrence
 * begins with bytes as they are in the pattern (possibly none), then comes an escape or a line
 * break: a trigger. Triggers are rare and found with memchr(); an index of all positions of all
 * patterns says which of them could continue there; then the bytes before are compared, and what
 * follows is decoded byte by byte.
 *
 * A byte of a pattern may be written as itself, as %XX (once or twice encoded, either case), or as
 * an escape of JSON, C, Python or git: \u0053, \x53, \123, \n, \" …, behind any number of
 * backslashes up to eight, as logs within logs have them. Base64 and hex may have line breaks (LF,
 * CRLF, or those escaped), followed by the mark of a patch ("+", "-") and by indentation.
 */
#include <stdlib.h>
#include <string.h>

#include "record/redact_priv.h"

enum {
    BACKSLASHES_MAX = 8,
    INDENT_MAX = 32,
    ESCAPE_LONGEST = BACKSLASHES_MAX + 5,                       /* \\\\\\\\u0053 */
    BREAK_LONGEST = 2 * (BACKSLASHES_MAX + 1) + 1 + INDENT_MAX, /* \r\n, mark, indentation */
};

/* --- escapes and line breaks --- */

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* `digits` digits at t in base 8 or 16. */
static enum redact_step parse_number(struct str s, size_t t, size_t digits, int base, uint32_t *ret)
{
    *ret = 0;
    for (size_t i = 0; i < digits; i++) {
        if (t + i >= s.len) {
            return REDACT_MORE;
        }
        int d = hex_digit(s.ptr[t + i]);
        if (d < 0 || d >= base) {
            return REDACT_NO;
        }
        *ret = *ret * (uint32_t)base + (uint32_t)d;
    }
    return REDACT_YES;
}

/* Counted up to one more than can mean anything. */
static size_t backslashes(struct str s, size_t t)
{
    size_t n = 0;
    while (n <= BACKSLASHES_MAX && t + n < s.len && s.ptr[t + n] == '\\') {
        n++;
    }
    return n;
}

struct escape {
    char bytes[4];
    size_t len; /* of bytes */
    size_t end; /* behind it in the text */
};

static void put_code_point(struct escape *x, uint32_t code)
{
    static const unsigned char lead[] = { 0, 0, 0xC0, 0xE0, 0xF0 };
    x->len = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = x->len; i-- > 1;) {
        x->bytes[i] = (char)(0x80 | (code & 0x3F));
        code >>= 6;
    }
    x->bytes[0] = (char)(lead[x->len] | code);
}

/* \uD83D must be followed by \uDE00, behind as many backslashes. */
static enum redact_step parse_surrogate(struct str s, size_t run, uint32_t high, struct escape *x)
{
    uint32_t low;
    size_t t = x->end + run;
    if (t >= s.len) {
        return REDACT_MORE;
    }
    if (backslashes(s, x->end) != run || s.ptr[t] != 'u') {
        return REDACT_NO;
    }
    enum redact_step r = parse_number(s, t + 1, 4, 16, &low);
    if (r == REDACT_YES && (low < 0xDC00 || low > 0xDFFF)) {
        return REDACT_NO;
    }
    x->end = t + 5;
    put_code_point(x, 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00));
    return r;
}

/* Backslashes and what they escape. A line break is an escape, too. */
static enum redact_step parse_backslash(struct str s, size_t t, struct escape *x)
{
    static const char simple[256] = {
        ['a'] = '\a', ['b'] = '\b', ['t'] = '\t', ['n'] = '\n',  ['v'] = '\v',
        ['f'] = '\f', ['r'] = '\r', ['"'] = '"',  ['\''] = '\'', ['/'] = '/'
    };
    size_t run = backslashes(s, t);
    size_t at = t + run;
    uint32_t code;
    if (run > BACKSLASHES_MAX) {
        return REDACT_NO;
    }
    if (at >= s.len) {
        return REDACT_MORE;
    }
    char c = s.ptr[at];
    if (simple[(uint8_t)c] != '\0') {
        *x = (struct escape) { { simple[(uint8_t)c] }, 1, at + 1 };
        return REDACT_YES;
    }
    bool octal = c >= '0' && c <= '3';
    if (!octal && c != 'u' && c != 'x') {
        return REDACT_NO;
    }
    size_t digits = octal ? 3 : c == 'u' ? 4 : 2;
    size_t first = octal ? at : at + 1;
    enum redact_step r = parse_number(s, first, digits, octal ? 8 : 16, &code);
    if (r != REDACT_YES) {
        return r;
    }
    x->end = first + digits;
    if (c == 'u' && code >= 0xD800 && code <= 0xDBFF) {
        return parse_surrogate(s, run, code, x);
    }
    if (c == 'u') {
        put_code_point(x, code);
    } else {
        x->bytes[0] = (char)code;
        x->len = 1;
    }
    return REDACT_YES;
}

/* %XX at t; `twice`: %25XX. */
static enum redact_step parse_percent(struct str s, size_t t, bool twice, struct escape *x)
{
    uint32_t code;
    size_t at = t + 1;
    if (twice) {
        enum redact_step r = parse_number(s, at, 2, 16, &code);
        if (r != REDACT_YES || code != '%') {
            return r == REDACT_MORE ? r : REDACT_NO;
        }
        at += 2;
    }
    enum redact_step r = parse_number(s, at, 2, 16, &code);
    *x = (struct escape) { { (char)code }, 1, at + 2 };
    return r;
}

/* LF, CRLF, or both as escapes. */
static enum redact_step parse_newline(struct str s, size_t t, size_t *ret_end)
{
    struct escape x = { .end = t + 1, .bytes = { s.ptr[t] } };
    if (s.ptr[t] == '\\') {
        enum redact_step r = parse_backslash(s, t, &x);
        if (r != REDACT_YES) {
            return r;
        }
    }
    if (x.bytes[0] == '\r') {
        size_t next = x.end;
        if (next >= s.len) {
            return REDACT_MORE;
        }
        x.bytes[0] = s.ptr[next];
        x.end = next + 1;
        enum redact_step r = s.ptr[next] == '\\' ? parse_backslash(s, next, &x) : REDACT_YES;
        if (r != REDACT_YES) {
            return r;
        }
    }
    *ret_end = x.end;
    return x.bytes[0] == '\n' ? REDACT_YES : REDACT_NO;
}

/* A line break with what comes before the text of the next line, which must have begun. */
static enum redact_step parse_break(struct str s, size_t t, bool patch, size_t *ret_end)
{
    size_t at;
    enum redact_step r = parse_newline(s, t, &at);
    if (r != REDACT_YES) {
        return r;
    }
    if (patch && at < s.len && s.ptr[at] != '+' && s.ptr[at] != '-') {
        return REDACT_NO;
    }
    at += patch;
    size_t indent = 0;
    while (at < s.len && indent < INDENT_MAX && (s.ptr[at] == ' ' || s.ptr[at] == '\t')) {
        at++;
        indent++;
    }
    *ret_end = at;
    return at < s.len ? REDACT_YES : REDACT_MORE;
}

/* --- matching --- */

static bool is_break(char c)
{
    return c == '\n' || c == '\r' || c == '\\';
}

static bool may_break(const struct redact_pattern *p, size_t i)
{
    return p->breakable && i >= p->least_part;
}

static enum redact_step match_percent(const struct redact_pattern *p, size_t *i, struct str s,
                                      size_t *t, bool literal)
{
    struct escape x;
    bool percent = p->bytes[*i] == '%';
    for (int twice = 0; twice < 2 && !(percent && literal); twice++) {
        enum redact_step r = parse_percent(s, *t, twice, &x);
        if (r == REDACT_MORE || (r == REDACT_YES && (uint8_t)x.bytes[0] == p->bytes[*i])) {
            *i += 1;
            *t = x.end;
            return r;
        }
    }
    *i += 1;
    *t += 1;
    return percent ? REDACT_YES : REDACT_NO;
}

static enum redact_step match_backslash(const struct redact_pattern *p, size_t *i, struct str s,
                                        size_t *t, unsigned mode)
{
    struct escape x;
    enum redact_step r = parse_backslash(s, *t, &x);
    bool same =
        r == REDACT_YES && x.len <= p->len - *i && memcmp(x.bytes, p->bytes + *i, x.len) == 0;
    if (!same && p->bytes[*i] == '\\') {
        size_t wanted = (size_t)1 << (mode >> REDACT_MODE_LEVEL & 3);
        size_t run = backslashes(s, *t);
        bool last = *i + 1 == p->len && mode & REDACT_MODE_FINAL;
        *i += 1;
        *t += wanted;
        /* What follows may make it an escape. */
        bool open = r == REDACT_MORE && !(last && run >= wanted);
        return open ? REDACT_MORE : run >= wanted ? REDACT_YES : REDACT_NO;
    }
    *i += same ? x.len : 0;
    *t = same ? x.end : *t;
    return same || r == REDACT_MORE ? r : REDACT_NO;
}

/* Byte *i of the pattern at *t of the text. */
static enum redact_step match_byte(const struct redact_pattern *p, size_t *i, struct str s,
                                   size_t *t, unsigned mode)
{
    char c = s.ptr[*t];
    if (c == '%') {
        return match_percent(p, i, s, t, mode & REDACT_MODE_PERCENT);
    }
    if (c == '\\') {
        return match_backslash(p, i, s, t, mode);
    }
    bool same = (uint8_t)c == p->bytes[*i] || (c == '+' && p->bytes[*i] == ' ');
    *i += 1;
    *t += 1;
    return same ? REDACT_YES : REDACT_NO;
}

enum redact_step redact_match(const struct redact_pattern *p, struct str s, size_t t, unsigned mode,
                              size_t *ret_end)
{
    size_t i = 0;
    enum redact_step r = REDACT_YES;
    while (r == REDACT_YES && i < p->len) {
        if (t >= s.len) {
            return REDACT_MORE;
        }
        if (is_break(s.ptr[t]) && may_break(p, i)) {
            size_t after;
            r = parse_break(s, t, mode & REDACT_MODE_PATCH, &after);
            t = r == REDACT_YES ? after : t;
            /* An escape that is no line break stands for a byte. */
            r = r == REDACT_NO && s.ptr[t] == '\\' ? REDACT_YES : r;
        }
        r = r == REDACT_YES ? match_byte(p, &i, s, &t, mode) : r;
    }
    *ret_end = t;
    return r;
}

/* --- the index --- */

/* A position of a pattern, under the byte there and up to two before it. */
struct redact_position {
    uint32_t key;
    uint32_t pattern;
    uint32_t at;
    uint32_t next; /* in the same slot, plus 1; 0: none */
};

static uint32_t key_of(const uint8_t *p, size_t at)
{
    size_t n = at < 2 ? at : 2;
    uint32_t key = (uint32_t)n + 1;
    for (size_t i = at - n; i <= at; i++) {
        key = key << 8 | p[i];
    }
    return key;
}

static size_t slot_of(const struct redactor *r, uint32_t key)
{
    return (size_t)(key * 2654435761u) >> r->index_shift;
}

/* The rest of another pattern is found by the positions of that, except for the first two, whose
 * keys have nothing before them. */
static size_t positions_of(const struct redact_pattern *p)
{
    return p->indexed ? p->len : p->encoded ? 2 : 0;
}

static void index_pattern(struct redactor *r, uint32_t pattern)
{
    const struct redact_pattern *p = &r->patterns[pattern];
    for (size_t at = 0; at < positions_of(p); at++) {
        struct redact_position *x = &r->positions[r->position_count++];
        size_t slot;
        *x = (struct redact_position) { key_of(p->bytes, at), pattern, (uint32_t)at, 0 };
        slot = slot_of(r, x->key);
        x->next = r->slots[slot];
        r->slots[slot] = (uint32_t)r->position_count;
        r->part_bytes[p->bytes[at]] = r->part_bytes[p->bytes[at]] || p->breakable;
        if (at > 0) {
            size_t pair = (size_t)p->bytes[at - 1] << 8 | p->bytes[at];
            r->pairs[pair / 8] |= (uint8_t)(1 << pair % 8);
        } else {
            r->starts[p->bytes[0]] = true;
        }
    }
}

void redactor_index(struct redactor *r)
{
    size_t count = 0;
    r->least_part = REDACT_PART;
    for (size_t i = 0; i < r->pattern_count; i++) {
        const struct redact_pattern *p = &r->patterns[i];
        size_t longest = p->len * (ESCAPE_LONGEST + (p->breakable ? BREAK_LONGEST : 0));
        count += positions_of(p);
        longest = p->encoded ? longest : p->len;
        r->reach = longest > r->reach ? longest : r->reach;
        if (p->breakable) {
            r->least_part = p->least_part < r->least_part ? p->least_part : r->least_part;
        }
    }
    r->index_shift = 31;
    while (((size_t)1 << (32 - r->index_shift)) < count && r->index_shift > 8) {
        r->index_shift--;
    }
    r->slots = xcalloc((size_t)1 << (32 - r->index_shift), sizeof *r->slots);
    r->positions = xcalloc(count + 1, sizeof *r->positions);
    for (size_t i = 0; i < r->pattern_count; i++) {
        index_pattern(r, (uint32_t)i);
    }
}

void redactor_index_free(struct redactor *r)
{
    if (r->positions != NULL) {
        explicit_bzero(r->positions, r->position_count * sizeof *r->positions);
    }
    explicit_bzero(r->pairs, sizeof r->pairs);
    free(r->positions);
    free(r->slots);
}

/* --- searching --- */

struct search {
    const struct redactor *r;
    struct str text;
    unsigned final; /* REDACT_MODE_FINAL or 0 */
    struct redact_hits *hits;
};

static void add_hit(struct redact_hits *h, size_t at, size_t len, size_t secret)
{
    if (h->len == h->cap) {
        h->cap = h->cap == 0 ? 16 : h->cap * 2;
        h->items = xrealloc(h->items, h->cap * sizeof *h->items);
    }
    h->items[h->len++] = (struct redact_hit) { at, len, secret };
}

static void hold_from(struct search *x, size_t at)
{
    x->hits->partial = at < x->hits->partial ? at : x->hits->partial;
}

/* Byte i of the pattern should be at t. */
static void try_pattern(struct search *x, const struct redact_pattern *p, size_t i, size_t t)
{
    if (t < i || memcmp(x->text.ptr + t - i, p->bytes, i) != 0) {
        return;
    }
    for (unsigned mode = 0; mode < REDACT_MODES; mode++) {
        size_t end;
        if ((mode & p->modes) != mode) {
            continue;
        }
        enum redact_step r = redact_match(p, x->text, t - i, mode | x->final, &end);
        if (r == REDACT_YES) {
            add_hit(x->hits, t - i, end - (t - i), p->secret);
        } else if (r == REDACT_MORE) {
            hold_from(x, t - i);
        }
    }
}

static void try_position(struct search *x, const struct redact_position *pos, size_t t)
{
    const struct redact_pattern *p = &x->r->patterns[pos->pattern];
    size_t skip = p->least_part - 1;
    try_pattern(x, p, pos->at, t);
    if (p->indexed && skip > 0 && pos->at >= skip) { /* the beginning is on the line before */
        struct redact_pattern rest = *p;
        rest.bytes += skip;
        rest.len -= skip;
        try_pattern(x, &rest, pos->at - skip, t);
    }
}

static void try_key(struct search *x, uint32_t key, size_t t)
{
    for (uint32_t i = x->r->slots[slot_of(x->r, key)]; i != 0; i = x->r->positions[i - 1].next) {
        if (x->r->positions[i - 1].key == key) {
            try_position(x, &x->r->positions[i - 1], t);
        }
    }
}

/* There is a trigger at t, behind which the text goes on with `c`. */
static void try_byte(struct search *x, size_t t, uint8_t c)
{
    const uint8_t *p = (const uint8_t *)x->text.ptr + t;
    size_t pair = t == 0 ? 0 : (size_t)p[-1] << 8 | c;
    if (x->r->starts[c]) {
        try_key(x, 1u << 8 | c, t);
    }
    if (t > 0 && x->r->pairs[pair / 8] & 1 << pair % 8) {
        try_key(x, 2u << 16 | (uint32_t)pair, t);
        if (t > 1) {
            try_key(x, 3u << 24 | (uint32_t)p[-2] << 16 | (uint32_t)pair, t);
        }
    }
}

/* The text ends within the trigger at t. Does a pattern begin before it, or with it? */
static void hold_before(struct search *x, size_t t, bool at_break)
{
    const struct redactor *r = x->r;
    const uint8_t *p = (const uint8_t *)x->text.ptr;
    for (size_t at = t > r->longest ? t - r->longest : 0; at < t; at++) {
        for (uint32_t i = r->first[p[at]]; i < r->first[p[at] + 1]; i++) {
            const struct redact_pattern *c = &r->patterns[i];
            if (c->encoded && c->len > t - at && memcmp(c->bytes, p + at, t - at) == 0 &&
                (!at_break || may_break(c, t - at))) {
                hold_from(x, at);
                return;
            }
        }
    }
    if (!at_break) {
        hold_from(x, t);
    }
}

/* Can the text before t be the first part of a form with line breaks? Rules out nearly all lines
 * by pairs of bytes that are in no such form. */
static bool may_be_part(const struct search *x, size_t t)
{
    const uint8_t *p = (const uint8_t *)x->text.ptr + t;
    size_t least = x->r->least_part;
    if (t < least || !x->r->part_bytes[p[-1]]) {
        return false;
    }
    for (size_t i = 1; i < least; i++) {
        size_t pair = (size_t)p[-1 - (ptrdiff_t)i] << 8 | p[-(ptrdiff_t)i];
        if (!(x->r->pairs[pair / 8] & 1 << pair % 8)) {
            return false;
        }
    }
    return true;
}

static void try_break(struct search *x, size_t t)
{
    if (!may_be_part(x, t)) {
        return;
    }
    for (int patch = 0; patch < 2; patch++) {
        size_t after;
        struct escape next;
        enum redact_step r = parse_break(x->text, t, patch, &after);
        if (r == REDACT_MORE) {
            hold_before(x, t, true);
        }
        if (r != REDACT_YES) {
            continue;
        }
        char c = x->text.ptr[after];
        enum redact_step escaped = c == '%'    ? parse_percent(x->text, after, false, &next)
                                   : c == '\\' ? parse_backslash(x->text, after, &next)
                                               : REDACT_NO;
        if (escaped == REDACT_MORE) {
            hold_before(x, t, true);
        }
        try_byte(x, t, (uint8_t)(escaped == REDACT_YES ? next.bytes[0] : c));
    }
}

static void try_percent(struct search *x, size_t t)
{
    struct escape e;
    for (int twice = 0; twice < 2; twice++) {
        enum redact_step r = parse_percent(x->text, t, twice, &e);
        if (r == REDACT_YES) {
            try_byte(x, t, (uint8_t)e.bytes[0]);
        } else if (r == REDACT_MORE) {
            hold_before(x, t, false);
        }
    }
}

static void try_backslash(struct search *x, size_t t)
{
    struct escape e;
    enum redact_step r = parse_backslash(x->text, t, &e);
    if (r == REDACT_YES) {
        try_byte(x, t, (uint8_t)e.bytes[0]);
        if (e.bytes[0] == '\n' || e.bytes[0] == '\r') {
            try_break(x, t);
        }
    } else if (r == REDACT_MORE) {
        hold_before(x, t, false);
    }
    if (t + 1 < x->text.len && x->text.ptr[t + 1] == '\\') {
        try_byte(x, t, '\\');
    }
}

static size_t next_of(struct str s, size_t from, char c)
{
    const char *p = from < s.len ? memchr(s.ptr + from, c, s.len - from) : NULL;
    return p == NULL ? s.len : (size_t)(p - s.ptr);
}

static int by_place(const void *va, const void *vb)
{
    const struct redact_hit *a = va;
    const struct redact_hit *b = vb;
    if (a->at != b->at) {
        return a->at < b->at ? -1 : 1;
    }
    return a->len > b->len ? -1 : a->len < b->len;
}

void redactor_collect(const struct redactor *r, struct str text, bool final,
                      struct redact_hits *hits)
{
    struct search x = { r, text, final ? REDACT_MODE_FINAL : 0, hits };
    hits->len = 0;
    hits->partial = text.len;
    for (size_t t = next_of(text, 0, '%'); t < text.len; t = next_of(text, t + 1, '%')) {
        try_percent(&x, t);
    }
    for (size_t t = next_of(text, 0, '\\'); t < text.len; t = next_of(text, t + 1, '\\')) {
        try_backslash(&x, t);
    }
    for (size_t t = next_of(text, 0, '\n'); t < text.len; t = next_of(text, t + 1, '\n')) {
        try_break(&x, t > 0 && text.ptr[t - 1] == '\r' ? t - 1 : t);
    }
    if (text.len > 0 && text.ptr[text.len - 1] == '\r') {
        try_break(&x, text.len - 1);
    }
    if (hits->len > 1) {
        qsort(hits->items, hits->len, sizeof *hits->items, by_place);
    }
}
