/* SPDX-License-Identifier: MIT
 *
 * The states of phase execute; see execute_machine.h.
 */
#include "run/execute_machine.h"

#include <assert.h>

#include "base/macro.h"

#define IDLE  EXECUTE_IDLE
#define WAIT  EXECUTE_WAIT_SANDBOX
#define OPEN  EXECUTE_OPEN_TOOLS
#define START EXECUTE_START
#define TURN  EXECUTE_TURN
#define QUIET EXECUTE_QUIET
#define SETTL EXECUTE_SETTLE
#define REVW  EXECUTE_REVIEW
#define SAVE  EXECUTE_SAVE
#define FINIS EXECUTE_FINISH
#define INTER EXECUTE_INTERRUPT
#define HALT  EXECUTE_STOPPING
#define DRAIN EXECUTE_DRAIN
#define AGAIN EXECUTE_RESTART
#define CLOSE EXECUTE_CLOSE_TOOLS
#define DONE  EXECUTE_DONE

/* Rows: where the machine is. Columns: the refined event, in the order of EXECUTE_EVENTS. An event
 * that means nothing in a state leaves it as it is: late answers are ordinary. */
/* clang-format off */
static const unsigned char next_states[EXECUTE_STATE_MAX][EXECUTE_EVENT_MAX] = {
    /*           ready  opened prepar begun  failed abort  paused trn_nd more   enough exited gone   g_revw g_rest closed stop   s_agnt s_turn deadline */
    [IDLE]  = { IDLE,  IDLE,  IDLE,  IDLE,  IDLE,  IDLE,  IDLE,  IDLE,  IDLE,  IDLE,  IDLE,  IDLE,  IDLE,  IDLE,  IDLE,  IDLE,  IDLE,  IDLE,  IDLE  },
    [WAIT]  = { OPEN,  WAIT,  WAIT,  WAIT,  WAIT,  CLOSE, WAIT,  WAIT,  WAIT,  WAIT,  WAIT,  WAIT,  WAIT,  WAIT,  WAIT,  WAIT,  WAIT,  WAIT,  CLOSE },
    [OPEN]  = { OPEN,  START, OPEN,  OPEN,  OPEN,  CLOSE, OPEN,  OPEN,  OPEN,  OPEN,  OPEN,  OPEN,  OPEN,  OPEN,  OPEN,  OPEN,  OPEN,  OPEN,  CLOSE },
    [START] = { START, START, START, TURN,  CLOSE, HALT,  START, START, START, START, DRAIN, CLOSE, REVW,  AGAIN, START, START, HALT,  HALT,  HALT  },
    [TURN]  = { TURN,  TURN,  TURN,  TURN,  FINIS, TURN,  QUIET, SETTL, TURN,  TURN,  DRAIN, CLOSE, REVW,  AGAIN, TURN,  CLOSE, HALT,  INTER, HALT  },
    [QUIET] = { QUIET, QUIET, QUIET, QUIET, FINIS, QUIET, QUIET, QUIET, QUIET, QUIET, DRAIN, CLOSE, REVW,  AGAIN, QUIET, CLOSE, HALT,  INTER, TURN  },
    [SETTL] = { SETTL, SETTL, SETTL, SETTL, SETTL, FINIS, SETTL, SETTL, SETTL, SETTL, DRAIN, CLOSE, REVW,  AGAIN, SETTL, CLOSE, HALT,  HALT,  REVW  },
    [REVW]  = { REVW,  REVW,  REVW,  REVW,  REVW,  CLOSE, REVW,  REVW,  TURN,  SAVE,  DRAIN, CLOSE, CLOSE, AGAIN, REVW,  REVW,  HALT,  HALT,  CLOSE },
    [SAVE]  = { SAVE,  SAVE,  SAVE,  SAVE,  SAVE,  FINIS, SAVE,  SAVE,  SAVE,  FINIS, DRAIN, CLOSE, CLOSE, AGAIN, SAVE,  CLOSE, HALT,  HALT,  SAVE  },
    [FINIS] = { FINIS, FINIS, FINIS, FINIS, FINIS, FINIS, FINIS, FINIS, FINIS, FINIS, DRAIN, CLOSE, CLOSE, AGAIN, FINIS, CLOSE, HALT,  HALT,  HALT  },
    [INTER] = { INTER, INTER, INTER, INTER, HALT,  INTER, INTER, SETTL, INTER, INTER, DRAIN, CLOSE, CLOSE, CLOSE, INTER, CLOSE, HALT,  HALT,  HALT  },
    [HALT]  = { HALT,  HALT,  HALT,  HALT,  HALT,  HALT,  HALT,  HALT,  HALT,  HALT,  DRAIN, CLOSE, REVW,  AGAIN, HALT,  HALT,  HALT,  HALT,  HALT  },
    [DRAIN] = { DRAIN, DRAIN, DRAIN, DRAIN, DRAIN, DRAIN, DRAIN, DRAIN, DRAIN, DRAIN, DRAIN, CLOSE, REVW,  AGAIN, DRAIN, DRAIN, DRAIN, DRAIN, DRAIN },
    [AGAIN] = { AGAIN, AGAIN, START, AGAIN, CLOSE, CLOSE, AGAIN, AGAIN, AGAIN, AGAIN, AGAIN, CLOSE, CLOSE, CLOSE, AGAIN, CLOSE, CLOSE, CLOSE, CLOSE },
    [CLOSE] = { CLOSE, CLOSE, CLOSE, CLOSE, CLOSE, CLOSE, CLOSE, CLOSE, CLOSE, CLOSE, CLOSE, CLOSE, CLOSE, CLOSE, DONE,  CLOSE, CLOSE, CLOSE, CLOSE },
    [DONE]  = { DONE,  DONE,  DONE,  DONE,  DONE,  DONE,  DONE,  DONE,  DONE,  DONE,  DONE,  DONE,  DONE,  DONE,  DONE,  DONE,  DONE,  DONE,  DONE  },
};
/* clang-format on */

static const struct state_row {
    const char *name;
    enum execute_watch watch;
    bool timed; /* the total time of the run counts */
} rows[] = {
    [IDLE] = { "idle", EXECUTE_WATCH_OFF, false },
    [WAIT] = { "wait_sandbox", EXECUTE_WATCH_RUN, true },
    [OPEN] = { "open_tools", EXECUTE_WATCH_RUN, true },
    [START] = { "start", EXECUTE_WATCH_AGENT, true },
    [TURN] = { "turn", EXECUTE_WATCH_AGENT, true },
    [QUIET] = { "quiet", EXECUTE_WATCH_AGENT, true },
    [SETTL] = { "settle", EXECUTE_WATCH_AGENT, true },
    [REVW] = { "review", EXECUTE_WATCH_AGENT, true },
    [SAVE] = { "save", EXECUTE_WATCH_AGENT, true },
    [FINIS] = { "finish", EXECUTE_WATCH_AGENT, true },
    [INTER] = { "interrupt", EXECUTE_WATCH_RUN, false },
    [HALT] = { "stopping", EXECUTE_WATCH_RUN, false },
    [DRAIN] = { "drain", EXECUTE_WATCH_OFF, false },
    [AGAIN] = { "restart", EXECUTE_WATCH_RUN, true },
    [CLOSE] = { "close_tools", EXECUTE_WATCH_OFF, false },
    [DONE] = { "done", EXECUTE_WATCH_OFF, false },
};

static const char *const event_names[] = {
#define X(event, name) [event] = name,
    EXECUTE_EVENTS(X)
#undef X
};

enum execute_state execute_next(enum execute_state from, enum execute_event event)
{
    return (enum execute_state)next_states[from][event];
}

bool execute_is_timed(enum execute_state s)
{
    return rows[s].timed;
}

const char *execute_state_name(enum execute_state s)
{
    return rows[s].name;
}

const char *execute_event_name(enum execute_event ev)
{
    return event_names[ev];
}

/* --- deadlines --- */

static nsec shorter(nsec a, nsec b)
{
    return a < b ? a : b;
}

/* The earlier of the state's deadline and the end of the total time. */
static void arm(struct execute_machine *m)
{
    nsec when = m->deadline;
    bool counts = rows[m->state].timed && !m->stopped && m->total_at != 0;
    if (counts && (when == 0 || m->total_at < when)) {
        when = m->total_at;
    }
    m->port->arm(m->port->owner, when);
}

static void limit(struct execute_machine *m, nsec time)
{
    m->deadline = m->port->now(m->port->owner) + time;
    arm(m);
}

/* What the state has before its entry says otherwise. */
static nsec first_limit(const struct execute_machine *m)
{
    bool ends = m->state == HALT || m->state == DRAIN || m->state == CLOSE;
    return m->state == IDLE || m->state == DONE ? 0
           : m->stopped || ends                 ? m->grace + EXECUTE_BACKSTOP
                                                : 0;
}

/* --- entries --- */

static void look_whether_saved(struct execute_machine *m)
{
    if (m->port->is_saved(m->port->owner)) {
        execute_send(m, EXECUTE_ENOUGH);
    } else {
        limit(m, EXECUTE_SAVE_LOOK);
    }
}

static void begin_turn(struct execute_machine *m, enum execute_state from)
{
    const struct execute_port *port = m->port;
    if (from == START) {
        port->begin(port->owner);
    } else if (from == QUIET) {
        port->resume(port->owner);
    } else {
        port->say(port->owner, m->text);
    }
}

static void act(struct execute_machine *m, enum execute_state from)
{
    const struct execute_port *port = m->port;
    switch (m->state) {
    case WAIT:
        port->wait_sandbox(port->owner);
        break;
    case OPEN:
        port->open_tools(port->owner);
        break;
    case START:
        port->start(port->owner);
        break;
    case TURN:
        begin_turn(m, from);
        break;
    case QUIET:
    case SETTL:
        limit(m, m->quiet);
        break;
    case REVW:
        port->review(port->owner);
        break;
    case SAVE:
        look_whether_saved(m);
        break;
    case FINIS:
        limit(m, port->finish(port->owner));
        break;
    case INTER:
        limit(m, shorter(m->grace, EXECUTE_INTERRUPT_TIME));
        port->interrupt(port->owner);
        break;
    case HALT:
        port->stop(port->owner, m->why);
        break;
    case AGAIN:
        port->restart(port->owner, m->text);
        break;
    case CLOSE:
        port->close_tools(port->owner);
        break;
    case DONE:
        port->done(port->owner);
        break;
    case IDLE:
    case DRAIN:
    case EXECUTE_STATE_MAX:
        break;
    }
}

/* The only place that changes the state. */
static void enter(struct execute_machine *m, enum execute_state to)
{
    enum execute_state from = m->state;
    m->state = to;
    nsec time = first_limit(m);
    m->deadline = time == 0 ? 0 : m->port->now(m->port->owner) + time;
    arm(m);
    m->port->watch(m->port->owner, rows[to].watch);
    act(m, from);
}

/* --- events --- */

static enum execute_event refine_stop(const struct execute_machine *m, bool gently)
{
    const struct execute_port *port = m->port;
    if (!port->has_agent(port->owner)) {
        return EXECUTE_STOP;
    }
    return gently && port->can_interrupt(port->owner) ? EXECUTE_STOP_TURN : EXECUTE_STOP_AGENT;
}

static enum execute_event refine_gone(struct execute_machine *m)
{
    const struct execute_port *port = m->port;
    switch (port->after_exit(port->owner)) {
    case EXECUTE_AFTER_REVIEW:
        return EXECUTE_GONE_REVIEW;
    case EXECUTE_AFTER_RESTART:
        m->text = (struct str) { 0 };
        return EXECUTE_GONE_RESTART;
    case EXECUTE_AFTER_END:
        break;
    }
    return EXECUTE_GONE;
}

static bool is_step(enum execute_event ev)
{
    return ev == EXECUTE_READY || ev == EXECUTE_OPENED || ev == EXECUTE_STARTED ||
           ev == EXECUTE_PREPARED;
}

/* Splits an event by what is known: has the run failed, and is there an agent? */
static enum execute_event refine(struct execute_machine *m, const struct execute_message *message)
{
    const struct execute_port *port = m->port;
    enum execute_event ev = message->event;
    bool failed = port->has_failed(port->owner);
    if (is_step(ev) && failed) {
        return EXECUTE_ABORT;
    }
    if (ev == EXECUTE_DEADLINE && m->state == SETTL) {
        return failed || port->must_restart(port->owner) ? EXECUTE_ABORT : EXECUTE_DEADLINE;
    }
    if (ev == EXECUTE_GONE && m->state != CLOSE && m->state != DONE) {
        return refine_gone(m);
    }
    return ev == EXECUTE_STOP ? refine_stop(m, message->gently) : ev;
}

/* An agent that ended with its turn has nothing to save, and its next turn is another process. */
static enum execute_state after_review(const struct execute_machine *m, enum execute_event event,
                                       enum execute_state to)
{
    if (m->state != REVW || m->port->has_agent(m->port->owner)) {
        return to;
    }
    return event == EXECUTE_MORE ? AGAIN : event == EXECUTE_ENOUGH ? CLOSE : to;
}

/* What an event does in a state that it does not change. */
static void stay(struct execute_machine *m, enum execute_event event)
{
    const struct execute_port *port = m->port;
    bool stop = event == EXECUTE_STOP || event == EXECUTE_STOP_AGENT || event == EXECUTE_STOP_TURN;
    if (event == EXECUTE_DEADLINE && m->state == SAVE) {
        look_whether_saved(m);
    } else if (event == EXECUTE_DEADLINE) {
        limit(m, EXECUTE_BACKSTOP);
        port->force(port->owner);
    } else if (stop && m->state == HALT) {
        port->stop(port->owner, m->why); /* grace counts from now */
    } else if (stop && m->deadline == 0 && m->state != DONE && m->state != IDLE) {
        limit(m, m->grace + EXECUTE_BACKSTOP); /* what was unblocked has so long to come */
    }
}

/* What the next state has to know. */
static void note(struct execute_machine *m, const struct execute_message *message,
                 enum execute_event event, enum execute_state to)
{
    if (to == QUIET || to == SETTL) {
        m->quiet = message->quiet;
    } else if (event == EXECUTE_MORE) {
        m->text = message->text;
    } else if (to == HALT && event == EXECUTE_DEADLINE) {
        m->why = m->state == FINIS ? "finished" : "deadline";
    } else if (to == HALT && m->why == NULL) {
        m->why = "failed";
    }
    if (to == HALT && m->state == FINIS && event == EXECUTE_DEADLINE) {
        m->port->linger(m->port->owner);
    }
}

static void handle(struct execute_machine *m, const struct execute_message *message)
{
    if (message->event == EXECUTE_STOP) {
        m->stopped = true;
        m->why = message->why;
        m->port->unblock(m->port->owner);
    }
    enum execute_event event = refine(m, message);
    enum execute_state to = after_review(m, event, execute_next(m->state, event));
    if (event == EXECUTE_TURN_END && m->state == SETTL && (!m->stopped || message->quiet == 0)) {
        m->quiet = message->quiet; /* the agent works on in the background, or no longer */
        limit(m, m->quiet);
    } else if (to == m->state) {
        stay(m, event);
    } else {
        note(m, message, event, to);
        enter(m, to);
    }
}

static void handle_all(struct execute_machine *m)
{
    m->busy = true;
    while (m->queued > 0) {
        struct execute_message first = m->queue[0];
        m->queued--;
        memmove(m->queue, m->queue + 1, m->queued * sizeof m->queue[0]);
        handle(m, &first);
    }
    m->busy = false;
}

static void send_message(struct execute_machine *m, struct execute_message message)
{
    assert(m->queued < EXECUTE_QUEUE_MAX);
    m->queue[m->queued++] = message;
    if (!m->busy) {
        handle_all(m);
    }
}

void execute_send(struct execute_machine *m, enum execute_event event)
{
    send_message(m, (struct execute_message) { .event = event });
}

void execute_paused(struct execute_machine *m, nsec quiet)
{
    send_message(m, (struct execute_message) { .event = EXECUTE_PAUSED, .quiet = quiet });
}

void execute_turn_ended(struct execute_machine *m, nsec settle)
{
    send_message(m, (struct execute_message) { .event = EXECUTE_TURN_END, .quiet = settle });
}

void execute_verdict(struct execute_machine *m, struct str text)
{
    enum execute_event event = text.len == 0 ? EXECUTE_ENOUGH : EXECUTE_MORE;
    send_message(m, (struct execute_message) { .event = event, .text = text });
}

/* Silence counts anew. Once the run is being stopped, talking does not gain time. */
void execute_output(struct execute_machine *m)
{
    if ((m->state == QUIET || m->state == SETTL) && m->quiet > 0 && !m->stopped) {
        limit(m, m->quiet);
    }
}

void execute_stop(struct execute_machine *m, const char *why)
{
    send_message(m, (struct execute_message) { .event = EXECUTE_STOP, .why = why, .gently = true });
}

void execute_terminate(struct execute_machine *m, const char *why)
{
    send_message(m, (struct execute_message) { .event = EXECUTE_STOP, .why = why });
}

void execute_kill(struct execute_machine *m)
{
    m->stopped = true;
    m->port->force(m->port->owner);
}

void execute_wake(struct execute_machine *m)
{
    nsec now = m->port->now(m->port->owner);
    bool total = rows[m->state].timed && !m->stopped && m->total_at != 0 && now >= m->total_at;
    if (total) {
        m->port->timed_out(m->port->owner);
        execute_stop(m, "deadline");
    } else if (m->deadline != 0 && now >= m->deadline) {
        execute_send(m, EXECUTE_DEADLINE);
    }
}

void execute_begin(struct execute_machine *m, const struct execute_port *port, nsec total_at,
                   nsec grace)
{
    *m = (struct execute_machine) { .port = port, .total_at = total_at, .grace = grace };
    m->busy = true; /* what comes at once waits until the entry is over */
    enter(m, WAIT);
    handle_all(m);
}
