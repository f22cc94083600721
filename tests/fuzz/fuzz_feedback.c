/* SPDX-License-Identifier: MIT
 *
 * What a feedback program prints, and the block that the model gets of it: bounded, UTF-8, and
 * closed by us alone.
 */
#include <stdint.h>
#include <stdlib.h>
#include <strings.h>

#include "guard/feedback_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char closing[] = "</feedback>";
    struct arena *a = arena_new();
    struct buf out = BUF_INIT(BUF_TEXT);
    const char *why;
    struct json *record = feedback_reply_read(a, str_n(data, size), &why);
    if (record != NULL) {
        feedback_render(&out, STR("x"), record);
        struct str block = buf_str(&out);
        size_t end = block.len - (sizeof closing - 1);
        if (!str_is_utf8(block) || block.len > (size_t)8 * FEEDBACK_TEXT_MAX) {
            abort();
        }
        for (size_t i = 0; i + sizeof closing - 1 <= block.len; i++) {
            if ((strncasecmp(block.ptr + i, closing, sizeof closing - 1) == 0) != (i == end)) {
                abort();
            }
        }
    }
    if (record != NULL && why != NULL) {
        abort();
    }
    buf_done(&out);
    arena_free(a);
    return 0;
}
