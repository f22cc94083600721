/* SPDX-License-Identifier: MIT
 *
 * A patch of any bytes is cleaned without harm, and no secret is in what is written as text or
 * behind a gzip header.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/buf.h"
#include "record/redact_patch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void append(void *ctx, struct str bytes)
{
    buf_add(ctx, bytes);
}

static void count(void *ctx, const struct redact_withheld *file)
{
    (void)ctx;
    if (file->why == NULL || file->bytes < 0) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(redactor) struct redactor *r = redactor_new();
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    const struct redact_patch_port port = { append, count, &out };
    struct str text = str_n((const char *)data, size);
    struct redact_probe p;
    if (redactor_add(r, STR("K"), STR("hunter2-hunter2"), NULL) < 0) {
        return 0;
    }
    redactor_compile(r);
    (void)redact_patch(r, text, &port);
    if (str_find(buf_str(&out), STR("hunter2-hunter2")) < out.len) {
        abort();
    }
    redact_probe_init(&p, r);
    redact_probe_feed(&p, text);
    (void)redact_probe_done(&p);
    return 0;
}
