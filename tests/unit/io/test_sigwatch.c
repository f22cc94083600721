/* SPDX-License-Identifier: MIT
 *
 * Signals as events of the loop.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <unistd.h>

#include "io/loop.h"
#include "io/sigwatch.h"
#include "io/timer.h"

struct probe {
    struct loop *loop;
    int calls;
    int signo;
};

static void on_signal(void *arg, int signo)
{
    struct probe *p = arg;
    p->calls++;
    p->signo = signo;
    loop_stop(p->loop);
}

static void too_late(void *arg)
{
    (void)arg;
    fail_msg("the signal did not come");
}

static void delivered_on_the_loop(void **state)
{
    (void)state;
    static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGWINCH };
    struct probe p = { 0 };
    struct timer *t;
    assert_int_equal(loop_new(&p.loop, NULL), 0);
    assert_int_equal(timer_new(p.loop, too_late, NULL, &t, NULL), 0);
    timer_arm(t, clock_now() + 20 * NSEC_PER_SEC);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        struct sigwatch *w;
        assert_int_equal(sigwatch_new(p.loop, signals[i], on_signal, &p, &w, NULL), 0);
        assert_int_equal(kill(getpid(), signals[i]), 0);
        assert_int_equal(p.calls, (int)i); /* not inside of kill() */
        loop_run(p.loop);
        assert_int_equal(p.calls, (int)i + 1);
        assert_int_equal(p.signo, signals[i]);
        (void)sigwatch_free(w);
    }
    (void)timer_free(t);
    (void)loop_free(p.loop);
}

static void does_not_keep_the_loop_going(void **state)
{
    (void)state;
    struct probe p = { 0 };
    struct sigwatch *w;
    assert_int_equal(loop_new(&p.loop, NULL), 0);
    assert_int_equal(sigwatch_new(p.loop, SIGTERM, on_signal, &p, &w, NULL), 0);
    loop_run(p.loop);
    (void)sigwatch_free(w);
    (void)loop_free(p.loop);
}

static void default_action_comes_back(void **state)
{
    (void)state;
    struct probe p = { 0 };
    struct sigwatch *w;
    struct sigaction now;
    assert_int_equal(loop_new(&p.loop, NULL), 0);
    assert_int_equal(sigwatch_new(p.loop, SIGTERM, on_signal, &p, &w, NULL), 0);
    assert_int_equal(sigaction(SIGTERM, NULL, &now), 0);
    assert_true(now.sa_handler != SIG_DFL);
    (void)sigwatch_free(w);
    (void)loop_free(p.loop);
    assert_int_equal(sigaction(SIGTERM, NULL, &now), 0);
    assert_true(now.sa_handler == SIG_DFL);
}

static void impossible_signals_are_refused(void **state)
{
    (void)state;
    struct probe p = { 0 };
    struct sigwatch *w = NULL;
    assert_int_equal(loop_new(&p.loop, NULL), 0);
    assert_int_equal(sigwatch_new(p.loop, SIGKILL, on_signal, &p, &w, NULL), -ERR_SYS);
    assert_null(w);
    (void)loop_free(p.loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(delivered_on_the_loop),
        cmocka_unit_test(does_not_keep_the_loop_going),
        cmocka_unit_test(default_action_comes_back),
        cmocka_unit_test(impossible_signals_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
