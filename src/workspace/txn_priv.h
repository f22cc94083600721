/* SPDX-License-Identifier: MIT
 *
 * Between txn.c (life of a transaction), txn_conflict.c (who changed what since when) and
 * txn_recover.c (what a dead process left).
 */
#pragma once

#include <sys/stat.h>
#include <time.h>

#include "base/id.h"
#include "data/pathmap.h"
#include "workspace/baseline.h"
#include "workspace/delta.h"
#include "workspace/merge.h"
#include "workspace/txn.h"

/* The paths of one commit that others may still collide with. */
struct txn_commit_log {
    struct txn_commit_log *next; /* older */
    uint64_t number;
    struct pathmap paths; /* 1: changed, 0: only a directory on the way */
};

struct txns {
    struct txns_opts opts;
    struct arena *arena;
    int dir_fd, layers_fd; /* layers_fd: opts.layers_fd, or dir_fd */
    uint64_t commits;      /* so far */
    struct txn_commit_log *log;
    struct txn *active; /* doubly linked */
    size_t active_count;
};

struct txn {
    struct txns *all;
    struct txn *prev, *next;
    char id[ID_LEN];
    char stage_name[sizeof ".cinch-txn-" + ID_LEN];
    struct arena *arena;
    int dir_fd;               /* <dir>/<id> */
    int source_fd;            /* the upper layer, or the copy */
    uint64_t begun_at;        /* commits at that time */
    struct timespec now;      /* wall clock at the begin, as the kernel stamps files */
    struct stat root;         /* of the layer or the copy, at the begin */
    char *copy;               /* path; NULL with an overlay, or below layers_fd */
    char *copy_name;          /* "<id>/copy"; NULL with an overlay */
    struct baseline baseline; /* of a copy */
};

/* Names within the directory of a transaction. */
#define TXN_UPPER        "upper"
#define TXN_WORK         "work"
#define TXN_COPY         "copy"
#define TXN_STAGE_PREFIX ".cinch-txn-"

/* ERR_EXISTS with the path in report->conflict when the change collides with what happened since
 * the begin. */
int txn_check_conflict(const struct txn *x, const struct delta *d, struct txn_report *report,
                       struct err *e) MUST_USE;
/* Remembers the commit as long as a transaction is open that began before it. */
void txn_log_commit(struct txn *x, const struct delta *d);
void txn_log_trim(struct txns *t);
