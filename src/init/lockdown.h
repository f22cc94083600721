/* SPDX-License-Identifier: MIT
 *
 * What a sandbox does to each program right before it is executed: limits, no new privileges,
 * Landlock, and last the system call filter. Runs between vfork() and execve().
 */
#pragma once

#include "base/err.h"

struct plan;
struct plan_record;

/* Everything but the filter. Opens descriptors that the caller closes. */
int lockdown_limits(struct plan *entry, struct err *e) MUST_USE;
/* After it, only what the filter allows; execve() should be next. */
int lockdown_filter(struct plan *entry, struct err *e) MUST_USE;
/* One limit; also used for those of a program's own plan. */
int lockdown_rlimit(const struct plan_record *r, struct err *e) MUST_USE;
