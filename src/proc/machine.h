/* SPDX-License-Identifier: MIT
 *
 * The states of one supervised program and what moves it from one to the next: a table, without any
 * process behind it. proc.c owns the side effects.
 *
 *   STARTING → RUNNING → DRAINING → FINISHING → CLOSING → DONE        the ordinary way
 *              RUNNING → STOPPING → KILLING → DRAINING …              stop, deadline, kill
 *              any of them → SWEEPING → CLOSING → DONE                cinch-init itself is gone
 *
 * Each state but DONE has a deadline, and the deadline alone leads to DONE from anywhere.
 */
#pragma once

/* X(state, name) */
#define PROC_STATES(X)                                                               \
    X(PROC_STATE_STARTING, "starting")   /* cinch-init was spawned and told */       \
    X(PROC_STATE_RUNNING, "running")     /* the program runs */                      \
    X(PROC_STATE_STOPPING, "stopping")   /* asked to end; the grace period runs */   \
    X(PROC_STATE_KILLING, "killing")     /* cinch-init kills the tree */             \
    X(PROC_STATE_DRAINING, "draining")   /* ended; descendants may hold the pipes */ \
    X(PROC_STATE_FINISHING, "finishing") /* left-overs are killed, helper exits */   \
    X(PROC_STATE_SWEEPING, "sweeping")   /* no helper: we kill the orphans */        \
    X(PROC_STATE_CLOSING, "closing")     /* tree gone; the last bytes are read */    \
    X(PROC_STATE_DONE, "done")

/* X(event, name) */
#define PROC_EVENTS(X)                                                                \
    X(PROC_EVENT_STARTED, "started")           /* execve() succeeded */               \
    X(PROC_EVENT_START_FAILED, "start_failed") /* it did not */                       \
    X(PROC_EVENT_EXITED, "exited")             /* the program itself ended */         \
    X(PROC_EVENT_EMPTY, "empty")               /* no process is left in the tree */   \
    X(PROC_EVENT_EOF, "eof")                   /* both output streams have ended */   \
    X(PROC_EVENT_INIT_DONE, "init_done")       /* cinch-init exited as it was told */ \
    X(PROC_EVENT_INIT_LOST, "init_lost")       /* cinch-init died */                  \
    X(PROC_EVENT_SWEPT, "swept")               /* no orphan is left */                \
    X(PROC_EVENT_STOP, "stop")                                                        \
    X(PROC_EVENT_KILL, "kill")                                                        \
    X(PROC_EVENT_DEADLINE, "deadline")

enum proc_state {
    PROC_STATE_INVALID,
#define X(state, name) state,
    PROC_STATES(X)
#undef X
        PROC_STATE_MAX
};

enum proc_event {
#define X(event, name) event,
    PROC_EVENTS(X)
#undef X
        PROC_EVENT_MAX
};

/* The state after `event`; the same state where the event changes nothing there. */
enum proc_state machine_next(enum proc_state from, enum proc_event event);
const char *machine_state_name(enum proc_state s);
const char *machine_event_name(enum proc_event ev);
