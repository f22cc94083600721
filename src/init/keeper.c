/* SPDX-License-Identifier: MIT
 *
 * Commands in, processes reaped, status out.
 */
#include "init/keeper.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/macro.h"
#include "init/control.h"
#include "init/plan.h"
#include "init/plan_file.h"
#include "init/process_tree.h"
#include "init/program.h"

/* Programs that one keeper runs at the same time. */
#define PROGRAMS_MAX 64

/* How long one kill may take. SIGKILL cannot be refused, so only a process in uninterruptible sleep
 * (dead network mount) or with other credentials gets here; it is reported as stuck. */
#define KILL_MS 10000

/* Dead children collected in one go. A fork storm supplies them faster than they can be collected,
 * and must not keep us from killing it. */
#define REAP_MAX 1024

struct program {
    uint32_t id;
    pid_t pid; /* 0: the place is free */
};

struct keeper {
    struct plan *entry; /* into the sandbox; NULL: there is none */
    bool first;         /* process of its pid namespace */
    int control_fd;
    int signal_fd;
    struct program programs[PROGRAMS_MAX];
    bool more_dead;    /* reap() stopped before the end */
    bool childless;    /* waitpid() said ECHILD last time */
    bool empty_is_due; /* a program has ended, `empty` was not reported since */
    bool done;
};

/* A failed send means that the supervisor is gone; the next receive sees that as end of file. */
static void tell(struct keeper *k, const struct control_status *s)
{
    (void)!control_send_status(k->control_fd, s, NULL);
}

static void tell_error(struct keeper *k, enum control_status_type type, uint32_t id,
                       const struct err *why)
{
    struct control_status s;
    memset(&s, 0, sizeof s);
    s.type = type;
    s.id = id;
    control_err_from(&s.error, why);
    tell(k, &s);
}

static int64_t ns_of(struct timeval tv)
{
    return (int64_t)tv.tv_sec * 1000000000 + (int64_t)tv.tv_usec * 1000;
}

static struct control_usage usage_of(const struct rusage *ru)
{
    return (struct control_usage) {
        .user_ns = ns_of(ru->ru_utime),
        .system_ns = ns_of(ru->ru_stime),
        .max_rss_kib = ru->ru_maxrss,
        .minor_faults = ru->ru_minflt,
        .major_faults = ru->ru_majflt,
        .blocks_in = ru->ru_inblock,
        .blocks_out = ru->ru_oublock,
        .switches_voluntary = ru->ru_nvcsw,
        .switches_involuntary = ru->ru_nivcsw,
    };
}

static struct program *find_program(struct keeper *k, pid_t pid)
{
    for (size_t i = 0; i < PROGRAMS_MAX; i++) {
        if (k->programs[i].pid == pid) {
            return &k->programs[i];
        }
    }
    return NULL;
}

static void program_ended(struct keeper *k, struct program *p, int status, const struct rusage *ru)
{
    struct control_status s;
    memset(&s, 0, sizeof s);
    s.type = CONTROL_STATUS_EXITED;
    s.id = p->id;
    s.exit.pid = p->pid;
    s.exit.signaled = WIFSIGNALED(status);
    s.exit.value = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
    s.exit.usage = usage_of(ru);
    *p = (struct program) { 0 };
    k->empty_is_due = true;
    tell(k, &s);
}

/* Collects what has died, orphans included. */
static void reap(struct keeper *k)
{
    k->more_dead = true;
    for (int i = 0; i < REAP_MAX; i++) {
        int status;
        struct rusage ru;
        pid_t pid = wait4(-1, &status, WNOHANG, &ru);
        k->childless = pid < 0 && errno == ECHILD;
        if (pid <= 0) {
            k->more_dead = false;
            break;
        }
        struct program *p = find_program(k, pid);
        if (p != NULL) {
            program_ended(k, p, status, &ru);
        }
    }
    if (k->childless && k->empty_is_due) {
        k->empty_is_due = false;
        tell(k, &(struct control_status) { .type = CONTROL_STATUS_EMPTY });
    }
}

/* Sleeps until a child dies, at most `ms`. */
static void wait_for_child(struct keeper *k, int ms)
{
    struct pollfd p = { .fd = k->signal_fd, .events = POLLIN };
    struct signalfd_siginfo si[8];
    if (poll(&p, 1, ms) > 0) {
        (void)!read(k->signal_fd, si, sizeof si);
    }
}

static int64_t now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* The groups of the programs themselves: all that can be done where /proc cannot be read. */
static void kill_programs(struct keeper *k)
{
    for (size_t i = 0; i < PROGRAMS_MAX; i++) {
        if (k->programs[i].pid > 0) {
            (void)kill(-k->programs[i].pid, SIGKILL);
        }
    }
}

/* Kills until waitpid() says that there is nothing left; returns the number of processes that would
 * not die in time. */
static size_t kill_all(struct keeper *k)
{
    int64_t end = now_ms() + KILL_MS;
    int pause = 1;
    struct err why = { .code = ERR_OK };
    size_t living = 0;
    reap(k);
    while (!k->childless && now_ms() < end) {
        if (k->first) {
            /* One call, under the kernel's own lock: a fork storm cannot outrun it. */
            living = kill(-1, SIGKILL) == 0;
        } else if (tree_kill_round(NULL, &living, &why) < 0) {
            kill_programs(k);
            living = 1;
        }
        wait_for_child(k, k->more_dead ? 0 : pause);
        reap(k);
        pause = pause < 50 ? pause * 2 : 50;
    }
    if (why.code != ERR_OK) {
        tell_error(k, CONTROL_STATUS_ERROR, 0, &why);
    }
    return k->childless ? 0 : living;
}

/* Against hundreds of processes that fork without end, an equal share of the CPU is too little.
 * Where we may (root), we take precedence as long as it lasts. */
static size_t kill_tree(struct keeper *k)
{
    struct sched_param plain = { 0 };
    struct sched_param first = { .sched_priority = 1 };
    bool raised = sched_setscheduler(0, SCHED_RR, &first) == 0;
    size_t stuck = kill_all(k);
    if (raised) {
        (void)sched_setscheduler(0, SCHED_OTHER, &plain);
    }
    return stuck;
}

/* The living that are not programs of ours: what a program left behind. */
static void name_leaks(struct keeper *k, struct control_finished *f)
{
    struct tree t = TREE_INIT;
    if (tree_walk(&t, NULL, NULL) == 0) {
        for (size_t i = 0; i < t.n; i++) {
            if (!t.procs[i].living || find_program(k, t.procs[i].pid) != NULL) {
                continue;
            }
            f->leaked++;
            if (f->n_names < CONTROL_NAMES_MAX) {
                memcpy(f->names[f->n_names++], t.procs[i].comm, sizeof t.procs[i].comm);
            }
        }
    }
    tree_done(&t);
}

static void finish(struct keeper *k)
{
    struct control_status s;
    memset(&s, 0, sizeof s);
    s.type = CONTROL_STATUS_FINISHED;
    reap(k);
    /* A process that has closed its last pipe is usually on its way out: it has not leaked, it only
     * needs a moment. What is still there after a tenth of a second means to stay. */
    for (int i = 0; i < 50 && !k->childless; i++) {
        (void)nanosleep(&(struct timespec) { .tv_nsec = 2000000 }, NULL);
        reap(k);
    }
    if (!k->childless) {
        name_leaks(k, &s.finished);
        s.finished.stuck = (uint32_t)kill_tree(k);
    }
    struct rusage ru;
    (void)getrusage(RUSAGE_CHILDREN, &ru);
    s.finished.usage = usage_of(&ru);
    tell(k, &s);
    k->done = true;
}

static void answer_cpu(struct keeper *k)
{
    struct control_status s;
    struct err why;
    struct tree_use use;
    memset(&s, 0, sizeof s);
    s.type = CONTROL_STATUS_CPU;
    if (tree_cpu(&use, &why) < 0) {
        tell_error(k, CONTROL_STATUS_ERROR, 0, &why);
        return;
    }
    s.cpu.ns = use.cpu_ns;
    s.cpu.processes = (int64_t)use.living;
    s.cpu.memory = use.memory;
    tell(k, &s);
}

static int start_from(struct keeper *k, struct program *place, uint32_t id, const int *fds,
                      size_t n_fds, struct err *e)
{
    if (n_fds == 0) {
        return ERR(e, ERR_PROTO, "a start command without a plan");
    }
    struct plan plan = { 0 };
    pid_t pid = 0;
    int rc = plan_map(fds[0], PLAN_PROGRAM, &plan, e);
    if (rc == 0) {
        rc = program_start(&(struct program_opts) { &plan, k->entry, fds + 1, n_fds - 1 }, &pid, e);
    }
    plan_unmap(&plan);
    if (rc == 0) {
        *place = (struct program) { .id = id, .pid = pid };
        k->childless = false;
    }
    return rc;
}

static void start(struct keeper *k, uint32_t id, const int *fds, size_t n_fds)
{
    struct err why;
    struct program *place = find_program(k, 0);
    int rc = place == NULL ? ERR(&why, ERR_LIMIT, "%d programs run already", PROGRAMS_MAX)
                           : start_from(k, place, id, fds, n_fds, &why);
    if (rc < 0) {
        tell_error(k, CONTROL_STATUS_START_FAILED, id, &why);
        return;
    }
    struct control_status s;
    memset(&s, 0, sizeof s);
    s.type = CONTROL_STATUS_STARTED;
    s.id = id;
    s.pid = place->pid;
    tell(k, &s);
}

static void obey(struct keeper *k, const struct control_command *c, const int *fds, size_t n_fds)
{
    struct err why;
    switch ((enum control_command_type)c->type) {
    case CONTROL_START:
        start(k, c->id, fds, n_fds);
        break;
    case CONTROL_SIGNAL:
        if (tree_signal(c->signo, NULL, &why) < 0) {
            tell_error(k, CONTROL_STATUS_ERROR, 0, &why);
        }
        break;
    case CONTROL_KILL:
        (void)kill_tree(k);
        break;
    case CONTROL_CPU:
        answer_cpu(k);
        break;
    case CONTROL_FINISH:
        finish(k);
        break;
    case CONTROL_LEAVE:
    case CONTROL_HOLD:
    case CONTROL_ENTER:
    case CONTROL_SLAY:
    case CONTROL_COMMAND_MAX:
        break; /* those are for holders */
    }
}

static void serve_one(struct keeper *k)
{
    struct control_command c;
    int fds[1 + PLAN_FDS_MAX];
    size_t n_fds;
    struct err why;
    int rc = control_recv_command(k->control_fd, &c, fds, ARRAY_LEN(fds), &n_fds, &why);
    if (rc == CONTROL_RECV_EOF) {
        (void)kill_tree(k);
        k->done = true;
    } else if (rc < 0) {
        /* Whatever is wrong with the socket, the tree is not going to outlive it. */
        tell_error(k, CONTROL_STATUS_ERROR, 0, &why);
        (void)kill_tree(k);
        k->done = true;
    } else if (rc == CONTROL_RECV_MESSAGE) {
        obey(k, &c, fds, n_fds);
        /* The program has its own copies; ours would keep its pipes open for ever. */
        for (size_t i = 0; i < n_fds; i++) {
            (void)close(fds[i]);
        }
    }
}

int keeper_run(int control_fd, struct plan *entry, struct err *e)
{
    sigset_t chld;
    (void)sigemptyset(&chld);
    (void)sigaddset(&chld, SIGCHLD);
    struct keeper k = {
        .entry = entry, .first = getpid() == 1, .control_fd = control_fd, .childless = true
    };
    k.signal_fd = signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK);
    if (k.signal_fd < 0) {
        return ERR_SYS(e, "signalfd");
    }
    while (!k.done) {
        struct pollfd p[2] = { { .fd = k.control_fd, .events = POLLIN },
                               { .fd = k.signal_fd, .events = POLLIN } };
        if (poll(p, 2, k.more_dead ? 0 : -1) < 0 && errno != EINTR) {
            (void)kill_tree(&k);
            (void)close(k.signal_fd);
            return ERR_SYS(e, "poll");
        }
        if (p[1].revents != 0 || k.more_dead) {
            wait_for_child(&k, 0);
            reap(&k);
        }
        if (p[0].revents != 0) {
            serve_one(&k);
        }
    }
    (void)close(k.signal_fd);
    return 0;
}
