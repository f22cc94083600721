/* SPDX-License-Identifier: MIT
 *
 * Timers: never early, once, re-armed, cancelled, freed by themselves.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "io/loop.h"
#include "io/timer.h"

struct probe {
    struct loop *loop;
    struct timer *timer;
    int calls;
    nsec at;
    nsec next; /* re-arm that far ahead, once */
};

static void on_time(void *arg)
{
    struct probe *p = arg;
    p->calls++;
    p->at = clock_now();
    assert_false(timer_armed(p->timer));
    if (p->next != 0) {
        timer_arm(p->timer, p->at + p->next);
        p->next = 0;
    }
}

static void probe_init(struct probe *p)
{
    *p = (struct probe) { 0 };
    assert_int_equal(loop_new(&p->loop, NULL), 0);
    assert_int_equal(timer_new(p->loop, on_time, p, &p->timer, NULL), 0);
}

static void probe_done(struct probe *p)
{
    p->timer = timer_free(p->timer);
    p->loop = loop_free(p->loop);
}

static void never_early(void **state)
{
    (void)state;
    struct probe p;
    probe_init(&p);
    for (nsec ahead = 1; ahead < 8 * NSEC_PER_MS; ahead = ahead * 3 + 7) {
        nsec deadline = clock_now() + ahead;
        timer_arm(p.timer, deadline);
        assert_true(timer_armed(p.timer));
        loop_run(p.loop);
        assert_true(p.at >= deadline);
    }
    probe_done(&p);
}

static void past_deadline_fires(void **state)
{
    (void)state;
    struct probe p;
    probe_init(&p);
    timer_arm(p.timer, 0);
    loop_run(p.loop);
    assert_int_equal(p.calls, 1);
    probe_done(&p);
}

static void rearming_replaces(void **state)
{
    (void)state;
    struct probe p;
    probe_init(&p);
    timer_arm(p.timer, clock_now() + 3600 * NSEC_PER_SEC);
    timer_arm(p.timer, clock_now() + NSEC_PER_MS);
    p.next = NSEC_PER_MS; /* and once more from its own callback */
    loop_run(p.loop);
    assert_int_equal(p.calls, 2);
    probe_done(&p);
}

static void cancelled_is_silent(void **state)
{
    (void)state;
    struct probe p;
    probe_init(&p);
    timer_arm(p.timer, clock_now());
    timer_cancel(p.timer);
    timer_cancel(p.timer);
    assert_false(timer_armed(p.timer));
    loop_run(p.loop);
    assert_int_equal(p.calls, 0);
    probe_done(&p);
}

static void free_self(void *arg)
{
    struct probe *p = arg;
    p->calls++;
    p->timer = timer_free(p->timer);
}

static void freed_in_its_own_callback(void **state)
{
    (void)state;
    struct probe p = { 0 };
    assert_int_equal(loop_new(&p.loop, NULL), 0);
    assert_int_equal(timer_new(p.loop, free_self, &p, &p.timer, NULL), 0);
    timer_arm(p.timer, clock_now());
    loop_run(p.loop);
    assert_int_equal(p.calls, 1);
    probe_done(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(never_early),
        cmocka_unit_test(past_deadline_fires),
        cmocka_unit_test(rearming_replaces),
        cmocka_unit_test(cancelled_is_silent),
        cmocka_unit_test(freed_in_its_own_callback),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
