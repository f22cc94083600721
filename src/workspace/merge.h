/* SPDX-License-Identifier: MIT
 *
 * struct merge: bringing a delta into a workspace, so that a crash at any point can be finished.
 *
 *  1. merge_stage(): everything that may fail for lack of room or permission: the new content is
 *     brought to the file system of the workspace, beside it. The workspace itself is untouched.
 *     On failure merge_drop() and nothing has happened.
 *  2. merge_decide() writes the journal. From here on the change is decided.
 *  3. merge_apply(): renames and removals only. May be repeated, also by another process after a
 *     crash (merge_load() reads the journal), until it succeeds.
 *  4. merge_drop() removes the staged content and the journal.
 *
 * Files are replaced by rename: a reader of the workspace sees the old or the new one. What must
 * make room (a directory that becomes a file, a deletion) goes first, once; a mark says that it is
 * done, so that repeating never removes what the first try had put there.
 *
 * All access to the workspace is through descriptors, without following symbolic links.
 */
#pragma once

#include "base/str.h"
#include "workspace/delta.h"

struct merge {
    int workspace_fd; /* borrowed */
    int dir_fd;       /* borrowed: private directory of this merge, for journal and mark */
    int source_fd;    /* borrowed: the layer, or the copy, that holds the new entries */
    enum node_marks marks;
    struct node_owner owner;
    const char *stage_name; /* of the staging directory when it must lie in the workspace */
    const struct delta *delta;
    /* Makes the new entry number i, where source_fd holds only the directories; NULL: it holds
     * everything. */
    int (*fetch)(void *arg, size_t i, struct node_at to, struct err *e);
    void *arg;

    int stage_fd;
    bool inside;            /* staged in the workspace: other mount, entries are copied */
    bool moves;             /* some directory was renamed */
    bool applied;           /* merge_apply() went through */
    struct timespec before; /* mtime of the workspace's root before anything was staged */
    size_t placed;          /* entries */
    int64_t bytes;
};

int merge_stage(struct merge *m, struct err *e) MUST_USE;
int merge_decide(struct merge *m, struct err *e) MUST_USE;
int merge_apply(struct merge *m, struct err *e) MUST_USE;
/* Removes the journal and what was staged, and closes stage_fd. */
void merge_drop(struct merge *m);

/* Was the change decided? Then fills `d` from the journal and opens the staging directory. Returns
 * 1, or 0 when there is no journal; ERR_PARSE when it is damaged. */
int merge_load(struct merge *m, struct delta *d, struct err *e) MUST_USE;

/* The journal as bytes; exposed for its fuzzer. */
int merge_parse_journal(struct str text, struct delta *d, bool *ret_inside, struct err *e) MUST_USE;
