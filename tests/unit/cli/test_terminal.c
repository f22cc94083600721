/* SPDX-License-Identifier: MIT
 *
 * What a stream can do: a pseudo terminal against a pipe, with and without the usual variables.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/macro.h"
#include "cli/terminal.h"

struct pty {
    int master_fd;
    FILE *slave;
};

static int setup(void **state)
{
    struct pty *p = test_calloc(1, sizeof *p);
    p->master_fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(p->master_fd >= 0);
    assert_int_equal(grantpt(p->master_fd), 0);
    assert_int_equal(unlockpt(p->master_fd), 0);
    char name[64];
    assert_int_equal(ptsname_r(p->master_fd, name, sizeof name), 0);
    int fd = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(fd >= 0);
    p->slave = fdopen(fd, "w");
    assert_non_null(p->slave);
    assert_int_equal(setenv("TERM", "xterm", 1), 0);
    assert_int_equal(unsetenv("NO_COLOR"), 0);
    assert_int_equal(unsetenv("COLUMNS"), 0);
    *state = p;
    return 0;
}

static int teardown(void **state)
{
    struct pty *p = *state;
    (void)fclose(p->slave);
    (void)close(p->master_fd);
    test_free(p);
    return 0;
}

static bool color_of(FILE *stream, enum terminal_color choice)
{
    struct terminal t;
    terminal_init(&t, stream, choice);
    return t.color;
}

static void test_color(void **state)
{
    struct pty *p = *state;
    assert_true(color_of(p->slave, TERMINAL_COLOR_AUTO));
    assert_false(color_of(p->slave, TERMINAL_COLOR_OFF));
    assert_int_equal(setenv("NO_COLOR", "", 1), 0);
    assert_true(color_of(p->slave, TERMINAL_COLOR_AUTO));
    assert_int_equal(setenv("NO_COLOR", "1", 1), 0);
    assert_false(color_of(p->slave, TERMINAL_COLOR_AUTO));
    assert_true(color_of(p->slave, TERMINAL_COLOR_ON));
    assert_int_equal(unsetenv("NO_COLOR"), 0);
    assert_int_equal(setenv("TERM", "dumb", 1), 0);
    assert_false(color_of(p->slave, TERMINAL_COLOR_AUTO));
    assert_int_equal(unsetenv("TERM"), 0);
    assert_false(color_of(p->slave, TERMINAL_COLOR_AUTO));
}

static void test_live(void **state)
{
    struct pty *p = *state;
    struct terminal t;
    terminal_init(&t, p->slave, TERMINAL_COLOR_OFF);
    assert_true(t.tty && t.live);
    assert_int_equal(setenv("TERM", "dumb", 1), 0);
    terminal_init(&t, p->slave, TERMINAL_COLOR_OFF);
    assert_true(t.tty && !t.live);
}

static void test_pipe(void **state)
{
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    FILE *stream = fdopen(fds[1], "w");
    struct terminal t;
    terminal_init(&t, stream, TERMINAL_COLOR_AUTO);
    assert_false(t.tty || t.color || t.live);
    assert_int_equal(terminal_width(&t), 1000);    /* rows are not wrapped, */
    assert_int_equal(terminal_text_width(&t), 80); /* but text is */
    (void)fclose(stream);
    (void)close(fds[0]);
}

static void resize(const struct pty *p, unsigned short columns)
{
    struct winsize size = { .ws_row = 24, .ws_col = columns };
    assert_int_equal(ioctl(p->master_fd, TIOCSWINSZ, &size), 0);
}

static void test_width(void **state)
{
    struct pty *p = *state;
    struct terminal t;
    terminal_init(&t, p->slave, TERMINAL_COLOR_AUTO);
    resize(p, 0); /* a serial line does not know */
    assert_int_equal(terminal_width(&t), 80);
    resize(p, 132);
    assert_int_equal(terminal_width(&t), 132);
    assert_int_equal(terminal_text_width(&t), 100);
    resize(p, 40);
    assert_int_equal(terminal_width(&t), 40);
    assert_int_equal(terminal_text_width(&t), 40);
    resize(p, 3);
    assert_int_equal(terminal_width(&t), 20);
    assert_int_equal(setenv("COLUMNS", "60", 1), 0);
    assert_int_equal(terminal_width(&t), 60);
    assert_int_equal(setenv("COLUMNS", "many", 1), 0);
    assert_int_equal(terminal_width(&t), 20);
}

static void test_flush_tells_about_loss(void **state)
{
    FILE *full = fopen("/dev/full", "we");
    struct terminal t;
    struct err e = { 0 };
    assert_non_null(full);
    terminal_init(&t, full, TERMINAL_COLOR_AUTO);
    assert_int_equal(terminal_flush(&t, &e), 0);
    terminal_write(&t, STR("x"));
    assert_int_equal(terminal_flush(&t, &e), -ERR_SYS);
    assert_non_null(strstr(e.msg, "No space left on device"));
    assert_int_equal(terminal_flush(&t, &e), -ERR_SYS); /* once lost, always told */
    (void)fclose(full);
}

static void test_style(void **state)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    style_add(&out, true, STYLE_BOLD, "a");
    style_add(&out, true, STYLE_PLAIN, "b");
    style_add(&out, false, STYLE_BAD, "c");
    assert_string_equal(out.ptr, "\033[1ma\033[0mbc");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_color, setup, teardown),
        cmocka_unit_test_setup_teardown(test_live, setup, teardown),
        cmocka_unit_test_setup_teardown(test_pipe, setup, teardown),
        cmocka_unit_test_setup_teardown(test_width, setup, teardown),
        cmocka_unit_test(test_flush_tells_about_loss),
        cmocka_unit_test(test_style),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
