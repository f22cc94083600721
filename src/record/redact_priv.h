/* SPDX-License-Identifier: MIT
 *
 * Inside of the redactor: its table of patterns, shared by redact.c (search), redact_forms.c (what
 * is searched for) and redact_tree.c (strings and trees).
 */
#pragma once

#include <stdbool.h>

#include "record/redact.h"

/* Characters that a line must end with to be taken for the first part of a form with line breaks.
 * If it were fewer, many lines would have to be held back until the next comes. */
enum { REDACT_PART = 4 };

/* How a form may turn up. */
enum redact_form {
    REDACT_EXACT,     /* byte for byte */
    REDACT_ENCODED,   /* also with bytes escaped */
    REDACT_BREAKABLE, /* … and with line breaks in it */
};

struct redact_pattern {
    uint8_t *bytes;
    size_t len;
    size_t secret; /* index into redactor.secrets */
    bool encoded, breakable;
    bool indexed;      /* encoded, and not the rest of another one */
    size_t least_part; /* bytes before the first line break */
    unsigned modes;    /* REDACT_MODE_… that make a difference */
};

/* How an occurrence is written. Each mode is tried by itself, so that matching never goes back. */
enum {
    REDACT_MODE_PATCH = 1 << 0,   /* a line break is followed by "+" or "-" */
    REDACT_MODE_PERCENT = 1 << 1, /* "%" of the pattern is itself, not %25 */
    REDACT_MODE_LEVEL = 2,        /* bits from here: a backslash is written as 1, 2 or 4 */
    REDACT_MODES = 3 << REDACT_MODE_LEVEL,
    REDACT_MODE_FINAL = 1 << 4, /* nothing follows the text: a backslash at its end is itself */
};

enum redact_step {
    REDACT_NO,
    REDACT_YES,
    REDACT_MORE, /* the text ends before it is clear */
};

struct redact_secret {
    char *name; /* made of letters, digits, '_', '.', '-' */
    char *mask; /* what is written instead */
    size_t mask_len;
};

struct redactor {
    struct redact_secret *secrets;
    size_t secret_count;
    struct redact_pattern *patterns; /* after compile: sorted by first byte, then longest first */
    size_t pattern_count, pattern_cap;
    size_t shortest, longest;
    size_t window;  /* bytes of each pattern that the shift table looks at: min(shortest, 256) */
    uint8_t *shift; /* per pair of bytes: how far the window may move; 65536 entries */
    uint32_t first[257]; /* patterns that begin with byte b are [first[b], first[b + 1]) */
    bool compiled;

    /* redact_encoded.c: every position of every encoded pattern, in a hash table. */
    struct redact_position *positions;
    size_t position_count;
    uint32_t *slots; /* index of the last position with that hash, plus 1 */
    unsigned index_shift;
    uint8_t pairs[8192];  /* bit set of all pairs of bytes of encoded patterns */
    bool starts[256];     /* their first bytes */
    bool part_bytes[256]; /* all bytes of those with line breaks */
    size_t least_part;    /* the smallest of any */
    size_t reach;         /* longest occurrence in a text */
};

/* Adds the bytes as one more pattern for the secret; copies. */
void redactor_add_pattern(struct redactor *r, size_t secret, struct str bytes,
                          enum redact_form form);
/* Adds the value and all its encodings. */
void redactor_add_forms(struct redactor *r, size_t secret, struct str value);

/* Is the pattern at t of the text, written in this mode? *ret_end is where it ends. */
enum redact_step redact_match(const struct redact_pattern *p, struct str text, size_t t,
                              unsigned mode, size_t *ret_end) MUST_USE;
void redactor_index(struct redactor *r);
void redactor_index_free(struct redactor *r);
/* All occurrences with escapes or line breaks, by their place, the longest first; where the text
 * ends within one, `partial` is the place of the first such, else the end of the text. */
void redactor_collect(const struct redactor *r, struct str text, bool final,
                      struct redact_hits *hits);

/* Where the tail begins that is the beginning of a secret; text.len when there is none. `ret` is
 * the pattern, when there is one; it may be NULL. */
size_t redactor_tail(const struct redactor *r, struct str text, const struct redact_pattern **ret);

/* Leftmost occurrence that starts in [from, stop), the longest there; false when there is none. */
bool redactor_find(const struct redactor *r, struct str text, size_t from, size_t stop,
                   size_t *ret_at, const struct redact_pattern **ret);
