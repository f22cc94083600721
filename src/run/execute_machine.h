/* SPDX-License-Identifier: MIT
 *
 * struct execute_machine: phase execute as a table of states, without a process, a clock or a run
 * behind it. phase_execute.c owns the effects (struct execute_port), tests/unit/run/
 * test_execute_machine.c walks the table with fakes.
 *
 *   WAIT_SANDBOX → OPEN_TOOLS → START → TURN → SETTLE → REVIEW      a turn, and is there another?
 *   REVIEW → TURN                                                   yes, of the same session
 *   REVIEW → RESTART → START                                        yes, of another process
 *   REVIEW → SAVE → FINISH → DRAIN → CLOSE_TOOLS → DONE             no
 *   TURN → INTERRUPT → STOPPING → DRAIN → CLOSE_TOOLS → DONE        cancelled, or out of time
 *
 * An agent that converses (ACP, Claude Code, Codex) and one whose loop is ours (api) live through
 * all of their turns. One that ends with its turn (a pipe) goes TURN → DRAIN → REVIEW, and has no
 * agent in REVIEW.
 *
 * Rules:
 *  - Only enter() in execute_machine.c changes the state.
 *  - An event that comes while another one is handled waits until that is done.
 *  - Every state but IDLE and DONE has a deadline: the total time of the run, one of its own, or
 *    both. After a stop was requested the total time does not count any more, and each state has a
 *    limit of its own (EXECUTE_BACKSTOP at the most).
 *  - From every state, a stop and the passing of deadlines lead to DONE.
 *
 * docs/adr/0025-one-machine-for-execute.md has the table with its reasons.
 */
#pragma once

#include "base/clock.h"
#include "base/str.h"

/* X(state, name) */
#define EXECUTE_STATES(X)                                                                   \
    X(EXECUTE_IDLE, "idle")                 /* not begun */                                 \
    X(EXECUTE_WAIT_SANDBOX, "wait_sandbox") /* until programs may start, or none can */     \
    X(EXECUTE_OPEN_TOOLS, "open_tools")     /* transactions, tool servers */                \
    X(EXECUTE_START, "start")               /* the agent is being started */                \
    X(EXECUTE_TURN, "turn")                 /* it works */                                  \
    X(EXECUTE_QUIET, "quiet")               /* its driver waits for silence */              \
    X(EXECUTE_SETTLE, "settle")             /* the turn has ended, but more may come */     \
    X(EXECUTE_REVIEW, "review")             /* completion checks: is there another turn? */ \
    X(EXECUTE_SAVE, "save")                 /* there is none; it saves its conversation */  \
    X(EXECUTE_FINISH, "finish")             /* it was told to exit */                       \
    X(EXECUTE_INTERRUPT, "interrupt")       /* it was told to end its turn, no time left */ \
    X(EXECUTE_STOPPING, "stopping")         /* SIGTERM; the process layer escalates */      \
    X(EXECUTE_DRAIN, "drain")               /* exited; its pipes and processes end */       \
    X(EXECUTE_RESTART, "restart")           /* another session is prepared */               \
    X(EXECUTE_CLOSE_TOOLS, "close_tools")   /* calls roll back, servers end */              \
    X(EXECUTE_DONE, "done")

/* X(event, name). The machine splits some by what it knows: see refine(). */
#define EXECUTE_EVENTS(X)                                                                   \
    X(EXECUTE_READY, "ready")       /* the sandbox stands, or there is none */              \
    X(EXECUTE_OPENED, "opened")     /* the tools are there */                               \
    X(EXECUTE_PREPARED, "prepared") /* the next session is */                               \
    X(EXECUTE_STARTED, "started")   /* the agent runs */                                    \
    X(EXECUTE_FAILED, "failed")     /* it cannot be started, or spoken to */                \
    X(EXECUTE_ABORT, "abort")       /* refined: the step that is due is omitted */          \
    X(EXECUTE_PAUSED, "paused")     /* the driver waits for silence */                      \
    X(EXECUTE_TURN_END, "turn_end")                                                         \
    X(EXECUTE_MORE, "more")                 /* the checks want another turn */              \
    X(EXECUTE_ENOUGH, "enough")             /* they do not; or the conversation is saved */ \
    X(EXECUTE_EXITED, "exited")             /* the agent ended, whatever the reason */      \
    X(EXECUTE_GONE, "gone")                 /* nothing is left of it, and that was all */   \
    X(EXECUTE_GONE_REVIEW, "gone_review")   /* refined: that was one turn */                \
    X(EXECUTE_GONE_RESTART, "gone_restart") /* refined: it must be started again */         \
    X(EXECUTE_CLOSED, "closed")             /* the tools are gone */                        \
    X(EXECUTE_STOP, "stop")                 /* there is no agent (yet) */                   \
    X(EXECUTE_STOP_AGENT, "stop_agent")     /* refined: it gets a signal */                 \
    X(EXECUTE_STOP_TURN, "stop_turn")       /* refined: it is interrupted by protocol */    \
    X(EXECUTE_DEADLINE, "deadline")         /* of the state */

enum execute_state {
#define X(state, name) state,
    EXECUTE_STATES(X)
#undef X
        EXECUTE_STATE_MAX
};

enum execute_event {
#define X(event, name) event,
    EXECUTE_EVENTS(X)
#undef X
        EXECUTE_EVENT_MAX
};

/* What is watched beside the deadlines of the machine. */
enum execute_watch {
    EXECUTE_WATCH_OFF,
    EXECUTE_WATCH_RUN,   /* heartbeat, cancellation by the caller, disk */
    EXECUTE_WATCH_AGENT, /* also first output and idle time */
};

/* After the agent is gone. */
enum execute_after { EXECUTE_AFTER_END, EXECUTE_AFTER_REVIEW, EXECUTE_AFTER_RESTART };

/* Effects. All may send events; none is called from inside of another. */
struct execute_port {
    nsec (*now)(void *owner);
    void (*arm)(void *owner, nsec when); /* execute_wake() comes then; 0: it need not come */
    void (*watch)(void *owner, enum execute_watch what);

    bool (*has_failed)(void *owner);    /* there is a cause for the run to end */
    bool (*has_agent)(void *owner);     /* a process or a loop of ours is alive */
    bool (*can_interrupt)(void *owner); /* by its protocol */
    bool (*must_restart)(void *owner);  /* it must begin again to see what it opened */

    void (*wait_sandbox)(void *owner);          /* → READY */
    void (*open_tools)(void *owner);            /* → OPENED */
    void (*unblock)(void *owner);               /* READY, OPENED, ENOUGH shall come now */
    void (*start)(void *owner);                 /* → STARTED | FAILED | GONE */
    void (*begin)(void *owner);                 /* the first turn: → TURN_END | EXITED | GONE */
    void (*resume)(void *owner);                /* it was quiet */
    void (*say)(void *owner, struct str text);  /* the next turn; → FAILED, as begin() */
    void (*review)(void *owner);                /* → MORE | ENOUGH */
    bool (*is_saved)(void *owner);              /* asked again until it is, or time is up */
    nsec (*finish)(void *owner);                /* the agent shall exit; it has so long for that */
    void (*interrupt)(void *owner);             /* the turn shall end: as begin() */
    void (*stop)(void *owner, const char *why); /* by signal: → EXITED, GONE */
    void (*linger)(void *owner);                /* it has finished, and does not exit */
    void (*force)(void *owner);                 /* whatever runs or ends shall end now */
    enum execute_after (*after_exit)(void *owner);
    void (*restart)(void *owner,
                    struct str text); /* ptr NULL: must_restart(); → PREPARED | FAILED */
    void (*close_tools)(void *owner); /* → CLOSED */
    void (*timed_out)(void *owner);   /* the total time is over: note the cause */
    void (*done)(void *owner);
    void *owner;
};

/* After an interrupt, until the signal; and no more than the grace period. */
#define EXECUTE_INTERRUPT_TIME (2 * NSEC_PER_SEC)
/* Between looks at whether the conversation is saved. */
#define EXECUTE_SAVE_LOOK (5 * NSEC_PER_MS)
/* Beyond the times of the process layer and of the tools, which end by themselves: only a fault in
 * those leads here. */
#define EXECUTE_BACKSTOP (60 * NSEC_PER_SEC)

enum { EXECUTE_QUEUE_MAX = 8 };

struct execute_message {
    enum execute_event event;
    nsec quiet;      /* PAUSED, TURN_END */
    struct str text; /* MORE; must live as long as the machine */
    const char *why; /* STOP: for the record */
    bool gently;     /* STOP: by protocol, where that is possible */
};

/* Only execute_machine.c writes it. */
struct execute_machine {
    const struct execute_port *port;
    enum execute_state state;
    nsec total_at; /* 0: never */
    nsec grace;
    nsec deadline; /* of the state; 0: only the total time counts */
    nsec quiet;    /* of QUIET and SETTLE */
    bool stopped;  /* a stop was requested: the total time does not count any more */
    const char *why;
    struct str text; /* of the next turn */
    bool busy;       /* an event is being handled */
    struct execute_message queue[EXECUTE_QUEUE_MAX];
    size_t queued;
};

/* Enters WAIT_SANDBOX. The port must live as long as the machine. */
void execute_begin(struct execute_machine *m, const struct execute_port *port, nsec total_at,
                   nsec grace);
void execute_send(struct execute_machine *m, enum execute_event event);
void execute_paused(struct execute_machine *m, nsec quiet);
void execute_turn_ended(struct execute_machine *m, nsec settle);
/* What the checks say; an empty text: there is no other turn. */
void execute_verdict(struct execute_machine *m, struct str text);
/* Bytes of the agent have come. */
void execute_output(struct execute_machine *m);
/* The run shall end, its cause is noted: by protocol first. */
void execute_stop(struct execute_machine *m, const char *why);
/* As that, but the agent cannot be spoken to. */
void execute_terminate(struct execute_machine *m, const char *why);
/* Whatever is being stopped shall end now; the cause is noted. */
void execute_kill(struct execute_machine *m);
/* The moment of arm() has come; early calls do nothing. */
void execute_wake(struct execute_machine *m);

/* The table: the state after an event, after it was refined. */
enum execute_state execute_next(enum execute_state from, enum execute_event event);
bool execute_is_timed(enum execute_state s); /* the total time of the run counts there */
const char *execute_state_name(enum execute_state s);
const char *execute_event_name(enum execute_event ev);
