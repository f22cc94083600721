/* SPDX-License-Identifier: MIT
 *
 * The transition table of proc, walked: no pair forgotten, no state without a way out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "proc/machine.h"

#define FIRST PROC_STATE_STARTING

static void each_pair_has_an_answer(void **state)
{
    (void)state;
    for (int s = FIRST; s < PROC_STATE_MAX; s++) {
        for (int ev = 0; ev < PROC_EVENT_MAX; ev++) {
            enum proc_state to = machine_next((enum proc_state)s, (enum proc_event)ev);
            assert_in_range(to, FIRST, PROC_STATE_DONE);
        }
    }
}

static void deadline_alone_leads_to_done(void **state)
{
    (void)state;
    for (int from = FIRST; from < PROC_STATE_DONE; from++) {
        enum proc_state s = (enum proc_state)from;
        int steps = 0;
        while (s != PROC_STATE_DONE && steps < PROC_STATE_MAX) {
            enum proc_state to = machine_next(s, PROC_EVENT_DEADLINE);
            assert_int_not_equal(to, s);
            s = to;
            steps++;
        }
        assert_int_equal(s, PROC_STATE_DONE);
    }
}

static void done_is_final(void **state)
{
    (void)state;
    for (int ev = 0; ev < PROC_EVENT_MAX; ev++) {
        assert_int_equal(machine_next(PROC_STATE_DONE, (enum proc_event)ev), PROC_STATE_DONE);
    }
}

static void each_state_is_reachable(void **state)
{
    (void)state;
    bool seen[PROC_STATE_MAX] = { [PROC_STATE_STARTING] = true };
    for (int round = 0; round < PROC_STATE_MAX; round++) {
        for (int s = FIRST; s < PROC_STATE_MAX; s++) {
            for (int ev = 0; seen[s] && ev < PROC_EVENT_MAX; ev++) {
                seen[machine_next((enum proc_state)s, (enum proc_event)ev)] = true;
            }
        }
    }
    for (int s = FIRST; s < PROC_STATE_MAX; s++) {
        assert_true(seen[s]);
    }
}

/* Done means that the tree is gone: it is only reached through a state that follows its end. */
static void done_comes_from_closing_only(void **state)
{
    (void)state;
    for (int s = FIRST; s < PROC_STATE_DONE; s++) {
        for (int ev = 0; ev < PROC_EVENT_MAX; ev++) {
            if (machine_next((enum proc_state)s, (enum proc_event)ev) == PROC_STATE_DONE) {
                assert_int_equal(s, PROC_STATE_CLOSING);
            }
        }
    }
    /* … and closing only after the helper said good-bye, or after the sweep. */
    for (int s = FIRST; s < PROC_STATE_CLOSING; s++) {
        for (int ev = 0; ev < PROC_EVENT_MAX; ev++) {
            if (machine_next((enum proc_state)s, (enum proc_event)ev) == PROC_STATE_CLOSING) {
                assert_true((s == PROC_STATE_FINISHING && ev == PROC_EVENT_INIT_DONE) ||
                            s == PROC_STATE_SWEEPING);
            }
        }
    }
}

/* No sequence of events can go back: each state has a rank, and edges only climb. */
static void no_sequence_goes_back(void **state)
{
    (void)state;
    static const int rank[PROC_STATE_MAX] = {
        [PROC_STATE_STARTING] = 1, [PROC_STATE_RUNNING] = 2,  [PROC_STATE_STOPPING] = 3,
        [PROC_STATE_KILLING] = 4,  [PROC_STATE_DRAINING] = 5, [PROC_STATE_FINISHING] = 6,
        [PROC_STATE_SWEEPING] = 7, [PROC_STATE_CLOSING] = 8,  [PROC_STATE_DONE] = 9,
    };
    for (int s = FIRST; s < PROC_STATE_MAX; s++) {
        for (int ev = 0; ev < PROC_EVENT_MAX; ev++) {
            enum proc_state to = machine_next((enum proc_state)s, (enum proc_event)ev);
            assert_true(rank[to] >= rank[s]);
        }
    }
}

static void names_are_there(void **state)
{
    (void)state;
    for (int s = 0; s < PROC_STATE_MAX; s++) {
        assert_non_null(machine_state_name((enum proc_state)s));
    }
    for (int ev = 0; ev < PROC_EVENT_MAX; ev++) {
        assert_non_null(machine_event_name((enum proc_event)ev));
    }
    assert_string_equal(machine_state_name(PROC_STATE_DONE), "done");
    assert_string_equal(machine_event_name(PROC_EVENT_DEADLINE), "deadline");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_pair_has_an_answer),
        cmocka_unit_test(deadline_alone_leads_to_done),
        cmocka_unit_test(done_is_final),
        cmocka_unit_test(each_state_is_reachable),
        cmocka_unit_test(done_comes_from_closing_only),
        cmocka_unit_test(no_sequence_goes_back),
        cmocka_unit_test(names_are_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
