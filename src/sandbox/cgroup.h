/* SPDX-License-Identifier: MIT
 *
 * struct cgroup: bounds for a whole run, where this process may make control groups.
 *
 *   v2          one group below our own: memory.max, pids.max, cpu.max, cgroup.kill
 *   hybrid      v1 groups with the limits, and a v2 group for killing
 *   none        what the policy asked for and this machine cannot give goes to the report
 *
 * When memory runs out the kernel kills one process of the group, usually the largest, and counts
 * it: cgroup_oom_kills(). The others go on, so that an agent can react to the end of a tool.
 *
 * A cinch that is killed leaves empty groups behind; the next one that makes a group there removes
 * them. Nothing is made when the policy asks for no bound that a group is needed for.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"
#include "sandbox/sandbox.h"

struct cgroup;

/* *ret is NULL when no group is needed or possible; losses are noted in the report, and so is the
 * bound of memory that is in force. */
int cgroup_open(const struct sandbox_policy *p, struct cgroup **ret, struct sandbox_report *report,
                struct err *e) MUST_USE;
/* Descriptors of cgroup.procs for a plan to join, borrowed; fds NULL: only how many. */
size_t cgroup_fds(const struct cgroup *g, int *fds, size_t max);
/* Processes that the kernel has killed because the bound of memory was reached; -1: not known. */
int64_t cgroup_oom_kills(const struct cgroup *g);
/* Of memory.events (version 2) or memory.oom_control (version 1); -1: it has no such counter. */
int64_t cgroup_parse_oom(struct str text);
/* Kills what is inside, if anything is, and removes the groups; waits up to a second for that. */
void cgroup_remove(struct cgroup *g);
/* Removes the empty groups of killed cinches, as the next run would, where this process may make
 * groups itself: in its own group and those above it. */
void cgroup_sweep(void);
struct cgroup *cgroup_free(struct cgroup *g); /* removes too; accepts NULL, returns NULL */
