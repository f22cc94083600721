/* SPDX-License-Identifier: MIT
 *
 * struct pathmap: paths to numbers. Exact bytes, no order.
 *
 *   struct pathmap m = { 0 };
 *   pathmap_put(&m, "a/b", 7);                      copies the path; replaces an older number
 *   size_t n;
 *   if (pathmap_get(&m, "a/b", &n)) …
 *   pathmap_done(&m);
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;

struct pathmap_item {
    const char *path; /* NULL: free */
    size_t value;
    uint64_t hash;
};

struct pathmap {
    struct pathmap_item *items;
    size_t len, cap;
    struct arena *arena;
};

void pathmap_put(struct pathmap *m, const char *path, size_t value);
bool pathmap_get(const struct pathmap *m, const char *path, size_t *ret);
bool pathmap_has(const struct pathmap *m, const char *path);
void pathmap_done(struct pathmap *m);

static inline void cleanup_pathmap(struct pathmap *m)
{
    pathmap_done(m);
}
