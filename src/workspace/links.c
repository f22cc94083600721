/* SPDX-License-Identifier: MIT
 *
 * A table of inodes, grown by doubling.
 */
#include "workspace/links.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"

static struct links_item *slot(struct links *l, dev_t dev, ino_t ino)
{
    uint64_t hash = ((uint64_t)ino * 0x9e3779b97f4a7c15u) ^ (uint64_t)dev;
    size_t i = (size_t)(hash >> 17) & (l->cap - 1);
    while (l->items[i].ino != 0 && (l->items[i].ino != ino || l->items[i].dev != dev)) {
        i = (i + 1) & (l->cap - 1);
    }
    return &l->items[i];
}

static void grow(struct links *l)
{
    struct links bigger = { .cap = l->cap == 0 ? 64 : l->cap * 2, .len = l->len };
    bigger.items = xcalloc(bigger.cap, sizeof *bigger.items);
    for (size_t i = 0; i < l->cap; i++) {
        if (l->items[i].ino != 0) {
            *slot(&bigger, l->items[i].dev, l->items[i].ino) = l->items[i];
        }
    }
    free(l->items);
    *l = bigger;
}

bool links_seen(struct links *l, const struct stat *st, size_t number, size_t *ret_first)
{
    if (st->st_nlink < 2 || S_ISDIR(st->st_mode) || st->st_ino == 0) {
        return false;
    }
    if (l->len * 2 >= l->cap) {
        grow(l);
    }
    struct links_item *item = slot(l, st->st_dev, st->st_ino);
    if (item->ino != 0) {
        *ret_first = item->number;
        return true;
    }
    *item = (struct links_item) { st->st_dev, st->st_ino, number };
    l->len++;
    return false;
}

void links_done(struct links *l)
{
    free(l->items);
    *l = (struct links) { 0 };
}
