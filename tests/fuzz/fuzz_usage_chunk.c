/* SPDX-License-Identifier: MIT
 *
 * Removing the usage chunk gives the same bytes whatever the pieces were, adds nothing, and changes
 * nothing where the word does not occur. The first byte chooses the size of the pieces.
 */
#include <stdint.h>
#include <stdlib.h>

#include "gateway/usage_chunk.h"

static void remove_in_pieces(struct str text, size_t piece, struct buf *out)
{
    struct usage_chunk *u = usage_chunk_new();
    for (size_t at = 0; at < text.len; at += piece) {
        usage_chunk_feed(u, str_slice(text, at, at + piece), out);
    }
    usage_chunk_end(u, out);
    (void)usage_chunk_free(u);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) {
        return 0;
    }
    struct str text = str_n(data + 1, size - 1);
    CLEANUP(buf) struct buf whole = BUF_INIT(BUF_TEXT);
    CLEANUP(buf) struct buf pieces = BUF_INIT(BUF_TEXT);
    remove_in_pieces(text, text.len + 1, &whole);
    remove_in_pieces(text, (size_t)data[0] % 60 + 1, &pieces);
    bool same = whole.len == text.len;
    bool may_differ = str_find(text, STR("usage")) < text.len;
    if (!str_eq(buf_str(&whole), buf_str(&pieces)) || whole.len > text.len ||
        (!may_differ && !same) || (same && !str_eq(buf_str(&whole), text))) {
        abort();
    }
    return 0;
}
