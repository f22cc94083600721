/* SPDX-License-Identifier: MIT
 *
 * Between savepoint.c (life, taking, bringing back) and savepoint_plan.c (what differs).
 */
#pragma once

#include "workspace/baseline.h"
#include "workspace/savepoint.h"

struct savepoints {
    struct savepoint_opts opts;
    struct delta_filter skip; /* with our own names */
    int dir_fd;
    int saved_fd;         /* what is kept; -1: nothing */
    struct baseline seen; /* of the tree when that was made; empty: not known */
};

/* Where an entry of the savepoint is. */
struct origin {
    bool saved;       /* in what is kept; else in the tree below the layer */
    const char *path; /* there */
};

/* What must happen to the tree so that it is as it was. */
struct savepoint_plan {
    const struct savepoints *s;
    struct arena *arena;
    struct delta delta;
    struct origin *origins; /* one for each entry of the delta */
    size_t cap;
};

/* Always fills the plan, which is to be released. */
int savepoint_plan_make(struct savepoint_plan *p, const struct savepoints *s,
                        struct err *e) MUST_USE;
void savepoint_plan_done(struct savepoint_plan *p);
/* The root of an entry's origin. */
int savepoint_plan_root(const struct savepoint_plan *p, size_t i);

static inline void cleanup_savepoint_plan(struct savepoint_plan *p)
{
    savepoint_plan_done(p);
}
