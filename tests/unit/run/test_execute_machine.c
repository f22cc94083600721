/* SPDX-License-Identifier: MIT
 *
 * The machine of phase execute with a fake driver, process and clock: the whole table, the ordinary
 * ways through it, and cancel, deadline and crash in every state, for all kinds of agents.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fake_execute.h"

static void expect_trace(const struct fake *f, const char *expected)
{
    if (strcmp(f->trace, expected) != 0) {
        print_error("trace:    %s\nexpected: %s\n", f->trace, expected);
    }
    assert_string_equal(f->trace, expected);
}

/* --- ordinary ways --- */

static void test_pipe(void **state)
{
    struct fake f = fake_new(PIPE);
    begin_fake(&f);
    expect_trace(&f, "wait_sandbox open_tools start turn drain review close_tools done");
    assert_int_equal(f.reviews, 1);
    assert_int_equal(f.dones, 1);
}

static void test_pipe_takes_further_turns_as_processes(void **state)
{
    struct fake f = fake_new(PIPE);
    f.turns_wanted = 2;
    begin_fake(&f);
    expect_trace(&f, "wait_sandbox open_tools start turn drain review restart start turn drain "
                     "review restart start turn drain review close_tools done");
    assert_int_equal(f.starts, 3);
    assert_int_equal(f.says, 0);
}

static void test_dialogue(void **state)
{
    struct fake f = fake_new(DIALOGUE);
    f.turns_wanted = 1;
    begin_fake(&f);
    settle(&f);
    expect_trace(&f, "wait_sandbox open_tools start turn settle review turn settle review save "
                     "finish drain close_tools done");
    assert_int_equal(f.starts, 1);
    assert_int_equal(f.says, 1);
}

static void test_loop(void **state)
{
    struct fake f = fake_new(LOOP);
    f.turns_wanted = 1;
    begin_fake(&f);
    settle(&f);
    expect_trace(&f, "wait_sandbox open_tools start turn settle review turn settle review save "
                     "finish close_tools done");
}

static void test_restart_for_opened_sections(void **state)
{
    for (int kind = PIPE; kind <= DIALOGUE; kind++) {
        struct fake f = fake_new((enum kind)kind);
        f.must_restart = true;
        begin_fake(&f);
        settle(&f);
        assert_int_equal(f.m.state, EXECUTE_DONE);
        assert_int_equal(f.restarts, 1);
        assert_int_equal(f.starts, 2);
        assert_int_equal(f.reviews, 1); /* of the second session alone */
    }
}

static void test_conversation_is_saved_first(void **state)
{
    struct fake f = fake_new(DIALOGUE);
    f.hold.save = true;
    begin_fake(&f);
    settle(&f); /* looks again and again */
    assert_int_equal(f.m.state, EXECUTE_SAVE);
    assert_int_equal(f.armed, f.clock + EXECUTE_SAVE_LOOK);
    f.saved = true;
    settle(&f);
    assert_int_equal(f.m.state, EXECUTE_DONE);
    assert_int_equal(f.finishes, 1);
}

static void test_silence_counts_from_the_last_byte(void **state)
{
    struct fake f = fake_new(DIALOGUE);
    f.hold.turn = true;
    begin_fake(&f);
    execute_paused(&f.m, 3 * SECOND);
    assert_int_equal(f.m.state, EXECUTE_QUIET);
    f.clock += 2 * SECOND;
    execute_output(&f.m);
    execute_wake(&f.m); /* too early */
    assert_int_equal(f.m.state, EXECUTE_QUIET);
    assert_int_equal(f.armed, f.clock + 3 * SECOND);
    (void)tick(&f);
    assert_int_equal(f.m.state, EXECUTE_TURN);
    execute_turn_ended(&f.m, 9 * SECOND);
    assert_int_equal(f.armed, f.clock + 9 * SECOND);
    execute_turn_ended(&f.m, SECOND); /* its background tasks have ended */
    assert_int_equal(f.armed, f.clock + SECOND);
    assert_int_equal(f.m.state, EXECUTE_SETTLE);
    f.clock += SECOND / 2;
    execute_output(&f.m);
    assert_int_equal(f.armed, f.clock + SECOND);
    settle(&f);
    assert_int_equal(f.m.state, EXECUTE_DONE);
}

static void test_another_result_ends_the_wait(void **state)
{
    struct fake f = fake_new(DIALOGUE);
    f.hold.turn = true;
    begin_fake(&f);
    execute_turn_ended(&f.m, 600 * SECOND);
    f.clock += SECOND;
    execute_turn_ended(&f.m, 0);
    assert_int_equal(f.armed, f.clock);
    settle(&f);
    assert_int_equal(f.m.state, EXECUTE_DONE);
}

static void test_an_agent_that_does_not_exit_is_ended_and_keeps_its_answer(void **state)
{
    struct fake f = fake_new(DIALOGUE);
    f.hold.finish = true;
    begin_fake(&f);
    settle(&f);
    assert_int_equal(f.m.state, EXECUTE_DONE);
    assert_int_equal(f.lingers, 1);
    assert_string_equal(f.why, "finished");
    assert_false(f.failed);
}

/* --- the table --- */

static void test_every_pair_leads_to_a_state(void **state)
{
    for (int s = 0; s < EXECUTE_STATE_MAX; s++) {
        for (int ev = 0; ev < EXECUTE_EVENT_MAX; ev++) {
            enum execute_state to = execute_next((enum execute_state)s, (enum execute_event)ev);
            assert_in_range(to, 0, EXECUTE_DONE);
            assert_true(s == EXECUTE_IDLE || to != EXECUTE_IDLE); /* a forgotten cell would be 0 */
        }
        assert_int_equal(execute_next(EXECUTE_DONE, EXECUTE_STOP), EXECUTE_DONE);
        assert_non_null(execute_state_name((enum execute_state)s));
    }
    for (int ev = 0; ev < EXECUTE_EVENT_MAX; ev++) {
        assert_non_null(execute_event_name((enum execute_event)ev));
        assert_int_equal(execute_next(EXECUTE_DONE, (enum execute_event)ev), EXECUTE_DONE);
        assert_int_equal(execute_next(EXECUTE_IDLE, (enum execute_event)ev), EXECUTE_IDLE);
    }
}

static void test_every_state_is_reachable(void **state)
{
    bool seen[EXECUTE_STATE_MAX] = { [EXECUTE_IDLE] = true, [EXECUTE_WAIT_SANDBOX] = true };
    for (int round = 0; round < EXECUTE_STATE_MAX; round++) {
        for (int s = 0; s < EXECUTE_STATE_MAX; s++) {
            for (int ev = 0; seen[s] && ev < EXECUTE_EVENT_MAX; ev++) {
                seen[execute_next((enum execute_state)s, (enum execute_event)ev)] = true;
            }
        }
    }
    for (int s = 0; s < EXECUTE_STATE_MAX; s++) {
        assert_true(seen[s]);
    }
}

/* --- cancel, deadline and crash in every state --- */

/* The process answers from here on, everything else still hangs. */
static void process_answers(struct fake *f)
{
    f->hold = (struct hold) { 0 };
}

static void expect_end(struct fake *f, enum execute_state from, const char *what)
{
    if (f->m.state != EXECUTE_DONE || f->dones != 1) {
        fail_msg("%s of a %s in state %s: %s (%s)", what, kind_names[f->kind],
                 execute_state_name(from), execute_state_name(f->m.state), f->trace);
    }
    assert_int_equal(f->armed, 0);
    assert_int_equal(f->watch, EXECUTE_WATCH_OFF);
    assert_false(f->alive);
}

typedef void ending_fn(struct fake *f);

static void for_all_states(ending_fn *end, const char *what, bool answers)
{
    for (int kind = 0; kind < KIND_MAX; kind++) {
        for (int s = EXECUTE_WAIT_SANDBOX; s < EXECUTE_DONE; s++) {
            struct fake f = fake_new((enum kind)kind);
            if (!bring_to(&f, (enum execute_state)s)) {
                continue;
            }
            if (answers) {
                process_answers(&f);
            }
            end(&f);
            /* A conversation that is not saved is looked for every few milliseconds. */
            for (int i = 0; i < TICKS_MAX && f.m.state != EXECUTE_DONE && f.armed != 0; i++) {
                (void)tick(&f);
            }
            expect_end(&f, (enum execute_state)s, what);
        }
    }
}

static void cancel(struct fake *f)
{
    f->failed = true;
    execute_stop(&f->m, "interrupt");
}

static void cancel_twice(struct fake *f)
{
    cancel(f);
    execute_kill(&f->m);
    if (!f->alive) {
        execute_stop(&f->m, "interrupt");
    }
}

static void pass_total_time(struct fake *f)
{
    bool timed = execute_is_timed(f->m.state) && !f->m.stopped;
    f->clock = f->m.total_at;
    execute_wake(&f->m);
    assert_int_equal(f->timeouts, timed ? 1 : 0);
}

static void crash(struct fake *f)
{
    f->hold.drain = false;
    if (f->alive) {
        exits(f, false);
    } else { /* what is waited for fails in its place */
        cancel(f);
    }
}

static void nothing(struct fake *f)
{
}

static void test_cancel_in_every_state(void **state)
{
    for_all_states(cancel, "cancel", true);
}

/* Also when neither the process nor a check nor a tool server reacts to anything but force. */
static void test_cancel_of_a_run_that_hangs(void **state)
{
    for_all_states(cancel, "cancel", false);
}

static void test_kill_in_every_state(void **state)
{
    for_all_states(cancel_twice, "kill", false);
}

static void test_deadline_in_every_state(void **state)
{
    for_all_states(pass_total_time, "deadline", true);
    for_all_states(pass_total_time, "deadline", false);
}

static void test_crash_in_every_state(void **state)
{
    for_all_states(crash, "crash", true);
    for_all_states(crash, "crash", false);
}

/* No state waits for ever: time alone ends each. */
static void test_time_alone_ends_every_state(void **state)
{
    for_all_states(nothing, "time", false);
}

static void test_every_state_has_a_deadline(void **state)
{
    for (int kind = 0; kind < KIND_MAX; kind++) {
        for (int s = EXECUTE_WAIT_SANDBOX; s < EXECUTE_DONE; s++) {
            struct fake f = fake_new((enum kind)kind);
            if (bring_to(&f, (enum execute_state)s)) {
                assert_true(f.armed != 0);
                assert_true(execute_is_timed((enum execute_state)s) || f.m.deadline != 0);
                f.failed = true;
                execute_stop(&f.m, "interrupt"); /* … and after a stop one of its own */
                assert_true(f.m.state == EXECUTE_DONE || f.m.deadline != 0);
            }
        }
    }
}

static void test_stop_is_gentle_first(void **state)
{
    struct fake f = fake_new(DIALOGUE);
    (void)bring_to(&f, EXECUTE_INTERRUPT);
    assert_int_equal(f.interrupts, 1);
    assert_int_equal(f.stops, 0);
    assert_int_equal(f.armed, f.clock + EXECUTE_INTERRUPT_TIME);
    execute_output(&f.m); /* talking gains no time */
    execute_paused(&f.m, 60 * SECOND);
    assert_int_equal(f.armed, f.clock + EXECUTE_INTERRUPT_TIME);
    (void)tick(&f);
    assert_int_equal(f.stops, 1);
    assert_string_equal(f.why, "deadline");
    assert_int_equal(f.m.state, EXECUTE_DONE);
}

static void test_an_interrupted_turn_ends_by_itself(void **state)
{
    struct fake f = fake_new(DIALOGUE);
    (void)bring_to(&f, EXECUTE_INTERRUPT);
    execute_turn_ended(&f.m, SECOND);
    f.clock += SECOND / 2;
    nsec armed = f.armed;
    execute_output(&f.m);
    assert_int_equal(f.armed, armed);
    settle(&f);
    assert_int_equal(f.m.state, EXECUTE_DONE);
    assert_int_equal(f.stops, 0);
    assert_int_equal(f.finishes, 1);
    assert_int_equal(f.reviews, 0);
}

static void test_late_answers_change_nothing(void **state)
{
    struct fake f = fake_new(DIALOGUE);
    (void)bring_to(&f, EXECUTE_STOPPING);
    for (int ev = EXECUTE_READY; ev <= EXECUTE_ENOUGH; ev++) {
        execute_send(&f.m, (enum execute_event)ev);
        assert_int_equal(f.m.state, EXECUTE_STOPPING);
    }
    assert_int_equal(f.stops, 1);
}

/* --- any order --- */

static void check_invariants(const struct fake *f)
{
    const struct execute_machine *m = &f->m;
    assert_in_range(m->state, EXECUTE_WAIT_SANDBOX, EXECUTE_DONE);
    assert_false(m->busy);
    assert_int_equal(m->queued, 0);
    assert_true(m->state == EXECUTE_DONE || f->armed != 0);
    assert_true(f->dones == (m->state == EXECUTE_DONE ? 1 : 0));
}

static void random_event(struct fake *f, unsigned r)
{
    switch (r % 12) {
    case 0:
        execute_turn_ended(&f->m, (nsec)(r % 3) * SECOND);
        break;
    case 1:
        execute_paused(&f->m, SECOND);
        break;
    case 2:
        execute_output(&f->m);
        break;
    case 3:
        execute_verdict(&f->m, r % 24 == 3 ? STR("more") : STR_EMPTY);
        break;
    case 4:
        if (f->alive) {
            exits(f, r % 24 == 4);
        }
        break;
    case 5:
        if (r % 60 == 5) {
            cancel(f);
        }
        break;
    case 6:
        f->must_restart = r % 36 == 6;
        break;
    case 7:
        execute_send(&f->m, EXECUTE_READY);
        break;
    case 8:
        execute_send(&f->m, EXECUTE_OPENED);
        break;
    default:
        (void)tick(f);
        break;
    }
}

static void test_random_orders(void **state)
{
    unsigned seed = 1;
    for (int round = 0; round < 3000; round++) {
        struct fake f = fake_new((enum kind)(round % KIND_MAX));
        bool *holds = (bool *)&f.hold;
        for (size_t i = 0; i < sizeof f.hold; i++) {
            seed = seed * 1103515245 + 12345;
            holds[i] = (seed >> 16) % 3 == 0;
        }
        f.hold.restart = false;
        begin_fake(&f);
        for (int i = 0; i < 60 && f.m.state != EXECUTE_DONE; i++) {
            seed = seed * 1103515245 + 12345;
            f.trace[0] = '\0';
            random_event(&f, seed >> 16);
            check_invariants(&f);
        }
        f.must_restart = false;
        f.turns_wanted = 0;
        if (f.m.state != EXECUTE_DONE) {
            cancel(&f);
        }
        for (int i = 0; i < 50 && f.m.state != EXECUTE_DONE; i++) {
            f.trace[0] = '\0';
            assert_true(tick(&f));
        }
        check_invariants(&f);
        assert_int_equal(f.m.state, EXECUTE_DONE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pipe),
        cmocka_unit_test(test_pipe_takes_further_turns_as_processes),
        cmocka_unit_test(test_dialogue),
        cmocka_unit_test(test_loop),
        cmocka_unit_test(test_restart_for_opened_sections),
        cmocka_unit_test(test_conversation_is_saved_first),
        cmocka_unit_test(test_silence_counts_from_the_last_byte),
        cmocka_unit_test(test_another_result_ends_the_wait),
        cmocka_unit_test(test_an_agent_that_does_not_exit_is_ended_and_keeps_its_answer),
        cmocka_unit_test(test_every_pair_leads_to_a_state),
        cmocka_unit_test(test_every_state_is_reachable),
        cmocka_unit_test(test_every_state_has_a_deadline),
        cmocka_unit_test(test_cancel_in_every_state),
        cmocka_unit_test(test_cancel_of_a_run_that_hangs),
        cmocka_unit_test(test_kill_in_every_state),
        cmocka_unit_test(test_deadline_in_every_state),
        cmocka_unit_test(test_crash_in_every_state),
        cmocka_unit_test(test_time_alone_ends_every_state),
        cmocka_unit_test(test_stop_is_gentle_first),
        cmocka_unit_test(test_an_interrupted_turn_ends_by_itself),
        cmocka_unit_test(test_late_answers_change_nothing),
        cmocka_unit_test(test_random_orders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
