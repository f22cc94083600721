/* SPDX-License-Identifier: MIT
 *
 * Line splitting without copying where a line lies whole within one chunk.
 */
#include "wire/lines.h"

void lines_init(struct lines *l, size_t max)
{
    *l = (struct lines) { .partial = BUF_INIT(max) };
}

void lines_done(struct lines *l)
{
    buf_done(&l->partial);
    l->input = STR_EMPTY;
}

void lines_feed(struct lines *l, struct str bytes)
{
    l->input = bytes;
}

static struct str without_cr(struct str line)
{
    return line.len > 0 && line.ptr[line.len - 1] == '\r' ? str_n(line.ptr, line.len - 1) : line;
}

static void keep(struct lines *l, struct str bytes)
{
    if (!l->skipping && buf_append(&l->partial, bytes, NULL) < 0) {
        l->skipping = true;
        l->overlong++;
        buf_reset(&l->partial);
    }
}

bool lines_next(struct lines *l, struct str *ret_line)
{
    if (l->handed_out) {
        buf_reset(&l->partial);
        l->handed_out = false;
    }
    while (l->input.len > 0) {
        const char *newline = memchr(l->input.ptr, '\n', l->input.len);
        if (newline == NULL) {
            keep(l, l->input);
            l->input = STR_EMPTY;
            return false;
        }
        struct str piece = str_n(l->input.ptr, (size_t)(newline - l->input.ptr));
        l->input = str_slice(l->input, piece.len + 1, l->input.len);
        if (l->skipping) {
            l->skipping = false;
            continue;
        }
        if (l->partial.len == 0 && piece.len <= l->partial.max) {
            *ret_line = without_cr(piece);
            return true;
        }
        keep(l, piece);
        if (l->skipping) {
            l->skipping = false;
            continue;
        }
        l->handed_out = true;
        *ret_line = without_cr(buf_str(&l->partial));
        return true;
    }
    return false;
}

bool lines_end(struct lines *l, struct str *ret_line)
{
    if (l->handed_out || l->skipping || l->partial.len == 0) {
        return false;
    }
    l->handed_out = true;
    *ret_line = without_cr(buf_str(&l->partial));
    return true;
}
