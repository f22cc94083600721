/* SPDX-License-Identifier: MIT
 *
 * struct baseline: what a tree looked like, entry by entry, so that it can be said later what has
 * changed in it. For trees that are worked on directly (a copy, a clone, the original itself); an
 * overlay needs none.
 *
 *   struct baseline b = { 0 };
 *   baseline_scan(&b, fd, NULL, e);            one lstat() per entry
 *   …
 *   delta_of_copy(&d, fd, &b, NULL, e);        the same again, and a comparison
 *   baseline_done(&b);
 *
 * An entry is told by inode, type and ctime. No program can set a ctime, so a change cannot hide
 * behind an old mtime. baseline_write() and baseline_parse() keep it on disk, for the case that the
 * process dies in between.
 */
#pragma once

#include "base/buf.h"
#include "data/pathmap.h"
#include "workspace/delta.h"

struct baseline_entry {
    const char *path;
    uint32_t mode;
    uint64_t ino;
    int64_t ctime;
    bool seen;
    bool is_dir_now; /* while a comparison runs */
};

struct baseline {
    struct arena *arena;
    struct baseline_entry *items;
    size_t len, cap;
    struct pathmap index; /* path to number */
};

/* Trees beyond this get ERR_LIMIT: use an overlay. */
enum { BASELINE_MAX = 4000000 };

int baseline_scan(struct baseline *b, int fd, const struct delta_filter *filter,
                  struct err *e) MUST_USE;
void baseline_done(struct baseline *b);
/* Is the entry in it just as it is now? */
bool baseline_has(const struct baseline *b, const char *path, const struct stat *now);

/* The tree at fd against its baseline. Directories that cannot be read are passed over, and with
 * filter.left_out reported if they have changed. */
int delta_of_copy(struct delta *d, int fd, struct baseline *b, const struct delta_filter *filter,
                  struct err *e) MUST_USE;

int baseline_write(const struct baseline *b, struct buf *out, struct err *e) MUST_USE;
int baseline_parse(struct baseline *b, struct str text, struct err *e) MUST_USE;

static inline void cleanup_baseline(struct baseline *b)
{
    baseline_done(b);
}
