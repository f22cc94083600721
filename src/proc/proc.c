/* SPDX-License-Identifier: MIT
 *
 * Running a supervised program: events in, one table lookup, side effects of the new state. What
 * happens when is in machine.c; here is only what each state does on entry.
 */
#include "proc/proc.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/log.h"
#include "io/loop.h"
#include "io/reader.h"
#include "io/timer.h"
#include "io/watch.h"
#include "io/writer.h"
#include "proc/proc_priv.h"

/* Deadlines of the states in which we wait for the helper. It bounds its own killing by 10 s, so
 * whoever reaches these has a stopped or broken helper and goes on without it. */
#define START_DEADLINE (30 * NSEC_PER_SEC) /* execve() from a cold disk on a loaded machine */
#define PATIENCE       (12 * NSEC_PER_SEC)
#define SWEEP_DEADLINE (10 * NSEC_PER_SEC)
#define SWEEP_TICK     (2 * NSEC_PER_MS)

static void step(struct proc *p, enum proc_event ev);

/* A full socket or a dead helper: the deadline of the state or the helper's pidfd takes it from
 * there. */
static void command(struct proc *p, enum control_command_type type, int signo)
{
    struct control_command c = { .type = type, .signo = signo };
    struct err why;
    if (p->control_fd >= 0 && control_send_command(p->control_fd, &c, NULL, 0, &why) < 0) {
        LOG_DEBUG("proc", "command_lost", LOG_INT("type", type), LOG_STR("error", why.msg));
    }
}

static void tell_exit(struct proc *p)
{
    if (p->result.started && !p->exit_told) {
        p->exit_told = true;
        if (p->port.on_exit != NULL) {
            p->port.on_exit(p->port.arg, &p->result);
        }
    }
}

static void tell_spawn_failed(struct proc *p, const struct err *why)
{
    if (p->result.started || p->failure_told) {
        return;
    }
    p->failure_told = true;
    p->result.error = *why;
    if (p->port.on_spawn_failed != NULL) {
        p->port.on_spawn_failed(p->port.arg, &p->result.error);
    }
}

/* Streams are read from the moment at which it is known whether the program runs; else its first
 * output could overtake on_started, since they come by different ways. */
static void let_flow(struct proc *p)
{
    p->flowing = true;
    for (int i = 0; i < PROC_STREAM_MAX; i++) {
        if (p->readers[i] != NULL && !p->paused[i]) {
            reader_resume(p->readers[i]);
        }
    }
}

static void close_streams(struct proc *p)
{
    for (int i = 0; i < PROC_STREAM_MAX; i++) {
        p->readers[i] = reader_free(p->readers[i]);
    }
    p->in = writer_free(p->in);
}

static void close_control(struct proc *p)
{
    p->control = watch_free(p->control);
    cleanup_fd(&p->control_fd);
}

static void enter_sweeping(struct proc *p)
{
    /* A helper that is merely stopped must not wake up later and act on old commands. */
    proc_keeper_kill(p);
    close_control(p);
    let_flow(p);
    timer_arm(p->tick, clock_now());
}

static void enter_done(struct proc *p)
{
    close_streams(p);
    close_control(p);
    p->deadline = timer_free(p->deadline);
    p->tick = timer_free(p->tick);
    proc_keeper_release(p);
    struct err silent;
    (void)ERR(&silent, ERR_TIMEOUT, "cinch-init did not start the program in time");
    tell_spawn_failed(p, &silent);
    tell_exit(p);
    if (p->port.on_done != NULL) {
        p->port.on_done(p->port.arg, &p->result);
    }
}

/* Moment at which the state is left whatever happens; 0: none is set. */
static nsec deadline_of(const struct proc *p, nsec now)
{
    switch (p->state) {
    case PROC_STATE_STARTING:
        return now + START_DEADLINE;
    case PROC_STATE_RUNNING:
        return p->run_deadline;
    case PROC_STATE_STOPPING:
        return now + p->grace;
    case PROC_STATE_KILLING:
    case PROC_STATE_FINISHING:
        return now + p->patience;
    case PROC_STATE_DRAINING:
    case PROC_STATE_CLOSING:
        return now + p->drain;
    case PROC_STATE_SWEEPING:
        return now + SWEEP_DEADLINE;
    case PROC_STATE_DONE:
    case PROC_STATE_INVALID:
    case PROC_STATE_MAX:
        break;
    }
    return 0;
}

static void enter(struct proc *p)
{
    switch (p->state) {
    case PROC_STATE_STOPPING:
        p->result.stopped = true;
        command(p, CONTROL_SIGNAL, p->stop_signal);
        break;
    case PROC_STATE_KILLING:
        p->result.stopped = true;
        p->result.killed = true;
        command(p, CONTROL_KILL, 0);
        break;
    case PROC_STATE_FINISHING:
        command(p, CONTROL_FINISH, 0);
        break;
    case PROC_STATE_SWEEPING:
        enter_sweeping(p);
        break;
    case PROC_STATE_CLOSING:
        timer_cancel(p->tick);
        break;
    case PROC_STATE_DONE:
        enter_done(p);
        break;
    case PROC_STATE_STARTING:
    case PROC_STATE_RUNNING:
    case PROC_STATE_DRAINING:
    case PROC_STATE_INVALID:
    case PROC_STATE_MAX:
        break;
    }
}

/* The one function that changes the state. */
static void go(struct proc *p, enum proc_state to, enum proc_event why)
{
    LOG_DEBUG("proc", "state", LOG_INT("pid", p->result.pid),
              LOG_STR("from", machine_state_name(p->state)), LOG_STR("to", machine_state_name(to)),
              LOG_STR("event", machine_event_name(why)));
    p->state = to;
    nsec at = deadline_of(p, clock_now());
    if (at != 0) {
        timer_arm(p->deadline, at);
    } else {
        timer_cancel(p->deadline);
    }
    enter(p);
}

static void step(struct proc *p, enum proc_event ev)
{
    enum proc_state to = machine_next(p->state, ev);
    if (p->freed || to == p->state) {
        return;
    }
    go(p, to, ev);
    /* The end of the streams may have come before the state that waits for it. */
    if (!p->freed && p->open_streams == 0 &&
        (p->state == PROC_STATE_DRAINING || p->state == PROC_STATE_CLOSING)) {
        step(p, PROC_EVENT_EOF);
    }
}

static void on_exited(struct proc *p, const struct control_exit *x)
{
    p->result.exit_known = true;
    p->result.signaled = x->signaled != 0;
    p->result.value = x->value;
    p->result.usage = x->usage;
    tell_exit(p);
    step(p, PROC_EVENT_EXITED);
}

static void on_finished(struct proc *p, const struct control_finished *f)
{
    p->finished = true;
    p->result.usage = f->usage;
    p->result.leaked = f->leaked;
    p->result.stuck = f->stuck;
    p->result.n_names = f->n_names;
    memcpy(p->result.names, f->names, sizeof p->result.names);
}

static void on_start_failed(struct proc *p, const struct control_err *x)
{
    struct err why;
    control_err_to(x, &why);
    let_flow(p);
    tell_spawn_failed(p, &why);
    step(p, PROC_EVENT_START_FAILED);
}

static void on_status(struct proc *p, const struct control_status *s)
{
    switch ((enum control_status_type)s->type) {
    case CONTROL_STATUS_STARTED:
        p->result.started = true;
        p->result.pid = proc_keeper_program(p, s->pid);
        let_flow(p);
        if (p->port.on_started != NULL) {
            p->port.on_started(p->port.arg, p->result.pid);
        }
        step(p, PROC_EVENT_STARTED);
        break;
    case CONTROL_STATUS_START_FAILED:
        on_start_failed(p, &s->error);
        break;
    case CONTROL_STATUS_EXITED:
        on_exited(p, &s->exit);
        break;
    case CONTROL_STATUS_CPU:
        p->cpu_pending = false;
        p->cpu = s->cpu.ns;
        p->memory = s->cpu.memory;
        if (p->port.on_cpu != NULL) {
            p->port.on_cpu(p->port.arg, p->cpu);
        }
        break;
    case CONTROL_STATUS_EMPTY:
        step(p, PROC_EVENT_EMPTY);
        break;
    case CONTROL_STATUS_FINISHED:
        on_finished(p, &s->finished);
        break;
    case CONTROL_STATUS_ERROR:
        control_err_to(&s->error, &p->result.error);
        LOG_DEBUG("proc", "init_error", LOG_STR("error", p->result.error.msg));
        break;
    case CONTROL_STATUS_REFUSED:
        /* It ends now, and that is when the failure is told. The place may have said it before, and
         * better. */
        if (p->result.error.code == ERR_OK) {
            control_err_to(&s->refused.error, &p->result.error);
        }
        break;
    case CONTROL_STATUS_READY:
    case CONTROL_STATUS_ENTERED:
    case CONTROL_STATUS_GONE:
    case CONTROL_STATUS_MAX:
        break; /* a holder's words */
    }
}

/* Takes all messages that are there. */
static void drain_control(struct proc *p)
{
    while (!p->freed && p->control_fd >= 0) {
        struct control_status s;
        struct err why;
        int rc = control_recv_status(p->control_fd, &s, &why);
        if (rc == CONTROL_RECV_NOTHING) {
            return;
        }
        if (rc == CONTROL_RECV_MESSAGE) {
            on_status(p, &s);
            continue;
        }
        if (rc < 0) {
            p->result.error = why;
        }
        close_control(p); /* the end of the helper itself comes by its pidfd */
    }
}

void proc_on_control(void *arg, unsigned events)
{
    (void)events;
    drain_control(arg);
}

static void on_init_lost(struct proc *p, int status)
{
    if (p->result.error.code == ERR_OK) {
        (void)ERR(&p->result.error, ERR_SYS, "cinch-init ended unexpectedly (%s %d)",
                  WIFSIGNALED(status) ? "signal" : "exit code",
                  WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    }
    struct err why = p->result.error;
    tell_spawn_failed(p, &why);
    step(p, PROC_EVENT_INIT_LOST);
}

void proc_on_init_exit(void *arg, int status)
{
    struct proc *p = arg;
    drain_control(p); /* its last words may still be in the socket */
    if (p->freed) {
        return;
    }
    if (p->finished) {
        step(p, PROC_EVENT_INIT_DONE);
    } else if (p->state != PROC_STATE_SWEEPING) {
        on_init_lost(p, status);
    }
}

static void output(struct proc *p, enum proc_stream s, struct str bytes)
{
    if (p->port.on_output != NULL) {
        p->port.on_output(p->port.arg, s, bytes);
    }
}

static void output_end(struct proc *p, const struct err *why)
{
    if (why != NULL && p->result.error.code == ERR_OK) {
        p->result.error = *why;
    }
    p->open_streams--;
    if (p->open_streams == 0) {
        step(p, PROC_EVENT_EOF);
    }
}

void proc_on_stdout(void *arg, struct str bytes)
{
    output(arg, PROC_STDOUT, bytes);
}

void proc_on_stderr(void *arg, struct str bytes)
{
    output(arg, PROC_STDERR, bytes);
}

void proc_on_stdout_end(void *arg, const struct err *why)
{
    output_end(arg, why);
}

void proc_on_stderr_end(void *arg, const struct err *why)
{
    output_end(arg, why);
}

void proc_on_stdin_drained(void *arg)
{
    struct proc *p = arg;
    if (p->port.on_stdin_drained != NULL) {
        p->port.on_stdin_drained(p->port.arg);
    }
}

void proc_on_stdin_end(void *arg, const struct err *why)
{
    struct proc *p = arg;
    (void)why; /* whatever it is, the program will not get more */
    p->in = writer_free(p->in);
}

void proc_on_deadline(void *arg)
{
    step(arg, PROC_EVENT_DEADLINE);
}

void proc_on_tick(void *arg)
{
    struct proc *p = arg;
    if (proc_sweep_round(p)) {
        step(p, PROC_EVENT_SWEPT);
    } else {
        timer_arm(p->tick, clock_now() + SWEEP_TICK);
    }
}

static nsec or_default(nsec given, nsec otherwise)
{
    return given == 0 ? otherwise : given;
}

int proc_start(struct loop *l, const struct proc_opts *o, struct proc **ret, struct err *e)
{
    if (o->argv == NULL || o->argv[0] == NULL) {
        return ERR(e, ERR_USAGE, "no program to start");
    }
    struct proc *p = xcalloc(1, sizeof *p);
    p->loop = l;
    p->port = o->port;
    p->state = PROC_STATE_STARTING;
    p->control_fd = -1;
    p->placed = o->place != NULL;
    p->place = p->placed ? *o->place : (struct proc_place) { 0 };
    p->orphans = o->orphans;
    p->stop_signal = o->stop_signal == 0 ? SIGTERM : o->stop_signal;
    p->run_deadline = o->deadline;
    p->grace = or_default(o->grace, PROC_GRACE);
    p->drain = or_default(o->drain, PROC_DRAIN);
    p->patience = or_default(o->patience, PATIENCE);
    int rc = timer_new(l, proc_on_deadline, p, &p->deadline, e);
    rc = rc < 0 ? rc : timer_new(l, proc_on_tick, p, &p->tick, e);
    rc = rc < 0 ? rc : proc_launch(p, o, e);
    if (rc < 0) {
        (void)proc_free(p);
        return rc;
    }
    timer_arm(p->deadline, deadline_of(p, clock_now()));
    *ret = p;
    return 0;
}

struct proc *proc_free(struct proc *p)
{
    if (p == NULL || p->freed) {
        return NULL;
    }
    p->freed = true;
    p->port = (struct proc_port) { 0 };
    close_streams(p);
    close_control(p); /* which tells cinch-init to kill the tree */
    p->deadline = timer_free(p->deadline);
    p->tick = timer_free(p->tick);
    proc_keeper_release(p);
    loop_retire(p->loop, free, p);
    return NULL;
}

void proc_stop(struct proc *p, nsec grace)
{
    if (grace >= 0) {
        p->grace = grace;
    }
    step(p, PROC_EVENT_STOP);
}

void proc_kill(struct proc *p)
{
    step(p, PROC_EVENT_KILL);
}

void proc_signal(struct proc *p, int signo)
{
    command(p, CONTROL_SIGNAL, signo);
}

void proc_pause(struct proc *p, enum proc_stream s)
{
    p->paused[s] = true;
    if (p->readers[s] != NULL) {
        reader_pause(p->readers[s]);
    }
}

void proc_resume(struct proc *p, enum proc_stream s)
{
    p->paused[s] = false;
    if (p->readers[s] != NULL && p->flowing) {
        reader_resume(p->readers[s]);
    }
}

int proc_write(struct proc *p, struct str bytes, struct err *e)
{
    return p->in == NULL ? 0 : writer_write(p->in, bytes, e);
}

void proc_close_stdin(struct proc *p)
{
    if (p->in != NULL) {
        writer_close(p->in);
    }
}

void proc_refresh_cpu(struct proc *p)
{
    if (!p->cpu_pending && p->control_fd >= 0) {
        p->cpu_pending = true;
        command(p, CONTROL_CPU, 0);
    }
}

nsec proc_cpu(const struct proc *p)
{
    return p->cpu;
}

int64_t proc_memory(const struct proc *p)
{
    return p->memory;
}

const struct proc_result *proc_result(const struct proc *p)
{
    return &p->result;
}

pid_t proc_init_pid(const struct proc *p)
{
    return proc_keeper_pid(p);
}
