/* SPDX-License-Identifier: MIT
 *
 * A delta as a patch that git can apply.
 *
 *   struct diff_opts o = { .delta = &d, .base_fd = lower, .new_fd = upper, .repo = &repo,
 *                          .scratch = private, .patch_fd = fd, .max_file = 10 << 20 };
 *   struct diff_result r;
 *   diff_make(arena, &o, &r, e);            r.no_changes, r.files …
 *
 * The patch is made between the changed entries as they were and as they are, byte for byte: what
 * the agent committed is in it like everything else, filters and attributes change nothing, and
 * the cost follows the change. Blobs that are in the user's repository keep their names there, so
 * that `git apply --3way` finds them.
 *
 * Not in it: .git, paths that cinch put there (`hidden`), files that .gitignore names and git did
 * not track; and, reported in `left_out`, sockets and the like, files beyond max_file, files that
 * cannot be read, and names that git refuses.
 * Changes inside another repository within the tree (a submodule) become a patch of their own, in
 * `nested`.
 */
#pragma once

#include <stdint.h>

#include "base/arena.h"
#include "base/json.h"
#include "workspace/delta.h"
#include "workspace/repo.h"

struct diff_opts {
    const struct delta *delta;
    int base_fd;               /* the tree before */
    const char *base_commit;   /* take contents before from this commit instead; NULL: base_fd */
    bool is_private;           /* what new_fd holds is ours: modes may be changed for a moment */
    struct json *unseen;       /* [{path, why}] that the delta lacks, for left_out; may be NULL */
    int new_fd;                /* the layer or tree that holds the new entries */
    const struct repo *repo;   /* of the user's tree; NULL: none */
    const char *base_git;      /* git directory that has base_commit; NULL: `objects` do */
    const char *objects;       /* directory of objects of the user's repository; NULL: none */
    const char *scratch;       /* private directory, absolute, on disk; emptied afterwards */
    const char *const *hidden; /* paths, with all below; NULL-terminated or NULL */
    int patch_fd;
    const char *nested_dir; /* for patches of repositories within the tree; NULL: leave them out */
    int64_t max_file;       /* bytes; 0: 10 MiB */
    int64_t changed_since;  /* wall clock: entries of the tree before that are newer were changed by
                              somebody else during the run; 0: do not look */
};

struct diff_result {
    bool no_changes;
    int64_t patch_bytes;
    struct json *files;          /* [{path, status, from?}], status A M D R T */
    struct json *left_out;       /* [{path, why, bytes}] */
    struct json *source_changed; /* [path]: changed in the user's tree meanwhile, and here */
    struct json *nested;         /* [{path, patch}]: patch is a file in nested_dir */
    struct json
        *new_repositories; /* [path]: made by the agent in a tree that it works on directly */
    int64_t withheld;      /* of what is left out, what is a change all the same */
    int64_t ignored;       /* entries left out by ignore rules */
    /* What could be kept beside the patch: files that are ignored or too large. */
    struct diff_beside {
        const char **paths, **places; /* in the tree, and below new_fd; not NULL-terminated */
        size_t len, cap;
    } beside;
    struct json *ignored_files; /* [{path, bytes}], the first DIFF_IGNORED_MAX that exist now */
    int64_t ignored_bytes;      /* of all that exist now */
};
enum { DIFF_IGNORED_MAX = 100 };

int diff_make(struct arena *a, const struct diff_opts *o, struct diff_result *ret,
              struct err *e) MUST_USE;
