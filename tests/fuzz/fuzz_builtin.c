/* SPDX-License-Identifier: MIT
 *
 * A line with the text to find, one with what replaces it, and a text.
 * Whatever they are: output is valid UTF-8 and bounded, replacing adds up, patterns compile or not.
 */
#include <regex.h>
#include <stdint.h>
#include <stdlib.h>

#include "tools/builtin.h"

static struct builtin_excerpt excerpt;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = str_n(data, size);
    struct str from = str_split(&text, '\n');
    struct str to = str_split(&text, '\n');
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    CLEANUP(buf) struct buf shown = BUF_INIT(BUF_TEXT);
    size_t n = builtin_replace_text(
        &(struct builtin_replace) { .text = text, .from = from, .to = to, .all = size % 2 }, &out);
    if (n == 1 && out.len + from.len != text.len + to.len &&
        str_find(text, STR("\r\n")) == text.len) {
        abort();
    }
    if (builtin_near_match(text, from) > builtin_line_of(text, text.len)) {
        abort();
    }
    size_t bad = builtin_add_line(&shown, text, 1 + size % 50);
    if (!str_is_utf8(buf_str(&shown)) || bad > text.len || shown.len > 3 * 51 + 60) {
        abort();
    }
    for (size_t i = 0; i < size % 8; i++) {
        builtin_excerpt_add(&excerpt, text);
    }
    buf_reset(&shown);
    builtin_excerpt_write(&excerpt, &shown);
    if (!str_is_utf8(buf_str(&shown))) {
        abort();
    }
    if (from.len < 50 && !str_has_nul(from)) {
        regex_t r;
        buf_reset(&shown);
        builtin_pattern(from, size % 2 == 0, &shown);
        char *pattern = buf_take(&shown, NULL);
        int rc = regcomp(&r, pattern, REG_EXTENDED | REG_NOSUB);
        if (rc == 0) {
            regfree(&r);
        } else if (size % 2 == 0 && str_is_utf8(from)) {
            abort(); /* literal text is always a pattern */
        }
        free(pattern);
    }
    return 0;
}
