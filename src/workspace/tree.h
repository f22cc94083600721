/* SPDX-License-Identifier: MIT
 *
 * Whole trees: a copy with everything that belongs to it, and what a tree costs on disk.
 *
 *   tree_copy(from_fd, to_fd, NULL, &stats, e);
 *
 * The copy keeps modes, owners (as far as we may), times to the nanosecond, extended attributes,
 * symbolic links as they are, hard links, sparse files, fifos and sockets; content is cloned where
 * the file system can (btrfs, xfs). The original is only read: no time of it changes but atime.
 * What cannot be copied (a device, a file that may not be read) is left out and told.
 */
#pragma once

#include "workspace/delta.h"

struct tree_stats {
    int64_t files, dirs, links; /* links: symbolic ones */
    int64_t bytes;              /* lengths of the regular files */
    int64_t disk;               /* blocks that the tree takes */
    int64_t left_out;
};

struct tree_copy_opts {
    struct delta_filter skip;
    const struct node_owner *owner;
    enum node_marks marks; /* it is a layer with these: whiteouts and marks are kept */
    /* Is it in an earlier copy just as it is? Then that is linked to: the root of it, or -1. May be
     * NULL. */
    int (*earlier)(void *arg, const char *path, const struct stat *st);
    /* What was left out, and why; may be NULL. */
    void (*left_out)(void *arg, const char *path, const char *why);
    void *arg;
};

/* Into an existing, empty directory, whose attributes become those of the original. */
int tree_copy(int from_fd, int to_fd, const struct tree_copy_opts *o, struct tree_stats *ret,
              struct err *e) MUST_USE;

/* Counts; each hard-linked file once. What cannot be read is not counted. */
int tree_measure(int fd, struct tree_stats *ret, struct err *e) MUST_USE;
