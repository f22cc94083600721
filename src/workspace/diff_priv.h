/* SPDX-License-Identifier: MIT
 *
 * Between diff.c (the order of things), diff_sides.c (what was and what is), diff_select.c (what
 * belongs into the patch) and diff_write.c (git).
 */
#pragma once

#include "data/pathmap.h"
#include "workspace/diff.h"

/* One entry of a side: a regular file or a symbolic link, and where its bytes are. */
struct diff_entry {
    const char *path;
    const char *where; /* path below base_fd or new_fd */
    bool in_base;
    bool dropped;
    struct stat st;
    const char *id; /* of a blob, when it comes from a commit … */
    off_t offset;   /* … and where its bytes are in blobs_fd */
};

struct diff_side {
    struct diff_entry *items;
    size_t len, cap;
    struct pathmap index;
};

struct diff {
    struct arena *arena;
    const struct diff_opts *o;
    struct diff_result *result;
    struct diff_side before, after;
    const char *git_dir; /* our own repository */
    int blobs_fd;
    struct err *e;
};

int diff_collect_sides(struct diff *d) MUST_USE;
/* Drops what does not belong into the patch. */
int diff_select(struct diff *d) MUST_USE;
/* Contents by name, for a tree before that is a commit. */
int diff_find_blobs(struct diff *d) MUST_USE;
/* Both sides into our repository, and the patch between them; `prefix` only what is below it, with
 * it cut off ("" for all that is not nested). */
int diff_write(struct diff *d, const char *prefix, int fd) MUST_USE;
int diff_read_status(struct diff *d) MUST_USE;
/* The regular file of an entry, for reading: descriptor or negative code with errno. */
int diff_open(struct diff *d, const struct diff_entry *x, struct err *e) MUST_USE;

/* Paths of repositories inside the tree that an entry belongs to: "" for the tree's own. */
const char *diff_home_of(struct diff *d, const char *path);
void diff_leave_out(struct diff *d, const char *path, const char *why, int64_t bytes);
