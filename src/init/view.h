/* SPDX-License-Identifier: MIT
 *
 * Setting up the namespaces of a sandbox: the calling process itself leaves the host's and composes
 * the view, as a plan of kind VIEW says. What it passes out (listening socket, directories) is
 * gathered for the supervisor.
 */
#pragma once

#include <stddef.h>

#include "base/err.h"
#include "init/mounts.h"
#include "init/plan.h"

struct view {
    struct mounts mounts;
    int passed[PLAN_PASS_MAX];
    size_t n_passed;
    struct plan_record failed; /* the operation that could not be done */
};

#define VIEW_INIT              \
    {                          \
        .mounts = MOUNTS_INIT, \
    }

/* In one plan or in several, one after the other. On failure the process is in between and of no
 * further use. */
int view_build(struct view *v, struct plan *p, struct err *e) MUST_USE;
void view_done(struct view *v);
/* Writes the maps of the user namespace that the caller has just entered; `proc` is "/proc" where
 * it is. */
int view_map_ids(const struct plan_ids *ids, struct err *e) MUST_USE;
