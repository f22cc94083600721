/* SPDX-License-Identifier: MIT
 *
 * struct loss: what the record could not keep. A full disk must not stop the run nor be passed over
 * in silence: writers note here what went wrong, once in words and always in numbers, and go on.
 * Shared by all writers of one run; the record turns it into one event, one warning of the manifest
 * and metrics.json ext.bytes.lost.
 */
#pragma once

#include <stdint.h>

#include "base/err.h"

struct loss {
    uint64_t times;   /* writes that failed */
    uint64_t bytes;   /* of logs */
    uint64_t lines;   /* of events.jsonl and transcript.jsonl */
    const char *file; /* where it happened first; static string */
    struct err first;
};

/* `file` must be a static string: the name of the file within the run directory. */
static inline void loss_note(struct loss *l, const char *file, const struct err *why,
                             uint64_t bytes, uint64_t lines)
{
    if (l->times == 0) {
        l->file = file;
        l->first = *why;
    }
    l->times++;
    l->bytes += bytes;
    l->lines += lines;
}
