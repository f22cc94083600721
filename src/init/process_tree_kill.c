/* SPDX-License-Identifier: MIT
 *
 * Signalling a process tree without ever hitting a stranger, and killing it although it forks.
 *
 * Speed matters against a storm: we get no more of the CPU than each of its processes. So direct
 * children, which is where every orphan of a storm ends up, are stopped with a few system calls
 * each; only what is below them takes the way through pidfds and /proc.
 */
#include "init/process_tree.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "init/process_tree_priv.h"

/* Looks at the direct children in one go, and of those at whole trees. What still slips through is
 * met by the next round. */
#define DIRECT_PASSES 32
#define TREE_PASSES   8

/* Processes that were stopped, in the order in which they were found: parents before children. */
struct catch
{
    pid_t *pids;
    pid_t *parents; /* 0: a direct child */
    size_t n;
    size_t cap;
    pid_t *slots; /* hash set of pids; 0 is free; twice as large as cap at least */
    size_t n_slots;
    struct tree_pids scratch;
};

static void catch_done(struct catch *c)
{
    free(c->pids);
    free(c->parents);
    free(c->slots);
    free(c->scratch.pids);
}

static size_t slot_of(const struct catch *c, pid_t pid)
{
    size_t at = (size_t)pid * 2654435761u % c->n_slots;
    while (c->slots[at] != 0 && c->slots[at] != pid) {
        at = (at + 1) % c->n_slots;
    }
    return at;
}

static bool caught(const struct catch *c, pid_t pid)
{
    return c->n_slots > 0 && c->slots[slot_of(c, pid)] == pid;
}

static int grow(struct catch *c, struct err *e)
{
    size_t cap = c->cap == 0 ? 256 : c->cap * 2;
    pid_t *pids = realloc(c->pids, cap * sizeof *pids);
    c->pids = pids == NULL ? c->pids : pids;
    pid_t *parents = realloc(c->parents, cap * sizeof *parents);
    c->parents = parents == NULL ? c->parents : parents;
    pid_t *slots = calloc(cap * 2, sizeof *slots);
    if (pids == NULL || parents == NULL || slots == NULL) {
        free(slots);
        return ERR_SYS(e, "memory for a list of %zu processes", cap);
    }
    free(c->slots);
    c->slots = slots;
    c->n_slots = cap * 2;
    c->cap = cap;
    for (size_t i = 0; i < c->n; i++) {
        c->slots[slot_of(c, c->pids[i])] = c->pids[i];
    }
    return 0;
}

static int add(struct catch *c, pid_t pid, pid_t parent, struct err *e)
{
    if (c->n == c->cap) {
        int rc = grow(c, e);
        if (rc < 0) {
            return rc;
        }
    }
    c->slots[slot_of(c, pid)] = pid;
    c->pids[c->n] = pid;
    c->parents[c->n] = parent;
    c->n++;
    return 0;
}

/* A group is pinned by the member that we hold: as long as that is stopped, or a child that only we
 * can reap, the number cannot change hands. */
static void signal_group(pid_t pgid, pid_t sid, int signo)
{
    if (pgid > 1 && sid > 0 && sid != getsid(0)) {
        (void)kill(-pgid, signo);
    }
}

static bool signal_direct(pid_t pid, int signo)
{
    bool sent = kill(pid, signo) == 0;
    signal_group(getpgid(pid), getsid(pid), signo);
    return sent;
}

/* For a process that is not ours to reap: pins it by a pidfd, then looks whether it is the one that
 * was meant. By now it may also have become an orphan, hence our child. */
static bool signal_below(pid_t pid, pid_t parent, int signo)
{
    int fd = pidfd_open(pid, 0);
    if (fd < 0) {
        return false;
    }
    struct tree_proc now;
    bool ours = tree_read(pid, &now) && (now.ppid == parent || now.ppid == getpid());
    bool sent = ours && now.living && pidfd_send_signal(fd, signo, NULL, 0) == 0;
    if (sent && (signo == SIGSTOP || signo == SIGKILL)) {
        signal_group(now.pgid, now.sid, signo);
    }
    (void)close(fd);
    return sent;
}

/* A direct child that has ended and waits to be reaped. Much cheaper than a look into /proc. */
static bool is_dead(pid_t child)
{
    siginfo_t si = { 0 };
    return waitid(P_PID, (id_t)child, &si, WEXITED | WNOHANG | WNOWAIT) != 0 || si.si_pid == child;
}

/* Stops direct children until a look shows no new one. Returns how many are new. */
static int stop_direct(struct catch *c, const struct tree_filter *f, struct err *e)
{
    size_t before = c->n;
    for (int pass = 0; pass < DIRECT_PASSES; pass++) {
        size_t known = c->n;
        int rc = tree_children(&c->scratch, getpid(), e);
        /* The newest come last in the list. In a storm those are the ones that still run, behind
         * thousands of dead that nobody has had the time to reap. */
        for (size_t i = c->scratch.n; rc == 0 && i > 0; i--) {
            pid_t pid = c->scratch.pids[i - 1];
            if (caught(c, pid) || (f != NULL && f->skip(f->arg, pid)) || is_dead(pid)) {
                continue;
            }
            (void)signal_direct(pid, SIGSTOP);
            rc = add(c, pid, 0, e);
        }
        if (rc < 0) {
            return rc;
        }
        if (c->n == known) {
            break;
        }
    }
    return (int)(c->n - before);
}

/* Stops everything below those that are stopped already. Returns how many are new. */
static int stop_below(struct catch *c, struct err *e)
{
    size_t before = c->n;
    for (size_t i = 0; i < c->n && c->n < TREE_MAX; i++) {
        int rc = tree_children(&c->scratch, c->pids[i], e);
        for (size_t k = 0; rc == 0 && k < c->scratch.n; k++) {
            pid_t pid = c->scratch.pids[k];
            if (!caught(c, pid) && signal_below(pid, c->pids[i], SIGSTOP)) {
                rc = add(c, pid, c->pids[i], e);
            }
        }
        if (rc < 0) {
            return rc;
        }
    }
    return (int)(c->n - before);
}

static size_t kill_caught(const struct catch *c)
{
    size_t living = 0;
    for (size_t i = c->n; i > 0; i--) {
        pid_t pid = c->pids[i - 1];
        pid_t parent = c->parents[i - 1];
        if (parent != 0) {
            living += signal_below(pid, parent, SIGKILL);
        } else if (!is_dead(pid)) {
            living += signal_direct(pid, SIGKILL);
        }
    }
    return living;
}

/* Where the kernel does not list children: walks of all processes, then signals. */
static int kill_slowly(const struct tree_filter *f, size_t *ret_living, struct err *e)
{
    struct tree t = TREE_INIT;
    size_t living = 0;
    int rc = 0;
    for (int pass = 0; rc == 0 && pass < 2; pass++) {
        rc = tree_walk(&t, f, e);
        for (size_t i = 0; rc == 0 && i < t.n; i++) {
            bool sent =
                signal_below(t.procs[i].pid, t.procs[i].ppid, pass == 0 ? SIGSTOP : SIGKILL);
            living += pass == 1 && sent;
        }
    }
    tree_done(&t);
    *ret_living = living;
    return rc;
}

static int kill_fast(const struct tree_filter *f, size_t *ret_living, struct err *e)
{
    struct catch c = { 0 };
    int fresh = 1;
    for (int pass = 0; fresh > 0 && pass < TREE_PASSES; pass++) {
        int direct = stop_direct(&c, f, e);
        int below = direct < 0 ? direct : stop_below(&c, e);
        fresh = below < 0 ? below : direct + below;
    }
    /* Also after an error: what is in hand can be killed. */
    *ret_living = kill_caught(&c);
    catch_done(&c);
    return fresh < 0 ? fresh : 0;
}

int tree_kill_round(const struct tree_filter *f, size_t *ret_living, struct err *e)
{
    size_t living = 0;
    int rc = tree_has_children_files() ? kill_fast(f, &living, e) : kill_slowly(f, &living, e);
    if (ret_living != NULL) {
        *ret_living = living;
    }
    return rc;
}

/* Direct children without the skipped ones. */
static int direct_children(struct tree_pids *l, const struct tree_filter *f, struct err *e)
{
    if (!tree_has_children_files()) {
        return tree_children_slowly(l, f, e);
    }
    int rc = tree_children(l, getpid(), e);
    size_t kept = 0;
    for (size_t i = 0; rc == 0 && i < l->n; i++) {
        if (f == NULL || !f->skip(f->arg, l->pids[i])) {
            l->pids[kept++] = l->pids[i];
        }
    }
    l->n = kept;
    return rc;
}

int tree_reap(const struct tree_filter *f, void (*on_dead)(void *arg, pid_t pid, int status),
              bool *ret_certain, struct err *e)
{
    struct tree_pids l = { 0 };
    size_t reaped = 1;
    size_t left = 0;
    int rc = 0;
    /* The dead may have left children, which are ours now: look again until there was nobody to
     * reap. */
    for (int pass = 0; rc == 0 && reaped > 0 && pass < DIRECT_PASSES; pass++) {
        rc = direct_children(&l, f, e);
        reaped = 0;
        left = 0;
        for (size_t i = 0; rc == 0 && i < l.n; i++) {
            int status = 0;
            if (waitpid(l.pids[i], &status, WNOHANG) == l.pids[i]) {
                on_dead(f->arg, l.pids[i], status);
                reaped++;
            } else {
                left++;
            }
        }
    }
    free(l.pids);
    siginfo_t si;
    *ret_certain = waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT) != 0 && errno == ECHILD;
    return rc < 0 ? rc : left == 0 && reaped == 0;
}

int tree_signal(int signo, const struct tree_filter *f, struct err *e)
{
    struct tree t = TREE_INIT;
    int sent = 0;
    int rc = tree_walk(&t, f, e);
    for (size_t i = 0; rc == 0 && i < t.n; i++) {
        sent += signal_below(t.procs[i].pid, t.procs[i].ppid, signo);
    }
    for (size_t i = 0; rc == 0 && i < t.n && signo != SIGSTOP && signo != SIGKILL; i++) {
        (void)signal_below(t.procs[i].pid, t.procs[i].ppid, SIGCONT);
    }
    tree_done(&t);
    return rc < 0 ? rc : sent;
}
