/* SPDX-License-Identifier: MIT
 *
 * struct proc, shared by the files that start it, run it and clean up after it.
 */
#pragma once

#include "proc/machine.h"
#include "proc/proc.h"

struct child;
struct reader;
struct timer;
struct watch;
struct writer;

struct proc {
    struct loop *loop;
    struct proc_port port;
    enum proc_state state;
    bool freed;

    struct child *init; /* the keeper, unless a place has it */
    bool placed;
    bool gone; /* the keeper, in a place */
    uint32_t ticket;
    struct proc_place place;
    const struct orphans *orphans; /* NULL: what a killed keeper leaves is not looked for */
    int control_fd;
    struct watch *control;
    struct reader *readers[PROC_STREAM_MAX];
    unsigned open_streams; /* that have not ended */
    bool flowing;          /* the program runs, or will never: its output may be read */
    bool paused[PROC_STREAM_MAX];
    struct writer *in;
    struct timer *deadline; /* of the present state */
    struct timer *tick;     /* between two rounds of sweeping */

    int stop_signal;
    nsec run_deadline; /* absolute, 0: none */
    nsec grace;
    nsec drain;
    nsec patience;

    unsigned quiet_rounds; /* of sweeping, in which nothing was found */
    bool exit_told;
    bool failure_told;
    bool finished;    /* cinch-init has said so */
    bool cpu_pending; /* one question at a time */
    nsec cpu;
    int64_t memory;
    struct proc_result result;
};

/* proc_launch.c: makes pipes, sockets and the plan, and spawns cinch-init. Fills p; on failure the
 * caller frees it. */
int proc_launch(struct proc *p, const struct proc_opts *o, struct err *e) MUST_USE;

/* proc_keeper.c: the keeper, wherever it is. */
int proc_keeper_start(struct proc *p, const char *init, int control, struct err *e) MUST_USE;
void proc_keeper_kill(struct proc *p);
void proc_keeper_release(struct proc *p);
bool proc_keeper_gone(const struct proc *p);
pid_t proc_keeper_pid(const struct proc *p);
/* The number outside of the program that has `inside` there. */
pid_t proc_keeper_program(const struct proc *p, pid_t inside);

/* proc_sweep.c: one round of killing the orphans of a dead cinch-init; true when none is left, or
 * when this process may not look for them. */
bool proc_sweep_round(struct proc *p);

/* proc.c: callbacks that proc_launch() hooks up. */
void proc_on_control(void *arg, unsigned events);
void proc_on_init_exit(void *arg, int status);
void proc_on_stdout(void *arg, struct str bytes);
void proc_on_stderr(void *arg, struct str bytes);
void proc_on_stdout_end(void *arg, const struct err *why);
void proc_on_stderr_end(void *arg, const struct err *why);
void proc_on_stdin_drained(void *arg);
void proc_on_stdin_end(void *arg, const struct err *why);
void proc_on_deadline(void *arg);
void proc_on_tick(void *arg);
