/* SPDX-License-Identifier: MIT
 *
 * struct apply_txn: a set of changes to a user's tree (files, indexes and refs of git) that is made
 * as a whole or not at all, whatever interrupts it.
 *
 *  1. apply_txn_start() locks the tree, writes a journal and makes the staging directory
 *  2. the caller builds the new files in tree/ of that directory and new indexes beside those that
 *     they replace, and lists everything: apply_txn_add(), `indexes`, `refs`
 *  3. apply_txn_commit() keeps what is there now in old/ (as hard links where possible), decides
 *     by a second write of the journal, and makes the changes: with renames only, so that a full
 *     disk stops it before it has begun. If a step fails, everything is rolled back.
 *  4. apply_txn_end() removes the staging directory and the journal
 *
 * The journal is in a private directory of the user's, never in the tree: an agent can write to a
 * tree. A process that dies before the decision has changed nothing; one that dies after it leaves
 * a change that apply_txn_recover() completes, or rolls back if that is impossible. A file that
 * somebody changed in between is left alone.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

#define APPLY_TREE_NAME "tree" /* in the staging directory */

/* What a path is: nothing, a file, a symbolic link, a directory. */
enum apply_node { APPLY_NONE = '-', APPLY_FILE = 'f', APPLY_LINK = 'l', APPLY_DIR = 'd' };

struct apply_entry {
    const char *path; /* below the root */
    enum apply_node before, after;
    uint64_t inode;     /* of the new file or link, which a rename keeps */
    const char *digest; /* of the new content and mode; "" for directories and nothing */
};

struct apply_index {
    const char *git_dir;
    const char *root;    /* the work tree, below the root of the change or the same */
    const char *entries; /* what `git ls-files -s -z` printed for the changed paths before */
    size_t entries_len;
    bool staged; /* a new index is to replace the old one */
};

struct apply_ref {
    const char *name;      /* "HEAD" or "refs/heads/…" */
    const char *from, *to; /* commits, or "refs/heads/…" for a symbolic HEAD; "" for none */
    const char *message;   /* for the reflog */
};

enum { APPLY_INDEXES_MAX = 1024, APPLY_REFS_MAX = 2 };

struct apply_txn {
    struct arena *arena;
    const char *root;    /* absolute; all paths are below it */
    const char *dir;     /* staging directory, absolute, on the file system of the root */
    const char *git_dir; /* of the root, for refs; "" without a repository */
    const char *journal; /* absolute */
    const char *undo;    /* directory that takes what was there before; "": none */
    const char *target;  /* as the user knows the tree */
    int64_t time;        /* wall clock */
    bool decided, done;
    struct apply_entry *entries; /* sorted by path once decided */
    size_t len, cap;
    struct apply_index indexes[APPLY_INDEXES_MAX];
    size_t index_count;
    struct apply_refs {
        struct apply_ref items[APPLY_REFS_MAX];
        size_t len;
    } refs;
    int lock_fd; /* the root; -1: not ours */
    int dir_fd;
    sigset_t signals;    /* the mask before apply_txn_start() */
    char kept_away[200]; /* the first path that was left alone by a rollback; "" for none */
};

/* SIGINT, SIGTERM, SIGHUP and SIGQUIT wait until apply_txn_end(): one that arrives before the
 * decision makes apply_txn_commit() fail with ERR_CANCELLED, a later one changes nothing.
 * `t` has root, dir, git_dir, undo and target; `journals` is made if it is missing. ERR_EXISTS
 * while another process changes the tree, ERR_OUTPUT when nothing can be written there. */
int apply_txn_start(struct apply_txn *t, const char *journals, struct err *e) MUST_USE;
void apply_txn_add(struct apply_txn *t, const struct apply_entry *x); /* copies the strings */
/* Keeps git from changing an index until apply_txn_end(), and notes it in `indexes`. ERR_EXISTS if
 * a git process has it. */
int apply_txn_lock_index(struct apply_txn *t, const char *git_dir, const char *root,
                         struct err *e) MUST_USE;
int apply_txn_commit(struct apply_txn *t, struct err *e) MUST_USE;
/* Idempotent; also after a failure of any step. What was there before goes to `undo` if the change
 * was made. */
void apply_txn_end(struct apply_txn *t);

/* A copy of the index of a git directory, which may have none. */
int apply_copy_index(struct arena *a, const char *git_dir, const char *to, struct err *e) MUST_USE;
/* The name of the index that apply_txn_commit() puts in place. */
const char *apply_index_name(struct arena *a, const char *git_dir);

enum apply_recovery { APPLY_COMPLETED, APPLY_ROLLED_BACK, APPLY_STUCK };
struct apply_recover_port {
    /* `why` is for APPLY_STUCK: it is tried again next time. */
    void (*recovered)(void *arg, const struct apply_txn *t, enum apply_recovery what,
                      const char *why);
    void *arg;
};
/* Ends what dead processes left, by the journals in the directory. Cheap if there are none. */
void apply_txn_recover(const char *journals, const struct apply_recover_port *port);

/* --- the journal (apply_journal.c) --- */

int apply_journal_write(const struct apply_txn *t, const char *path, struct err *e) MUST_USE;
/* ERR_PARSE for a damaged one. */
int apply_journal_read(struct arena *a, const char *path, struct apply_txn *ret,
                       struct err *e) MUST_USE;
/* Exposed for its fuzzer. */
int apply_journal_parse(struct arena *a, struct str text, struct apply_txn *ret,
                        struct err *e) MUST_USE;
