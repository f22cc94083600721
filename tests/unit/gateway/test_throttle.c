/* SPDX-License-Identifier: MIT
 *
 * Throttling on a clock of the test's own: delays, limits, the breaker, what failures mean.
 */
#include "gateway/throttle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/err.h"
#include "llm/event.h"

#define NOW       ((nsec)5000 * NSEC_PER_SEC)
#define MS(n)     ((nsec)(n)*NSEC_PER_MS)
#define SECOND(n) ((nsec)(n)*NSEC_PER_SEC)

static struct throttle_signal failure(enum throttle_kind kind, nsec retry_after)
{
    return (struct throttle_signal) { kind, retry_after, true };
}

static bool again(const struct throttle_policy *p, struct throttle_call *call,
                  struct throttle_signal *s, nsec deadline, uint64_t random, nsec *ret)
{
    return throttle_again(p, call, s, &(struct throttle_moment) { NOW, deadline, random }, ret);
}

static void failures_are_classified_as_the_table_says(void **state)
{
    static const struct {
        enum llm_error_kind error;
        int status;
        enum throttle_kind kind;
    } table[] = {
        { LLM_ERR_RATE, 429, THROTTLE_RATE_LIMIT },
        { LLM_ERR_QUOTA, 429, THROTTLE_QUOTA_EXHAUSTED },
        { LLM_ERR_SERVER, 500, THROTTLE_SERVER_ERROR },
        { LLM_ERR_SERVER, 502, THROTTLE_SERVER_ERROR },
        { LLM_ERR_OVERLOADED, 503, THROTTLE_SERVER_ERROR },
        { LLM_ERR_OVERLOADED, 529, THROTTLE_SERVER_ERROR },
        { LLM_ERR_TIMEOUT, 504, THROTTLE_TIMEOUT },
        { LLM_ERR_SERVER, 501, THROTTLE_NONE },
        { LLM_ERR_INVALID, 400, THROTTLE_NONE },
        { LLM_ERR_AUTH, 401, THROTTLE_NONE },
        { LLM_ERR_PERMISSION, 403, THROTTLE_NONE },
        { LLM_ERR_NOT_FOUND, 404, THROTTLE_NONE },
        { LLM_ERR_TOO_LARGE, 413, THROTTLE_NONE },
        { LLM_ERR_CONTEXT, 400, THROTTLE_NONE },
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct llm_error error = { .kind = table[i].error, .status = table[i].status };
        struct throttle_signal s = throttle_signal_of(&error, SECOND(3));
        assert_int_equal(s.kind, table[i].kind);
        assert_int_equal(s.retry_safe, table[i].kind != THROTTLE_NONE);
        assert_int_equal(s.retry_after, SECOND(3));
    }
    struct err e = { .code = ERR_TIMEOUT };
    assert_int_equal(throttle_signal_of_transport(&e).kind, THROTTLE_TIMEOUT);
    e.code = ERR_CANCELLED;
    assert_int_equal(throttle_signal_of_transport(&e).kind, THROTTLE_NONE);
}

static void delays_grow_and_stay_in_their_bounds(void **state)
{
    struct throttle_policy p = THROTTLE_DEFAULT;
    static const nsec top[] = { MS(500), SECOND(1), SECOND(2), SECOND(4) };
    struct throttle_call call = { 0 };
    nsec delay;
    for (int i = 0; i < 4; i++) {
        struct throttle_signal s = failure(THROTTLE_RATE_LIMIT, THROTTLE_UNSAID);
        assert_true(again(&p, &call, &s, 0, UINT64_MAX - (uint64_t)i * 12345, &delay));
        assert_true(delay >= p.base && delay <= top[i]);
        assert_true(s.retry_safe);
    }
    struct throttle_signal s = failure(THROTTLE_RATE_LIMIT, THROTTLE_UNSAID);
    assert_false(again(&p, &call, &s, 0, 0, &delay)); /* that was the fifth */
    assert_false(s.retry_safe);
    assert_int_equal(call.attempts, 5);
}

static void jitter_spreads_over_the_whole_range(void **state)
{
    struct throttle_policy p = THROTTLE_DEFAULT;
    nsec least = SECOND(100);
    nsec largest = 0;
    for (uint64_t i = 0; i < 1000; i++) {
        struct throttle_call call = { .attempts = 3 };
        struct throttle_signal s = failure(THROTTLE_SERVER_ERROR, THROTTLE_UNSAID);
        nsec delay;
        assert_true(again(&p, &call, &s, 0, i * UINT64_C(0x9E3779B97F4A7C15), &delay));
        least = delay < least ? delay : least;
        largest = delay > largest ? delay : largest;
    }
    assert_int_equal(least, p.base);
    assert_true(largest > MS(3500) && largest < SECOND(4));
}

static void what_the_provider_asks_for_is_respected(void **state)
{
    struct throttle_policy p = THROTTLE_DEFAULT;
    struct throttle_call call = { 0 };
    struct throttle_signal s = failure(THROTTLE_RATE_LIMIT, SECOND(12));
    nsec delay;
    assert_true(again(&p, &call, &s, 0, 7, &delay));
    assert_int_equal(delay, SECOND(12));
    assert_true(again(&p, &call, &s, 0, 7, &delay));
    assert_false(again(&p, &call, &s, 0, 7, &delay)); /* 36 s are beyond the total */
    call = (struct throttle_call) { 0 };
    s = failure(THROTTLE_RATE_LIMIT, SECOND(3600));
    assert_false(again(&p, &call, &s, 0, 7, &delay));
}

static void a_deadline_ends_the_patience(void **state)
{
    struct throttle_policy p = THROTTLE_DEFAULT;
    struct throttle_call call = { 0 };
    struct throttle_signal s = failure(THROTTLE_TIMEOUT, SECOND(2));
    nsec delay;
    assert_false(again(&p, &call, &s, NOW + SECOND(2), 0, &delay));
    call = (struct throttle_call) { 0 };
    s = failure(THROTTLE_TIMEOUT, SECOND(2));
    assert_true(again(&p, &call, &s, NOW + SECOND(2) + 1, 0, &delay));
}

static void quota_waits_longer(void **state)
{
    struct throttle_policy p = THROTTLE_DEFAULT;
    struct throttle_call call = { 0 };
    struct throttle_signal s = failure(THROTTLE_QUOTA_EXHAUSTED, THROTTLE_UNSAID);
    nsec delay;
    assert_true(again(&p, &call, &s, 0, 1, &delay));
    assert_int_equal(delay, 2 * p.cap);               /* a rate limit waits for at most p.cap */
    assert_false(again(&p, &call, &s, 0, 1, &delay)); /* 16 s and 30 s exceed the total */
    p.total = p.cap + 1;
    call = (struct throttle_call) { 0 };
    s = failure(THROTTLE_QUOTA_EXHAUSTED, THROTTLE_UNSAID);
    assert_true(again(&p, &call, &s, 0, 1, &delay));
    assert_int_equal(delay, p.total);
}

static void what_is_no_throttling_is_never_tried_again(void **state)
{
    struct throttle_policy p = THROTTLE_DEFAULT;
    struct throttle_call call = { 0 };
    struct throttle_signal s = THROTTLE_NO_SIGNAL;
    nsec delay;
    assert_false(again(&p, &call, &s, 0, 1, &delay));
    s = failure(THROTTLE_SERVER_ERROR, THROTTLE_UNSAID);
    s.retry_safe = false; /* a byte has reached the client */
    assert_false(again(&p, &call, &s, 0, 1, &delay));
}

static void over(struct throttle *t, const struct throttle_signal *s, nsec now)
{
    throttle_report(t, s, now);
    throttle_leave(t);
}

static void only_so_many_at_a_time(void **state)
{
    struct throttle t;
    struct throttle_gate gate;
    throttle_init(&t, &(struct throttle_policy) { .concurrency = 2 });
    assert_int_equal(throttle_enter(&t, NOW, &gate), THROTTLE_GO);
    assert_int_equal(throttle_enter(&t, NOW, &gate), THROTTLE_GO);
    assert_int_equal(throttle_enter(&t, NOW, &gate), THROTTLE_LATER);
    assert_true(gate.until == THROTTLE_WHEN_FREE);
    over(&t, &THROTTLE_NO_SIGNAL, NOW);
    assert_int_equal(throttle_enter(&t, NOW, &gate), THROTTLE_GO);
}

static void only_so_many_a_minute(void **state)
{
    struct throttle t;
    struct throttle_gate gate;
    throttle_init(&t, &(struct throttle_policy) { .per_minute = 30 });
    int passed = 0;
    for (nsec now = NOW; now < NOW + SECOND(60); now += MS(10)) {
        passed += throttle_enter(&t, now, &gate) == THROTTLE_GO;
    }
    assert_int_equal(passed, 30);
    assert_int_equal(throttle_enter(&t, NOW + SECOND(59), &gate), THROTTLE_LATER);
    assert_int_equal(gate.until, NOW + SECOND(60));
    throttle_init(&t, &(struct throttle_policy) { .per_minute = 600 }); /* ten a second at once */
    passed = 0;
    for (int i = 0; i < 100; i++) {
        passed += throttle_enter(&t, NOW, &gate) == THROTTLE_GO;
    }
    assert_int_equal(passed, 10);
}

static void everybody_waits_when_the_provider_asks_for_it(void **state)
{
    struct throttle t;
    struct throttle_gate gate;
    throttle_init(&t, &THROTTLE_DEFAULT);
    assert_int_equal(throttle_enter(&t, NOW, &gate), THROTTLE_GO);
    struct throttle_signal s = failure(THROTTLE_RATE_LIMIT, SECOND(3));
    over(&t, &s, NOW);
    assert_int_equal(throttle_enter(&t, NOW + SECOND(1), &gate), THROTTLE_LATER);
    assert_int_equal(gate.until, NOW + SECOND(3));
    assert_int_equal(throttle_enter(&t, NOW + SECOND(3), &gate), THROTTLE_GO);
    s = failure(THROTTLE_RATE_LIMIT, SECOND(600));
    over(&t, &s, NOW + SECOND(3));
    assert_int_equal(throttle_enter(&t, NOW + SECOND(4), &gate), THROTTLE_REFUSED);
    assert_int_equal(gate.signal.kind, THROTTLE_RATE_LIMIT);
    assert_int_equal(gate.signal.retry_after, SECOND(599));
}

static void fail_once(struct throttle *t, nsec now)
{
    struct throttle_gate gate;
    struct throttle_signal s = failure(THROTTLE_SERVER_ERROR, THROTTLE_UNSAID);
    assert_int_equal(throttle_enter(t, now, &gate), THROTTLE_GO);
    over(t, &s, now);
}

static void an_upstream_that_keeps_failing_rests(void **state)
{
    struct throttle t;
    struct throttle_gate gate;
    struct throttle_policy p = THROTTLE_DEFAULT;
    p.breaker = 3;
    throttle_init(&t, &p);
    fail_once(&t, NOW);
    fail_once(&t, NOW);
    assert_int_equal(throttle_enter(&t, NOW, &gate), THROTTLE_GO);
    over(&t, &THROTTLE_NO_SIGNAL, NOW); /* in a row means in a row */
    for (int i = 0; i < 3; i++) {
        fail_once(&t, NOW);
    }
    assert_int_equal(throttle_enter(&t, NOW + 1, &gate), THROTTLE_REFUSED);
    assert_int_equal(gate.signal.kind, THROTTLE_SERVER_ERROR);
    nsec later = NOW + p.rest;
    assert_int_equal(throttle_enter(&t, later, &gate), THROTTLE_GO); /* one may try … */
    assert_int_equal(throttle_enter(&t, later, &gate), THROTTLE_LATER);
    struct throttle_signal s = failure(THROTTLE_TIMEOUT, THROTTLE_UNSAID);
    over(&t, &s, later); /* … and fails */
    assert_int_equal(throttle_enter(&t, later + 1, &gate), THROTTLE_REFUSED);
    later += p.rest;
    assert_int_equal(throttle_enter(&t, later, &gate), THROTTLE_GO);
    over(&t, &THROTTLE_NO_SIGNAL, later);
    assert_int_equal(throttle_enter(&t, later, &gate), THROTTLE_GO);
    assert_int_equal(throttle_enter(&t, later, &gate), THROTTLE_GO);
}

static void retry_after_is_read_in_all_its_forms(void **state)
{
    const int64_t wall = INT64_C(946684790) * NSEC_PER_SEC; /* 31 Dec 1999 23:59:50 */
    assert_int_equal(throttle_retry_after(STR("3"), false, wall), SECOND(3));
    assert_int_equal(throttle_retry_after(STR(" 1.5 "), false, wall), MS(1500));
    assert_int_equal(throttle_retry_after(STR("0"), false, wall), 0);
    assert_int_equal(throttle_retry_after(STR("250"), true, wall), MS(250));
    assert_int_equal(throttle_retry_after(STR("Fri, 31 Dec 1999 23:59:59 GMT"), false, wall),
                     SECOND(9));
    assert_int_equal(throttle_retry_after(STR("Fri, 31 Dec 1999 23:59:49 GMT"), false, wall), 0);
    assert_int_equal(throttle_retry_after(STR("99999999999"), false, wall), SECOND(86400));
    static const char *const bad[] = { "",
                                       "soon",
                                       "-1",
                                       "nan",
                                       "inf",
                                       "3 seconds",
                                       "Fri, 31 Dec 1999 23:59:59 GMT and then some more words" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(throttle_retry_after(str_of(bad[i]), false, wall), THROTTLE_UNSAID);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failures_are_classified_as_the_table_says),
        cmocka_unit_test(delays_grow_and_stay_in_their_bounds),
        cmocka_unit_test(jitter_spreads_over_the_whole_range),
        cmocka_unit_test(what_the_provider_asks_for_is_respected),
        cmocka_unit_test(a_deadline_ends_the_patience),
        cmocka_unit_test(quota_waits_longer),
        cmocka_unit_test(what_is_no_throttling_is_never_tried_again),
        cmocka_unit_test(only_so_many_at_a_time),
        cmocka_unit_test(only_so_many_a_minute),
        cmocka_unit_test(everybody_waits_when_the_provider_asks_for_it),
        cmocka_unit_test(an_upstream_that_keeps_failing_rests),
        cmocka_unit_test(retry_after_is_read_in_all_its_forms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
