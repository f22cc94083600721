/* SPDX-License-Identifier: MIT
 *
 * The loop: order of posted calls, retirement, watchdog.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <time.h>

#include "io/loop.h"
#include "io/timer.h"

struct trail {
    struct loop *loop;
    char text[64];
};

static void note(struct trail *t, char c)
{
    t->text[strlen(t->text)] = c;
}

static void say_a(void *arg)
{
    note(arg, 'a');
}

static void say_b(void *arg)
{
    note(arg, 'b');
}

static void post_a_then_say_c(void *arg)
{
    struct trail *t = arg;
    loop_post(t->loop, say_a, t);
    note(t, 'c');
}

static void posts_run_in_order(void **state)
{
    (void)state;
    struct trail t = { 0 };
    assert_int_equal(loop_new(&t.loop, NULL), 0);
    loop_post(t.loop, say_a, &t);
    loop_post(t.loop, post_a_then_say_c, &t);
    loop_post(t.loop, say_b, &t);
    assert_string_equal(t.text, ""); /* not at once */
    loop_run(t.loop);                /* and back again, for nothing is left to do */
    assert_string_equal(t.text, "acba");
    (void)loop_free(t.loop);
}

static void destroy(void *arg)
{
    note(arg, 'x');
}

static void post_and_retire(void *arg)
{
    struct trail *t = arg;
    loop_post(t->loop, say_a, t);
    loop_retire(t->loop, destroy, t);
    note(t, 't');
}

static void retirement_comes_after_what_was_posted_before(void **state)
{
    (void)state;
    struct trail t = { 0 };
    struct timer *timer;
    assert_int_equal(loop_new(&t.loop, NULL), 0);
    assert_int_equal(timer_new(t.loop, post_and_retire, &t, &timer, NULL), 0);
    timer_arm(timer, clock_now());
    loop_run(t.loop);
    assert_string_equal(t.text, "tax");
    (void)timer_free(timer);
    (void)loop_free(t.loop);
}

static void freeing_the_loop_runs_what_is_posted(void **state)
{
    (void)state;
    struct trail t = { 0 };
    assert_int_equal(loop_new(&t.loop, NULL), 0);
    loop_retire(t.loop, destroy, &t);
    t.loop = loop_free(t.loop);
    assert_null(t.loop);
    assert_string_equal(t.text, "x");
    assert_null(loop_free(NULL));
}

static void stop(void *arg)
{
    loop_stop(arg);
}

static void stop_leaves_the_rest_for_later(void **state)
{
    (void)state;
    struct trail t = { 0 };
    struct timer *late;
    assert_int_equal(loop_new(&t.loop, NULL), 0);
    assert_int_equal(timer_new(t.loop, say_a, &t, &late, NULL), 0);
    timer_arm(late, clock_now() + 20 * NSEC_PER_MS);
    loop_post(t.loop, stop, t.loop);
    loop_run(t.loop);
    assert_string_equal(t.text, "");
    loop_run(t.loop);
    assert_string_equal(t.text, "a");
    (void)timer_free(late);
    (void)loop_free(t.loop);
}

static void be_busy(void *arg)
{
    (void)arg;
    nsec end = clock_now() + LOOP_SLOW + 10 * NSEC_PER_MS;
    while (clock_now() < end) {
    }
}

static void nothing(void *arg)
{
    (void)arg;
}

static void slow_iterations_are_counted_and_sleep_is_not(void **state)
{
    (void)state;
    struct loop *l;
    struct timer *t;
    assert_int_equal(loop_new(&l, NULL), 0);
    assert_int_equal(timer_new(l, be_busy, NULL, &t, NULL), 0);
    timer_arm(t, clock_now() + NSEC_PER_MS);
    loop_run(l);
    (void)timer_free(t);
    assert_int_equal(timer_new(l, nothing, NULL, &t, NULL), 0);
    timer_arm(t, clock_now() + LOOP_SLOW + 30 * NSEC_PER_MS);
    loop_run(l);
    (void)timer_free(t);
    loop_post(l, nothing, NULL);
    loop_run(l);
    struct loop_stats s = loop_stats(l);
    assert_int_equal(s.slow, 1);
    assert_true(s.longest >= LOOP_SLOW + 10 * NSEC_PER_MS);
    assert_true(s.iterations >= 2);
    (void)loop_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(posts_run_in_order),
        cmocka_unit_test(retirement_comes_after_what_was_posted_before),
        cmocka_unit_test(freeing_the_loop_runs_what_is_posted),
        cmocka_unit_test(stop_leaves_the_rest_for_later),
        cmocka_unit_test(slow_iterations_are_counted_and_sleep_is_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
