/* SPDX-License-Identifier: MIT
 *
 * What redaction means, written without any cleverness: every pattern is compared at every place.
 * The unit test and the fuzzer hold the fast search against it.
 */
#pragma once

#include <string.h>

#include "base/buf.h"
#include "record/redact_priv.h"

static inline void redact_reference(const struct redactor *r, struct str text, struct buf *out)
{
    size_t end = 0;
    for (size_t at = 0; at < text.len; at++) {
        const struct redact_pattern *best = NULL;
        for (size_t i = 0; i < r->pattern_count; i++) {
            const struct redact_pattern *p = &r->patterns[i];
            if (p->len <= text.len - at && memcmp(p->bytes, text.ptr + at, p->len) == 0 &&
                (best == NULL || p->len > best->len)) {
                best = p;
            }
        }
        if (best != NULL && at >= end) {
            const struct redact_secret *s = &r->secrets[best->secret];
            buf_add(out, str_n(s->mask, s->mask_len));
        }
        if (best != NULL && at + best->len > end) {
            end = at + best->len;
        }
        if (at >= end) {
            buf_add(out, str_slice(text, at, at + 1));
        }
    }
}

/* Is there still a secret in it? */
static inline bool redact_leaks(const struct redactor *r, struct str text)
{
    for (size_t i = 0; i < r->pattern_count; i++) {
        struct str pattern = str_n(r->patterns[i].bytes, r->patterns[i].len);
        if (text.len >= pattern.len &&
            memmem(text.ptr, text.len, pattern.ptr, pattern.len) != NULL) {
            return true;
        }
    }
    return false;
}
