/* SPDX-License-Identifier: MIT
 *
 * struct cgroup: bounds for a whole run, where this process may make control groups.
 *
 *   v2          one group below our own: memory.max, pids.max, cpu.max, cgroup.freeze, cgroup.kill
 *   hybrid      v1 groups with the limits, and a v2 group for freezing and killing
 *   none        what the policy asked for and nobody can give goes to the report; limits of each
 *               single process are the floor (sandbox/compose.h)
 *
 * A cinch that is killed leaves empty groups behind; the next one that makes a group there removes
 * them. Nothing is made when the policy asks for no bound that a group is needed for.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "sandbox/sandbox.h"

struct cgroup;

/* *ret is NULL when no group is needed or possible; losses are noted in the report. */
int cgroup_open(const struct sandbox_policy *p, struct cgroup **ret, struct sandbox_report *report,
                struct err *e) MUST_USE;
/* Descriptors of cgroup.procs for a plan to join, borrowed; fds NULL: only how many. */
size_t cgroup_fds(const struct cgroup *g, int *fds, size_t max);
int cgroup_freeze(struct cgroup *g, bool frozen, struct err *e) MUST_USE;
/* Kills what is inside, if anything is, and removes the groups; waits up to a second for that. */
void cgroup_remove(struct cgroup *g);
/* Removes the empty groups of killed cinches, as the next run would, where this process may make
 * groups itself: in its own group and those above it. */
void cgroup_sweep(void);
struct cgroup *cgroup_free(struct cgroup *g); /* removes too; accepts NULL, returns NULL */
