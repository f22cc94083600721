/* SPDX-License-Identifier: MIT
 *
 * Savepoints of a workspace: how it is now can be kept, and brought back later, whoever changed it
 * and by whatever means.
 *
 *  1. workspace_savepoints(w, &opts), opts.workspace_fd = the view; savepoints_open(&opts, &s, e)
 *  2. savepoint_take(s, &report, e)        as often as wanted; the last one counts
 *  3. savepoint_decide(s, note, e)         from here on it is to be brought back
 *     savepoint_restore(s, &report, e)     and this does it
 *  4. savepoints_close(s)                  removes what was kept
 *
 * With an overlay what is kept is its upper layer: the cost follows the number of entries that
 * differ from the tree below, and of those only what changed since the last savepoint is copied
 * (cloned where the file system can). Without one it is the whole tree, copied once; later
 * savepoints share with the one before what did not change.
 *
 * Bringing back changes only entries that differ, through the view, with the journal of a
 * transaction (merge.h): a process that dies before it has decided has changed nothing, one that
 * dies later leaves what txns_recover() and savepoints_recover() finish. Content, modes, times,
 * owners, links and empty directories come back, ignored files and .git included. A directory that
 * was renamed meanwhile is copied back.
 *
 * Whoever has a file open that is replaced or removed keeps the old one, as with any rename; so it
 * is best done when nobody works in the view. Not for use from two processes at once.
 */
#pragma once

#include <stdint.h>

#include "base/clock.h"
#include "base/str.h"
#include "workspace/delta.h"

struct savepoints;

/* Descriptors and strings stay the caller's and must live as long. */
struct savepoint_opts {
    int workspace_fd;      /* the view, for writing; -1: only kept, not brought back */
    int tree_fd;           /* what the agent writes to: upper layer, or the tree itself */
    int base_fd;           /* below the layer; -1: it is no layer */
    enum node_marks marks; /* of the layer */
    const char *dir;       /* private, absolute, on the file system of the tree; made if missing */
    const char *txn_dir;   /* of transactions on that workspace (txn.h) */
    struct delta_filter skip; /* what is no business of ours; skip NULL: nothing */
};

struct savepoint_report {
    size_t entries; /* taken: kept by now; restored: of the change, directories included */
    size_t files;   /* taken: files; restored: brought back */
    size_t removed; /* restored: entries that were not there at the savepoint */
    int64_t bytes;  /* copied, or cloned */
    nsec took;
};

int savepoints_open(const struct savepoint_opts *o, struct savepoints **ret,
                    struct err *e) MUST_USE;
struct savepoints *savepoints_close(struct savepoints *s); /* accepts NULL, returns NULL */

/* ERR_UNSUPPORTED for an entry that could not be brought back (a file that may not be read). On
 * failure the savepoint before stays. */
int savepoint_take(struct savepoints *s, struct savepoint_report *ret, struct err *e) MUST_USE;
/* `note` is for whoever recovers. */
int savepoint_decide(struct savepoints *s, struct str note, struct err *e) MUST_USE;
/* ERR_BUG without a savepoint. */
int savepoint_restore(struct savepoints *s, struct savepoint_report *ret, struct err *e) MUST_USE;

/* Of a dead process, after txns_recover(): what was decided is done. 1: there was something. */
int savepoints_recover(const struct savepoint_opts *o, struct err *e) MUST_USE;
/* Name of the note in `dir`. */
#define SAVEPOINT_NOTE "restoring"
