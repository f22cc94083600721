/* SPDX-License-Identifier: MIT
 *
 * How a keeper enters a sandbox: it is the first process of a new pid namespace and of a copy of
 * the held mount namespace, makes the mounts that are its alone, and gives up every privilege for
 * good. What is left of the plan are the operations that each program gets (init/lockdown.h).
 */
#pragma once

#include <stddef.h>

#include "base/err.h"

struct plan;
struct plan_record;

struct entry {
    struct plan *plan;
    const int *fds; /* that came with the plan */
    size_t n_fds;
    int holder; /* pidfd of the process that let us in: we die with it */
};

/* On failure *failed is the operation that could not be done; the caller has to exit. */
int entry_make(const struct entry *x, struct plan_record *failed, struct err *e) MUST_USE;
