/* SPDX-License-Identifier: MIT
 *
 * Foreign bytes as text of a report; see report_priv.h.
 */
#include "ack/report_priv.h"

#define REPLACEMENT "\xef\xbf\xbd"

static const char *escape_xml(char c, bool attribute)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return attribute ? "&quot;" : NULL;
    case '\n':
        return attribute ? "&#10;" : NULL;
    case '\t':
        return attribute ? "&#9;" : NULL;
    default:
        return NULL;
    }
}

static const char *escape_markdown(char c)
{
    switch (c) {
    case '|':
        return "\\|";
    case '<':
        return "&lt;";
    case '&':
        return "&amp;";
    case '*':
        return "\\*";
    case '`':
        return "\\`";
    case '[':
        return "\\[";
    case '\n':
    case '\t':
        return " ";
    default:
        return NULL;
    }
}

static void add_ascii(struct buf *out, char c, enum report_form form)
{
    const char *escaped =
        form == REPORT_MARKDOWN ? escape_markdown(c) : escape_xml(c, form == REPORT_ATTRIBUTE);
    if (escaped != NULL) {
        buf_adds(out, escaped);
    } else if ((c >= 0 && c < ' ' && c != '\n' && c != '\t') || c == 0x7f) {
        buf_addf(out, "\\x%02x", (unsigned)c);
    } else {
        buf_add(out, str_n(&c, 1));
    }
}

static size_t utf8_length(unsigned char first)
{
    return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

void report_text(struct buf *out, struct str s, enum report_form form)
{
    for (size_t i = 0; i < s.len;) {
        unsigned char c = (unsigned char)s.ptr[i];
        if (c < 0x80) {
            add_ascii(out, (char)c, form);
            i++;
            continue;
        }
        struct str one = str_slice(s, i, i + utf8_length(c));
        bool valid = one.len == utf8_length(c) && str_is_utf8(one);
        /* U+FFFE and U+FFFF are UTF-8, but no characters of XML; U+0080 … U+009F move cursors. */
        bool forbidden = valid && ((c == 0xef && (unsigned char)one.ptr[1] == 0xbf &&
                                    (unsigned char)one.ptr[2] >= 0xbe) ||
                                   (c == 0xc2 && (unsigned char)one.ptr[1] < 0xa0));
        buf_add(out, valid && !forbidden ? one : STR(REPLACEMENT));
        i += valid ? one.len : 1;
    }
}
