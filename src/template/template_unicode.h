/* SPDX-License-Identifier: MIT
 *
 * Unicode for templates: code points of UTF-8 text, their classes and their case, without any
 * locale. The data is that of utf8proc.
 *
 * Case is mapped code point by code point, with one exception: "ß" becomes "SS" ("Ss" at the start
 * of a word), as in Python. Python's other mappings to several code points and its final sigma are
 * not supported.
 *
 * Text given to these functions is valid UTF-8 (checked when a template is parsed and when JSON is
 * read); a stray byte is taken as one code point of its own value and never read past the end.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

/* The code point at s.ptr[*at]; moves *at behind it. */
uint32_t unicode_next(struct str s, size_t *at);
/* Where the code point before `at` begins. */
size_t unicode_back(struct str s, size_t at);
size_t unicode_len(struct str s);
/* Byte offset of the n-th code point (s.len when there are fewer). */
size_t unicode_offset(struct str s, size_t n);
/* Writes at most 4 bytes, returns how many. */
size_t unicode_encode(uint32_t c, char out[4]);

bool unicode_is_space(uint32_t c);
bool unicode_is_word(uint32_t c); /* \w: a letter, a number or an underscore */
bool unicode_is_printable(uint32_t c);
bool unicode_is_lower(uint32_t c);
bool unicode_is_upper(uint32_t c);
bool unicode_is_title(uint32_t c);    /* a digraph like U+01C5 */
bool unicode_is_line_end(uint32_t c); /* as str.splitlines() */

enum unicode_case { UNICODE_LOWER, UNICODE_UPPER, UNICODE_TITLE };

/* Appends one code point in that case. */
int unicode_map(struct buf *out, uint32_t c, enum unicode_case to, struct err *e) MUST_USE;
/* Appends the text: the first code point in case `first`, the others in case `rest`. */
int unicode_convert(struct buf *out, struct str s, enum unicode_case first, enum unicode_case rest,
                    struct err *e) MUST_USE;

/* 0 to 35 for an ASCII digit or letter, else 99. */
static inline int unicode_digit_value(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    return (c | 0x20) >= 'a' && (c | 0x20) <= 'z' ? (c | 0x20) - 'a' + 10 : 99;
}
/* A code point that text may hold: in range and no surrogate. */
static inline bool unicode_is_scalar(int64_t c)
{
    return c >= 0 && c <= 0x10ffff && !(c >= 0xd800 && c < 0xe000);
}

struct str unicode_strip(struct str s, bool left, bool right); /* white space */
