/* SPDX-License-Identifier: MIT
 *
 * Lines come out the same whatever the chunks were, and no line is longer than allowed. The first
 * byte chooses the size of the chunks.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/buf.h"
#include "wire/lines.h"

enum { LINE_MAX_BYTES = 64 };

static void split(struct str text, size_t step, struct buf *out)
{
    struct lines l;
    struct str line;
    lines_init(&l, LINE_MAX_BYTES);
    for (size_t i = 0; i < text.len; i += step) {
        lines_feed(&l, str_slice(text, i, i + step));
        while (lines_next(&l, &line)) {
            if (line.len > LINE_MAX_BYTES) {
                abort();
            }
            buf_add(out, line);
            buf_adds(out, "\n");
        }
    }
    if (lines_end(&l, &line)) {
        buf_add(out, line);
    }
    buf_addf(out, "%llu", (unsigned long long)l.overlong);
    lines_done(&l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) {
        return 0;
    }
    struct str text = str_n(data + 1, size - 1);
    CLEANUP(buf) struct buf whole = BUF_INIT(BUF_TEXT);
    CLEANUP(buf) struct buf pieces = BUF_INIT(BUF_TEXT);
    split(text, text.len + 1, &whole);
    split(text, (size_t)data[0] % 70 + 1, &pieces);
    if (!str_eq(buf_str(&whole), buf_str(&pieces))) {
        abort();
    }
    return 0;
}
