/* SPDX-License-Identifier: MIT
 *
 * struct orphans: which processes a program may kill although it did not start them.
 *
 *   orphans_new(&o, e);                 at the start of the program, before its first proc
 *   proc_start(loop, &(struct proc_opts){ …, .orphans = o }, &p, e);
 *   orphans_free(o);
 *
 * When cinch-init is killed, what it supervised becomes children of the nearest child subreaper.
 * orphans_new() makes this process that subreaper and remembers the descendants it has already (a
 * shell can start some and then exec the program). Only processes that are adopted later are killed
 * (proc_sweep.c).
 *
 * Both concern the whole process, so this is for programs. A library must not use it: it cannot
 * tell the children of its host, or of another thread, from orphans of a run.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

struct orphans;

int orphans_new(struct orphans **ret, struct err *e) MUST_USE;
struct orphans *orphans_free(struct orphans *o); /* accepts NULL, returns NULL */

/* Was this child a descendant of ours before orphans_new()? */
bool orphans_predates(const struct orphans *o, pid_t child);

static inline void cleanup_orphans(struct orphans **o)
{
    *o = orphans_free(*o);
}
