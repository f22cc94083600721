/* SPDX-License-Identifier: MIT
 *
 * Redaction: which forms are found, that chunks make no difference, what is held back and for how
 * long.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/json.h"
#include "redact_reference.h"

static void append(void *ctx, struct str piece)
{
    buf_add(ctx, piece);
}

static struct redactor *redactor_of(const char *name, const char *value)
{
    struct redactor *r = redactor_new();
    assert_int_equal(redactor_add(r, str_of(name), str_of(value), NULL), 0);
    redactor_compile(r);
    return r;
}

static void check(const struct redactor *r, const char *in, const char *expected)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct str out = redact_str(r, a, str_of(in));
    char *text = arena_dup(a, out);
    assert_string_equal(text, expected);
}

static void finds_the_value_and_keeps_the_rest(void **state)
{
    CLEANUP(redactor) struct redactor *r = redactor_of("KEY", "hunter2-hunter2");
    check(r, "a hunter2-hunter2 b", "a [REDACTED:KEY] b");
    check(r, "hunter2-hunter2", "[REDACTED:KEY]");
    check(r, "hunter2-hunter2hunter2-hunter2", "[REDACTED:KEY][REDACTED:KEY]");
    check(r, "hunter2-hunter", "hunter2-hunter");
    check(r, "", "");
}

static void finds_encoded_forms(void **state)
{
    CLEANUP(redactor) struct redactor *r = redactor_of("KEY", "p\xC3\xA4ss\"wo/rd?>~");
    /* printf 'user:pä…' | base64, with 0 to 2 bytes before it and something behind */
    check(r, "cMOkc3Mid28vcmQ/Pn4=", "[REDACTED:KEY]4=");
    check(r, "YXDDpHNzIndvL3JkPz5+", "YX[REDACTED:KEY]");
    check(r, "YWFww6RzcyJ3by9yZD8+fg==", "YWF[REDACTED:KEY]g==");
    check(r, "cMOkc3Mid28vcmQ_Pn4", "[REDACTED:KEY]4");
    check(r, "?k=p%C3%A4ss%22wo%2Frd%3F%3E~&x", "?k=[REDACTED:KEY]&x");
    check(r, "?k=p%c3%a4ss%22wo%2frd%3f%3e~&x", "?k=[REDACTED:KEY]&x");
    check(r, "/p%C3%A4ss%22wo/rd%3F%3E~/", "/[REDACTED:KEY]/");
    check(r, "{\"k\":\"p\xC3\xA4ss\\\"wo/rd?>~\"}", "{\"k\":\"[REDACTED:KEY]\"}");
    check(r, "{\"k\":\"p\\u00e4ss\\\"wo/rd?>~\"}", "{\"k\":\"[REDACTED:KEY]\"}");
    check(r, "{\"k\":\"p\xC3\xA4ss\\\"wo\\/rd?\\u003e~\"}", "{\"k\":\"[REDACTED:KEY]\"}");
    check(r, "\"{\\\"k\\\":\\\"p\xC3\xA4ss\\\\\\\"wo/rd?>~\\\"}\"",
          "\"{\\\"k\\\":\\\"[REDACTED:KEY]\\\"}\"");
}

static void finds_each_line_of_a_long_secret(void **state)
{
    CLEANUP(redactor)
    struct redactor *r = redactor_of("PEM", "-----BEGIN KEY-----\nMIIEowIBAAKCAQEA0Z3VS5JJ\n"
                                            "zUr1fwwQ7n\n-----END KEY-----\n");
    check(r, "  MIIEowIBAAKCAQEA0Z3VS5JJ\r\n", "  [REDACTED:PEM]\r\n");
    check(r, "-----BEGIN KEY-----\nMIIEowIBAAKCAQEA0Z3VS5JJ\nzUr1fwwQ7n\n-----END KEY-----\n",
          "[REDACTED:PEM]\n");
    check(r, "-----BEGIN KEY-----\\nMIIEowIBAAKCAQEA0Z3VS5JJ\\nzUr1fwwQ7n\\n-----END KEY-----",
          "[REDACTED:PEM]");
}

static void overlapping_secrets_leave_no_rest(void **state)
{
    CLEANUP(redactor) struct redactor *r = redactor_new();
    assert_int_equal(redactor_add(r, STR("A"), STR("abcdef"), NULL), 0);
    assert_int_equal(redactor_add(r, STR("B"), STR("defghi"), NULL), 0);
    assert_int_equal(redactor_add(r, STR("C"), STR("abcdefgh-long"), NULL), 0);
    redactor_compile(r);
    check(r, "<abcdefghi>", "<[REDACTED:A]>");
    check(r, "<abcdefgh-long>", "<[REDACTED:C]>");
    check(r, "<abcdefgh-lon>", "<[REDACTED:A]gh-lon>");
    check(r, "<abcdefdefghi>", "<[REDACTED:A][REDACTED:B]>");
}

static void masks_never_complete_a_secret(void **state)
{
    CLEANUP(redactor) struct redactor *r = redactor_new();
    assert_int_equal(redactor_add(r, STR("A"), STR("REDACTED"), NULL), 0);
    assert_int_equal(redactor_add(r, STR("B"), STR("]tail"), NULL), 0);
    redactor_compile(r);
    check(r, "REDACTED", "***");
    check(r, "REDACTEDtail ]tail", "***tail ***");
    CLEANUP(redactor) struct redactor *odd = redactor_of("a \"b\"\n", "value");
    check(odd, "value", "[REDACTED:a__b__]");
}

static void refuses_values_it_cannot_recognise(void **state)
{
    CLEANUP(redactor) struct redactor *r = redactor_new();
    struct err e;
    assert_int_equal(redactor_add(r, STR("PIN"), STR(" 123\n"), &e), -ERR_SECRET);
    assert_string_equal(
        e.msg, "secret 'PIN' has 3 bytes; at least 4 are needed to recognise it in output");
    CLEANUP(buf) struct buf big = BUF_INIT(BUF_TEXT);
    while (big.len <= REDACT_VALUE_MAX) {
        buf_adds(&big, "0123456789abcdef");
    }
    assert_int_equal(redactor_add(r, STR("BIG"), buf_str(&big), &e), -ERR_SECRET);
    redactor_compile(r);
    assert_int_equal(redactor_longest(r), 0);
    check(r, "123 passes", "123 passes");
}

static void holds_back_only_beginnings(void **state)
{
    CLEANUP(redactor) struct redactor *r = redactor_of("KEY", "secret-value");
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    struct redact_stream s;
    redact_stream_init(&s, r, append, &out);
    redact_stream_feed(&s, STR("a line that has sec and secret- inside\n"));
    assert_string_equal(out.ptr, "a line that has sec and secret- inside\n");
    buf_reset(&out);
    redact_stream_feed(&s, STR("prompt: secret-"));
    assert_string_equal(out.ptr, "prompt: ");
    redact_stream_feed(&s, STR("va"));
    assert_string_equal(out.ptr, "prompt: ");
    redact_stream_feed(&s, STR("nilla"));
    assert_string_equal(out.ptr, "prompt: secret-vanilla");
    redact_stream_feed(&s, STR(" secret-valu"));
    redact_stream_feed(&s, STR("e."));
    assert_string_equal(out.ptr, "prompt: secret-vanilla [REDACTED:KEY].");
    redact_stream_feed(&s, STR("secr"));
    redact_stream_flush(&s);
    assert_string_equal(out.ptr, "prompt: secret-vanilla [REDACTED:KEY].secr");
    assert_int_equal(s.removed, 1);
    redact_stream_done(&s);
}

static void remember_piece(void *ctx, struct str piece)
{
    *(struct str *)ctx = piece;
}

static void clean_chunks_are_not_copied(void **state)
{
    CLEANUP(redactor) struct redactor *r = redactor_of("KEY", "secret-value");
    struct str seen = STR_EMPTY;
    struct redact_stream s;
    redact_stream_init(&s, r, remember_piece, &seen);
    struct str chunk = STR("nothing to see here\n");
    redact_stream_feed(&s, chunk);
    assert_ptr_equal(seen.ptr, chunk.ptr);
    assert_int_equal(seen.len, chunk.len);
    redact_stream_done(&s);
}

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

/* Texts over a tiny alphabet, full of beginnings, occurrences and overlaps, cut at random places.
 */
static void cuts_make_no_difference(void **state)
{
    for (uint32_t round = 1; round <= 3000; round++) {
        uint32_t seed = round;
        char secrets[3][10] = { 0 };
        CLEANUP(redactor) struct redactor *r = redactor_new();
        for (size_t i = 0; i < 3; i++) {
            size_t len = 4 + next_random(&seed) % 5;
            for (size_t k = 0; k < len; k++) {
                secrets[i][k] = "ab["[next_random(&seed) % 3];
            }
            assert_int_equal(redactor_add(r, STR("N"), str_of(secrets[i]), NULL), 0);
        }
        redactor_compile(r);
        char text[120];
        for (size_t i = 0; i < sizeof text; i++) {
            text[i] = "aab[b"[next_random(&seed) % 5];
        }
        CLEANUP(buf) struct buf expected = BUF_INIT(BUF_TEXT);
        CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
        redact_reference(r, str_n(text, sizeof text), &expected);
        struct redact_stream s;
        redact_stream_init(&s, r, append, &out);
        for (size_t at = 0; at < sizeof text;) {
            size_t len = next_random(&seed) % 12;
            redact_stream_feed(&s, str_slice(str_n(text, sizeof text), at, at + len));
            assert_true(s.hold.len < redactor_longest(r));
            at += len;
        }
        redact_stream_flush(&s);
        redact_stream_done(&s);
        assert_int_equal(out.len, expected.len);
        assert_memory_equal(out.ptr, expected.ptr, out.len);
        assert_false(redact_leaks(r, buf_str(&out)));
    }
}

static void finds_escaped_and_broken_forms(void **state)
{
    static const char value[] = "sk-ant-Zq9/w+7~longer.secret value";
    static const char *const cases[][2] = {
        { "a %73%6B%2D%61%6E%74%2D%5A%71%39%2F%77%2B%37%7E%6C%6F%6E%67%"
          "65%72%2E%73%65%63%72%65%74%20%76%61%6C%75%65 b",
          "a [REDACTED:KEY] b" },
        { "a %73%6b%2d%61%6e%74%2d%5a%71%39%2f%77%2b%37%7e%6c%6f%6e%67%"
          "65%72%2e%73%65%63%72%65%74%20%76%61%6c%75%65 b",
          "a [REDACTED:KEY] b" },
        { "q=sk-an%74%2D%5A%719/w+7~longe%72%2e%73%65%63%72%65%74%20%76"
          "%61%6c%75%65&",
          "q=[REDACTED:KEY]&" },
        { "q=sk-ant-Zq9/w+7~longer.secret+value&", "q=[REDACTED:KEY]&" },
        { "q=sk-ant-%5A%719/w+7~longer.secret+value&", "q=[REDACTED:KEY]&" },
        { "q=%2573%256B%252D%2561%256E%2574%252D%255A%2571%2539%252F%25"
          "77%252B%2537%257E%256C%256F%256E%2567%2565%2572%252E%2573%25"
          "65%2563%2572%2565%2574%2520%2576%2561%256C%2575%2565&",
          "q=[REDACTED:KEY]&" },
        { "{\"k\":\"\\u0073\\u006b\\u002d\\u0061\\u006e\\u0074\\u002d\\u005a\\u0071"
          "\\u0039\\u002f\\u0077\\u002b\\u0037\\u007e\\u006c\\u006f\\u006e\\u0067"
          "\\u0065\\u0072\\u002e\\u0073\\u0065\\u0063\\u0072\\u0065\\u0074\\u0020"
          "\\u0076\\u0061\\u006c\\u0075\\u0065\"}",
          "{\"k\":\"[REDACTED:KEY]\"}" },
        { "{\"k\":\"\\u0073\\u006B\\u002D\\u0061\\u006E\\u0074\\u002D\\u005A\\u0071"
          "\\u0039\\u002F\\u0077\\u002B\\u0037\\u007E\\u006C\\u006F\\u006E\\u0067"
          "\\u0065\\u0072\\u002E\\u0073\\u0065\\u0063\\u0072\\u0065\\u0074\\u0020"
          "\\u0076\\u0061\\u006C\\u0075\\u0065\"}",
          "{\"k\":\"[REDACTED:KEY]\"}" },
        { "{\"k\":\"sk-a\\u006e\\u0074-Zq9/w+7~longer.secret value\"}",
          "{\"k\":\"[REDACTED:KEY]\"}" },
        { "\"{\\\"k\\\":\\\"\\\\u0073\\\\u006b\\\\u002d\\\\u0061\\\\u006e\\\\u0074\\\\u002d\\"
          "\\u005a\\\\u0071\\\\u0039\\\\u002f\\\\u0077\\\\u002b\\\\u0037\\\\u007e\\\\u00"
          "6c\\\\u006f\\\\u006e\\\\u0067\\\\u0065\\\\u0072\\\\u002e\\\\u0073\\\\u0065\\\\"
          "u0063\\\\u0072\\\\u0065\\\\u0074\\\\u0020\\\\u0076\\\\u0061\\\\u006c\\\\u007"
          "5\\\\u0065\\\"}\"",
          "\"{\\\"k\\\":\\\"[REDACTED:KEY]\\\"}\"" },
        { "b'\\x73\\x6b\\x2d\\x61\\x6e\\x74\\x2d\\x5a\\x71\\x39\\x2f\\x77\\x2b\\x37\\x"
          "7e\\x6c\\x6f\\x6e\\x67\\x65\\x72\\x2e\\x73\\x65\\x63\\x72\\x65\\x74\\x20\\x"
          "76\\x61\\x6c\\x75\\x65'",
          "b'[REDACTED:KEY]'" },
        { "\"\\163\\153\\055\\141\\156\\164\\055\\132\\161\\071\\057\\167\\053\\067\\17"
          "6\\154\\157\\156\\147\\145\\162\\056\\163\\145\\143\\162\\145\\164\\040\\16"
          "6\\141\\154\\165\\145\"",
          "\"[REDACTED:KEY]\"" },
        { "736b2d616e742d5a71392f772b377e6c6f6e6765722e7365637265742076"
          "616c7565",
          "[REDACTED:KEY]" },
        { "736B2D616E742D5A71392F772B377E6C6F6E6765722E7365637265742076"
          "616C7565",
          "[REDACTED:KEY]" },
        { "736b2d616e742d5a71392f772b377e6c6f6e6765722e7365637265742076"
          "\n616c7565\n",
          "[REDACTED:KEY]\n" },
        { "+736b2d616e742d5a\n+71392f772b377e6c\n+6f6e6765722e73656372657"
          "42076616c7565\n",
          "+[REDACTED:KEY]\n" },
        { "x=c2stYW50LVpxOS93Kzd%2BbG9uZ2VyLnNlY3JldCB2YWx1ZQ&", "x=[REDACTED:KEY]Q&" },
        { "%6F%74%68%65%72%20%76%61%6C%75%65", "%6F%74%68%65%72%20%76%61%6C%75%65" },
        { "\\u006f\\u0074\\u0068\\u0065\\u0072\\u0020\\u0076\\u0061\\u006c\\u0075"
          "\\u0065",
          "\\u006f\\u0074\\u0068\\u0065\\u0072\\u0020\\u0076\\u0061\\u006c\\u0075"
          "\\u0065" },
    };
    CLEANUP(redactor) struct redactor *r = redactor_of("KEY", value);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check(r, cases[i][0], cases[i][1]);
    }
    CLEANUP(redactor) struct redactor *odd = redactor_of("KEY", "a\\b%25\"c\xF0\x9F\x98\x80\nline");
    check(odd, "a\\\\b%25\\\"c\xF0\x9F\x98\x80\\nline", "[REDACTED:KEY]");
    check(odd, "a\\\\\\\\b%25\\\\\\\"c\xF0\x9F\x98\x80\\\\nline", "[REDACTED:KEY]");
    check(odd, "a%5Cb%2525%22c%F0%9f%98%80%0Aline", "[REDACTED:KEY]");
    check(odd, "a\\u005cb\\u002525\\u0022c\\ud83d\\ude00\\u000aline", "[REDACTED:KEY]");
    check(odd, "a\\b%25\\\"c\xF0\x9F\x98\x80\\nlin", "a\\b%25\\\"c\xF0\x9F\x98\x80\\nlin");
}

static struct str utf16(struct arena *a, const char *ascii, bool big_endian)
{
    size_t len = strlen(ascii);
    char *out = arena_alloc(a, len * 2);
    for (size_t i = 0; i < len; i++) {
        out[2 * i] = big_endian ? '\0' : ascii[i];
        out[2 * i + 1] = big_endian ? ascii[i] : '\0';
    }
    return str_n(out, len * 2);
}

static void finds_utf16(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(redactor) struct redactor *r = redactor_of("KEY", "hunter2-hunter2");
    for (int big = 0; big < 2; big++) {
        struct str out = redact_str(r, a, utf16(a, "x hunter2-hunter2 y", big));
        CLEANUP(buf) struct buf expected = BUF_INIT(BUF_TEXT);
        /* In the other byte order it is there, too, one byte beside. */
        struct str front = utf16(a, "x ", big);
        struct str back = utf16(a, " y", big);
        buf_add(&expected, str_slice(front, 0, front.len - !big));
        buf_adds(&expected, "[REDACTED:KEY]");
        buf_add(&expected, str_slice(back, big, back.len));
        assert_int_equal(out.len, expected.len);
        assert_memory_equal(out.ptr, expected.ptr, out.len);
    }
    /* A tool result in JSON. */
    check(r,
          "\"h\\u0000u\\u0000n\\u0000t\\u0000e\\u0000r\\u00002\\u0000-\\u0000h\\u0000u\\u0000n"
          "\\u0000t\\u0000e\\u0000r\\u00002\\u0000\"",
          "\"[REDACTED:KEY]\"");
}

/* Every line width from 6 to 80 and every kind of line break, at each alignment. */
static void finds_wrapped_base64(void **state)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    static const char *const breaks[] = { "\n",         "\r\n", "\\n",    "\\r\\n", "\\\\n",
                                          "\\\\r\\\\n", "\n+",  "\n    ", "\\n+",   "\r\n-  " };
    static const char value[] = "eyJhbGciOiJIUzI1NiJ9.secret_payload+of/a_token.and-its-signature";
    CLEANUP(redactor) struct redactor *r = redactor_of("JWT", value);
    for (size_t round = 6 * 30; round <= 80 * 30; round++) {
        CLEANUP(arena) struct arena *a = arena_new();
        CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
        CLEANUP(buf) struct buf expected = BUF_INIT(BUF_TEXT);
        size_t width = round / 30;
        const char *line_break = breaks[round % 30 / 3];
        size_t before = 4 + round % 3;
        struct str plain = str_of(arena_printf(a, "%.*s%s tail!", (int)before, "xxxxxx", value));
        size_t first = (before * 8 + 5) / 6;
        size_t end = (before + strlen(value)) * 8 / 6;
        size_t part = width - first % width;
        size_t masked = part >= REDACT_PART ? first : first + REDACT_PART - 1;
        for (size_t c = 0; c < plain.len * 8 / 6; c++) {
            size_t bit = c * 6;
            unsigned pair = (unsigned)(uint8_t)plain.ptr[bit / 8] << 8 |
                            (bit / 8 + 1 < plain.len ? (uint8_t)plain.ptr[bit / 8 + 1] : 0);
            const char *between = c > 0 && c % width == 0 ? line_break : "";
            char digit = digits[pair >> (10 - bit % 8) & 63];
            buf_addf(&text, "%s%c", between, digit);
            if (c <= masked || c >= end) {
                buf_adds(&expected, between);
            }
            if (c < masked || c >= end) {
                buf_addf(&expected, "%c", digit);
            } else if (c == masked) {
                buf_adds(&expected, "[REDACTED:JWT]");
            }
        }
        struct str out = redact_str(r, a, buf_str(&text));
        assert_string_equal(arena_dup(a, out), arena_dup(a, buf_str(&expected)));
    }
}

/* Lines that merely end like the beginning of a form are not held back. */
static void lines_pass_at_once(void **state)
{
    CLEANUP(redactor) struct redactor *r = redactor_of("KEY", "hunter2-hunter2");
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    struct redact_stream s;
    redact_stream_init(&s, r, append, &out);
    static const char *const lines[] = {
        "ends with aHV\n", "ends with 687\n", "50% done\n", "C:\\dir\\\n", "h\n", "\n"
    };
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        buf_reset(&out);
        redact_stream_feed(&s, str_of(lines[i]));
        assert_string_equal(out.ptr, lines[i]);
    }
    buf_reset(&out);
    redact_stream_feed(&s, STR("aHVudGVyMi1odW\n")); /* this is one */
    redact_stream_feed(&s, STR("50ZXIyIQ==\n"));
    assert_string_equal(out.ptr, "[REDACTED:KEY]IQ==\n");
    redact_stream_done(&s);
}

/* Writes the value with bytes escaped at random, or as base64 or hex with random line breaks. */
static void write_somehow(struct str value, uint32_t *seed, struct buf *out)
{
    for (size_t i = 0; i < value.len; i++) {
        unsigned c = (unsigned char)value.ptr[i];
        switch (next_random(seed) % 6) {
        case 0:
            buf_addf(out, "%%%02X", c);
            break;
        case 1:
            buf_addf(out, "\\u%04x", c);
            break;
        case 2:
            buf_addf(out, "\\%03o", c);
            break;
        case 3:
            buf_addf(out, "\\\\x%02x", c);
            break;
        default:
            buf_addf(out, "%c", (char)c);
            break;
        }
    }
}

static void write_hex(struct str value, uint32_t *seed, struct buf *out)
{
    for (size_t i = 0; i < value.len; i++) {
        bool line = i % 8 == 0 && i > 0 && next_random(seed) % 2 == 0;
        buf_addf(out, "%s%02x", line ? "\n+" : "", (unsigned char)value.ptr[i]);
    }
}

/* The fast search and the plain one find the same, wherever the text is cut. */
static void cuts_in_escapes_make_no_difference(void **state)
{
    for (uint32_t round = 1; round <= 1500; round++) {
        uint32_t seed = round;
        char value[24] = { 0 };
        CLEANUP(redactor) struct redactor *r = redactor_new();
        size_t len = 5 + next_random(&seed) % 18;
        for (size_t k = 0; k < len; k++) {
            value[k] = "ab7Z%\\+/-"[next_random(&seed) % 9];
        }
        assert_int_equal(redactor_add(r, STR("N"), str_of(value), NULL), 0);
        redactor_compile(r);
        CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
        for (int n = 0; n < 3; n++) {
            bool hex = next_random(&seed) % 3 == 0;
            (hex ? write_hex : write_somehow)(str_of(value), &seed, &text);
            for (size_t k = next_random(&seed) % 6; k > 0; k--) {
                buf_addf(&text, "%c", "ab%\\\n\r+u0"[next_random(&seed) % 9]);
            }
        }
        CLEANUP(buf) struct buf expected = BUF_INIT(BUF_TEXT);
        CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
        redact_reference(r, buf_str(&text), &expected);
        struct redact_stream s;
        redact_stream_init(&s, r, append, &out);
        for (size_t at = 0; at < text.len;) {
            size_t n = next_random(&seed) % 12;
            redact_stream_feed(&s, str_slice(buf_str(&text), at, at + n));
            assert_true(s.hold.len < redactor_longest(r));
            at += n;
        }
        redact_stream_flush(&s);
        redact_stream_done(&s);
        if (!str_eq(buf_str(&out), buf_str(&expected))) {
            fail_msg("round %u: '%s' in '%.*s': '%.*s', not '%.*s'", round, value,
                     STR_ARG(buf_str(&text)), STR_ARG(buf_str(&out)), STR_ARG(buf_str(&expected)));
        }
    }
}

static void halves_at_a_cut_edge_go_too(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(redactor) struct redactor *r = redactor_new();
    assert_int_equal(redactor_add(r, STR("K"), STR("hunter2-secret"), NULL), 0);
    assert_int_equal(redactor_add(r, STR("L"), STR("secret-sauce"), NULL), 0);
    redactor_compile(r);
    static const struct {
        unsigned edges;
        const char *in, *out;
    } cases[] = {
        { REDACT_CUT_END, "the key is hunter2-secre", "the key is [REDACTED:K]" },
        { REDACT_CUT_END, "the key is hun", "the key is hun" },
        { REDACT_CUT_END, "hunter2-secret ends", "[REDACTED:K] ends" },
        { REDACT_CUT_END, "hunter2-secret-sau", "[REDACTED:K]-sau" },
        { REDACT_CUT_FRONT, "ter2-secret is the key", "[REDACTED:K] is the key" },
        { REDACT_CUT_FRONT, "hunter2-secre", "hunter2-secre" },
        { REDACT_CUT_FRONT | REDACT_CUT_END, "cret hunter2-secret x hunt",
          "[REDACTED:K] [REDACTED:K] x [REDACTED:K]" },
        { 0, "hunter2-secre", "hunter2-secre" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct str out = redact_cut(r, a, str_of(cases[i].in), cases[i].edges);
        assert_string_equal(arena_dup(a, out), cases[i].out);
    }
    struct str clean = STR("nothing here");
    assert_ptr_equal(redact_cut(r, a, clean, REDACT_CUT_FRONT | REDACT_CUT_END).ptr, clean.ptr);
}

static void trees_lose_keys_values_and_numbers(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(redactor) struct redactor *r = redactor_new();
    assert_int_equal(redactor_add(r, STR("K"), STR("s3cret"), NULL), 0);
    assert_int_equal(redactor_add(r, STR("PIN"), STR("4711"), NULL), 0);
    redactor_compile(r);
    struct json *v;
    assert_int_equal(json_parse(a,
                                STR("{\"a\":[1,\"x s3cret\",14711.5],\"s3cret\":{\"b\":true},"
                                    "\"n\":null,\"ok\":\"fine\"}"),
                                NULL, &v, NULL),
                     0);
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    assert_int_equal(json_write(redact_json(r, a, v), JSON_COMPACT, &out, NULL), 0);
    assert_string_equal(out.ptr, "{\"a\":[1,\"x [REDACTED:K]\",\"1[REDACTED:PIN].5\"],"
                                 "\"[REDACTED:K]\":{\"b\":true},\"n\":null,\"ok\":\"fine\"}");
    struct json *clean = json_get(v, "ok");
    assert_ptr_equal(redact_json(r, a, clean), clean);
    assert_null(redact_json(r, a, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_value_and_keeps_the_rest),
        cmocka_unit_test(finds_encoded_forms),
        cmocka_unit_test(finds_each_line_of_a_long_secret),
        cmocka_unit_test(overlapping_secrets_leave_no_rest),
        cmocka_unit_test(masks_never_complete_a_secret),
        cmocka_unit_test(refuses_values_it_cannot_recognise),
        cmocka_unit_test(holds_back_only_beginnings),
        cmocka_unit_test(clean_chunks_are_not_copied),
        cmocka_unit_test(cuts_make_no_difference),
        cmocka_unit_test(finds_escaped_and_broken_forms),
        cmocka_unit_test(finds_utf16),
        cmocka_unit_test(finds_wrapped_base64),
        cmocka_unit_test(lines_pass_at_once),
        cmocka_unit_test(cuts_in_escapes_make_no_difference),
        cmocka_unit_test(halves_at_a_cut_edge_go_too),
        cmocka_unit_test(trees_lose_keys_values_and_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
