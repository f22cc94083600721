/* SPDX-License-Identifier: MIT
 *
 * A fake agent, process, sandbox, tools and clock for the machine of phase execute.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "run/execute_machine.h"

#define SECOND NSEC_PER_SEC
#define GRACE  (5 * SECOND)
#define TOTAL  (60 * SECOND)

enum { TICKS_MAX = 20000 };

/* --- the fake run --- */

enum kind { PIPE, DIALOGUE, LOOP, KIND_MAX };

static const char *const kind_names[] = { "pipe", "dialogue", "loop" };

/* What is not sent by itself, so that the machine stays where it is. */
struct hold {
    bool sandbox, tools, start, turn, review, save, finish, interrupt, stop, drain, restart, close;
};

struct fake {
    struct execute_machine m;
    struct execute_port port;
    enum kind kind;
    struct hold hold;
    nsec clock, armed;
    enum execute_watch watch;

    bool failed, launched, must_restart;
    bool alive;       /* a process, or a loop of ours */
    bool crashed;     /* its exit code was not 0 */
    int turns_wanted; /* further ones, by the checks */
    bool saved;
    nsec finish_time;
    nsec settle;
    bool opened; /* the tools */

    int starts, begins, says, reviews, finishes, interrupts, stops, forces, restarts, lingers,
        dones, timeouts, unblocked;
    const char *why;
    char trace[2000];
};

static inline void trace(struct fake *f, const char *what)
{
    size_t n = strlen(f->trace);
    (void)snprintf(f->trace + n, sizeof f->trace - n, "%s%s", n == 0 ? "" : " ", what);
}

static inline nsec now(void *owner)
{
    return ((struct fake *)owner)->clock;
}

static inline void arm(void *owner, nsec when)
{
    ((struct fake *)owner)->armed = when;
}

static inline void watch(void *owner, enum execute_watch what)
{
    struct fake *f = owner;
    f->watch = what;
    trace(f, execute_state_name(f->m.state)); /* each entry sets the watch */
}

static inline bool has_failed(void *owner)
{
    return ((struct fake *)owner)->failed;
}

static inline bool has_agent(void *owner)
{
    return ((struct fake *)owner)->alive;
}

static inline bool can_interrupt(void *owner)
{
    return ((struct fake *)owner)->kind == DIALOGUE;
}

static inline bool must_restart(void *owner)
{
    return ((struct fake *)owner)->must_restart;
}

static inline void wait_sandbox(void *owner)
{
    struct fake *f = owner;
    if (!f->hold.sandbox) {
        execute_send(&f->m, EXECUTE_READY);
    }
}

static inline void open_tools(void *owner)
{
    struct fake *f = owner;
    f->opened = true;
    if (!f->hold.tools) {
        execute_send(&f->m, EXECUTE_OPENED);
    }
}

/* What waits is told to go on, as the sandbox, the tools and the checks do. */
static inline void unblock(void *owner)
{
    struct fake *f = owner;
    f->unblocked++;
    switch ((int)f->m.state) {
    case EXECUTE_WAIT_SANDBOX:
        execute_send(&f->m, EXECUTE_READY);
        break;
    case EXECUTE_OPEN_TOOLS:
        execute_send(&f->m, EXECUTE_OPENED);
        break;
    case EXECUTE_REVIEW:
        execute_verdict(&f->m, STR_EMPTY);
        break;
    default:
        break;
    }
}

/* --- the fake process --- */

static inline void exits(struct fake *f, bool well)
{
    f->crashed = !well;
    if (f->kind != LOOP) {
        execute_send(&f->m, EXECUTE_EXITED);
    }
    if (!f->hold.drain) {
        f->alive = false;
        execute_send(&f->m, EXECUTE_GONE);
    }
}

static inline void start(void *owner)
{
    struct fake *f = owner;
    f->starts++;
    f->alive = true;
    if (!f->hold.start) {
        f->launched = true;
        execute_send(&f->m, EXECUTE_STARTED);
    }
}

static inline void take_turn(struct fake *f)
{
    if (f->hold.turn) {
        return;
    }
    if (f->kind == PIPE) {
        exits(f, true);
    } else {
        execute_turn_ended(&f->m, f->settle);
    }
}

static inline void begin(void *owner)
{
    struct fake *f = owner;
    f->begins++;
    take_turn(f);
}

static inline void resume(void *owner)
{
    take_turn(owner);
}

static inline void say(void *owner, struct str text)
{
    struct fake *f = owner;
    assert_true(text.len > 0);
    assert_true(f->alive);
    f->says++;
    take_turn(f);
}

static inline void review(void *owner)
{
    struct fake *f = owner;
    f->reviews++;
    if (!f->hold.review) {
        execute_verdict(&f->m, f->turns_wanted-- > 0 ? STR("more") : STR_EMPTY);
    }
}

static inline bool is_saved(void *owner)
{
    struct fake *f = owner;
    return f->saved || (!f->hold.save);
}

static inline nsec finish(void *owner)
{
    struct fake *f = owner;
    f->finishes++;
    assert_true(f->alive);
    if (!f->hold.finish) {
        exits(f, true);
    }
    return f->finish_time;
}

static inline void interrupt(void *owner)
{
    struct fake *f = owner;
    f->interrupts++;
    if (!f->hold.interrupt) {
        execute_turn_ended(&f->m, 0);
    }
}

static inline void stop(void *owner, const char *why)
{
    struct fake *f = owner;
    f->stops++;
    f->why = why;
    if (!f->hold.stop) {
        exits(f, false);
    }
}

static inline void linger(void *owner)
{
    ((struct fake *)owner)->lingers++;
}

static inline void force(void *owner)
{
    struct fake *f = owner;
    f->forces++;
    if (f->alive) {
        f->hold.drain = false;
        exits(f, false);
    }
    if (f->m.state == EXECUTE_CLOSE_TOOLS) {
        execute_send(&f->m, EXECUTE_CLOSED);
    }
}

static inline enum execute_after after_exit(void *owner)
{
    struct fake *f = owner;
    if (f->must_restart && f->launched && !f->failed) {
        f->must_restart = false;
        return EXECUTE_AFTER_RESTART;
    }
    return f->kind != PIPE || !f->launched || f->crashed ? EXECUTE_AFTER_END : EXECUTE_AFTER_REVIEW;
}

static inline void restart(void *owner, struct str text)
{
    struct fake *f = owner;
    f->restarts++;
    f->launched = false;
    if (!f->hold.restart) {
        execute_send(&f->m, EXECUTE_PREPARED);
    }
}

static inline void close_tools(void *owner)
{
    struct fake *f = owner;
    assert_false(f->alive); /* nothing of the agent is left when its tools go */
    if (!f->hold.close) {
        execute_send(&f->m, EXECUTE_CLOSED);
    }
}

static inline void timed_out(void *owner)
{
    struct fake *f = owner;
    f->timeouts++;
    f->failed = true;
}

static inline void done(void *owner)
{
    struct fake *f = owner;
    f->dones++;
    assert_false(f->alive);
}

static inline struct fake fake_new(enum kind kind)
{
    return (struct fake) { .kind = kind,
                           .clock = 1000 * SECOND,
                           .finish_time = SECOND,
                           .port = { .now = now,
                                     .arm = arm,
                                     .watch = watch,
                                     .has_failed = has_failed,
                                     .has_agent = has_agent,
                                     .can_interrupt = can_interrupt,
                                     .must_restart = must_restart,
                                     .wait_sandbox = wait_sandbox,
                                     .open_tools = open_tools,
                                     .unblock = unblock,
                                     .start = start,
                                     .begin = begin,
                                     .resume = resume,
                                     .say = say,
                                     .review = review,
                                     .is_saved = is_saved,
                                     .finish = finish,
                                     .interrupt = interrupt,
                                     .stop = stop,
                                     .linger = linger,
                                     .force = force,
                                     .after_exit = after_exit,
                                     .restart = restart,
                                     .close_tools = close_tools,
                                     .timed_out = timed_out,
                                     .done = done } };
}

static inline void begin_fake(struct fake *f)
{
    f->port.owner = f;
    execute_begin(&f->m, &f->port, f->clock + TOTAL, GRACE);
}

/* The clock goes on to the next deadline. False: there is none. */
static inline bool tick(struct fake *f)
{
    if (f->armed == 0) {
        return false;
    }
    f->clock = f->armed > f->clock ? f->armed : f->clock;
    execute_wake(&f->m);
    return true;
}

/* Deadlines pass until the machine rests: in DONE, or where only the run's total time would wake
 * it. */
static inline void settle(struct fake *f)
{
    for (int i = 0; i < 100 && f->armed != 0 && f->armed < f->m.total_at; i++) {
        (void)tick(f);
    }
}

/* Does an agent of this kind get there? */
static inline bool gets_to(enum kind kind, enum execute_state s)
{
    switch ((int)s) {
    case EXECUTE_QUIET:
    case EXECUTE_INTERRUPT:
        return kind == DIALOGUE;
    case EXECUTE_SETTLE:
    case EXECUTE_SAVE:
    case EXECUTE_FINISH:
        return kind != PIPE;
    case EXECUTE_DRAIN:
    case EXECUTE_RESTART:
        return kind != LOOP;
    default:
        return true;
    }
}

static inline struct hold hold_in(enum execute_state s)
{
    bool in_turn = s == EXECUTE_TURN || s == EXECUTE_QUIET || s == EXECUTE_INTERRUPT ||
                   s == EXECUTE_SETTLE || s == EXECUTE_STOPPING;
    return (struct hold) {
        .sandbox = s == EXECUTE_WAIT_SANDBOX,
        .tools = s == EXECUTE_OPEN_TOOLS,
        .start = s == EXECUTE_START,
        .turn = in_turn,
        .review = s == EXECUTE_REVIEW,
        .save = s == EXECUTE_SAVE,
        .finish = s == EXECUTE_FINISH,
        .interrupt = s == EXECUTE_INTERRUPT,
        .stop = s == EXECUTE_STOPPING,
        .drain = s == EXECUTE_DRAIN,
        .restart = s == EXECUTE_RESTART,
        .close = s == EXECUTE_CLOSE_TOOLS,
    };
}

/* Brings a fake to a state and leaves it there; false: no agent of this kind gets there. */
static inline bool bring_to(struct fake *f, enum execute_state target)
{
    if (!gets_to(f->kind, target)) {
        return false;
    }
    f->hold = hold_in(target);
    f->must_restart = target == EXECUTE_RESTART;
    begin_fake(f);
    if (target == EXECUTE_QUIET) {
        execute_paused(&f->m, 3 * SECOND);
    } else if (target == EXECUTE_SETTLE) {
        execute_turn_ended(&f->m, 3 * SECOND);
    } else if (target == EXECUTE_INTERRUPT) {
        f->failed = true;
        execute_stop(&f->m, "interrupt");
    } else if (target == EXECUTE_STOPPING) {
        f->failed = true;
        execute_terminate(&f->m, "interrupt");
    }
    for (int i = 0; i < 20 && f->m.state != target && f->m.state != EXECUTE_DONE; i++) {
        (void)tick(f);
    }
    assert_int_equal(f->m.state, target);
    return true;
}
