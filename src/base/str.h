/* SPDX-License-Identifier: MIT
 *
 * struct str: a borrowed, length-carrying piece of bytes. Not NUL-terminated, may hold NULs, never
 * owns memory; valid as long as what it points into. Pass by value. Print with "%.*s", STR_ARG(s).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct str {
    const char *ptr;
    size_t len;
};

#define STR(literal) ((struct str) { (literal), sizeof(literal) - 1 })

#define STR_ARG(s) ((int)((s).len > 1000000 ? 1000000 : (s).len)), ((s).ptr == NULL ? "" : (s).ptr)

#define STR_EMPTY ((struct str) { "", 0 })

static inline struct str str_of(const char *cstr)
{
    return cstr == NULL ? STR_EMPTY : (struct str) { cstr, strlen(cstr) };
}

static inline struct str str_n(const void *ptr, size_t len)
{
    return (struct str) { ptr, len };
}

bool str_eq(struct str a, struct str b);
bool str_eqc(struct str a, const char *cstr);
int str_cmp(struct str a, struct str b); /* bytewise, shorter first */
bool str_starts(struct str s, struct str prefix);
bool str_ends(struct str s, struct str suffix);
struct str str_trim(struct str s);                          /* ASCII white space off both ends */
struct str str_slice(struct str s, size_t from, size_t to); /* clamped */
size_t str_find(struct str s, struct str needle);           /* offset, or s.len when absent */
bool str_has_nul(struct str s);
bool str_is_utf8(struct str s);       /* strict: no surrogates, no overlong forms */
size_t str_utf8_prefix(struct str s); /* bytes before the first that breaks UTF-8; else s.len */

/* Cuts off and returns the part before the first `sep`; the rest (without sep) stays in *s. When
 * sep does not occur, the whole is returned and *s becomes empty with ptr NULL. */
struct str str_split(struct str *s, char sep);

/* Whole-string decimal; false when empty, signed where not allowed, out of range, or trailing
 * bytes. */
bool str_to_i64(struct str s, int64_t *ret);
bool str_to_double(struct str s, double *ret); /* finite only */

/* Seconds from "600", "1.5", "90s", "10m", "2h", "1h30m", "250ms": nanoseconds; false when
 * malformed, negative or beyond ten years. */
bool str_to_duration(struct str s, int64_t *ret_ns);

/* '*' stands for any bytes, '?' for one; `fold`: ASCII letters match without regard to case. Costs
 * at most pattern times text. */
bool str_glob(struct str pattern, struct str text, bool fold);

/* Levenshtein distance, capped at `max` (returns max + 1 then); for "did you mean". */
size_t str_distance(struct str a, struct str b, size_t max);
