/* SPDX-License-Identifier: MIT
 *
 * Starting one program as a plan says. The caller is cinch-init: single-threaded, blocking.
 *
 * The program gets its own session, SIGKILL at the death of cinch-init, default signal
 * dispositions, an empty signal mask, the descriptors of the plan and no others.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

struct plan;

/* Returns when execve() has succeeded (0, *ret_pid is set) or when it is known why not. `fds` are
 * those that came with the plan; they stay the caller's. */
int program_start(struct plan *plan, const int *fds, size_t n_fds, pid_t *ret_pid,
                  struct err *e) MUST_USE;
