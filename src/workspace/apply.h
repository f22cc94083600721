/* SPDX-License-Identifier: MIT
 *
 * Bringing patches into the user's own tree, because the user asked for it, and taking them back.
 *
 *   struct apply_patch one = { .path = "", .patch = "/out/diff.patch" };
 *   struct apply_opts o = { .target = "/home/u/project", .patches = &one, .patch_count = 1,
 *                           .journals = "/home/u/.local/state/cinch/applying" };
 *   struct apply_result r;
 *   apply_run(arena, &o, &r, e);
 *
 * git applies the patches in a private directory that holds copies of the files they touch, to a
 * copy of the index. What comes out is then put in place as a whole (apply_txn.h). A check does the
 * same but for the last step, so it predicts what an apply does. If the patches do not apply,
 * `fits` is false, `why` says why, and nothing was changed.
 *
 * In a repository the changes also go to the index, unless files have other changes. Where a patch
 * does not apply directly, a three-way merge without conflicts is used. With `three_way`, conflicts
 * are written to the files, between markers. No hook runs, and no filter or merge driver that the
 * repository itself configures: the changes do not go to the index then. A repository of another
 * user is refused.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"

struct apply_patch {
    const char *path;  /* a directory below the target; "": the target */
    const char *patch; /* absolute file */
};

/* Files that no patch holds. */
struct apply_files {
    const char *dir;           /* where they are; NULL: there are none */
    const char *const *paths;  /* below the target; NULL-terminated */
    const char *const *places; /* below `dir` */
    int64_t since;             /* wall clock: files of the target that are newer are not replaced */
};

struct apply_opts {
    const char *target; /* absolute directory */
    const struct apply_patch *patches;
    size_t patch_count;
    struct apply_files files;
    const char *branch;   /* make it and switch to it; NULL: stay */
    const char *commit;   /* commit with this message; NULL: leave it uncommitted */
    bool three_way;       /* leave conflicts in the files */
    bool check;           /* only look whether it applies */
    bool applied_before;  /* the record says so */
    const char *journals; /* private directory of the user's; not needed for a check */
    const char *undo;     /* directory that takes what apply_undo() needs; NULL: none */
};

struct apply_result {
    bool nothing; /* the patches are empty */
    bool already; /* the tree has the changes already */
    bool fits;
    bool three_way; /* it had to be merged */
    bool staged;    /* the index has the changes, too */
    bool undoable;
    size_t files;           /* changed, new and removed */
    struct json *conflicts; /* [path]; with three_way only */
    const char *why;        /* it does not fit */
    const char *made;       /* id of the commit, or NULL */
};

/* ERR_INPUT for a missing patch or target, ERR_CONFIG for a repository of another user that
 * safe.directory does not list, ERR_USAGE for a branch or commit where there is no repository or
 * an invalid name, ERR_OUTPUT if the tree cannot be written, ERR_CANCELLED after a signal. */
int apply_run(struct arena *a, const struct apply_opts *o, struct apply_result *ret,
              struct err *e) MUST_USE;

/* Takes back what apply_run() kept in `undo`; the directory is removed then. Does not fit if a file
 * was changed since. `journals` and `check` as above. */
struct apply_undo_opts {
    const char *undo, *journals;
    bool check;
};
int apply_undo(struct arena *a, const struct apply_undo_opts *o, struct apply_result *ret,
               struct err *e) MUST_USE;
