/* SPDX-License-Identifier: MIT
 *
 * Server-sent events: the same events whatever the cut, bounds, writing and reading back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/macro.h"
#include "wire/sse.h"

static void print_event(const struct sse_event *ev, const char *mark, struct buf *out)
{
    buf_addf(out, "%s%.*s|%.*s|%.*s|%d>", mark, STR_ARG(ev->name), STR_ARG(ev->data),
             STR_ARG(ev->id), (int)ev->retry);
}

static int split(struct str text, size_t step, size_t max, struct buf *out)
{
    struct sse s;
    struct sse_event ev;
    struct err e;
    int r = 0;
    sse_init(&s, max);
    for (size_t i = 0; i < text.len && r >= 0; i += step) {
        /* A copy of its own for each chunk, so that a string kept beyond its life is seen. */
        CLEANUP(buf) struct buf chunk = BUF_INIT(BUF_TEXT);
        buf_add(&chunk, str_slice(text, i, i + step));
        sse_feed(&s, buf_str(&chunk));
        while ((r = sse_next(&s, &ev, &e)) > 0) {
            print_event(&ev, "<", out);
        }
    }
    if (r >= 0 && sse_end(&s, &ev)) {
        print_event(&ev, "(", out);
    }
    sse_done(&s);
    return r;
}

static void expect(const char *text, const char *want)
{
    for (size_t step = 1; step <= strlen(text) + 1; step++) {
        CLEANUP(buf) struct buf got = BUF_INIT(BUF_TEXT);
        buf_adds(&got, "");
        assert_int_equal(split(str_of(text), step, 64, &got), 0);
        assert_string_equal(got.ptr, want);
    }
}

static void test_any_cut_gives_the_same_events(void **state)
{
    expect("", "");
    expect("data: a\n\n", "<|a||-1>");
    expect("event: x\ndata: a\nid: 7\nretry: 30\n\ndata: b\n\n", "<x|a|7|30><|b||-1>");
    expect("data: a\ndata: b\ndata\n\n", "<|a\nb\n||-1>");
    expect("data:a\ndata:  b\n\n", "<|a\n b||-1>");
    expect("data: {\"a\":1}\r\n\r\ndata: b\r\n\r\n", "<|{\"a\":1}||-1><|b||-1>");
    expect("data: a\r\rdata: b\r\r", "<|a||-1><|b||-1>");
}

static void test_what_is_no_event_is_skipped(void **state)
{
    expect("\n\n\n", "");
    expect(": comment\n\ndata: a\n: more\n\n", "<|a||-1>");
    expect("event: ping\n\ndata: a\n\n", "<|a||-1>");
    expect("unknown: x\nretry: soon\ndata: a\n\n", "<|a||-1>");
    expect("data:\n\n", "<|||-1>");
    expect("\xef\xbb\xbf"
           "data: a\n\n",
           "<|a||-1>");
}

static void test_an_event_cut_short_is_told_at_the_end(void **state)
{
    expect("data: a\n\ndata: b\n", "<|a||-1>(|b||-1>");
    expect("event: e\ndata: b", "(e|b||-1>");
    expect("event: e\n", "");
}

static void test_an_event_has_a_bound(void **state)
{
    const char *fits = "data: 0123456789\ndata: 01234\n\n";
    const char *joined = "data: 0123456789\ndata: 0123456789\n\n";
    const char *line = "data: 01234567890123456789\n\n";
    for (size_t step = 1; step < 32; step++) {
        CLEANUP(buf) struct buf got = BUF_INIT(BUF_TEXT);
        assert_int_equal(split(str_of(fits), step, 16, &got), 0);
        assert_int_equal(split(str_of(joined), step, 16, &got), -ERR_LIMIT);
        assert_int_equal(split(str_of(line), step, 16, &got), -ERR_LIMIT);
        assert_int_equal(split(STR("no end of line at all"), step, 16, &got), -ERR_LIMIT);
    }
}

static void test_what_is_written_reads_back(void **state)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    assert_int_equal(sse_write(STR("delta"), STR("{}"), &text, NULL), 0);
    assert_int_equal(sse_write(STR_EMPTY, STR("two\nlines"), &text, NULL), 0);
    assert_int_equal(sse_write(STR_EMPTY, STR_EMPTY, &text, NULL), 0);
    assert_string_equal(text.ptr, "event: delta\ndata: {}\n\ndata: two\ndata: lines\n\ndata: \n\n");
    expect(text.ptr, "<delta|{}||-1><|two\nlines||-1><|||-1>");
    struct buf small = BUF_INIT(8);
    assert_int_equal(sse_write(STR("delta"), STR("{}"), &small, NULL), -ERR_LIMIT);
    buf_done(&small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_cut_gives_the_same_events),
        cmocka_unit_test(test_what_is_no_event_is_skipped),
        cmocka_unit_test(test_an_event_cut_short_is_told_at_the_end),
        cmocka_unit_test(test_an_event_has_a_bound),
        cmocka_unit_test(test_what_is_written_reads_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
