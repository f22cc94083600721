/* SPDX-License-Identifier: MIT
 *
 * struct child: one process started by this one, watched through a pidfd.
 *
 *   const int fds[] = { -1, -1, -1, socket };          number 0 … n-1 of the child; -1 is /dev/null
 *   child_start(loop, &(struct child_opts){ .path = p, .argv = a, .fds = fds, .n_fds = 4,
 *                                           .on_exit = gone, .arg = self }, &c, e);
 *   child_kill(c, SIGKILL);                            safe: the pid cannot have been reused
 *   child_free(c);                                     a child that still runs is reaped silently
 *
 * posix_spawn() does the work, whose cost does not grow with our memory. The child gets its own
 * session, default dispositions for the signals that this process handles or ignores, and an empty
 * mask. It does not inherit other descriptors as long as all of ours are CLOEXEC.
 *
 * This is the plain tool for a helper of our own; agents and tools are run by proc/proc.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

struct loop;
struct child;

#define CHILD_FDS_MAX 8

struct child_opts {
    const char *path;  /* no search in PATH */
    char *const *argv; /* NULL-terminated */
    char *const *envp; /* NULL: empty */
    const int *fds;    /* stay the caller's */
    size_t n_fds;
    /* Exactly once, from the loop; status as of waitpid(). */
    void (*on_exit)(void *arg, int status);
    void *arg;
};

int child_start(struct loop *l, const struct child_opts *o, struct child **ret,
                struct err *e) MUST_USE;
struct child *child_free(struct child *c); /* accepts NULL, returns NULL */
pid_t child_pid(const struct child *c);
bool child_exited(const struct child *c);
void child_kill(struct child *c, int signo);

/* Was this pid started on the loop and not yet reaped? Tells own children from adopted orphans. */
bool child_known(const struct loop *l, pid_t pid);
