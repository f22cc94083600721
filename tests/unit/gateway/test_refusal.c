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
    for (int f = 0; f < LLM_FORMAT_MAX; f++) {
        for (int why = 0; why < BUDGET_NONE; why++) {
            char text[REFUSAL_TEXT];
            struct llm_error error;
            const struct budget_claim claim = { .why = (enum budget_kind)why };
            refusal_error((enum llm_format)f, &claim, text, &error);
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
    struct llm_error error;
    char text[REFUSAL_TEXT];
    const struct budget_claim claim = { .why = BUDGET_CALLS, .need = { .limit = 10 } };
    refusal_error(LLM_CHAT, &claim, text, &error);
    assert_string_equal(text,
                        "The gateway refused this call: all 10 calls are used. Do not try again.");
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
