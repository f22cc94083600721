/* SPDX-License-Identifier: MIT
 *
 * Comparing, cutting and converting borrowed bytes.
 */
#include "base/str.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

bool str_eq(struct str a, struct str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

bool str_eqc(struct str a, const char *cstr)
{
    return str_eq(a, str_of(cstr));
}

int str_cmp(struct str a, struct str b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    int c = n == 0 ? 0 : memcmp(a.ptr, b.ptr, n);
    if (c != 0) {
        return c;
    }
    return a.len < b.len ? -1 : a.len > b.len;
}

bool str_starts(struct str s, struct str prefix)
{
    return s.len >= prefix.len && str_eq(str_n(s.ptr, prefix.len), prefix);
}

bool str_ends(struct str s, struct str suffix)
{
    return s.len >= suffix.len && str_eq(str_n(s.ptr + (s.len - suffix.len), suffix.len), suffix);
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

struct str str_trim(struct str s)
{
    while (s.len > 0 && is_space(s.ptr[0])) {
        s.ptr++;
        s.len--;
    }
    while (s.len > 0 && is_space(s.ptr[s.len - 1])) {
        s.len--;
    }
    return s;
}

struct str str_slice(struct str s, size_t from, size_t to)
{
    if (to > s.len) {
        to = s.len;
    }
    if (from > to) {
        from = to;
    }
    return str_n(from == 0 ? s.ptr : s.ptr + from, to - from); /* ptr may be NULL */
}

size_t str_find(struct str s, struct str needle)
{
    if (needle.len == 0) {
        return 0;
    }
    if (s.len < needle.len) {
        return s.len;
    }
    const char *p = memmem(s.ptr, s.len, needle.ptr, needle.len);
    return p == NULL ? s.len : (size_t)(p - s.ptr);
}

static char folded(char c, bool fold)
{
    return fold && c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

bool str_glob(struct str pattern, struct str text, bool fold)
{
    size_t p = 0;
    size_t t = 0;
    size_t star = SIZE_MAX; /* the last '*', and where its match began: one step back is enough */
    size_t mark = 0;
    while (t < text.len) {
        if (p < pattern.len && pattern.ptr[p] == '*') {
            star = p++;
            mark = t;
        } else if (p < pattern.len && (pattern.ptr[p] == '?' ||
                                       folded(pattern.ptr[p], fold) == folded(text.ptr[t], fold))) {
            p++;
            t++;
        } else if (star != SIZE_MAX) {
            p = star + 1;
            t = ++mark;
        } else {
            return false;
        }
    }
    while (p < pattern.len && pattern.ptr[p] == '*') {
        p++;
    }
    return p == pattern.len;
}

bool str_has_nul(struct str s)
{
    return s.len > 0 && memchr(s.ptr, '\0', s.len) != NULL;
}

/* Length of the UTF-8 sequence at p (1-4), or 0 when it is not valid. */
static size_t utf8_step(const unsigned char *p, size_t left)
{
    unsigned char c = p[0];
    if (c < 0x80) {
        return 1;
    }
    size_t n = c >= 0xc2 && c <= 0xdf   ? 2
               : c >= 0xe0 && c <= 0xef ? 3
               : c >= 0xf0 && c <= 0xf4 ? 4
                                        : 0;
    if (n == 0 || left < n) {
        return 0;
    }
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    bool bad = (c == 0xe0 && p[1] < 0xa0)     /* overlong */
               || (c == 0xed && p[1] > 0x9f)  /* surrogates */
               || (c == 0xf0 && p[1] < 0x90)  /* overlong */
               || (c == 0xf4 && p[1] > 0x8f); /* beyond U+10FFFF */
    return bad ? 0 : n;
}

size_t str_utf8_prefix(struct str s)
{
    const unsigned char *p = (const unsigned char *)s.ptr;
    size_t i = 0;
    while (i < s.len) {
        size_t n = utf8_step(p + i, s.len - i);
        if (n == 0) {
            break;
        }
        i += n;
    }
    return i;
}

bool str_is_utf8(struct str s)
{
    return str_utf8_prefix(s) == s.len;
}

struct str str_split(struct str *s, char sep)
{
    const char *p = s->len == 0 ? NULL : memchr(s->ptr, sep, s->len);
    struct str head = *s;
    if (p == NULL) {
        *s = (struct str) { NULL, 0 };
        return head;
    }
    head.len = (size_t)(p - s->ptr);
    *s = str_n(p + 1, s->len - head.len - 1);
    return head;
}

bool str_to_i64(struct str s, int64_t *ret)
{
    bool negative = s.len > 0 && s.ptr[0] == '-';
    size_t i = negative ? 1 : 0;
    int64_t value = 0;
    if (i == s.len) {
        return false;
    }
    for (; i < s.len; i++) {
        if (s.ptr[i] < '0' || s.ptr[i] > '9') {
            return false;
        }
        int digit = s.ptr[i] - '0';
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, negative ? -digit : digit, &value)) {
            return false;
        }
    }
    *ret = value;
    return true;
}

bool str_to_double(struct str s, double *ret)
{
    char text[64];
    if (s.len == 0 || s.len >= sizeof text || is_space(s.ptr[0])) {
        return false;
    }
    for (size_t i = 0; i < s.len; i++) {
        if (strchr("0123456789+-.eE", s.ptr[i]) == NULL || s.ptr[i] == '\0') {
            return false; /* strtod would also take hexadecimal, "inf" and "nan" */
        }
    }
    memcpy(text, s.ptr, s.len);
    text[s.len] = '\0';
    char *end;
    errno = 0;
    double d = strtod(text, &end);
    if (*end != '\0' || end == text || !isfinite(d)) {
        return false;
    }
    *ret = d;
    return true;
}

/* One "number unit" term; advances *s. Without a unit the number must be all that is left. */
static bool duration_term(struct str *s, double *ret_seconds, bool *ret_bare)
{
    static const struct {
        const char *unit;
        double seconds;
    } units[] = { { "ms", 0.001 }, { "s", 1 }, { "m", 60 }, { "h", 3600 }, { "d", 86400 } };

    size_t digits = 0;
    while (digits < s->len &&
           (s->ptr[digits] == '.' || (s->ptr[digits] >= '0' && s->ptr[digits] <= '9'))) {
        digits++;
    }
    double number;
    if (!str_to_double(str_n(s->ptr, digits), &number)) {
        return false;
    }
    struct str rest = str_slice(*s, digits, s->len);
    *ret_bare = rest.len == 0;
    if (rest.len == 0) {
        *ret_seconds = number;
        *s = rest;
        return true;
    }
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        struct str unit = str_of(units[i].unit);
        if (str_starts(rest, unit)) {
            *ret_seconds = number * units[i].seconds;
            *s = str_slice(rest, unit.len, rest.len);
            return true;
        }
    }
    return false;
}

bool str_to_duration(struct str s, int64_t *ret_ns)
{
    static const double ten_years = 3650.0 * 86400;
    double total = 0;
    if (s.len == 0) {
        return false;
    }
    for (int terms = 0; s.len > 0; terms++) {
        double seconds;
        bool bare;
        if (terms > 4 || !duration_term(&s, &seconds, &bare) || (bare && terms > 0)) {
            return false; /* a number without unit stands alone */
        }
        total += seconds;
    }
    if (total > ten_years) {
        return false;
    }
    *ret_ns = (int64_t)(total * 1e9 + 0.5);
    return true;
}

size_t str_distance(struct str a, struct str b, size_t max)
{
    enum { LONGEST = 64 };
    size_t row[LONGEST + 1];
    if (a.len > LONGEST || b.len > LONGEST) {
        return max + 1;
    }
    for (size_t j = 0; j <= b.len; j++) {
        row[j] = j;
    }
    for (size_t i = 1; i <= a.len; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b.len; j++) {
            size_t change = diagonal + (a.ptr[i - 1] != b.ptr[j - 1]);
            size_t gap = 1 + (row[j] < row[j - 1] ? row[j] : row[j - 1]);
            diagonal = row[j];
            row[j] = change < gap ? change : gap;
        }
    }
    return row[b.len] > max ? max + 1 : row[b.len];
}
