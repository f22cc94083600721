/* SPDX-License-Identifier: MIT
 *
 * Starting one program as a plan says. The caller is cinch-init: single-threaded, blocking.
 *
 * The program gets its own session, SIGKILL at the death of cinch-init, default signal
 * dispositions, an empty signal mask, the descriptors of the plan and no others, and in a sandbox
 * what init/lockdown.h does.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

struct plan;

struct program_opts {
    struct plan *plan;
    struct plan *entry; /* of the sandbox, for its seals; NULL: none */
    const int *fds;     /* that came with the plan; they stay the caller's */
    size_t n_fds;
};

/* Returns when execve() has succeeded (0, *ret_pid is set) or when it is known why not. */
int program_start(const struct program_opts *o, pid_t *ret_pid, struct err *e) MUST_USE;
