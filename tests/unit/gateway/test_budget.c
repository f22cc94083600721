/* SPDX-License-Identifier: MIT
 *
 * The budget: nothing overshoots, whatever is in flight; what is left can be used; refusals say
 * why.
 */
#include "gateway/budget.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "gateway/price.h"
#include "llm/event.h"

#define NOW ((nsec)1000 * NSEC_PER_SEC)

static const char *const any[] = { "*", NULL };
static const struct price_entry dollar = { .match = any,
                                           .base = { 1000000, 2000000, 1000000, 1000000 } };

static struct llm_usage used(int64_t in, int64_t out)
{
    return (struct llm_usage) { in, out, -1, -1, -1 };
}

static void ten_of_thirty_two_calls_pass(void **state)
{
    struct budget b;
    struct budget_claim claims[32];
    struct budget_ask ask = { .input = 100, .output = 100 };
    int granted = 0;
    budget_init(&b, &(struct budget_limits) { .calls = 10 });
    for (int i = 0; i < 32; i++) {
        granted += budget_reserve(&b, &ask, NOW, &claims[i]) == BUDGET_GRANTED;
    }
    assert_int_equal(granted, 10);
    assert_int_equal(b.refusals, 22);
    assert_int_equal(b.refused, BUDGET_CALLS);
    for (int i = 0; i < 32; i++) {
        budget_settle(&b, &claims[i], NULL, 0); /* failed in flight: calls all the same */
    }
    assert_int_equal(b.spent[BUDGET_CALLS], 10);
    assert_int_equal(budget_reserve(&b, &ask, NOW, &claims[0]), BUDGET_REFUSED);
}

static void fees_are_reserved_beside_tokens(void **state)
{
    const int64_t cent = PICO_PER_USD / 100;
    struct budget b;
    struct budget_claim first, second;
    char text[BUDGET_TEXT];
    struct budget_ask ask = { .input = 1000, .output = 2000, .price = &dollar, .fees = 3 * cent };
    budget_init(&b, &(struct budget_limits) { .cost = 6 * cent });
    assert_int_equal(budget_reserve(&b, &ask, NOW, &first), BUDGET_GRANTED);
    assert_int_equal(first.amount[BUDGET_COST], 3 * cent + cent / 2);
    assert_int_equal(budget_reserve(&b, &ask, NOW, &second), BUDGET_WAIT);
    struct llm_usage u = used(1000, 2000);
    budget_settle(&b, &first, &u, 3 * cent + cent / 2);
    assert_int_equal(budget_reserve(&b, &ask, NOW, &second), BUDGET_REFUSED);
    assert_int_equal(second.why, BUDGET_COST);
    assert_string_equal(budget_describe(&second, text),
                        "the next call could cost up to $0.0350 (at least $0.0310), of which $0.03 "
                        "for web searches; $0.0250 of $0.06 is left");
    ask.fees = 2 * cent; /* the output is cut to what is left beside them */
    assert_int_equal(budget_reserve(&b, &ask, NOW, &second), BUDGET_GRANTED);
    assert_true(second.cut == false && second.amount[BUDGET_COST] == 2 * cent + cent / 2);
    budget_release(&b, &second);
    ask.choices = 2; /* each response has its own */
    assert_int_equal(budget_reserve(&b, &ask, NOW, &second), BUDGET_REFUSED);
    ask.choices = 1;
    ask.output = 20000;
    assert_int_equal(budget_reserve(&b, &ask, NOW, &second), BUDGET_GRANTED);
    assert_true(second.cut);
    assert_int_equal(second.output, 2000);
    budget_release(&b, &second);
    ask.fees = INT64_MAX;
    assert_int_equal(budget_reserve(&b, &ask, NOW, &second), BUDGET_REFUSED);
}

static void a_call_that_never_left_is_no_call(void **state)
{
    struct budget b;
    struct budget_claim c;
    struct budget_ask ask = { .input = 1, .output = 20 };
    budget_init(&b, &(struct budget_limits) { .calls = 1 });
    assert_int_equal(budget_reserve(&b, &ask, NOW, &c), BUDGET_GRANTED);
    budget_release(&b, &c);
    assert_int_equal(budget_reserve(&b, &ask, NOW, &c), BUDGET_GRANTED);
    budget_settle(&b, &c, NULL, 0);
    budget_settle(&b, &c, NULL, 0); /* twice does nothing */
    assert_int_equal(b.spent[BUDGET_CALLS], 1);
}

static void tokens_in_flight_are_counted_before_they_are_spent(void **state)
{
    struct budget b;
    struct budget_claim first;
    struct budget_claim second;
    struct budget_ask ask = { .input = 100, .output = 500 };
    budget_init(&b, &(struct budget_limits) { .total = 1000 });
    assert_int_equal(budget_reserve(&b, &ask, NOW, &first), BUDGET_GRANTED);
    assert_false(first.cut);
    assert_int_equal(budget_reserve(&b, &ask, NOW, &second), BUDGET_WAIT);
    assert_int_equal(second.why, BUDGET_TOTAL);
    assert_int_equal(b.refused, BUDGET_NONE);
    struct llm_usage u = used(90, 10);
    budget_settle(&b, &first, &u, 0);
    assert_int_equal(budget_reserve(&b, &ask, NOW, &second), BUDGET_GRANTED);
    assert_int_equal(b.spent[BUDGET_TOTAL] + b.claimed[BUDGET_TOTAL], 700);
}

static void the_last_part_of_a_budget_can_be_used(void **state)
{
    struct budget b;
    struct budget_claim c;
    struct budget_ask ask = { .input = 100, .output = 32000 };
    budget_init(&b, &(struct budget_limits) { .total = 1000 });
    assert_int_equal(budget_reserve(&b, &ask, NOW, &c), BUDGET_GRANTED);
    assert_true(c.cut);
    assert_int_equal(c.output, 900);
    struct llm_usage u = used(100, 885);
    budget_settle(&b, &c, &u, 0);
    assert_int_equal(budget_reserve(&b, &ask, NOW, &c), BUDGET_REFUSED);
    assert_int_equal(c.why, BUDGET_TOTAL);
    char text[BUDGET_TEXT];
    assert_string_equal(budget_describe(&c, text),
                        "the next call could use up to 32100 tokens (at least 116); 15 of 1000 are "
                        "left");
}

static void thinking_needs_its_room(void **state)
{
    struct budget b;
    struct budget_claim c;
    budget_init(&b, &(struct budget_limits) { .output = 5000 });
    struct budget_ask ask = { .input = 1, .output = 32000, .floor = 10001 };
    assert_int_equal(budget_reserve(&b, &ask, NOW, &c), BUDGET_REFUSED);
    assert_int_equal(c.why, BUDGET_OUTPUT);
    ask.floor = 4001;
    assert_int_equal(budget_reserve(&b, &ask, NOW, &c), BUDGET_GRANTED);
    assert_int_equal(c.output, 5000);
    budget_release(&b, &c);
    ask = (struct budget_ask) { .input = 1, .output = 3 }; /* wants less than the least itself */
    assert_int_equal(budget_reserve(&b, &ask, NOW, &c), BUDGET_GRANTED);
    assert_false(c.cut);
}

static void a_call_without_a_limit_is_held_to_what_models_write(void **state)
{
    struct budget b;
    struct budget_claim c;
    struct budget_claim d;
    struct budget_ask ask = { .input = 1000 };
    budget_init(&b, &(struct budget_limits) { .output = 200000 });
    assert_int_equal(budget_reserve(&b, &ask, NOW, &c), BUDGET_GRANTED);
    assert_false(c.cut);
    assert_int_equal(b.claimed[BUDGET_OUTPUT], BUDGET_MODEL_OUTPUT);
    assert_int_equal(budget_reserve(&b, &ask, NOW, &d), BUDGET_GRANTED);
    assert_true(d.cut);
    assert_int_equal(d.output, BUDGET_UNSAID_OUTPUT);
    assert_true(b.claimed[BUDGET_OUTPUT] <= 200000);
    budget_init(&b, &(struct budget_limits) { .calls = 3 });
    assert_int_equal(budget_reserve(&b, &ask, NOW, &c), BUDGET_GRANTED);
    assert_false(c.cut);
}

static void dollars_are_kept_too(void **state)
{
    struct budget b;
    struct budget_claim c;
    struct budget_ask ask = { .input = 1000, .output = 1000, .price = &dollar };
    budget_init(&b, &(struct budget_limits) { .cost = price_pico(0.004) });
    assert_int_equal(budget_reserve(&b, &ask, NOW, &c), BUDGET_GRANTED);
    assert_int_equal(c.amount[BUDGET_COST], price_pico(0.003));
    struct llm_usage u = used(1000, 1000);
    budget_settle(&b, &c, &u, price_cost(&dollar, &u));
    assert_int_equal(b.spent[BUDGET_COST], price_pico(0.003));
    assert_int_equal(budget_reserve(&b, &ask, NOW, &c), BUDGET_REFUSED);
    assert_int_equal(c.why, BUDGET_COST);
    char text[BUDGET_TEXT];
    assert_string_equal(budget_describe(&c, text),
                        "the next call could cost up to $0.003000 (at least $0.001032); $0.001000 "
                        "of $0.004000 is left");
}

static void a_model_without_a_price_cannot_keep_a_limit_in_dollars(void **state)
{
    struct budget b;
    struct budget_claim c;
    budget_init(&b, &(struct budget_limits) { .cost = 1 });
    assert_int_equal(budget_reserve(&b, &(struct budget_ask) { .output = 100 }, NOW, &c),
                     BUDGET_REFUSED);
    assert_int_equal(c.why, BUDGET_PRICE);
}

static void after_the_deadline_nothing_passes(void **state)
{
    struct budget b;
    struct budget_claim c;
    struct budget_ask ask = { .input = 1, .output = 100 };
    budget_init(&b, &(struct budget_limits) { .deadline = NOW + 100, .started = NOW });
    assert_false(budget_limited(&b));
    assert_int_equal(budget_reserve(&b, &ask, NOW + 99, &c), BUDGET_GRANTED);
    assert_int_equal(budget_reserve(&b, &ask, NOW + 100, &c), BUDGET_REFUSED);
    assert_int_equal(c.why, BUDGET_TIME);
}

static void what_is_left_is_told_as_shares(void **state)
{
    struct budget b;
    struct budget_claim c;
    budget_init(&b, &(struct budget_limits) {
                        .total = 1000, .calls = 10, .deadline = NOW + 400, .started = NOW });
    struct budget_left left = budget_left(&b, NOW + 100);
    assert_true(left.budget == 1 && left.time == 0.75 && left.until == 300);
    struct budget_ask ask = { .input = 100, .output = 100 };
    assert_int_equal(budget_reserve(&b, &ask, NOW, &c), BUDGET_GRANTED);
    struct llm_usage u = { 100, 400, 200, 50, -1 };
    budget_settle(&b, &c, &u, 0);
    left = budget_left(&b, NOW + 500);
    assert_int_equal(left.scarcest, BUDGET_TOTAL);
    assert_true(left.budget == 0.25 && left.time == 0 && left.until == 0);
    assert_false(budget_wrap_up(&b, NOW, 0.2));
    assert_true(budget_wrap_up(&b, NOW, 0.25));
    assert_true(budget_wrap_up(&b, NOW + 399, 0.1));
    budget_init(&b, &(struct budget_limits) { 0 });
    left = budget_left(&b, NOW);
    assert_true(left.budget == 1 && left.time == 1 && left.until == -1);
}

/* Any order of reserving and settling: the promise is an invariant, not a lucky path. */
static void no_order_of_events_overshoots(void **state)
{
    enum { CALLS = 32, STEPS = 20000 };
    const struct budget_limits limits = { .input = 40000, .output = 60000, .total = 80000 };
    for (unsigned seed = 1; seed <= 20; seed++) {
        struct budget b;
        struct budget_claim claims[CALLS] = { 0 };
        budget_init(&b, &limits);
        for (int step = 0; step < STEPS / 20; step++) {
            struct budget_claim *c = &claims[(size_t)rand_r(&seed) % CALLS];
            if (!c->open) {
                struct budget_ask ask = { .input = rand_r(&seed) % 900,
                                          .output = rand_r(&seed) % 3000 };
                (void)budget_reserve(&b, &ask, NOW, c);
            } else {
                struct llm_usage u = used(rand_r(&seed) % (int)(c->amount[BUDGET_INPUT] + 1),
                                          rand_r(&seed) % (int)(c->amount[BUDGET_OUTPUT] + 1));
                budget_settle(&b, c, &u, 0);
            }
            for (int k = 0; k < BUDGET_KIND_MAX; k++) {
                assert_true(b.limit[k] == 0 || b.spent[k] + b.claimed[k] <= b.limit[k]);
            }
        }
    }
}

static void absurd_numbers_do_no_harm(void **state)
{
    struct budget b;
    struct budget_claim c;
    budget_init(&b, &(struct budget_limits) { .total = INT64_MAX, .cost = INT64_MAX });
    struct budget_ask ask = { .input = INT64_MAX, .output = INT64_MAX, .price = &dollar };
    assert_int_equal(budget_reserve(&b, &ask, NOW, &c), BUDGET_REFUSED);
    ask = (struct budget_ask) { .input = -5, .output = -7, .price = &dollar };
    assert_int_equal(budget_reserve(&b, &ask, NOW, &c), BUDGET_GRANTED);
    struct llm_usage u = { INT64_MAX, INT64_MAX, INT64_MAX, -9, 0 };
    budget_settle(&b, &c, &u, -1);
    assert_int_equal(b.spent[BUDGET_TOTAL], INT64_MAX);
    assert_int_equal(b.spent[BUDGET_COST], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ten_of_thirty_two_calls_pass),
        cmocka_unit_test(fees_are_reserved_beside_tokens),
        cmocka_unit_test(a_call_that_never_left_is_no_call),
        cmocka_unit_test(tokens_in_flight_are_counted_before_they_are_spent),
        cmocka_unit_test(the_last_part_of_a_budget_can_be_used),
        cmocka_unit_test(thinking_needs_its_room),
        cmocka_unit_test(a_call_without_a_limit_is_held_to_what_models_write),
        cmocka_unit_test(dollars_are_kept_too),
        cmocka_unit_test(a_model_without_a_price_cannot_keep_a_limit_in_dollars),
        cmocka_unit_test(after_the_deadline_nothing_passes),
        cmocka_unit_test(what_is_left_is_told_as_shares),
        cmocka_unit_test(no_order_of_events_overshoots),
        cmocka_unit_test(absurd_numbers_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
