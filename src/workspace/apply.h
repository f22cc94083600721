/* SPDX-License-Identifier: MIT
 *
 * Bringing a patch into the user's own tree, because the user asked for it.
 *
 *   struct apply_opts o = { .target = "/home/u/project", .patch = "out/diff.patch" };
 *   struct apply_result r;
 *   apply_patch(arena, &o, &r, e);
 *
 * All or nothing: it is checked first, and a patch that does not fit changes nothing (`fits` is
 * false, `why` says what git said). In a repository the change also goes into the index, unless its
 * files have other changes; where it does not fit as it is, a three-way merge without conflicts
 * will do. No hook runs, and no filter or merge driver that the repository itself configures: the
 * change stays out of the index then. A repository of another user is refused.
 */
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"

struct apply_opts {
    const char *target; /* absolute directory */
    const char *patch;  /* absolute file */
    const char *branch; /* make it and switch to it first; NULL: stay */
    const char *commit; /* commit with this message; NULL: leave it uncommitted */
    bool check;         /* only look whether it fits */
};

struct apply_result {
    bool nothing; /* the patch is empty */
    bool fits;
    bool three_way;   /* it had to be merged */
    const char *why;  /* what git said when it does not fit */
    const char *made; /* id of the commit, or NULL */
};

/* ERR_INPUT for a missing patch or target, ERR_CONFIG for a repository of another user that
 * safe.directory does not list, ERR_USAGE for a branch or commit where there is no
 * repository, or staged changes that a commit would take along. */
int apply_patch(struct arena *a, const struct apply_opts *o, struct apply_result *ret,
                struct err *e) MUST_USE;
