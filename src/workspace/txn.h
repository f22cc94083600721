/* SPDX-License-Identifier: MIT
 *
 * Transactions on a workspace: a program runs in a private view of it, and what it changed comes
 * into the workspace as a whole, or not at all.
 *
 *  1. txns_open(&(struct txns_opts){ .workspace_fd = sandbox_workspace(s), .dir = private,
 *                                    .layers_fd = sandbox_scratch(s), .overlay = true,
 *                                    .marks = NODE_MARKS_USER }, &t, e)
 *     finishes or undoes first what a dead process left in `dir`
 *  2. txn_begin(t, &x, e)
 *  3. run the program with sandbox_place(s, txn_layer(x)), wait until every process of it is gone
 *  4. txn_commit(x, &report, e) or txn_rollback(x): both end the transaction and free it
 *  5. txns_close(t) rolls back what is still open
 *
 * Several transactions may be open at once; none sees the unfinished work of another. A commit
 * fails with ERR_EXISTS (and has changed nothing) when a path that it touches was changed in the
 * workspace since its begin, by another commit or by the agent itself. A commit that fails for any
 * other reason has changed nothing either, or is finished by the next txns_open(): there is no
 * half-done state that stays.
 *
 * With an overlay the cost follows the number of changed entries. Without one the program gets a
 * private copy of the workspace (cloned where the file system can), which costs its size; commit,
 * rollback and conflicts are the same.
 *
 * `workspace_fd` is the root as the agent sees it, also when that is a mount in another namespace:
 * everything here works through descriptors. Not for use from two processes at once.
 */
#pragma once

#include <stdint.h>

#include "base/clock.h"
#include "workspace/node.h"

struct txn;
struct txns;

struct txns_opts {
    int workspace_fd; /* stays the caller's, and must stay open */
    const char *dir;  /* private, absolute; is made if missing. Journals are kept here */
    int layers_fd;    /* where layers and copies go, e.g. a tmpfs; borrowed. -1: in `dir` */
    bool overlay;
    enum node_marks marks;
    struct node_owner owner; /* files that the program makes belong to another owner */
};

struct txn_report {
    size_t entries; /* of the change, directories on the way included */
    size_t files;   /* new or changed */
    size_t removed;
    int64_t bytes;      /* copied; 0 when everything could be moved */
    char conflict[256]; /* the path, when that was the reason; may be cut */
    nsec took;
};

int txns_open(const struct txns_opts *o, struct txns **ret, struct err *e) MUST_USE;
struct txns *txns_close(struct txns *t); /* accepts NULL, returns NULL */
size_t txns_active(const struct txns *t);

int txn_begin(struct txns *t, struct txn **ret, struct err *e) MUST_USE;
/* The directory below layers_fd (or `dir`) that holds upper/ and work/; NULL without an overlay. */
const char *txn_layer(const struct txn *x);
/* The private copy that stands for the workspace, absolute; NULL with an overlay, or when it is
 * below layers_fd: then txn_copy_name() is its path there. */
const char *txn_copy(const struct txn *x);
const char *txn_copy_name(const struct txn *x);
/* `report` may be NULL. */
int txn_commit(struct txn *x, struct txn_report *report, struct err *e) MUST_USE;
struct txn *txn_rollback(struct txn *x); /* accepts NULL, returns NULL */

/* What txns_open() does first, alone: for a run whose process died. Returns how many commits were
 * finished. */
int txns_recover(const struct txns_opts *o, struct err *e) MUST_USE;
