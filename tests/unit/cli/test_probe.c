/* SPDX-License-Identifier: MIT
 *
 * Asking programs, and the checks of doctor that do so.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "cli/doctor_check.h"
#include "proc/probe.h"

static int ask(const char *script, nsec timeout, struct buf *out, struct err *e)
{
    const char *const argv[] = { "/bin/sh", "-c", script, NULL };
    buf_reset(out);
    return probe_program(argv, timeout, out, NULL, e);
}

static void test_answers(void **state)
{
    CLEANUP(buf) struct buf out = BUF_INIT(100);
    struct err e;
    assert_int_equal(ask("echo hello; exit 3", 60 * NSEC_PER_SEC, &out, &e), 3);
    assert_string_equal(out.ptr, "hello\n");
    assert_int_equal(ask("kill -TERM $$", 60 * NSEC_PER_SEC, &out, &e), 128 + SIGTERM);
    assert_int_equal(ask("cat; echo end", 60 * NSEC_PER_SEC, &out, &e), 0); /* stdin is empty */
    assert_string_equal(out.ptr, "end\n");
    /* More than the buffer takes: dropped, but read, so that the program is not stuck. */
    assert_int_equal(
        ask("dd if=/dev/zero bs=1000 count=1000 2>/dev/null", 60 * NSEC_PER_SEC, &out, &e), 0);
    /* Output closed early, status comes later. */
    assert_int_equal(ask("exec >&-; exit 5", 60 * NSEC_PER_SEC, &out, &e), 5);
}

static void test_no_answer(void **state)
{
    CLEANUP(buf) struct buf out = BUF_INIT(100);
    struct err e;
    assert_int_equal(ask("exec sleep 1000", 50 * NSEC_PER_MS, &out, &e), -ERR_TIMEOUT);
    assert_int_equal(ask("exec >&-; sleep 1000", 50 * NSEC_PER_MS, &out, &e), -ERR_TIMEOUT);
    const char *const none[] = { "/nonexistent/program", NULL };
    assert_int_equal(probe_program(none, NSEC_PER_SEC, &out, NULL, &e), -ERR_NOTFOUND);
    const char *const data[] = { "/etc/passwd", NULL };
    assert_int_equal(probe_program(data, NSEC_PER_SEC, &out, NULL, &e), -ERR_NOEXEC);
}

static void test_errors_are_kept_from_the_end(void **state)
{
    const char *const argv[] = {
        "/bin/sh", "-c", "seq 1 20000 >&2; echo out; echo last >&2; sleep 1000 >/dev/null &", NULL
    };
    CLEANUP(buf) struct buf out = BUF_INIT(100);
    CLEANUP(buf) struct buf errors = BUF_INIT(16);
    struct err e;
    /* The one that stays holds standard error, and is not waited for. */
    assert_int_equal(probe_program(argv, 60 * NSEC_PER_SEC, &out, &errors, &e), 0);
    assert_string_equal(out.ptr, "out\n");
    assert_string_equal(errors.ptr, "9999\n20000\nlast\n");
}

/* The answer is there when the program ends, whoever holds its output, or writes on to it. */
static void test_what_is_left_behind_is_not_waited_for(void **state)
{
    CLEANUP(buf) struct buf out = BUF_INIT(100);
    struct err e;
    static const char *const scripts[] = {
        "sleep 30 & echo 1.2.3",
        "setsid sleep 30 & echo 1.2.3",
        "echo 1.2.3; setsid timeout 30 yes & exit 0",
    };
    for (size_t i = 0; i < ARRAY_LEN(scripts); i++) {
        nsec before = clock_now();
        assert_int_equal(ask(scripts[i], 20 * NSEC_PER_SEC, &out, &e), 0);
        assert_true(clock_now() - before < 10 * NSEC_PER_SEC);
        assert_memory_equal(out.ptr, "1.2.3\n", 6);
    }
    /* Nothing of the end is lost. */
    CLEANUP(buf) struct buf all = BUF_INIT(BUF_TEXT);
    assert_int_equal(ask("setsid sleep 5 & head -c 60000 /dev/zero", 20 * NSEC_PER_SEC, &all, &e),
                     0);
    assert_int_equal(all.len, 60000);
}

static int heard;

static void hear(int signo)
{
    heard = signo;
}

/* With a handler the signal is told; without one it ends us. */
static void test_signal(void **state)
{
    struct sigaction before;
    CLEANUP(buf) struct buf out = BUF_INIT(100);
    struct err e;
    assert_int_equal(sigaction(SIGTERM, &(struct sigaction) { .sa_handler = hear }, &before), 0);
    assert_int_equal(ask("kill -TERM $PPID; exec sleep 1000", 60 * NSEC_PER_SEC, &out, &e),
                     -ERR_CANCELLED);
    assert_int_equal(heard, SIGTERM);
    assert_int_equal(sigaction(SIGTERM, &(struct sigaction) { .sa_handler = SIG_IGN }, NULL), 0);
    assert_int_equal(ask("kill -TERM $PPID; echo on", 60 * NSEC_PER_SEC, &out, &e), 0);
    assert_string_equal(out.ptr, "on\n");
    assert_int_equal(sigaction(SIGTERM, &before, NULL), 0);
}

static void test_every_check_has_words(void **state)
{
    for (const struct check *c = checks; c->name != NULL; c++) {
        struct check_result r = { 0 };
        c->look(&r);
        assert_true(r.detail[0] != '\0');
        if (r.state != CHECK_OK && strcmp(c->name, "kernel") != 0) {
            print_message("%s: %s\n", c->name, r.detail);
        }
    }
}

static const struct check *find_check(const char *name)
{
    for (const struct check *c = checks; c->name != NULL; c++) {
        if (strcmp(c->name, name) == 0) {
            return c;
        }
    }
    fail_msg("no check '%s'", name);
    return NULL;
}

static void test_what_is_missing_is_told(void **state)
{
    struct check_result r = { 0 };
    assert_int_equal(setenv("CINCH_INIT", "/bin/true", 1), 0);
    find_check("cinch-init")->look(&r);
    assert_int_equal(r.state, CHECK_FAIL); /* answers, but is another program */
    assert_true(r.advice[0] != '\0');
    assert_int_equal(unsetenv("CINCH_INIT"), 0);

    r = (struct check_result) { 0 };
    assert_int_equal(setenv("PATH", "/nonexistent", 1), 0);
    find_check("git")->look(&r);
    assert_int_equal(r.state, CHECK_WARN);
    assert_string_equal(r.detail, "not in PATH");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_no_answer),
        cmocka_unit_test(test_errors_are_kept_from_the_end),
        cmocka_unit_test(test_what_is_left_behind_is_not_waited_for),
        cmocka_unit_test(test_signal),
        cmocka_unit_test(test_every_check_has_words),
        cmocka_unit_test(test_what_is_missing_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
