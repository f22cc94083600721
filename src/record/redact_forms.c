/* SPDX-License-Identifier: MIT
 *
 * The forms in which a secret turns up in logs: as it is, in base64 (an Authorization header, a
 * mounted Kubernetes secret), in hex, as UTF-16, in a URL, in JSON, in JSON within JSON, line by
 * line. What is escaped in other ways is found by redact_encoded.c; the usual ways are forms of
 * their own, so that half of one at the edge of a cut text is recognised, too.
 */
#include "record/redact_priv.h"

#include <string.h>

#include "base/json.h"

/* Lines of a long secret that are shorter than this say too little to be worth hiding ("}", "END").
 */
enum { LINE_MIN = 16 };

/* Room for the worst form: twice JSON-escaped control characters, \\u0001, 7 bytes for one. */
#define FORM_MAX (REDACT_VALUE_MAX * 8)

/* In the middle of longer data, the first and last base64 characters also depend on the neighbours.
 * The characters between them are the same for every text in which the value begins `skew` bytes
 * after a multiple of three: these are the pattern. */
static void add_base64(struct redactor *r, size_t secret, struct str value, size_t skew,
                       const char *alphabet)
{
    CLEANUP(buf) struct buf out = BUF_INIT(FORM_MAX);
    size_t first = (skew * 8 + 5) / 6;
    size_t end = (skew + value.len) * 8 / 6;
    for (size_t c = first; c < end; c++) {
        size_t bit = c * 6 - skew * 8;
        unsigned high = (uint8_t)value.ptr[bit / 8];
        unsigned low = bit / 8 + 1 < value.len ? (uint8_t)value.ptr[bit / 8 + 1] : 0;
        unsigned pair = high << 8 | low;
        char digit = alphabet[pair >> (10 - bit % 8) & 63];
        buf_add(&out, str_n(&digit, 1));
    }
    redactor_add_pattern(r, secret, buf_str(&out), REDACT_BREAKABLE);
}

static void add_hex(struct redactor *r, size_t secret, struct str value, const char *digits)
{
    CLEANUP(buf) struct buf out = BUF_INIT(FORM_MAX);
    for (size_t i = 0; i < value.len; i++) {
        unsigned char c = (unsigned char)value.ptr[i];
        char pair[2] = { digits[c >> 4], digits[c & 15] };
        buf_add(&out, str_n(pair, sizeof pair));
    }
    redactor_add_pattern(r, secret, buf_str(&out), REDACT_BREAKABLE);
}

static bool is_unreserved(unsigned char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           memchr("-._~", c, 4) != NULL;
}

/* Encoders differ in what else they leave alone, and in the case of the digits. */
static void add_percent(struct redactor *r, size_t secret, struct str value, const char *also,
                        const char *digits)
{
    CLEANUP(buf) struct buf out = BUF_INIT(FORM_MAX);
    for (size_t i = 0; i < value.len; i++) {
        unsigned char c = (unsigned char)value.ptr[i];
        if (is_unreserved(c) || (c != '\0' && strchr(also, c) != NULL)) {
            buf_add(&out, str_n(&value.ptr[i], 1));
        } else {
            char code[3] = { '%', digits[c >> 4], digits[c & 15] };
            buf_add(&out, str_n(code, sizeof code));
        }
    }
    redactor_add_pattern(r, secret, buf_str(&out), REDACT_EXACT);
}

/* Code point at the front of valid UTF-8, and how many bytes it takes. */
static uint32_t next_code_point(struct str s, size_t *ret_len)
{
    unsigned char c = (unsigned char)s.ptr[0];
    size_t len = c < 0x80 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
    uint32_t code = len == 1 ? c : c & (0x7Fu >> len);
    for (size_t i = 1; i < len; i++) {
        code = code << 6 | ((unsigned char)s.ptr[i] & 0x3F);
    }
    *ret_len = len;
    return code;
}

static void add_json_ascii(struct buf *out, uint32_t code)
{
    if (code >= 0x10000) {
        code -= 0x10000;
        buf_addf(out, "\\u%04x\\u%04x", 0xD800 + (code >> 10), 0xDC00 + (code & 0x3FF));
    } else {
        buf_addf(out, "\\u%04x", code);
    }
}

static void add_utf16(struct redactor *r, size_t secret, struct str value, bool big_endian)
{
    CLEANUP(buf) struct buf out = BUF_INIT(FORM_MAX);
    for (size_t i = 0; i < value.len;) {
        size_t len;
        uint32_t code = next_code_point(str_slice(value, i, value.len), &len);
        uint32_t units[2] = { code, 0 };
        size_t n = 1;
        if (code >= 0x10000) {
            units[0] = 0xD800 + ((code - 0x10000) >> 10);
            units[1] = 0xDC00 + ((code - 0x10000) & 0x3FF);
            n = 2;
        }
        for (size_t k = 0; k < n; k++) {
            char high = (char)(units[k] >> 8);
            char low = (char)(units[k] & 0xFF);
            char pair[2] = { big_endian ? high : low, big_endian ? low : high };
            buf_add(&out, str_n(pair, sizeof pair));
        }
        i += len;
    }
    redactor_add_pattern(r, secret, buf_str(&out), REDACT_ENCODED);
}

enum json_habit {
    JSON_HABIT_PLAIN = 0,
    JSON_HABIT_SLASH = 1 << 0, /* PHP writes \/ */
    JSON_HABIT_ASCII = 1 << 1, /* Python writes \u00e9 */
    JSON_HABIT_HTML = 1 << 2,  /* Go writes < > & as \u003c \u003e \u0026 */
};

static void escape_json(struct str s, unsigned habits, struct buf *out)
{
    static const char from[] = "\"\\\b\f\n\r\t";
    static const char to[] = "\"\\bfnrt";
    bool utf8 = str_is_utf8(s);
    for (size_t i = 0; i < s.len;) {
        unsigned char c = (unsigned char)s.ptr[i];
        const char *special = c != '\0' ? strchr(from, c) : NULL;
        size_t len = 1;
        uint32_t code = utf8 ? next_code_point(str_slice(s, i, s.len), &len) : c;
        if (special != NULL) {
            buf_addf(out, "\\%c", to[special - from]);
        } else if (c == '/' && habits & JSON_HABIT_SLASH) {
            buf_adds(out, "\\/");
        } else if (c < 0x20 || (len > 1 && habits & JSON_HABIT_ASCII) ||
                   (memchr("<>&", c, 3) != NULL && habits & JSON_HABIT_HTML)) {
            add_json_ascii(out, code);
        } else {
            buf_add(out, str_slice(s, i, i + len));
        }
        i += len;
    }
}

static void add_json(struct redactor *r, size_t secret, struct str value)
{
    for (unsigned habits = 0; habits < 8; habits++) {
        CLEANUP(buf) struct buf once = BUF_INIT(FORM_MAX);
        CLEANUP(buf) struct buf twice = BUF_INIT(FORM_MAX);
        escape_json(value, habits, &once);
        if (str_eq(buf_str(&once), value)) {
            continue;
        }
        escape_json(buf_str(&once), habits, &twice);
        redactor_add_pattern(r, secret, buf_str(&once), REDACT_EXACT);
        redactor_add_pattern(r, secret, buf_str(&twice), REDACT_EXACT);
    }
}

/* A form submission writes blanks as "+". */
static void add_plus(struct redactor *r, size_t secret, struct str value)
{
    if (memchr(value.ptr, ' ', value.len) == NULL) {
        return;
    }
    CLEANUP(buf) struct buf out = BUF_INIT(FORM_MAX);
    for (size_t i = 0; i < value.len; i++) {
        char c = value.ptr[i] == ' ' ? '+' : value.ptr[i];
        buf_add(&out, str_n(&c, 1));
    }
    redactor_add_pattern(r, secret, buf_str(&out), REDACT_ENCODED);
}

/* As text, in whatever encoding of characters. */
static void add_text(struct redactor *r, size_t secret, struct str value)
{
    redactor_add_pattern(r, secret, value, REDACT_ENCODED);
    add_plus(r, secret, value);
    if (str_is_utf8(value)) {
        add_utf16(r, secret, value, false);
        add_utf16(r, secret, value, true);
    }
}

void redactor_add_forms(struct redactor *r, size_t secret, struct str value)
{
    static const char standard[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    static const char url_safe[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    static const char lower[] = "0123456789abcdef";
    static const char upper[] = "0123456789ABCDEF";
    add_text(r, secret, value);
    for (size_t skew = 0; skew < 3; skew++) {
        add_base64(r, secret, value, skew, standard);
        add_base64(r, secret, value, skew, url_safe);
    }
    add_hex(r, secret, value, lower);
    add_hex(r, secret, value, upper);
    static const char *const left_alone[] = { "", "/", "!'()*" };
    for (size_t i = 0; i < ARRAY_LEN(left_alone); i++) {
        add_percent(r, secret, value, left_alone[i], upper);
        add_percent(r, secret, value, left_alone[i], lower);
    }
    add_json(r, secret, value);
    struct str rest = value;
    while (rest.ptr != NULL) {
        struct str line = str_trim(str_split(&rest, '\n'));
        if (line.len >= LINE_MIN && line.len < value.len) {
            add_text(r, secret, line);
            add_json(r, secret, line);
        }
    }
}
