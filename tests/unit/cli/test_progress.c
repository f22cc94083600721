/* SPDX-License-Identifier: MIT
 *
 * The progress line: what it says, how often it is drawn, and that it is gone at the end. The
 * terminal is a memory stream that claims to be one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "base/log.h"
#include "base/macro.h"
#include "cli/progress.h"
#include "cli/text.h"

struct screen {
    struct terminal t;
    char *text;
    size_t len;
};

static void screen_init(struct screen *s, bool live)
{
    *s = (struct screen) { 0 };
    FILE *stream = open_memstream(&s->text, &s->len);
    assert_non_null(stream);
    terminal_init(&s->t, stream, TERMINAL_COLOR_OFF);
    s->t.live = s->t.tty = live;
    assert_int_equal(setenv("COLUMNS", "40", 1), 0);
}

static void screen_expect(struct screen *s, const char *expected)
{
    (void)fflush(s->t.stream);
    assert_string_equal(s->text, expected);
}

static void screen_done(struct screen *s)
{
    (void)fclose(s->t.stream);
    free(s->text);
    assert_int_equal(unsetenv("COLUMNS"), 0);
}

static void expect_line(struct progress_view v, size_t width, const char *expected)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    buf_adds(&out, "");
    progress_format(&v, width, &out);
    assert_string_equal(out.ptr, expected);
}

static void test_format(void **state)
{
    struct progress_view v = { .phase = "execute",
                               .elapsed = 12300 * NSEC_PER_MS,
                               .bytes_out = 1536 };
    expect_line(v, 80, "execute     12.3s  out 1.5 KiB");
    v.bytes_err = 10;
    v.tokens = 12345;
    v.cost_usd = 0.5;
    v.note = "pid 7\033[2J";
    expect_line(v, 80,
                "execute     12.3s  out 1.5 KiB  err 10 B  tokens 12,345  $0.5000  pid 7\\x1b[2J");
    expect_line(v, 24, "execute     12.3s  ou...");
    expect_line((struct progress_view) { 0 }, 80, "             0.0s  out 0 B");
}

static void test_live_line(void **state)
{
    struct screen s;
    struct progress p;
    screen_init(&s, true);
    progress_init(&p, &s.t, PROGRESS_AUTO);
    struct progress_view v = { .phase = "prepare" };
    progress_update(&p, &v, 1000 * NSEC_PER_MS);
    progress_update(&p, &v, 1050 * NSEC_PER_MS); /* too soon */
    v.phase = "execute";
    progress_update(&p, &v, 1099 * NSEC_PER_MS); /* still too soon */
    screen_expect(&s, "\rprepare      0.0s  out 0 B\033[K");
    progress_update(&p, &v, 1100 * NSEC_PER_MS);
    progress_message(&p, "warning: \033odd");
    progress_update(&p, &v, 1101 * NSEC_PER_MS); /* the message took its place: again at once */
    progress_done(&p);
    progress_done(&p);
    screen_expect(&s, "\rprepare      0.0s  out 0 B\033[K"
                      "\rexecute      0.0s  out 0 B\033[K"
                      "\r\033[Kwarning: \\x1bodd\n"
                      "\rexecute      0.0s  out 0 B\033[K"
                      "\r\033[K");
    screen_done(&s);
}

static void test_live_line_never_wraps(void **state)
{
    struct screen s;
    struct progress p;
    screen_init(&s, true);
    progress_init(&p, &s.t, PROGRESS_AUTO);
    struct progress_view v = { .phase = "execute",
                               .note = "a note that is much longer than the screen is wide" };
    progress_update(&p, &v, 1);
    (void)fflush(s.t.stream);
    struct str line = str_slice(str_of(s.text), 1, s.len - strlen("\033[K"));
    assert_int_equal(text_width(line), 39);
    screen_done(&s);
}

static void test_plain_lines(void **state)
{
    struct screen s;
    struct progress p;
    screen_init(&s, false);
    progress_init(&p, &s.t, PROGRESS_AUTO);
    struct progress_view v = { .phase = "prepare" };
    progress_update(&p, &v, 1);
    v.elapsed = 140 * NSEC_PER_MS;
    progress_update(&p, &v, 2);
    v.phase = "execute";
    v.note = "pid 1234";
    progress_update(&p, &v, 3);
    progress_update(&p, &v, 4);
    progress_message(&p, "warning: low");
    v.phase = "finish";
    v.note = NULL;
    v.elapsed = 1234567 * NSEC_PER_MS;
    progress_update(&p, &v, 5);
    progress_done(&p);
    screen_expect(&s, "[  0.0s] prepare\n"
                      "[  0.1s] execute  pid 1234\n"
                      "warning: low\n"
                      "[1234.5s] finish\n");
    screen_done(&s);
}

static void test_a_log_makes_it_plain(void **state)
{
    struct screen s;
    struct progress p;
    screen_init(&s, true);
    log_init(LOG_LEVEL_INFO, false);
    progress_init(&p, &s.t, PROGRESS_AUTO);
    log_init(LOG_LEVEL_OFF, false);
    progress_update(&p, &(struct progress_view) { .phase = "execute" }, 1);
    screen_expect(&s, "[  0.0s] execute\n");
    screen_done(&s);
}

static void test_quiet(void **state)
{
    struct screen s;
    struct progress p;
    screen_init(&s, true);
    progress_init(&p, &s.t, PROGRESS_QUIET);
    progress_update(&p, &(struct progress_view) { .phase = "execute" }, 1);
    progress_message(&p, "x");
    progress_done(&p);
    screen_expect(&s, "");
    screen_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_format),
        cmocka_unit_test(test_live_line),
        cmocka_unit_test(test_live_line_never_wraps),
        cmocka_unit_test(test_plain_lines),
        cmocka_unit_test(test_a_log_makes_it_plain),
        cmocka_unit_test(test_quiet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
