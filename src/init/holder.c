/* SPDX-License-Identifier: MIT
 *
 * Commands in, keepers let in and reaped, status out.
 */
#include "init/holder.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/macro.h"
#include "init/control.h"
#include "init/entry.h"
#include "init/keeper.h"
#include "init/plan.h"
#include "init/plan_file.h"
#include "init/view.h"

/* Keepers at the same time: one agent, and the tools and checks of a run. */
#define MEMBERS_MAX 64

/* What comes with `enter`. */
enum { ENTER_PLAN, ENTER_CONTROL, ENTER_FDS };

struct member {
    uint32_t id;
    pid_t pid; /* 0: the place is free */
};

struct holder {
    int control_fd;
    int signal_fd;
    int self_fd;    /* pidfd of ours: the keepers look whether we are still there */
    bool contained; /* in a container, as its first process */
    struct member members[MEMBERS_MAX];
    struct view view;
    bool held;
    bool done;
    bool is_refused;                /* there will never be a view, … */
    struct control_refused refused; /* … for this reason */
};

static void tell(struct holder *h, const struct control_status *s)
{
    (void)!control_send_status(h->control_fd, s, NULL); /* its absence shows as end of file */
}

static struct member *find(struct holder *h, uint32_t id, pid_t pid)
{
    for (size_t i = 0; i < MEMBERS_MAX; i++) {
        struct member *m = &h->members[i];
        if (id != 0 ? m->pid != 0 && m->id == id : m->pid == pid) {
            return m;
        }
    }
    return NULL;
}

static void set_refused(struct control_refused *to, const struct plan_record *r,
                        const struct err *why)
{
    to->op = (uint32_t)r->op;
    to->number = r->op == PLAN_OP_OVERLAY ? r->paths.mode : r->number;
    control_err_from(&to->error, why);
}

static void tell_refused(int sock, const struct control_refused *why)
{
    struct control_status s;
    memset(&s, 0, sizeof s);
    s.type = CONTROL_STATUS_REFUSED;
    s.refused = *why;
    (void)!control_send_status(sock, &s, NULL);
}

/* --- leave, hold --- */

/* Carries out a part of the view's plan. */
static int build(struct holder *h, const int *fds, size_t n_fds, struct err *why)
{
    struct plan plan = { 0 };
    int rc = n_fds != 1 || h->held ? ERR(why, ERR_PROTO, "a view is made once, from one plan")
                                   : plan_map(fds[0], PLAN_VIEW, &plan, why);
    rc = rc < 0 ? rc : view_build(&h->view, &plan, why);
    if (rc < 0) {
        set_refused(&h->refused, &h->view.failed, why);
        h->is_refused = true;
        tell_refused(h->control_fd, &h->refused);
        view_done(&h->view);
    }
    plan_unmap(&plan);
    return rc;
}

static void hold(struct holder *h, const int *fds, size_t n_fds)
{
    struct err why;
    if (build(h, fds, n_fds, &why) < 0) {
        return;
    }
    struct control_status s;
    memset(&s, 0, sizeof s);
    s.type = CONTROL_STATUS_READY;
    /* Its absence shows as end of file. */
    h->held =
        control_send_status_fds(h->control_fd, &s, h->view.passed, h->view.n_passed, &why) == 0;
    view_done(&h->view);
}

/* --- enter --- */

/* The life of a keeper, from the first instruction to the last. */
static int live(const struct holder *h, int *fds, size_t n_fds)
{
    struct err why;
    struct plan plan = { 0 };
    struct plan_record failed = { 0 };
    int control = fds[ENTER_CONTROL];
    int rc = plan_map(fds[ENTER_PLAN], PLAN_ENTRY, &plan, &why);
    if (rc == 0 && h->contained && prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) {
        rc = ERR_SYS(&why, "become a child subreaper");
    }
    if (rc == 0 && plan.n_fds > n_fds - ENTER_FDS) {
        rc = ERR(&why, ERR_PROTO, "the plan refers to descriptors that did not come with it");
    }
    struct entry x = {
        .plan = &plan, .fds = fds + ENTER_FDS, .n_fds = n_fds - ENTER_FDS, .holder = h->self_fd
    };
    rc = rc < 0 ? rc : entry_make(&x, &failed, &why);
    /* From here on the socket is all that we hold: not the holder's, not the cgroups. */
    if (rc == 0 &&
        (dup3(control, CONTROL_FD, O_CLOEXEC) < 0 || close_range(CONTROL_FD + 1, ~0u, 0) != 0)) {
        rc = ERR_SYS(&why, "set up descriptors");
    }
    if (rc == 0) {
        return keeper_run(CONTROL_FD, &plan, &why) < 0 ? 70 : 0;
    }
    struct control_refused refused = { 0 };
    set_refused(&refused, &failed, &why);
    tell_refused(control, &refused);
    return 70;
}

static struct member *free_place(struct holder *h)
{
    if (!h->contained) {
        return find(h, 0, 0);
    }
    return h->members[0].pid == 0 ? &h->members[0] : NULL;
}

static void enter(struct holder *h, uint32_t id, int *fds, size_t n_fds)
{
    struct member *place = free_place(h);
    unsigned long spaces = h->contained ? 0 : CLONE_NEWPID | CLONE_NEWNS;
    struct control_status s;
    memset(&s, 0, sizeof s);
    s.id = id;
    if (n_fds < ENTER_FDS) {
        return;
    }
    if (place == NULL) {
        struct err full;
        struct control_refused why = { 0 };
        (void)ERR(&full, ERR_LIMIT, "%d programs run already", h->contained ? 1 : MEMBERS_MAX);
        control_err_from(&why.error, &full);
        tell_refused(fds[ENTER_CONTROL], &why);
        s.type = CONTROL_STATUS_GONE;
        s.exit.value = 70;
        tell(h, &s);
        return;
    }
    pid_t pid = (pid_t)syscall(SYS_clone, spaces | SIGCHLD, NULL, NULL, NULL, NULL);
    if (pid == 0) {
        _exit(live(h, fds, n_fds));
    }
    if (pid < 0) {
        struct err why;
        struct control_refused refused = { 0 };
        (void)ERR_SYS_AS(&why, ERR_UNSUPPORTED, "create a pid namespace");
        refused.op = PLAN_OP_PROC;
        control_err_from(&refused.error, &why);
        tell_refused(fds[ENTER_CONTROL], &refused);
        s.type = CONTROL_STATUS_GONE;
        s.exit.value = 70;
        tell(h, &s);
        return;
    }
    *place = (struct member) { id, pid };
    s.type = CONTROL_STATUS_ENTERED;
    s.pid = pid;
    tell(h, &s);
}

/* --- the end --- */

/* Nobody else is kept in this container: what a dead keeper left behind goes. */
static void clear(const struct holder *h)
{
    if (h->contained && getpid() == 1) {
        (void)kill(-1, SIGKILL);
    }
}

static void reap(struct holder *h, int flags)
{
    for (;;) {
        int status;
        pid_t pid = waitpid(-1, &status, flags);
        if (pid <= 0) {
            return;
        }
        struct member *m = find(h, 0, pid);
        if (m == NULL) {
            continue;
        }
        struct control_status s;
        memset(&s, 0, sizeof s);
        s.type = CONTROL_STATUS_GONE;
        s.id = m->id;
        s.exit.pid = pid;
        s.exit.signaled = WIFSIGNALED(status);
        s.exit.value = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
        *m = (struct member) { 0 };
        clear(h);
        tell(h, &s);
    }
}

/* A keeper is the first process of its namespace: the kernel kills the rest, and lets it be reaped
 * only when they are gone. */
static void end(struct holder *h)
{
    for (size_t i = 0; i < MEMBERS_MAX; i++) {
        if (h->members[i].pid > 0) {
            (void)kill(h->members[i].pid, SIGKILL);
        }
    }
    clear(h);
    reap(h, 0);
    h->done = true;
}

static void obey(struct holder *h, const struct control_command *c, int *fds, size_t n_fds)
{
    struct member *m = find(h, c->id, -1);
    struct err why;
    if (c->type == CONTROL_LEAVE && !h->is_refused) {
        (void)!build(h, fds, n_fds, &why);
    } else if (c->type == CONTROL_HOLD && !h->is_refused) {
        hold(h, fds, n_fds);
    } else if (c->type == CONTROL_ENTER && h->held) {
        enter(h, c->id, fds, n_fds);
    } else if (c->type == CONTROL_SLAY && m != NULL) {
        (void)kill(m->pid, SIGKILL);
    } else if (c->type == CONTROL_FINISH) {
        end(h);
    }
}

static void serve_one(struct holder *h)
{
    struct control_command c;
    int fds[CONTROL_FDS_MAX];
    size_t n_fds;
    int rc = control_recv_command(h->control_fd, &c, fds, ARRAY_LEN(fds), &n_fds, NULL);
    if (rc == CONTROL_RECV_MESSAGE) {
        obey(h, &c, fds, n_fds);
        for (size_t i = 0; i < n_fds; i++) {
            (void)close(fds[i]);
        }
    } else if (rc != CONTROL_RECV_NOTHING) {
        end(h); /* end of file, or a socket that is good for nothing */
    }
}

int holder_run(int control_fd, bool contained, struct err *e)
{
    sigset_t chld;
    (void)sigemptyset(&chld);
    (void)sigaddset(&chld, SIGCHLD);
    struct holder h = { .control_fd = control_fd, .contained = contained, .view = VIEW_INIT };
    h.signal_fd = signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK);
    h.self_fd = pidfd_open(getpid(), 0);
    if (h.signal_fd < 0 || h.self_fd < 0) {
        return ERR_SYS(e, "signalfd, pidfd");
    }
    while (!h.done) {
        struct pollfd p[2] = { { .fd = h.control_fd, .events = POLLIN },
                               { .fd = h.signal_fd, .events = POLLIN } };
        if (poll(p, 2, -1) < 0 && errno != EINTR) {
            end(&h);
            return ERR_SYS(e, "poll");
        }
        if (p[1].revents != 0) {
            struct signalfd_siginfo si[8];
            (void)!read(h.signal_fd, si, sizeof si);
            reap(&h, WNOHANG);
        }
        if (p[0].revents != 0) {
            serve_one(&h);
        }
    }
    return 0;
}
