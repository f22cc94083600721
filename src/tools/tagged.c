/* SPDX-License-Identifier: MIT
 *
 * Text in tags: cut, repaired, and kept from closing them.
 */
#include "tools/tagged.h"

#include <string.h>
#include <strings.h>

/* "<tag", "</tag", also with blanks in between and in capitals: what a lenient reader might take
 * for it. */
static bool begins_tag(struct str s, const char *tag)
{
    size_t i = 1;
    size_t len = strlen(tag);
    while (i < s.len && (s.ptr[i] == ' ' || s.ptr[i] == '/' || s.ptr[i] == '\t')) {
        i++;
    }
    return s.len - i >= len && strncasecmp(s.ptr + i, tag, len) == 0;
}

static void add_char(struct buf *out, const char *tag, struct str rest)
{
    unsigned char c = (unsigned char)rest.ptr[0];
    if (c == '<' && begins_tag(rest, tag)) {
        buf_adds(out, "&lt;");
    } else if ((c >= 0x20 && c != 0x7f) || c == '\n' || c == '\t') {
        buf_add(out, str_slice(rest, 0, 1));
    }
}

void tagged_add(struct buf *out, const char *tag, struct str text, size_t max)
{
    bool cut = text.len > max;
    text = str_slice(text, 0, max);
    while (cut && text.len > 0 && ((unsigned char)text.ptr[text.len - 1] & 0xc0) == 0x80) {
        text.len--; /* the end of a character; its first byte goes below */
    }
    if (cut && text.len > 0 && ((unsigned char)text.ptr[text.len - 1] & 0xc0) == 0xc0) {
        text.len--;
    }
    while (text.len > 0) {
        size_t good = str_utf8_prefix(text);
        for (size_t i = 0; i < good; i++) {
            add_char(out, tag, str_slice(text, i, text.len));
        }
        text = str_slice(text, good, text.len);
        if (text.len > 0) {
            buf_adds(out, "\xef\xbf\xbd");
            text = str_slice(text, 1, text.len);
        }
    }
    if (cut) {
        buf_adds(out, "\n[cut: the text is longer]");
    }
}

struct str tagged_tail(struct str text, size_t max)
{
    text = str_trim(text);
    if (text.len <= max) {
        return text;
    }
    text = str_slice(text, text.len - max, text.len);
    const char *line = memchr(text.ptr, '\n', text.len);
    size_t from = line == NULL ? 0 : (size_t)(line - text.ptr) + 1;
    while (from < text.len && ((unsigned char)text.ptr[from] & 0xc0) == 0x80) {
        from++;
    }
    return str_slice(text, from, text.len);
}
