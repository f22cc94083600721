/* SPDX-License-Identifier: MIT
 *
 * Cleaning and shaping of text. The character tables are coarse on purpose: a wrong width costs a
 * ragged edge, so the big ranges are enough; what can deceive (controls, bidirectional overrides,
 * invisible characters) is listed in full.
 */
#include "cli/text.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/macro.h"

struct range {
    uint32_t first, last;
};

/* Never shown raw: C1 controls, soft hyphen, zero-width characters, bidirectional marks and
 * overrides, line separators, variation by invisible operators, tags, the byte order mark. */
static const struct range deceptive[] = {
    { 0x0080, 0x009f },   { 0x00ad, 0x00ad },   { 0x034f, 0x034f }, { 0x061c, 0x061c },
    { 0x115f, 0x1160 },   { 0x17b4, 0x17b5 },   { 0x180b, 0x180f }, { 0x200b, 0x200c },
    { 0x200e, 0x200f },   { 0x2028, 0x202e },   { 0x2060, 0x206f }, { 0x3164, 0x3164 },
    { 0xfeff, 0xfeff },   { 0xffa0, 0xffa0 },   { 0xfff9, 0xfffb }, { 0xfffe, 0xffff },
    { 0x1d173, 0x1d17a }, { 0xe0000, 0xe0fff },
};

/* U+200D joins emoji; shown raw, it takes no column. */
static const struct range zero_width[] = {
    { 0x0300, 0x036f }, { 0x0483, 0x0489 }, { 0x0591, 0x05bd },   { 0x0610, 0x061a },
    { 0x064b, 0x065f }, { 0x06d6, 0x06dc }, { 0x0900, 0x0902 },   { 0x093c, 0x093c },
    { 0x0941, 0x0948 }, { 0x0e31, 0x0e31 }, { 0x0e34, 0x0e3a },   { 0x0e47, 0x0e4e },
    { 0x1ab0, 0x1aff }, { 0x1dc0, 0x1dff }, { 0x200d, 0x200d },   { 0x20d0, 0x20ff },
    { 0xfe00, 0xfe0f }, { 0xfe20, 0xfe2f }, { 0x1f3fb, 0x1f3ff },
};

static const struct range wide[] = {
    { 0x1100, 0x115e },   { 0x231a, 0x231b },   { 0x23e9, 0x23ec },   { 0x25fd, 0x25fe },
    { 0x2614, 0x2615 },   { 0x2648, 0x2653 },   { 0x26a1, 0x26a1 },   { 0x26aa, 0x26ab },
    { 0x26bd, 0x26be },   { 0x26c4, 0x26c5 },   { 0x26d4, 0x26d4 },   { 0x26ea, 0x26ea },
    { 0x2705, 0x2705 },   { 0x270a, 0x270b },   { 0x2728, 0x2728 },   { 0x274c, 0x274c },
    { 0x274e, 0x274e },   { 0x2753, 0x2755 },   { 0x2757, 0x2757 },   { 0x2795, 0x2797 },
    { 0x2b1b, 0x2b1c },   { 0x2b50, 0x2b50 },   { 0x2e80, 0x303e },   { 0x3041, 0x3247 },
    { 0x3250, 0x4dbf },   { 0x4e00, 0xa4cf },   { 0xa960, 0xa97f },   { 0xac00, 0xd7a3 },
    { 0xf900, 0xfaff },   { 0xfe30, 0xfe6f },   { 0xff01, 0xff60 },   { 0xffe0, 0xffe6 },
    { 0x1f004, 0x1f004 }, { 0x1f0cf, 0x1f0cf }, { 0x1f18e, 0x1f18e }, { 0x1f191, 0x1f19a },
    { 0x1f200, 0x1f320 }, { 0x1f32d, 0x1f335 }, { 0x1f337, 0x1f37c }, { 0x1f37e, 0x1f393 },
    { 0x1f3a0, 0x1f3ca }, { 0x1f3cf, 0x1f3d3 }, { 0x1f3e0, 0x1f3f0 }, { 0x1f3f4, 0x1f3f4 },
    { 0x1f3f8, 0x1f43e }, { 0x1f440, 0x1f440 }, { 0x1f442, 0x1f4fc }, { 0x1f4ff, 0x1f53d },
    { 0x1f54b, 0x1f54e }, { 0x1f550, 0x1f567 }, { 0x1f57a, 0x1f57a }, { 0x1f595, 0x1f596 },
    { 0x1f5a4, 0x1f5a4 }, { 0x1f5fb, 0x1f64f }, { 0x1f680, 0x1f6c5 }, { 0x1f6cc, 0x1f6cc },
    { 0x1f6d0, 0x1f6d2 }, { 0x1f6d5, 0x1f6df }, { 0x1f6eb, 0x1f6ec }, { 0x1f6f4, 0x1f6fc },
    { 0x1f7e0, 0x1f7eb }, { 0x1f90c, 0x1f93a }, { 0x1f93c, 0x1f945 }, { 0x1f947, 0x1f9ff },
    { 0x1fa70, 0x1faff }, { 0x20000, 0x3fffd },
};

static bool in_ranges(const struct range *r, size_t n, uint32_t c)
{
    for (size_t i = 0; i < n; i++) {
        if (c >= r[i].first && c <= r[i].last) {
            return true;
        }
    }
    return false;
}

/* Decodes the character at the start of s; returns its length in bytes, 0 when it is not UTF-8. */
static size_t decode(struct str s, uint32_t *ret)
{
    const unsigned char *p = (const unsigned char *)s.ptr;
    if (p[0] < 0x80) {
        *ret = p[0];
        return 1;
    }
    size_t n = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    if (s.len < n || !str_is_utf8(str_n(s.ptr, n))) {
        return 0;
    }
    uint32_t c = p[0] & (0xffu >> (n + 1));
    for (size_t i = 1; i < n; i++) {
        c = c << 6 | (p[i] & 0x3fu);
    }
    *ret = c;
    return n;
}

static void add_control(struct buf *out, uint32_t c)
{
    switch (c) {
    case '\n':
        buf_adds(out, "\\n");
        break;
    case '\r':
        buf_adds(out, "\\r");
        break;
    case '\t':
        buf_adds(out, "\\t");
        break;
    default:
        buf_addf(out, "\\x%02x", (unsigned)c);
        break;
    }
}

static size_t char_width(uint32_t c)
{
    if (c < 0x300) {
        return 1;
    }
    return in_ranges(zero_width, ARRAY_LEN(zero_width), c) ? 0
           : in_ranges(wide, ARRAY_LEN(wide), c)           ? 2
                                                           : 1;
}

/* One character that is not plain ASCII; returns the bytes used. */
static size_t clean_char(struct buf *out, struct str s, size_t *column)
{
    uint32_t c = 0;
    size_t n = decode(s, &c);
    size_t before = out->len;
    if (n == 0) {
        buf_addf(out, "\\x%02x", (unsigned)(unsigned char)s.ptr[0]);
    } else if (c < 0x20 || c == 0x7f) {
        add_control(out, c);
    } else if (in_ranges(deceptive, ARRAY_LEN(deceptive), c)) {
        buf_addf(out, c > 0xffff ? "\\U%08" PRIx32 : "\\u%04" PRIx32, c);
    } else {
        buf_add(out, str_n(s.ptr, n));
        *column += char_width(c);
        return n;
    }
    *column += out->len - before;
    return n == 0 ? 1 : n;
}

void text_clean(struct buf *out, struct str s, enum text_mode mode)
{
    size_t column = 0;
    for (size_t i = 0; i < s.len;) {
        size_t plain = i;
        while (plain < s.len && s.ptr[plain] >= 0x20 && s.ptr[plain] < 0x7f) {
            plain++;
        }
        buf_add(out, str_slice(s, i, plain));
        column += plain - i;
        i = plain;
        if (i == s.len) {
            break;
        }
        if (mode == TEXT_BLOCK && s.ptr[i] == '\n') {
            buf_adds(out, "\n");
            column = 0;
            i++;
        } else if (mode == TEXT_BLOCK && s.ptr[i] == '\t') {
            text_repeat(out, " ", 8 - column % 8);
            column += 8 - column % 8;
            i++;
        } else {
            i += clean_char(out, str_slice(s, i, s.len), &column);
        }
    }
}

size_t text_width(struct str s)
{
    size_t width = 0;
    for (size_t i = 0; i < s.len;) {
        uint32_t c = 0;
        size_t n = decode(str_slice(s, i, s.len), &c);
        width += n == 0 ? 1 : char_width(c);
        i += n == 0 ? 1 : n;
    }
    return width;
}

struct str text_prefix(struct str s, size_t width)
{
    size_t used = 0;
    size_t i = 0;
    while (i < s.len) {
        uint32_t c = 0;
        size_t n = decode(str_slice(s, i, s.len), &c);
        size_t w = n == 0 ? 1 : char_width(c);
        if (used + w > width) {
            break;
        }
        used += w;
        i += n == 0 ? 1 : n;
    }
    return str_slice(s, 0, i);
}

void text_cut(struct buf *out, struct str s, size_t width)
{
    if (text_width(s) <= width) {
        buf_add(out, s);
    } else if (width <= 3) {
        buf_add(out, text_prefix(s, width));
    } else {
        buf_add(out, text_prefix(s, width - 3));
        buf_adds(out, "...");
    }
}

void text_repeat(struct buf *out, const char *piece, size_t count)
{
    for (; count > 0; count--) {
        buf_adds(out, piece);
    }
}

void text_pad(struct buf *out, struct str s, size_t width)
{
    size_t w = text_width(s);
    buf_add(out, s);
    text_repeat(out, " ", w < width ? width - w : 0);
}

void text_pad_left(struct buf *out, struct str s, size_t width)
{
    size_t w = text_width(s);
    text_repeat(out, " ", w < width ? width - w : 0);
    buf_add(out, s);
}

static void new_line(struct buf *out, size_t indent)
{
    buf_adds(out, "\n");
    text_repeat(out, " ", indent);
}

void text_wrap(struct buf *out, struct str s, struct text_shape shape)
{
    size_t column = shape.column;
    bool first_line = true;
    while (s.ptr != NULL) {
        struct str line = str_split(&s, '\n');
        if (!first_line) {
            buf_adds(out, "\n");
            column = 0;
        }
        bool first_word = true;
        while (line.ptr != NULL) {
            struct str word = str_split(&line, ' ');
            size_t w = text_width(word);
            if (w == 0) {
                continue;
            }
            if (!first_word && column + 1 + w > shape.width) {
                new_line(out, shape.indent);
                column = shape.indent;
                first_word = true;
            }
            if (first_word && column == 0 && !first_line) {
                text_repeat(out, " ", shape.indent);
                column = shape.indent;
            }
            buf_adds(out, first_word ? "" : " ");
            buf_add(out, word);
            column += w + !first_word;
            first_word = false;
        }
        first_line = false;
    }
}

const char *text_bytes(uint64_t n, char out[TEXT_SHORT])
{
    static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
    double value = (double)n;
    size_t u = 0;
    while (value >= 1023.95 && u + 1 < ARRAY_LEN(units)) {
        value /= 1024;
        u++;
    }
    (void)snprintf(out, TEXT_SHORT, u == 0 || value >= 99.95 ? "%.0f %s" : "%.1f %s", value,
                   units[u]);
    return out;
}

const char *text_duration(nsec t, char out[TEXT_SHORT])
{
    const nsec tenth = NSEC_PER_SEC / 10;
    int64_t tenths = t <= 0 ? 0 : t / tenth + (t % tenth >= tenth / 2);
    int64_t seconds = tenths / 10;
    if (seconds < 60) {
        (void)snprintf(out, TEXT_SHORT, "%" PRId64 ".%" PRId64 "s", seconds, tenths % 10);
    } else if (seconds < 3600) {
        (void)snprintf(out, TEXT_SHORT, "%" PRId64 "m %02" PRId64 "s", seconds / 60, seconds % 60);
    } else {
        (void)snprintf(out, TEXT_SHORT, "%" PRId64 "h %02" PRId64 "m", seconds / 3600,
                       seconds / 60 % 60);
    }
    return out;
}

const char *text_count(int64_t n, char out[TEXT_SHORT])
{
    char digits[TEXT_SHORT];
    size_t len = (size_t)snprintf(digits, sizeof digits, "%" PRIu64,
                                  n < 0 ? (uint64_t)0 - (uint64_t)n : (uint64_t)n);
    /* From the right, so that the groups of three need no arithmetic; 19 digits, 6 commas and a
     * sign would not fit: beyond that the commas are left out. */
    bool commas = len <= 15;
    size_t at = TEXT_SHORT - 1;
    char text[TEXT_SHORT];
    text[at] = '\0';
    for (size_t i = 0; i < len; i++) {
        if (commas && i > 0 && i % 3 == 0) {
            text[--at] = ',';
        }
        text[--at] = digits[len - 1 - i];
    }
    if (n < 0) {
        text[--at] = '-';
    }
    memcpy(out, text + at, TEXT_SHORT - at);
    return out;
}

const char *text_cost(double usd, char out[TEXT_SHORT])
{
    (void)snprintf(out, TEXT_SHORT, usd >= 1 || usd == 0 ? "$%.2f" : "$%.4f", usd);
    return out;
}
