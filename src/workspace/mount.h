/* SPDX-License-Identifier: MIT
 *
 * Files of the host copied into a view: what a task gives an agent beside the tree itself.
 *
 *   struct mount m = { .host_path = "/srv/docs", .mount_path = "docs",
 *                      .include = (const char *const[]){ "*.md", NULL }, .max_bytes = 1 << 20 };
 *   mount_copy(w, &m, roots, arena, &report, e);
 *
 * Rules: the host path, with its links resolved, must lie within one of `roots` when there are any;
 * patterns match the path relative to the host path and `*` also matches "/"; excludes win over
 * includes, and an empty list of includes takes everything; a symbolic link is passed over, unless
 * links are followed and it leads to a file within the host path; a single file that is a link is
 * refused. Nothing that is mounted is ever in the patch.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"

struct workspace;

struct mount {
    const char *host_path;      /* absolute */
    const char *mount_path;     /* in the workspace; NULL: the last part of host_path */
    const char *const *include; /* NULL-terminated, or NULL */
    const char *const *exclude;
    int64_t max_bytes; /* 0: no bound */
    bool follow_symlinks;
};

struct mount_report {
    int64_t files, bytes;
    struct json *preview; /* the first paths, at most MOUNT_PREVIEW */
};

enum { MOUNT_PREVIEW = 20 };

/* ERR_INPUT when there is no such path, ERR_DENIED outside the roots, ERR_CONFIG for a mount path
 * that leads out of the workspace, ERR_LIMIT beyond max_bytes; what was copied so far is removed
 * with the workspace. */
int mount_copy(struct workspace *w, const struct mount *m, const char *const *roots,
               struct arena *a, struct mount_report *ret, struct err *e) MUST_USE;
