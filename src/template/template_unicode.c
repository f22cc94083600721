/* SPDX-License-Identifier: MIT
 *
 * Searching the generated tables, and the text-level rules on top of them: final sigma, title case,
 * Python's idea of white space and line ends.
 */
#include "template/template_unicode.h"

uint32_t unicode_next(struct str s, size_t *at)
{
    const unsigned char *p = (const unsigned char *)s.ptr + *at;
    size_t left = s.len - *at;
    if (p[0] < 0x80) {
        *at += 1;
        return p[0];
    }
    if (p[0] >= 0xc2 && p[0] <= 0xdf && left >= 2) {
        *at += 2;
        return (uint32_t)(p[0] & 0x1f) << 6 | (p[1] & 0x3fu);
    }
    if (p[0] >= 0xe0 && p[0] <= 0xef && left >= 3) {
        *at += 3;
        return (uint32_t)(p[0] & 0x0f) << 12 | (uint32_t)(p[1] & 0x3f) << 6 | (p[2] & 0x3fu);
    }
    if (p[0] >= 0xf0 && p[0] <= 0xf4 && left >= 4) {
        *at += 4;
        return (uint32_t)(p[0] & 0x07) << 18 | (uint32_t)(p[1] & 0x3f) << 12 |
               (uint32_t)(p[2] & 0x3f) << 6 | (p[3] & 0x3fu);
    }
    *at += 1;
    return p[0];
}

size_t unicode_back(struct str s, size_t at)
{
    size_t to = at - 1;
    while (to > 0 && at - to < 4 && ((unsigned char)s.ptr[to] & 0xc0) == 0x80) {
        to--;
    }
    return to;
}

size_t unicode_len(struct str s)
{
    size_t n = 0;
    for (size_t i = 0; i < s.len; i++) {
        n += ((unsigned char)s.ptr[i] & 0xc0) != 0x80;
    }
    return n;
}

size_t unicode_offset(struct str s, size_t n)
{
    size_t at = 0;
    while (n > 0 && at < s.len) {
        (void)unicode_next(s, &at);
        n--;
    }
    return at;
}

size_t unicode_encode(uint32_t c, char out[4])
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xe0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3f));
        out[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 0x3f));
    out[2] = (char)(0x80 | (c >> 6 & 0x3f));
    out[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

static bool in_runs(const struct unicode_run *runs, size_t len, uint32_t c)
{
    size_t low = 0;
    size_t high = len;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (c > runs[mid].last) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low < len && c >= runs[low].first && (c - runs[low].first) % runs[low].step == 0;
}

bool unicode_is_space(uint32_t c)
{
    return c == ' ' || (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x1f) || c == 0x85 ||
           c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 ||
           c == 0x202f || c == 0x205f || c == 0x3000;
}

bool unicode_is_line_end(uint32_t c)
{
    return (c >= 0x0a && c <= 0x0d) || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 ||
           c == 0x2029;
}

bool unicode_is_alnum(uint32_t c)
{
    if (c < 0x80) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    }
    return in_runs(unicode_alnum, unicode_alnum_len, c);
}

bool unicode_is_alpha(uint32_t c)
{
    return unicode_is_alnum(c) && !in_runs(unicode_number, unicode_number_len, c);
}

bool unicode_is_digit(uint32_t c)
{
    return c < 0x80 ? c >= '0' && c <= '9' : in_runs(unicode_digit, unicode_digit_len, c);
}

bool unicode_is_word(uint32_t c)
{
    return c == '_' || unicode_is_alnum(c);
}

bool unicode_is_printable(uint32_t c)
{
    if (c < 0x7f) {
        return c >= ' ';
    }
    return !in_runs(unicode_unprintable, unicode_unprintable_len, c);
}

bool unicode_is_lower(uint32_t c)
{
    return c < 0x80 ? c >= 'a' && c <= 'z' : in_runs(unicode_lower_case, unicode_lower_case_len, c);
}

bool unicode_is_upper(uint32_t c)
{
    return c < 0x80 ? c >= 'A' && c <= 'Z' : in_runs(unicode_upper_case, unicode_upper_case_len, c);
}

/* The digraphs like U+01C5, which are title case: neither lower nor upper. */
static bool is_title(uint32_t c)
{
    return c == 0x1c5 || c == 0x1c8 || c == 0x1cb || c == 0x1f2 || (c >= 0x1f88 && c <= 0x1f8f) ||
           (c >= 0x1f98 && c <= 0x1f9f) || (c >= 0x1fa8 && c <= 0x1faf) || c == 0x1fbc ||
           c == 0x1fcc || c == 0x1ffc;
}

bool unicode_is_cased(uint32_t c)
{
    return unicode_is_lower(c) || unicode_is_upper(c) || is_title(c);
}

/* What may stand between a letter and the end of its word without ending it; the common part of
 * Unicode's Case_Ignorable, enough for running text. */
static bool is_case_ignorable(uint32_t c)
{
    return c == '\'' || c == '.' || c == ':' || c == '^' || c == '`' || c == 0xa8 || c == 0xad ||
           c == 0xaf || c == 0xb4 || c == 0xb7 || c == 0xb8 || (c >= 0x2b0 && c <= 0x36f) ||
           (c >= 0x483 && c <= 0x489) || c == 0x2018 || c == 0x2019 || c == 0x2024 || c == 0x2027;
}

struct case_table {
    const struct unicode_shift *shifts;
    const size_t *shifts_len;
    const struct unicode_special *specials;
    const size_t *specials_len;
};

static const struct case_table case_tables[] = {
    [UNICODE_LOWER] = { unicode_to_lower, &unicode_to_lower_len, unicode_to_lower_special,
                        &unicode_to_lower_special_len },
    [UNICODE_UPPER] = { unicode_to_upper, &unicode_to_upper_len, unicode_to_upper_special,
                        &unicode_to_upper_special_len },
    [UNICODE_TITLE] = { unicode_to_title, &unicode_to_title_len, unicode_to_title_special,
                        &unicode_to_title_special_len },
};

static uint32_t shift(const struct case_table *t, uint32_t c)
{
    size_t low = 0;
    size_t high = *t->shifts_len;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (c > t->shifts[mid].last) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    const struct unicode_shift *s = &t->shifts[low];
    if (low == *t->shifts_len || c < s->first || (c - s->first) % s->step != 0) {
        return c;
    }
    return (uint32_t)((int32_t)c + s->delta);
}

static int append(struct buf *out, uint32_t c, struct err *e)
{
    char bytes[4];
    return buf_append(out, str_n(bytes, unicode_encode(c, bytes)), e);
}

int unicode_map(struct buf *out, uint32_t c, enum unicode_case to, struct err *e)
{
    if (c < 0x80) {
        bool lower = to == UNICODE_LOWER;
        bool hit = lower ? c >= 'A' && c <= 'Z' : c >= 'a' && c <= 'z';
        return buf_append_c(out, (char)(hit ? c ^ 0x20 : c), e);
    }
    const struct case_table *t = &case_tables[to];
    uint32_t mapped = shift(t, c);
    if (mapped != c) {
        return append(out, mapped, e);
    }
    for (size_t i = 0; i < *t->specials_len; i++) {
        if (t->specials[i].from != c) {
            continue;
        }
        int r = 0;
        for (size_t k = 0; k < 3 && t->specials[i].to[k] != 0 && r == 0; k++) {
            r = append(out, t->specials[i].to[k], e);
        }
        return r;
    }
    return append(out, c, e);
}

/* Capital sigma at the end of a word becomes final sigma: a cased letter before it, none behind. */
static bool sigma_is_final(struct str s, size_t at, size_t behind)
{
    bool before = false;
    for (size_t i = at; i > 0 && !before;) {
        i = unicode_back(s, i);
        size_t next = i;
        uint32_t c = unicode_next(s, &next);
        if (!is_case_ignorable(c)) {
            before = unicode_is_cased(c);
            break;
        }
    }
    if (!before) {
        return false;
    }
    while (behind < s.len) {
        uint32_t c = unicode_next(s, &behind);
        if (!is_case_ignorable(c)) {
            return !unicode_is_cased(c);
        }
    }
    return true;
}

static int map_lower(struct buf *out, struct str s, size_t *at, struct err *e)
{
    size_t start = *at;
    uint32_t c = unicode_next(s, at);
    if (c == 0x3a3) {
        return append(out, sigma_is_final(s, start, *at) ? 0x3c2 : 0x3c3, e);
    }
    return unicode_map(out, c, UNICODE_LOWER, e);
}

/* The ASCII at the front of s, converted at once; *at is moved behind it. */
static int convert_ascii(struct buf *out, struct str s, size_t *at, enum unicode_case to,
                         struct err *e)
{
    size_t n = 0;
    while (*at + n < s.len && (unsigned char)s.ptr[*at + n] < 0x80) {
        n++;
    }
    char *p;
    int r = n == 0 ? 0 : buf_reserve(out, n, &p, e);
    if (r < 0 || n == 0) {
        return r;
    }
    const char *from = s.ptr + *at;
    char first = to == UNICODE_LOWER ? 'A' : 'a';
    for (size_t i = 0; i < n; i++) {
        p[i] = (char)((unsigned char)(from[i] - first) < 26 ? from[i] ^ 0x20 : from[i]);
    }
    buf_commit(out, n);
    *at += n;
    return 0;
}

int unicode_convert(struct buf *out, struct str s, enum unicode_case to, struct err *e)
{
    for (size_t at = 0; at < s.len;) {
        int r = convert_ascii(out, s, &at, to, e);
        if (r < 0 || at == s.len) {
            return r;
        }
        r = to == UNICODE_LOWER ? map_lower(out, s, &at, e)
                                : unicode_map(out, unicode_next(s, &at), to, e);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

int unicode_capitalize(struct buf *out, struct str s, struct err *e)
{
    size_t at = 0;
    if (s.len == 0) {
        return 0;
    }
    int r = unicode_map(out, unicode_next(s, &at), UNICODE_TITLE, e);
    while (r == 0 && at < s.len) {
        r = map_lower(out, s, &at, e);
    }
    return r;
}

int unicode_title(struct buf *out, struct str s, struct err *e)
{
    bool inside = false; /* the previous one was a cased letter */
    int r = 0;
    for (size_t at = 0; at < s.len && r == 0;) {
        size_t start = at;
        uint32_t c = unicode_next(s, &at);
        if (inside) {
            at = start;
            r = map_lower(out, s, &at, e);
        } else {
            r = unicode_map(out, c, UNICODE_TITLE, e);
        }
        inside = unicode_is_cased(c);
    }
    return r;
}

int unicode_swap_case(struct buf *out, struct str s, struct err *e)
{
    int r = 0;
    for (size_t at = 0; at < s.len && r == 0;) {
        size_t start = at;
        uint32_t c = unicode_next(s, &at);
        if (unicode_is_upper(c)) {
            at = start;
            r = map_lower(out, s, &at, e);
        } else {
            r = unicode_is_lower(c) ? unicode_map(out, c, UNICODE_UPPER, e) : append(out, c, e);
        }
    }
    return r;
}

struct str unicode_strip(struct str s, bool left, bool right)
{
    size_t from = 0;
    while (left && from < s.len) {
        size_t next = from;
        if (!unicode_is_space(unicode_next(s, &next))) {
            break;
        }
        from = next;
    }
    size_t to = s.len;
    while (right && to > from) {
        size_t last = unicode_back(s, to);
        size_t next = last;
        if (!unicode_is_space(unicode_next(s, &next))) {
            break;
        }
        to = last;
    }
    return str_n(s.ptr + from, to - from);
}
