/* SPDX-License-Identifier: MIT
 *
 * A refusal must not look like anything that a harness answers with another request.
 */
#include "gateway/refusal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void no_harness_tries_it_again(void **state)
{
    /* Words by which harnesses recognise a full context and then compact and retry. */
    static const char *const traps[] = { "too long", "context",    "length",
                                         "maximum",  "overloaded", "rate limit" };
    struct budget b;
    budget_init(&b, &(struct budget_limits) { .total = 10, .cost = 10, .calls = 1 });
    for (int f = 0; f < LLM_FORMAT_MAX; f++) {
        for (int why = 0; why < BUDGET_NONE; why++) {
            char text[REFUSAL_TEXT];
            struct llm_error error;
            refusal_error((enum llm_format)f, &b, (enum budget_kind)why, text, &error);
            assert_int_equal(error.status, 400);
            assert_true(error.type.len > 0);
            for (size_t i = 0; i < sizeof traps / sizeof *traps; i++) {
                assert_null(strstr(text, traps[i]));
            }
        }
    }
}

static void it_says_what_is_used_up(void **state)
{
    struct budget b;
    struct llm_error error;
    char text[REFUSAL_TEXT];
    budget_init(&b, &(struct budget_limits) { .calls = 10 });
    b.spent[BUDGET_CALLS] = 10;
    refusal_error(LLM_CHAT, &b, BUDGET_CALLS, text, &error);
    assert_string_equal(
        text, "The budget of this run is used up (calls: 10 of 10 are used). Do not try again.");
    assert_true(str_eqc(error.code, "insufficient_quota"));
    assert_string_equal(refusal_reason(BUDGET_CALLS), "budget");
    assert_string_equal(refusal_reason(BUDGET_TIME), "deadline");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_harness_tries_it_again),
        cmocka_unit_test(it_says_what_is_used_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
