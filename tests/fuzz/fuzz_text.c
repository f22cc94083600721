/* SPDX-License-Identifier: MIT
 *
 * Output of agents on its way to a terminal: whatever the bytes, what comes out is UTF-8 without
 * control characters, and cutting and wrapping it keep to the width.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/buf.h"
#include "cli/text.h"

static void check_clean(struct str s, enum text_mode mode)
{
    if (!str_is_utf8(s)) {
        abort();
    }
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        if ((c < 0x20 && !(mode == TEXT_BLOCK && c == '\n')) || c == 0x7f) {
            abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    size_t width = data[0];
    struct str text = str_n(data + 1, size - 1);
    CLEANUP(buf) struct buf line = BUF_INIT(BUF_TEXT);
    CLEANUP(buf) struct buf block = BUF_INIT(BUF_TEXT);
    CLEANUP(buf) struct buf cut = BUF_INIT(BUF_TEXT);
    CLEANUP(buf) struct buf wrapped = BUF_INIT(BUF_TEXT);
    text_clean(&line, text, TEXT_LINE);
    check_clean(buf_str(&line), TEXT_LINE);
    text_clean(&block, text, TEXT_BLOCK);
    check_clean(buf_str(&block), TEXT_BLOCK);
    text_cut(&cut, buf_str(&line), width);
    check_clean(buf_str(&cut), TEXT_LINE);
    if (text_width(buf_str(&cut)) > width) {
        abort();
    }
    text_wrap(&wrapped, buf_str(&block), (struct text_shape) { width / 3, width / 4, width });
    check_clean(buf_str(&wrapped), TEXT_BLOCK);
    return 0;
}
