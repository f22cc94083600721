/* SPDX-License-Identifier: MIT
 *
 * struct regex: a compiled pattern in the syntax of ECMA-262 (the one of JSON Schema), run by PCRE2
 * under limits; regex.c is the only file that includes pcre2.h.
 *
 *   CLEANUP(regex) struct regex *r = NULL;
 *   regex_compile(STR("^v(\\d+)"), 0, &r, e);               ERR_PARSE says where and what is wrong
 *   int yes = regex_match(r, text, e);                        1, 0, or -ERR_LIMIT
 *   struct regex_span g[2];
 *   yes = regex_find(r, text, g, 2, e);                       g[0] the match, g[1] the first group
 *
 * Meaning, as with the `u` flag: characters are code points; \d \w \b are ASCII; \s is what
 * ECMA-262 calls white space; `$` matches at the very end only; `.` stops at LF, CR, U+2028 and
 * U+2029; \p{…} knows general categories (long and short names), Script=, scx= and binary
 * properties. A match may start anywhere.
 *
 * Taken although the `u` flag forbids it, because schemas in the wild do: an escaped ASCII
 * punctuation character, a brace or closing bracket that stands for itself, [\w-.]. Refused: what
 * only other dialects know, such as (?i), (?P<n>…), \A, \Z, possessive quantifiers. Not supported
 * though ECMA-262 has it: lookbehind of variable length. Different: a group inside a repeated group
 * keeps its text from the earlier round.
 *
 * No input makes a match run away: beyond the limits it ends with ERR_LIMIT. The limits grow with
 * the subject, so a long text alone is no reason to fail; only a group that is repeated some
 * hundred thousand times is.
 *
 * A regex holds scratch memory for its matches: one thread at a time.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

struct regex;

enum regex_flags {
    REGEX_ICASE = 1u << 0, /* letters match without regard to case */
};

/* A range of the subject in bytes; from == REGEX_UNSET for a group that took no part. */
#define REGEX_UNSET SIZE_MAX
struct regex_span {
    size_t from, to;
};

/* ERR_PARSE "pattern '…' at offset N: why"; patterns are at most 64 KiB long. */
int regex_compile(struct str pattern, unsigned flags, struct regex **ret, struct err *e) MUST_USE;
struct regex *regex_free(struct regex *r); /* accepts NULL, returns NULL */

/* Whether the pattern is good ECMA-262; unlike regex_compile() this takes any lookbehind. */
int regex_check(struct str pattern, struct err *e) MUST_USE;

/* 1 when the pattern matches somewhere in the subject, else 0. A subject that is not UTF-8 matches
 * nothing. */
int regex_match(struct regex *r, struct str subject, struct err *e) MUST_USE;

/* The same, and takes its cost from *budget, which many matches can share: a cheap match costs
 * little more than its length in units of eight bytes, one that backtracks much costs thousands.
 * ERR_LIMIT when the budget is used up. */
int regex_match_within(struct regex *r, struct str subject, uint64_t *budget,
                       struct err *e) MUST_USE;

/* As regex_match(), and fills spans[0 … count): the whole match, then the groups. */
int regex_find(struct regex *r, struct str subject, struct regex_span *spans, size_t count,
               struct err *e) MUST_USE;

static inline void cleanup_regex(struct regex **r)
{
    *r = regex_free(*r);
}
