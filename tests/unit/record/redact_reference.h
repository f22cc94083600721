/* SPDX-License-Identifier: MIT
 *
 * What redaction means, written without any cleverness: every pattern is compared at every place.
 * The unit test and the fuzzer hold the fast search against it.
 */
#pragma once

#include <string.h>

#include "base/buf.h"
#include "record/redact_priv.h"

/* The longest occurrence of the pattern at this place, however it is written; 0: none. */
static inline size_t redact_longest_at(const struct redact_pattern *p, struct str text, size_t at)
{
    size_t len = 0;
    if (p->len <= text.len - at && memcmp(p->bytes, text.ptr + at, p->len) == 0) {
        len = p->len;
    }
    for (unsigned mode = 0; p->encoded && mode < REDACT_MODES; mode++) {
        size_t end;
        if (redact_match(p, text, at, mode | REDACT_MODE_FINAL, &end) == REDACT_YES &&
            end - at > len) {
            len = end - at;
        }
    }
    return len;
}

static inline void redact_reference(const struct redactor *r, struct str text, struct buf *out)
{
    size_t end = 0;
    for (size_t at = 0; at < text.len; at++) {
        const struct redact_pattern *best = NULL;
        size_t longest = 0;
        for (size_t i = 0; i < r->pattern_count; i++) {
            size_t len = redact_longest_at(&r->patterns[i], text, at);
            if (len > longest) {
                best = &r->patterns[i];
                longest = len;
            }
        }
        if (best != NULL && at >= end) {
            const struct redact_secret *s = &r->secrets[best->secret];
            buf_add(out, str_n(s->mask, s->mask_len));
        }
        end = at + longest > end && longest > 0 ? at + longest : end;
        if (at >= end) {
            buf_add(out, str_slice(text, at, at + 1));
        }
    }
}

/* Is there still a secret in it? */
static inline bool redact_leaks(const struct redactor *r, struct str text)
{
    for (size_t at = 0; at < text.len; at++) {
        for (size_t i = 0; i < r->pattern_count; i++) {
            if (redact_longest_at(&r->patterns[i], text, at) > 0) {
                return true;
            }
        }
    }
    return false;
}
