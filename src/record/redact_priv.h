/* SPDX-License-Identifier: MIT
 *
 * Inside of the redactor: its table of patterns, shared by redact.c (search), redact_forms.c (what
 * is searched for) and redact_tree.c (strings and trees).
 */
#pragma once

#include <stdbool.h>

#include "record/redact.h"

struct redact_pattern {
    uint8_t *bytes;
    size_t len;
    size_t secret; /* index into redactor.secrets */
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
};

/* Adds the bytes as one more pattern for the secret; copies; a duplicate is dropped. */
void redactor_add_pattern(struct redactor *r, size_t secret, struct str bytes);
/* Adds the value and all its encodings. */
void redactor_add_forms(struct redactor *r, size_t secret, struct str value);

/* Where the tail begins that is the beginning of a secret; text.len when there is none. `ret` is
 * the pattern, when there is one; it may be NULL. */
size_t redactor_tail(const struct redactor *r, struct str text, const struct redact_pattern **ret);

/* Leftmost occurrence that starts in [from, stop), the longest there; false when there is none. */
bool redactor_find(const struct redactor *r, struct str text, size_t from, size_t stop,
                   size_t *ret_at, const struct redact_pattern **ret);
