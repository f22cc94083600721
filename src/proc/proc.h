/* SPDX-License-Identifier: MIT
 *
 * struct proc: one program under supervision, with everything it may start.
 *
 *  1. proc_start(loop, &(struct proc_opts){ .argv = a, .envp = v, .cwd = d, .port = { … } }, &p, e)
 *  2. events come through the port, from the loop:
 *         on_started | on_spawn_failed,  on_output…,  on_exit,  on_done
 *     on_exit says how the program itself ended; output of it or of its descendants may still
 *     follow. on_done comes last, exactly once, and means that all ends are closed: the exit status
 *     is known, both streams have ended, no process of the tree is left, cinch-init is reaped.
 *  3. proc_stop(p, grace): SIGTERM to the tree, after the grace period SIGKILL. proc_kill(p): at
 *     once.
 *  4. proc_free(p), usually in on_done. Earlier it is allowed too: cinch-init then kills the tree
 *     by itself, and no further callback comes.
 *
 * The program is a child of cinch-init (init/keeper.h), which is started anew for each proc and
 * dies with it. If this process is killed, cinch-init notices and kills the tree. If cinch-init is
 * killed, the kernel kills the program with it; what the program had started is killed by this
 * process if proc_opts.orphans allows that (proc/orphans.h), also after a double fork or setsid().
 * Otherwise it may keep running, and proc_result.abandoned says so.
 *
 * After the program's end, descendants that hold its pipes get `drain` to come to an end; then they
 * are killed and counted as leaked. The same happens to descendants that hold no pipe, without
 * waiting.
 *
 * Backpressure: proc_pause(p, PROC_STDOUT) stops reading; the program blocks when its pipe is full.
 * The drain period goes on while paused, and what was not read by its end is lost.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "init/control.h"

struct loop;
struct orphans;
struct proc;

enum proc_stream { PROC_STDOUT, PROC_STDERR, PROC_STREAM_MAX };

enum proc_stdin {
    PROC_STDIN_CLOSED, /* /dev/null: end of file at once */
    PROC_STDIN_BYTES,  /* stdin_bytes, then end of file */
    PROC_STDIN_PIPE,   /* proc_write() and proc_close_stdin() */
    PROC_STDIN_FD,     /* stdin_fd, which stays the caller's */
};

/* How the program ended, and what it left behind. */
struct proc_result {
    bool started;
    pid_t pid;

    bool exit_known; /* false when cinch-init was killed and took the answer along */
    bool signaled;
    int value; /* exit code, or signal number */

    bool stopped; /* we sent it a signal to make it end */
    bool killed;  /* we sent SIGKILL while it was still running */

    struct control_usage usage; /* the program at its end; of the whole tree after on_done */
    /* Processes that outlived the program and were killed. After a stop everything is told to end
     * at the same moment; who needs a tenth of a second more than the program has not leaked. */
    uint32_t leaked;
    uint32_t stuck; /* processes that even SIGKILL did not end in time */
    bool abandoned; /* cinch-init was killed; descendants of the program were not looked for */
    uint32_t n_names;
    char names[CONTROL_NAMES_MAX][CONTROL_NAME_LEN]; /* of the leaked ones */

    struct err error; /* why it was not started, or what else went wrong; code ERR_OK: nothing */
};

/* Every function may be NULL. */
struct proc_port {
    void (*on_started)(void *arg, pid_t pid);
    /* ERR_NOTFOUND, ERR_NOEXEC, ERR_INPUT (working directory), ERR_LIMIT …; on_done follows. */
    void (*on_spawn_failed)(void *arg, const struct err *why);
    void (*on_output)(void *arg, enum proc_stream stream, struct str bytes);
    void (*on_stdin_drained)(void *arg); /* all that was written has been taken */
    void (*on_cpu)(void *arg, nsec cpu); /* answer to proc_refresh_cpu() */
    void (*on_exit)(void *arg, const struct proc_result *r);
    void (*on_done)(void *arg, const struct proc_result *r);
    void *arg;
};

/* Where a program runs when not right beside us; a sandbox fills one in (sandbox/sandbox.h).
 *
 * enter() has a keeper started there that serves `control`, which stays the caller's; whatever can
 * go wrong later is said by that keeper, or by on_gone, which comes exactly once, when the keeper
 * and with it everything that it kept is dead. kill() brings that about. After leave() nothing is
 * told any more. */
struct proc_place {
    int (*enter)(const struct proc_place *place, int control,
                 void (*on_gone)(void *arg, int status, const struct err *why), void *arg,
                 uint32_t *ret_ticket, struct err *e);
    void (*kill)(const struct proc_place *place, uint32_t ticket);
    void (*leave)(const struct proc_place *place, uint32_t ticket);
    pid_t (*pid)(const struct proc_place *place, uint32_t ticket); /* of the keeper; 0: not yet */
    void *arg;
    const char *layer;
    bool helper;      /* not the agent's: with a home of its own, see sandbox_helper_place() */
    const char *root; /* whose programs it sees, a directory outside; NULL: the host's */
    uid_t uid;        /* who the program will be outside; descriptors are given to it */
    gid_t gid;
};

struct proc_limit {
    int resource; /* RLIMIT_… */
    uint64_t soft;
    uint64_t hard;
};

struct proc_opts {
    const char *path;        /* NULL: argv[0] is looked up along PATH of envp (proc/which.h) */
    const char *const *argv; /* NULL-terminated, at least one */
    const char *const *envp; /* NULL-terminated; NULL: empty. Exactly this is the environment */
    const char *cwd;         /* NULL: ours */

    enum proc_stdin stdin_mode;
    struct str stdin_bytes; /* copied */
    int stdin_fd;

    const struct proc_limit *limits; /* beyond RLIMIT_CORE 0, which is always set */
    size_t n_limits;
    bool set_umask;
    mode_t umask;

    int stop_signal;  /* 0: SIGTERM */
    nsec deadline;    /* moment at which the program is stopped; 0: never */
    nsec grace;       /* between the stop signal of a deadline and SIGKILL; 0: 5 s */
    nsec drain;       /* for the pipes after the program's end; 0: 5 s */
    size_t stdin_max; /* bytes that may wait for a program that does not read; 0: 1 MiB */
    nsec patience;    /* for cinch-init to obey before it is given up; 0: 12 s */
    const char *init; /* path of cinch-init; NULL: proc/locate.h */
    /* Not beside us but there. Program and working directory are then not looked for beforehand,
     * `path` must be given, and both name what is inside. Copied. */
    const struct proc_place *place;
    /* Lets this process kill what a killed cinch-init leaves behind; NULL: it may not. Must outlive
     * the proc. */
    const struct orphans *orphans;

    struct proc_port port;
};

#define PROC_GRACE (5 * NSEC_PER_SEC)
#define PROC_DRAIN (5 * NSEC_PER_SEC)

/* Fails at once, with nothing started, for what can be known beforehand: no such program, not
 * executable, no cinch-init, no descriptors left. What only execve() knows comes as
 * on_spawn_failed. */
int proc_start(struct loop *l, const struct proc_opts *o, struct proc **ret,
               struct err *e) MUST_USE;
struct proc *proc_free(struct proc *p); /* accepts NULL, returns NULL */

void proc_stop(struct proc *p, nsec grace); /* grace < 0: as in the options */
void proc_kill(struct proc *p);
void proc_signal(struct proc *p, int signo); /* to the tree, without expecting it to end */

void proc_pause(struct proc *p, enum proc_stream s);
void proc_resume(struct proc *p, enum proc_stream s);

/* ERR_LIMIT when the program does not read and stdin_max is reached; wait for on_stdin_drained. A
 * program that has closed its input takes nothing and that is no error. */
int proc_write(struct proc *p, struct str bytes, struct err *e) MUST_USE;
void proc_close_stdin(struct proc *p);

/* Asks for the CPU time of the tree; the answer comes as on_cpu and stays in proc_cpu(). A value
 * that differs from the one before means that something in the tree has worked. */
void proc_refresh_cpu(struct proc *p);
nsec proc_cpu(const struct proc *p);
/* Bytes that the tree used at the same moment, without what its processes share with files. */
int64_t proc_memory(const struct proc *p);

const struct proc_result *proc_result(const struct proc *p);
pid_t proc_init_pid(const struct proc *p); /* of cinch-init, for diagnostics and tests */
