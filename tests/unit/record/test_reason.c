/* SPDX-License-Identifier: MIT
 *
 * Reasons, their exit codes in three profiles, and that they agree with the error categories.
 */
#include "record/reason.h"

#include "scratch.h"

static const struct engine_exit never = { 0 };

static void native_codes_are_those_of_the_contract(void **state)
{
    static const struct {
        enum reason reason;
        int native, holon;
    } table[] = {
        { REASON_SUCCESS, 0, 0 },
        { REASON_FAILURE, 1, 1 },
        { REASON_NO_RESULT, 1, 1 },
        { REASON_NEEDS_HUMAN, 2, 2 },
        { REASON_USAGE, 64, 1 },
        { REASON_BAD_TASK, 65, 1 },
        { REASON_MISSING_INPUT, 66, 1 },
        { REASON_UNAVAILABLE, 69, 1 },
        { REASON_INTERNAL, 70, 1 },
        { REASON_CANNOT_WRITE_OUTPUT, 73, 1 },
        { REASON_RATE_LIMITED, 75, 1 },
        { REASON_PROVIDER_UNAVAILABLE, 75, 1 },
        { REASON_AUTH, 77, 1 },
        { REASON_BUDGET, 78, 1 },
        { REASON_DISK, 1, 1 },
        { REASON_TIMEOUT, 124, 1 },
        { REASON_NOT_EXECUTABLE, 126, 1 },
        { REASON_NOT_FOUND, 127, 1 },
        { REASON_INTERRUPTED, 130, 1 },
        { REASON_CANCELLED, 130, 1 },
        { REASON_KILLED, 130, 1 },
        { REASON_TERMINATED, 143, 1 },
    };
    assert_int_equal(ARRAY_LEN(table), REASON_MAX - 1);
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        assert_int_equal(reason_exit_status(table[i].reason, EXIT_NATIVE, never), table[i].native);
        assert_int_equal(reason_exit_status(table[i].reason, EXIT_HOLON, never), table[i].holon);
        assert_int_equal(reason_find(str_of(reason_word(table[i].reason))), table[i].reason);
    }
    assert_int_equal(reason_find(STR("nonsense")), REASON_NONE);
    assert_null(reason_word(REASON_NONE));
    assert_string_equal(reason_status(REASON_NONE), "running");
    assert_string_equal(reason_outcome(REASON_NONE), "failure");
}

static void scylla_gives_the_code_of_the_harness(void **state)
{
    struct engine_exit zero = { ENGINE_EXITED, 0 };
    struct engine_exit three = { ENGINE_EXITED, 3 };
    struct engine_exit killed = { ENGINE_SIGNALLED, 9 };
    assert_int_equal(reason_exit_status(REASON_SUCCESS, EXIT_SCYLLA, zero), 0);
    assert_int_equal(reason_exit_status(REASON_SUCCESS, EXIT_SCYLLA, three), 3);
    assert_int_equal(reason_exit_status(REASON_FAILURE, EXIT_SCYLLA, three), 3);
    assert_int_equal(reason_exit_status(REASON_FAILURE, EXIT_SCYLLA, zero), 1);
    assert_int_equal(reason_exit_status(REASON_NEEDS_HUMAN, EXIT_SCYLLA, zero), 0);
    assert_int_equal(reason_exit_status(REASON_FAILURE, EXIT_SCYLLA, killed), 137);
    assert_int_equal(reason_exit_status(REASON_TIMEOUT, EXIT_SCYLLA, killed), 124);
    assert_int_equal(reason_exit_status(REASON_NOT_FOUND, EXIT_SCYLLA, never), 1);
    enum exit_profile p = EXIT_NATIVE;
    assert_true(exit_profile_find("scylla", &p));
    assert_int_equal(p, EXIT_SCYLLA);
    assert_false(exit_profile_find("other", &p));
}

/* An error that ends a run must exit as the error's own category says. */
static void errors_and_reasons_agree_on_the_exit_code(void **state)
{
    for (enum err_code c = ERR_OK; c < ERR_CODE_MAX; c++) {
        assert_int_equal(reason_exit_status(reason_of_err(c), EXIT_NATIVE, never),
                         err_exit_status(c));
    }
}

static void only_stops_from_outside_are_resumable(void **state)
{
    for (enum reason r = REASON_SUCCESS; r < REASON_MAX; r++) {
        bool stopped = r == REASON_INTERRUPTED || r == REASON_TERMINATED;
        assert_int_equal(reason_resumable(r), stopped);
    }
    assert_string_equal(reason_state(REASON_INTERRUPTED), "canceled");
    assert_string_equal(reason_status(REASON_INTERRUPTED), "failed");
    assert_string_equal(reason_status(REASON_TIMEOUT), "completed");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(native_codes_are_those_of_the_contract),
        cmocka_unit_test(scylla_gives_the_code_of_the_harness),
        cmocka_unit_test(errors_and_reasons_agree_on_the_exit_code),
        cmocka_unit_test(only_stops_from_outside_are_resumable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
