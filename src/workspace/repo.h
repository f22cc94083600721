/* SPDX-License-Identifier: MIT
 *
 * struct repo: what cinch needs to know of a git repository, read from its files without starting
 * git: nothing that somebody configured or planted there can run.
 *
 *   struct repo r;
 *   if (repo_find(arena, "/home/u/project/src", &r) > 0) … r.root, r.prefix "src", r.head …
 *
 * Understands directories, worktrees and submodules (.git as a file), packed and loose refs,
 * detached and unborn heads, both object formats. What it cannot read (the reftable format) leaves
 * `head` empty.
 *
 * A repository of another user is found too, but marked `foreign`: its content may be read, its
 * configuration may not be obeyed. Whether it is another user's is decided as in git: by the owners
 * of .git and of the directory it is in, and by safe.directory.
 */
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"

#define REPO_ID_MAX 65 /* SHA-256 in hex, and a NUL */

struct repo {
    const char *root;    /* top of the work tree, absolute */
    const char *prefix;  /* of the directory asked for, relative to root; "" when it is the top */
    const char *git_dir; /* absolute */
    const char *common_dir; /* the same but for worktrees */
    const char *branch;     /* "refs/heads/main"; NULL: detached */
    bool linked;            /* .git is a file: worktree or submodule */
    bool foreign;           /* of another user, and not listed in safe.directory */
    bool listed;            /* of another user, and listed there */
    bool sha256;
    char head[REPO_ID_MAX]; /* commit; "" before the first one, or when it cannot be read */
};

/* Looks in `dir` (absolute) and above. 1 when there is one, 0 when not. A .git file of another user
 * is not followed: git_dir and common_dir are NULL then. */
int repo_find(struct arena *a, const char *dir, struct repo *ret);
/* Only what `dir` itself has. */
int repo_open(struct arena *a, const char *dir, struct repo *ret);
/* The commit that HEAD of a git directory means now; false when there is none. */
bool repo_head(const char *git_dir, const char *common_dir, char out[REPO_ID_MAX]);
/* Whether `dir` is nothing but a directory of git objects. Paths that a repository names are shown
 * to an agent only if they are. */
bool repo_is_object_dir(const char *dir);
/* NULL-terminated list of directories of objects outside common_dir that it refers to. */
const char *const *repo_alternates(struct arena *a, const struct repo *r);
