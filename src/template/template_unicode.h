/* SPDX-License-Identifier: MIT
 *
 * Unicode for templates: code points of UTF-8 text, classes and case mappings as Python has them
 * (its data is the source of template_unicode_table.c), without any locale.
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

struct unicode_run {
    uint32_t first, last, step; /* step 2: every second one, as in alternating letter cases */
};
struct unicode_shift {
    uint32_t first, last, step;
    int32_t delta;
};
struct unicode_special {
    uint32_t from, to[3]; /* one code point becomes several; unused places are 0 */
};

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
bool unicode_is_alnum(uint32_t c);
bool unicode_is_alpha(uint32_t c);
bool unicode_is_digit(uint32_t c);
bool unicode_is_word(uint32_t c); /* \w: alnum or underscore */
bool unicode_is_printable(uint32_t c);
bool unicode_is_lower(uint32_t c);
bool unicode_is_upper(uint32_t c);
bool unicode_is_cased(uint32_t c);
bool unicode_is_line_end(uint32_t c); /* as str.splitlines() */

enum unicode_case { UNICODE_LOWER, UNICODE_UPPER, UNICODE_TITLE };

/* Appends the mapping of one code point (up to three). */
int unicode_map(struct buf *out, uint32_t c, enum unicode_case to, struct err *e) MUST_USE;
/* The whole text in lower or upper case; lower knows the final sigma. */
int unicode_convert(struct buf *out, struct str s, enum unicode_case to, struct err *e) MUST_USE;
/* str.capitalize(), str.title() and str.swapcase(). */
int unicode_capitalize(struct buf *out, struct str s, struct err *e) MUST_USE;
int unicode_title(struct buf *out, struct str s, struct err *e) MUST_USE;
int unicode_swap_case(struct buf *out, struct str s, struct err *e) MUST_USE;

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

/* The generated tables. */
#define UNICODE_TABLE(kind, name)    \
    extern const struct kind name[]; \
    extern const size_t name##_len;
UNICODE_TABLE(unicode_run, unicode_alnum)
UNICODE_TABLE(unicode_run, unicode_number)
UNICODE_TABLE(unicode_run, unicode_digit)
UNICODE_TABLE(unicode_run, unicode_unprintable)
UNICODE_TABLE(unicode_run, unicode_lower_case)
UNICODE_TABLE(unicode_run, unicode_upper_case)
UNICODE_TABLE(unicode_shift, unicode_to_lower)
UNICODE_TABLE(unicode_shift, unicode_to_upper)
UNICODE_TABLE(unicode_shift, unicode_to_title)
UNICODE_TABLE(unicode_special, unicode_to_lower_special)
UNICODE_TABLE(unicode_special, unicode_to_upper_special)
UNICODE_TABLE(unicode_special, unicode_to_title_special)
