/* SPDX-License-Identifier: MIT
 *
 * A process tree: all living descendants of one process, found through /proc, and what can be done
 * to them: signal, kill, add up CPU time.
 *
 * The root must be the caller itself and a child subreaper (PR_SET_CHILD_SUBREAPER): then no
 * descendant can leave the tree, neither by double fork nor by setsid, and an empty tree is the
 * same as waitpid() saying ECHILD.
 *
 *   struct tree t = TREE_INIT;
 *   tree_walk(&t, NULL, e);            t.procs[0 … t.n), parents before children
 *   tree_done(&t);
 *
 *   while (!reaped_everything()) {     kill: rounds, because processes may fork meanwhile
 *       tree_kill_round(NULL, &living, e);
 *       … reap, wait a little …
 *   }
 *
 * Reused pids: direct children of the caller cannot be replaced by strangers, since only the caller
 * can reap them. Any other process is signalled through a pidfd, and only after its parent was seen
 * to be in the tree while the pidfd was already held. Whole process groups are signalled at once,
 * since that is the one thing a fork storm cannot outrun: the kernel restarts a fork that a group
 * signal meets half-way. That is safe, too: members of the tree live in sessions of their own (the
 * program is started with setsid), and a group never reaches over the border of its session.
 *
 * Needs libc only; used by cinch-init, and by the supervisor when cinch-init itself was killed. The
 * walk reads /proc/<pid>/task/<tid>/children, or /proc/<pid>/stat of all processes where the kernel
 * was built without those. Nothing here waits.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/str.h"

/* Processes seen in one walk; who has more is dealt with in several rounds. */
#define TREE_MAX 65536

struct tree_proc {
    pid_t pid;
    pid_t ppid;
    pid_t pgid;
    pid_t sid;
    char state;         /* as in /proc/<pid>/stat: R S D Z T … */
    bool living;        /* false for a zombie */
    uint64_t cpu_ticks; /* own and waited-for children's, user and system */
    uint64_t start;     /* ticks since boot */
    char comm[16];
};

struct tree {
    struct tree_proc *procs;
    size_t n;
    size_t cap;
};

#define TREE_INIT \
    {             \
        0         \
    }

/* Which direct children of the root are not part of the matter (with all below them). */
struct tree_filter {
    bool (*skip)(void *arg, pid_t child);
    void *arg;
};

void tree_done(struct tree *t);
/* Replaces the content of t. Zombies are listed with living = false. ERR_UNSUPPORTED without /proc.
 */
int tree_walk(struct tree *t, const struct tree_filter *f, struct err *e) MUST_USE;
/* The slow way, for kernels without the children files. */
int tree_walk_stat(struct tree *t, const struct tree_filter *f, struct err *e) MUST_USE;

/* Sends signo to every process of the tree; stopped ones are also continued, so that they can act
 * on it. Returns how many got it. */
int tree_signal(int signo, const struct tree_filter *f, struct err *e) MUST_USE;
/* Stops what is there, parents first, until nothing new turns up; then kills it, children first, so
 * that nobody can react to the death of another. The number of processes that were alive goes to
 * *ret_living (may be NULL). */
int tree_kill_round(const struct tree_filter *f, size_t *ret_living, struct err *e) MUST_USE;

/* Reaps direct children that have died and are not skipped, each reported to on_dead(f->arg, …) as
 * of waitpid(). Returns 1 when no process is left that is not skipped, 0 when there is one. A list
 * of children that changes while it is read may lack some; only if the caller has no other children
 * either is the answer 1 certain at once, and *ret_certain true. */
int tree_reap(const struct tree_filter *f, void (*on_dead)(void *arg, pid_t pid, int status),
              bool *ret_certain, struct err *e) MUST_USE;

/* What a tree uses. */
struct tree_use {
    int64_t cpu_ns;
    int64_t memory; /* bytes of all living, without pages that are shared or of files */
    size_t living;
};

/* CPU nanoseconds of all living descendants and of all that the caller has waited for. The sum may
 * also fall (a process whose parent ignores SIGCHLD takes its time with it); any change is a sign
 * of life. */
int tree_cpu(struct tree_use *ret, struct err *e) MUST_USE;

/* One process; false when it is gone. */
bool tree_read(pid_t pid, struct tree_proc *ret);
/* Parses the content of /proc/<pid>/stat; the name in it is chosen by the process and may hold
 * anything. */
bool tree_parse_stat(struct str text, struct tree_proc *ret);
