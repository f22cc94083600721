/* SPDX-License-Identifier: MIT
 *
 * Between apply.c (the order of things), apply_git.c (what git does), apply_tree.c (files) and
 * apply_undo.c.
 */
#pragma once

#include <sys/stat.h>

#include "base/buf.h"
#include "data/pathmap.h"
#include "workspace/apply.h"
#include "workspace/apply_txn.h"
#include "workspace/repo.h"

/* One patch and the tree that it is for. */
struct apply_part {
    const char *patch;
    const char *root;      /* of the repository, or the directory itself */
    const char *below;     /* `root` below the root of the whole; "" for the first */
    const char *work;      /* where git works: a directory with copies of the files */
    const char *directory; /* --directory=…, or NULL */
    const char *index;     /* a copy; NULL: none */
    const char *objects;   /* where git writes objects; NULL without a repository */
    struct repo repo;
    bool has_repo;
    bool filtered; /* the repository configures a filter */
    bool staged, three_way;
    const char **config; /* overrides for what the repository configures */
    size_t config_len, config_cap;
    const char **paths; /* that the patch touches, below `root` */
    size_t path_count, path_cap;
};

struct applying {
    struct arena *a;
    const struct apply_opts *o;
    struct apply_result *ret;
    struct apply_part *parts;
    size_t part_count;
    const char *scratch; /* the staging directory, or a temporary one for a check */
    struct apply_txn *txn;
    int root_fd, tree_fd;
    bool had_staged;     /* the index has changes of the user's */
    const char *keep;    /* path below the root of a directory that stays, although it is empty */
    struct pathmap seen; /* path below the root -> number of the entry in txn */
    struct err *e;
};

/* --- apply_git.c --- */

/* Does not fit: always returns 0. The words of git in `why` become one line. */
int apply_reject(struct applying *x, const char *fmt, ...) PRINTF_LIKE(2, 3);
const char *apply_git_words(struct arena *a, const char *message);
/* Overrides programs that the repository configures. */
int apply_override_drivers(struct applying *x, struct apply_part *p) MUST_USE;
int apply_list_paths(struct applying *x, struct apply_part *p) MUST_USE;
/* Applies the patch in `work`; sets fits, why, conflicts, already. */
int apply_try(struct applying *x, struct apply_part *p) MUST_USE;
/* Branch and commit of the first part, into txn. */
int apply_plan_refs(struct applying *x) MUST_USE;
int apply_has_staged(struct applying *x, struct apply_part *p) MUST_USE; /* 1: yes */
/* The entries of the index for the paths of the part, as `git ls-files -s -z` prints them. */
int apply_read_entries(struct applying *x, struct apply_part *p, struct buf *out) MUST_USE;

/* Brings objects that were written into the repository. */
int apply_move_objects(struct applying *x, struct apply_part *p) MUST_USE;

/* --- apply_tree.c --- */

/* A copy of what is at `path`, and of .gitattributes on the way. */
int apply_copy_in(struct applying *x, const char *path) MUST_USE;
/* Compares `path` before and after, and adds an entry if it differs. */
int apply_note_path(struct applying *x, const char *path) MUST_USE;
/* Directories that appear and go with the files. */
int apply_note_dirs(struct applying *x) MUST_USE;
/* Files that no patch holds, into the tree. */
int apply_add_files(struct applying *x, const char *prefix) MUST_USE;
/* Content and mode in a word. `fd` is a directory. */
int apply_digest(int fd, const char *path, struct arena *a, const char **ret,
                 struct err *e) MUST_USE;
enum apply_node apply_type_at(int fd, const char *path, struct stat *st);
