/* SPDX-License-Identifier: MIT
 *
 * struct delta: what changed in a file tree, as an ordered list of entries. From it come diff.patch
 * and the commit of a transaction; how it was found does not matter to them.
 *
 *   struct delta d;
 *   delta_init(&d);
 *   delta_of_upper(&d, upper_fd, base_fd, NODE_MARKS_USER, NULL, e);   from an overlay's layer
 *   for (size_t i = 0; i < d.len; i++) … d.items[i] …
 *   delta_done(&d);
 *
 * Entries come parents first, in the order of names, so that the same change gives the same list.
 * The cost follows the number of changes, never the size of the tree below them (but for
 * delta_of_copy(), see baseline.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/err.h"
#include "workspace/node.h"

struct arena;

enum delta_kind {
    DELTA_REMOVE, /* nothing is here any more */
    DELTA_MOVE,   /* the directory `from` of the tree before is here now; DELTA_DIR follows */
    DELTA_DIR,    /* a directory: new, or with other attributes */
    DELTA_NODE,   /* a file, link, fifo or socket: new, or changed */
};

struct delta_entry {
    enum delta_kind kind;
    const char *path; /* below the root; "" is the root itself, always a DELTA_DIR */
    /* A path of the tree before: DELTA_MOVE: what is here now; DELTA_REMOVE and with `clear`: what
     * goes, which is elsewhere than `path` below a directory that was moved. NULL: `path` */
    const char *from;
    struct stat st; /* DELTA_DIR, DELTA_NODE: of the new entry */
    bool clear;     /* what was here before must go first: another type, or replaced as a whole */
};

/* A directory that was made accessible to be read: see delta_filter.unlock. */
struct delta_unlocked {
    const char *path;
    mode_t mode;
};

struct delta {
    struct arena *arena;
    struct delta_entry *items;
    size_t len, cap;
    struct delta_unlocked *unlocked;
    size_t unlocked_len, unlocked_cap;
};

/* A tool that changes more than this in one go gets ERR_LIMIT: the list would not fit into memory
 * that one run should use. */
enum { DELTA_MAX = 1000000, DELTA_DEPTH_MAX = 250 };

void delta_init(struct delta *d);
void delta_done(struct delta *d); /* idempotent */
/* Copies the strings. */
int delta_add(struct delta *d, const struct delta_entry *entry, struct err *e) MUST_USE;

struct delta_filter {
    bool (*skip)(void *arg, const char *path); /* do not look at `path` at all; NULL: look */
    void *arg;
    /* What cannot be looked at (nested too deep, too many, not readable) is left out and reported
     * here; NULL: it is an error. `path` may be cut. */
    void (*left_out)(void *arg, const char *path, const char *why);
    /* The tree is ours alone: directories without permission for their owner are made accessible,
     * until delta_lock(). */
    bool unlock;
};

/* Reads an overlay's upper layer against the tree below it. ERR_UNSUPPORTED for what only the
 * kernel could put together (metacopy), ERR_LIMIT beyond the limits. */
int delta_of_upper(struct delta *d, int upper_fd, int base_fd, enum node_marks marks,
                   const struct delta_filter *filter, struct err *e) MUST_USE;

/* Gives directories that were unlocked their modes back; fd is the root of the tree. */
void delta_lock(struct delta *d, int fd);
/* For walks: opens the directory `name` in fd, which is `path` in the tree, so that its entries can
 * be looked at. The descriptor, or a negative code with errno. */
int delta_open_dir(struct delta *d, const struct delta_filter *filter, struct node_at at,
                   const char *path, struct err *e) MUST_USE;

static inline void cleanup_delta(struct delta *d)
{
    delta_done(d);
}
