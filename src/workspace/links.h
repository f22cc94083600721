/* SPDX-License-Identifier: MIT
 *
 * struct links: remembers inodes that have more than one name, so that a copy of a tree keeps its
 * hard links.
 *
 *   size_t first;
 *   if (links_seen(&l, &st, i, &first)) … link to number `first` … else … copy as number i …
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

struct links_item {
    dev_t dev;
    ino_t ino;
    size_t number;
};

struct links {
    struct links_item *items; /* open addressing; ino 0 is free */
    size_t len, cap;
};

/* False, and notes `number`, when this inode was not seen before, or has only one name. */
bool links_seen(struct links *l, const struct stat *st, size_t number, size_t *ret_first);
void links_done(struct links *l);

static inline void cleanup_links(struct links *l)
{
    links_done(l);
}
