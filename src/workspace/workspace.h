/* SPDX-License-Identifier: MIT
 *
 * struct workspace: what an agent works on in place of the user's tree, and what came of it.
 *
 *  1. workspace_open(&(struct workspace_opts){ .source = "/home/u/project", .dir = private,
 *                                              .overlay = true }, &w, e)
 *     makes the view by the cheapest means that holds; the source is only read
 *  2. workspace_view(w) goes to sandbox_open(): what to mount where. Without a sandbox,
 *     workspace_dir(w) is the directory to work in (not possible with an overlay)
 *  3. workspace_inject(w, "CLAUDE.md", text, 0644, e): files of ours that must not be in the patch
 *  4. run, until every process is gone
 *  5. workspace_diff(w, arena, &opts, &result, e)
 *  6. workspace_close(w, keep): removes the private directory, or keeps it for a look
 *
 * workspace_reopen() takes up what a dead process left: the same diff can be made then.
 *
 * Kinds:
 *   overlay   copy-on-write over the source; nothing is copied, any size costs the same
 *   copy      a private copy, cloned file by file where the file system can
 *   clone     what git has: a commit checked out afresh, without untracked and ignored files
 *   in-place  the source itself; nothing protects it
 *   snapshot  overlay if that is to be had, else copy
 * With `ref`, the commit is checked out into a private directory, and that is what the view is made
 * from: an overlay over it where possible.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/json.h"
#include "sandbox/sandbox.h"
#include "workspace/diff.h"
#include "workspace/node.h"
#include "workspace/savepoint.h"

struct workspace;

enum workspace_kind {
    WORKSPACE_SNAPSHOT,
    WORKSPACE_OVERLAY,
    WORKSPACE_COPY,
    WORKSPACE_CLONE,
    WORKSPACE_IN_PLACE,
};
const char *workspace_kind_word(enum workspace_kind k);

struct workspace_opts {
    const char *source; /* absolute directory */
    enum workspace_kind kind;
    const char *ref;       /* a commit, branch or tag of the source's repository; NULL: as it is */
    const char *dir;       /* private, absolute, must not exist yet; the view's layers go here */
    bool pin;              /* the sandbox or the container keeps the agent from changing what git
                              executes: see sandbox_view.git_dirs */
    bool overlay;          /* somebody will mount it: see workspace_view() */
    const char *why_not;   /* for the record, where that cannot be */
    enum node_marks marks; /* of that overlay */
};

/* ERR_INPUT for a source or ref that is not there, ERR_UNSUPPORTED when the kind cannot be had
 * here, ERR_CONFIG when it makes no sense (clone without git). Nothing is left on failure. */
int workspace_open(const struct workspace_opts *o, struct workspace **ret, struct err *e) MUST_USE;
/* From the private directory alone. ERR_INPUT when it holds no workspace. */
int workspace_reopen(const char *dir, struct workspace **ret, struct err *e) MUST_USE;
/* Removes the private directory unless `keep`. Accepts NULL. */
struct workspace *workspace_close(struct workspace *w, bool keep);

enum workspace_kind workspace_kind_of(const struct workspace *w); /* never SNAPSHOT */
const struct sandbox_view *workspace_view(const struct workspace *w);
/* Where the agent works: the path inside the sandbox, or with `outside` the directory itself (NULL
 * for an overlay, which is a directory only where it is mounted). */
const char *workspace_path(const struct workspace *w);
const char *workspace_dir(const struct workspace *w);
/* Paths outside of it that git needs to read; NULL-terminated. */
const char *const *workspace_also_read(const struct workspace *w);

/* A file or directory of the agent's directory that no patch may hold. */
int workspace_leave_out(struct workspace *w, const char *path, struct err *e) MUST_USE;

/* A regular file as the agent left it, for reading; -1 when there is none. The path is relative to
 * the agent's directory; links lead nowhere outside of it. */
int workspace_open_file(const struct workspace *w, struct str path);
/* The same for a directory; it shows what the agent wrote there, and may show no more than that. */
int workspace_open_dir(const struct workspace *w, struct str path);

/* The path is relative; directories on the way are made. What was there is replaced in the view
 * only. In place, an existing file is refused with ERR_EXISTS. Before the view is mounted. */
int workspace_inject(struct workspace *w, const char *path, struct str content, mode_t mode,
                     struct err *e) MUST_USE;
/* The path is cinch's: never in the patch. */
void workspace_hide(struct workspace *w, const char *path);

struct workspace_diff_opts {
    int patch_fd;
    const char *nested_dir;
    int64_t max_file;
};

/* Also sets what workspace_json() says about changes. */
int workspace_diff(struct workspace *w, struct arena *a, const struct workspace_diff_opts *o,
                   struct diff_result *ret, struct err *e) MUST_USE;

/* Keeps the files that are not in the patch for left_out_open(). With `alone`, nothing else of the
 * private directory is needed any more: an overlay's layer stays, of a copy only these files do. */
int workspace_keep_beside(struct workspace *w, const struct diff_beside *files, bool alone,
                          struct err *e) MUST_USE;

/* For the record: what it is, where it came from, what it costs on disk. */
struct json *workspace_json(const struct workspace *w, struct arena *a);
/* [{path, why}]: what a copy of the source lacks. */
const struct json *workspace_not_copied(const struct workspace *w);
/* Git directories that the agent cannot write to at all, because there are too many to protect each
 * file of them. */
size_t workspace_read_only_repositories(const struct workspace *w);
/* Bytes on disk of the private directory. */
int64_t workspace_disk(const struct workspace *w);
const char *workspace_source(const struct workspace *w); /* without links on the way */
/* The root of the tree that the agent works on; -1 for an overlay, which has one only where it is
 * mounted. Stays the workspace's. */
int workspace_fd(const struct workspace *w);
/* Where transactions keep their journals. */
const char *workspace_txn_dir(const struct workspace *w);
/* For savepoints_open(); of an overlay, workspace_fd is for whoever has it mounted to fill in. */
void workspace_savepoints(struct workspace *w, struct savepoint_opts *ret);
