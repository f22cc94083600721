/* SPDX-License-Identifier: MIT
 *
 * Text in tags: cut, repaired, and kept from closing them.
 */
#include "prompt/tagged.h"

#include <string.h>
#include <strings.h>

/* "<tag", "</tag", also with blanks in between and in capitals: what a lenient reader might take
 * for it. */
static bool begins_tag(struct str s, const char *tag)
{
    size_t i = 1;
    size_t len = strlen(tag);
    while (i < s.len &&
           (s.ptr[i] == ' ' || s.ptr[i] == '/' || s.ptr[i] == '\t' || s.ptr[i] == '\n')) {
        i++;
    }
    return s.len - i >= len && strncasecmp(s.ptr + i, tag, len) == 0;
}

static bool is_shown(char c)
{
    return ((unsigned char)c >= 0x20 && c != 0x7f) || c == '\n' || c == '\t';
}

/* First of all: what is left out must not bring together what would be a tag then. */
static void clean(struct buf *out, struct str text)
{
    while (text.len > 0) {
        size_t good = str_utf8_prefix(text);
        for (size_t i = 0; i < good; i++) {
            if (is_shown(text.ptr[i])) {
                buf_add(out, str_slice(text, i, i + 1));
            }
        }
        text = str_slice(text, good, text.len);
        if (text.len > 0) {
            buf_adds(out, "\xef\xbf\xbd");
            text = str_slice(text, 1, text.len);
        }
    }
}

void tagged_add(struct buf *out, const char *tag, struct str text, size_t max)
{
    CLEANUP(buf) struct buf cleaned = BUF_INIT(BUF_TEXT);
    bool cut = text.len > max;
    text = str_slice(text, 0, max);
    while (cut && text.len > 0 && ((unsigned char)text.ptr[text.len - 1] & 0xc0) == 0x80) {
        text.len--; /* the end of a character; its first byte goes below */
    }
    if (cut && text.len > 0 && ((unsigned char)text.ptr[text.len - 1] & 0xc0) == 0xc0) {
        text.len--;
    }
    clean(&cleaned, text);
    text = buf_str(&cleaned);
    while (text.len > 0) {
        const char *at = memchr(text.ptr, '<', text.len);
        size_t plain = at == NULL ? text.len : (size_t)(at - text.ptr);
        buf_add(out, str_slice(text, 0, plain));
        text = str_slice(text, plain, text.len);
        if (text.len > 0) {
            buf_adds(out, begins_tag(text, tag) ? "&lt;" : "<");
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
