/* SPDX-License-Identifier: MIT
 *
 * Code points of UTF-8 text; their classes and case come from utf8proc.
 */
#include "template/template_unicode.h"

#include <utf8proc.h>

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
    return (size_t)utf8proc_encode_char((utf8proc_int32_t)c, (utf8proc_uint8_t *)out);
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

static utf8proc_category_t category_of(uint32_t c)
{
    return utf8proc_category((utf8proc_int32_t)c);
}

bool unicode_is_word(uint32_t c)
{
    if (c < 0x80) {
        return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
               (c >= 'A' && c <= 'Z');
    }
    utf8proc_category_t is = category_of(c);
    return (is >= UTF8PROC_CATEGORY_LU && is <= UTF8PROC_CATEGORY_LO) ||
           (is >= UTF8PROC_CATEGORY_ND && is <= UTF8PROC_CATEGORY_NO);
}

bool unicode_is_printable(uint32_t c)
{
    if (c < 0x7f) {
        return c >= ' ';
    }
    utf8proc_category_t is = category_of(c);
    return is != UTF8PROC_CATEGORY_CN && is < UTF8PROC_CATEGORY_ZS;
}

bool unicode_is_lower(uint32_t c)
{
    return c < 0x80 ? c >= 'a' && c <= 'z' : category_of(c) == UTF8PROC_CATEGORY_LL;
}

bool unicode_is_upper(uint32_t c)
{
    return c < 0x80 ? c >= 'A' && c <= 'Z' : category_of(c) == UTF8PROC_CATEGORY_LU;
}

bool unicode_is_title(uint32_t c)
{
    return c >= 0x80 && category_of(c) == UTF8PROC_CATEGORY_LT;
}

int unicode_map(struct buf *out, uint32_t c, enum unicode_case to, struct err *e)
{
    if (c < 0x80) {
        bool hit = to == UNICODE_LOWER ? c >= 'A' && c <= 'Z' : c >= 'a' && c <= 'z';
        return buf_append_c(out, (char)(hit ? c ^ 0x20 : c), e);
    }
    if (c == 0xdf && to != UNICODE_LOWER) {
        return buf_append(out, to == UNICODE_UPPER ? STR("SS") : STR("Ss"), e);
    }
    utf8proc_int32_t from = (utf8proc_int32_t)c;
    utf8proc_int32_t mapped = to == UNICODE_LOWER   ? utf8proc_tolower(from)
                              : to == UNICODE_UPPER ? utf8proc_toupper(from)
                                                    : utf8proc_totitle(from);
    char bytes[4];
    return buf_append(out, str_n(bytes, unicode_encode((uint32_t)mapped, bytes)), e);
}

int unicode_convert(struct buf *out, struct str s, enum unicode_case first, enum unicode_case rest,
                    struct err *e)
{
    size_t at = 0;
    int r = s.len == 0 ? 0 : unicode_map(out, unicode_next(s, &at), first, e);
    while (r == 0 && at < s.len) {
        r = unicode_map(out, unicode_next(s, &at), rest, e);
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
