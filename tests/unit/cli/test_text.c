/* SPDX-License-Identifier: MIT
 *
 * Text for people: nothing dangerous gets through, widths are right, wrapping keeps to the width.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/macro.h"
#include "cli/text.h"

static void expect_clean(struct str in, enum text_mode mode, const char *expected)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    buf_adds(&out, "");
    text_clean(&out, in, mode);
    assert_string_equal(out.ptr, expected);
}

static void test_clean_line(void **state)
{
    expect_clean(STR("plain ~ text"), TEXT_LINE, "plain ~ text");
    expect_clean(STR("a\033[2Jb"), TEXT_LINE, "a\\x1b[2Jb");
    expect_clean(STR("\033]0;title\007"), TEXT_LINE, "\\x1b]0;title\\x07");
    expect_clean(STR("a\nb\tc\rd\x7f"), TEXT_LINE, "a\\nb\\tc\\rd\\x7f");
    expect_clean(STR("nul\0here"), TEXT_LINE, "nul\\x00here");
    expect_clean(STR("gr\xc3\xbc\xc3\x9f \xe6\xbc\xa2 \xf0\x9f\x98\x80"), TEXT_LINE,
                 "gr\xc3\xbc\xc3\x9f \xe6\xbc\xa2 \xf0\x9f\x98\x80");
    /* C1 controls are escape sequences of one character to some terminals. */
    expect_clean(STR("\xc2\x9b"
                     "2J"),
                 TEXT_LINE, "\\u009b2J");
    /* Right-to-left override, zero width space, byte order mark: they hide or reorder text. */
    expect_clean(STR("\xe2\x80\xae"), TEXT_LINE, "\\u202e");
    expect_clean(STR("\xe2\x80\x8b\xef\xbb\xbf"), TEXT_LINE, "\\u200b\\ufeff");
    expect_clean(STR("\xf3\xa0\x81\x81"), TEXT_LINE, "\\U000e0041");
    /* Not UTF-8: a lone byte, a cut sequence, an overlong form, a surrogate. */
    expect_clean(STR("\xff"), TEXT_LINE, "\\xff");
    expect_clean(STR("\xe6\xbc"), TEXT_LINE, "\\xe6\\xbc");
    expect_clean(STR("\xc0\xaf"), TEXT_LINE, "\\xc0\\xaf");
    expect_clean(STR("\xed\xa0\x80"), TEXT_LINE, "\\xed\\xa0\\x80");
}

static void test_clean_block(void **state)
{
    expect_clean(STR("a\n\tb\033"), TEXT_BLOCK, "a\n        b\\x1b");
    expect_clean(STR("1234567\tx\r\n"), TEXT_BLOCK, "1234567 x\\r\n");
}

/* Whatever comes in, no byte that a terminal acts upon comes out. */
static void test_clean_all_bytes(void **state)
{
    for (int a = 0; a < 256; a++) {
        for (int b = 0; b < 256; b++) {
            char in[2] = { (char)a, (char)b };
            CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
            text_clean(&out, str_n(in, 2), TEXT_LINE);
            assert_true(str_is_utf8(buf_str(&out)));
            for (size_t i = 0; i < out.len; i++) {
                assert_true((unsigned char)out.ptr[i] >= 0x20 && out.ptr[i] != 0x7f);
            }
        }
    }
}

static void test_width(void **state)
{
    assert_int_equal(text_width(STR("")), 0);
    assert_int_equal(text_width(STR("abc")), 3);
    assert_int_equal(text_width(STR("gr\xc3\xbc\xc3\x9f")), 4);
    assert_int_equal(text_width(STR("\xe6\xbc\xa2\xe5\xad\x97")), 4);
    assert_int_equal(text_width(STR("e\xcc\x81")), 1);
    assert_int_equal(text_width(STR("\xf0\x9f\x98\x80")), 2);
}

static void expect_cut(struct str in, size_t width, const char *expected)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    buf_adds(&out, "");
    text_cut(&out, in, width);
    assert_string_equal(out.ptr, expected);
}

static void test_cut_and_pad(void **state)
{
    expect_cut(STR("abcdef"), 6, "abcdef");
    expect_cut(STR("abcdef"), 5, "ab...");
    expect_cut(STR("abcdef"), 2, "ab");
    expect_cut(STR("\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2"), 6,
               "\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2");
    expect_cut(STR("\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2"), 5, "\xe6\xbc\xa2...");
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    text_pad(&out, STR("\xe6\xbc\xa2"), 4);
    text_pad_left(&out, STR("7"), 3);
    text_pad(&out, STR("long"), 2);
    assert_string_equal(out.ptr, "\xe6\xbc\xa2    7long");
}

static void expect_wrap(const char *in, struct text_shape shape, const char *expected)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    buf_adds(&out, "");
    text_wrap(&out, str_of(in), shape);
    assert_string_equal(out.ptr, expected);
}

static void test_wrap(void **state)
{
    expect_wrap("one two three", (struct text_shape) { 0, 0, 7 }, "one two\nthree");
    expect_wrap("one two three", (struct text_shape) { 4, 2, 9 }, "one\n  two\n  three");
    expect_wrap("  one   two ", (struct text_shape) { 0, 0, 20 }, "one two");
    expect_wrap("a /very/long/path b", (struct text_shape) { 0, 1, 6 }, "a\n /very/long/path\n b");
    expect_wrap("a\nb c", (struct text_shape) { 2, 2, 20 }, "a\n  b c");
    expect_wrap("a\n\nb", (struct text_shape) { 0, 2, 20 }, "a\n\n  b");
    expect_wrap("", (struct text_shape) { 0, 0, 7 }, "");
}

static void test_numbers(void **state)
{
    char out[TEXT_SHORT];
    assert_string_equal(text_bytes(0, out), "0 B");
    assert_string_equal(text_bytes(1023, out), "1023 B");
    assert_string_equal(text_bytes(1024, out), "1.0 KiB");
    assert_string_equal(text_bytes(1536, out), "1.5 KiB");
    assert_string_equal(text_bytes(1024 * 1024 - 1, out), "1.0 MiB");
    assert_string_equal(text_bytes((uint64_t)2 << 30, out), "2.0 GiB");
    assert_string_equal(text_bytes(UINT64_MAX, out), "16.0 EiB");

    assert_string_equal(text_duration(0, out), "0.0s");
    assert_string_equal(text_duration(-5, out), "0.0s");
    assert_string_equal(text_duration(149 * NSEC_PER_MS, out), "0.1s");
    assert_string_equal(text_duration(59949 * NSEC_PER_MS, out), "59.9s");
    assert_string_equal(text_duration(59950 * NSEC_PER_MS, out), "1m 00s");
    assert_string_equal(text_duration(125 * NSEC_PER_SEC, out), "2m 05s");
    assert_string_equal(text_duration(3720 * NSEC_PER_SEC, out), "1h 02m");
    assert_string_equal(text_duration(INT64_MAX, out), "2562047h 47m");

    assert_string_equal(text_count(0, out), "0");
    assert_string_equal(text_count(999, out), "999");
    assert_string_equal(text_count(1234567, out), "1,234,567");
    assert_string_equal(text_count(-1000, out), "-1,000");
    assert_string_equal(text_count(INT64_MIN, out), "-9223372036854775808");

    assert_string_equal(text_cost(0, out), "$0.00");
    assert_string_equal(text_cost(0.01234, out), "$0.0123");
    assert_string_equal(text_cost(12.345, out), "$12.35");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clean_line),      cmocka_unit_test(test_clean_block),
        cmocka_unit_test(test_clean_all_bytes), cmocka_unit_test(test_width),
        cmocka_unit_test(test_cut_and_pad),     cmocka_unit_test(test_wrap),
        cmocka_unit_test(test_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
