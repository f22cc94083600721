/* SPDX-License-Identifier: MIT
 *
 * Lines come out the same however the bytes were cut, and an overlong one harms nobody else.
 */
#include "wire/lines.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void collect(struct lines *l, struct buf *out)
{
    struct str line;
    while (lines_next(l, &line)) {
        buf_addf(out, "<%.*s>", STR_ARG(line));
    }
}

/* The lines of `text` fed in chunks of `step` bytes, as "<a><b>". */
static void split(struct str text, size_t step, size_t max, struct buf *out, uint64_t *overlong)
{
    struct lines l;
    struct str line;
    lines_init(&l, max);
    for (size_t i = 0; i < text.len; i += step) {
        lines_feed(&l, str_slice(text, i, i + step));
        collect(&l, out);
    }
    if (lines_end(&l, &line)) {
        buf_addf(out, "(%.*s)", STR_ARG(line));
    }
    assert_false(lines_end(&l, &line));
    *overlong = l.overlong;
    lines_done(&l);
}

static void expect(const char *text, size_t max, const char *want, uint64_t want_overlong)
{
    for (size_t step = 1; step <= strlen(text) + 1; step++) {
        CLEANUP(buf) struct buf got = BUF_INIT(BUF_TEXT);
        uint64_t overlong;
        buf_adds(&got, "");
        split(str_of(text), step, max, &got, &overlong);
        assert_string_equal(got.ptr, want);
        assert_int_equal(overlong, want_overlong);
    }
}

static void test_any_cut_gives_the_same_lines(void **state)
{
    expect("", 8, "", 0);
    expect("a\nbc\r\n\nd", 8, "<a><bc><>(d)", 0);
    expect("\n\n", 8, "<><>", 0);
    expect("a\r", 8, "(a)", 0);
}

static void test_an_overlong_line_is_dropped_alone(void **state)
{
    expect("ok\n123456789\nfine\n", 8, "<ok><fine>", 1);
    expect("123456789", 8, "", 1);
    expect("12345678\n", 8, "<12345678>", 0);
}

static void test_nul_bytes_are_kept(void **state)
{
    struct lines l;
    struct str line;
    lines_init(&l, 8);
    lines_feed(&l, STR("a\0b\n"));
    assert_true(lines_next(&l, &line));
    assert_int_equal(line.len, 3);
    lines_done(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_cut_gives_the_same_lines),
        cmocka_unit_test(test_an_overlong_line_is_dropped_alone),
        cmocka_unit_test(test_nul_bytes_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
