/* SPDX-License-Identifier: MIT
 *
 * Open addressing, grown by doubling. The hash is seeded per process: the names are chosen by the
 * programs that we hold, and must not be able to make a table slow.
 */
#include "data/pathmap.h"

#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/arena.h"

/* The kernel gives every process 16 random bytes at its start. */
static uint64_t seed(void)
{
    uint64_t s = 0x9e3779b97f4a7c15u;
    const void *random = (const void *)getauxval(AT_RANDOM);
    if (random != NULL) {
        memcpy(&s, random, sizeof s);
    }
    return s;
}

static uint64_t hash_of(const char *path)
{
    uint64_t h = seed();
    for (const unsigned char *p = (const unsigned char *)path; *p != '\0'; p++) {
        h = (h ^ *p) * 0x100000001b3u;
        h ^= h >> 29;
    }
    return h;
}

static struct pathmap_item *slot(const struct pathmap *m, const char *path, uint64_t hash)
{
    size_t i = (size_t)hash & (m->cap - 1);
    while (m->items[i].path != NULL &&
           (m->items[i].hash != hash || strcmp(m->items[i].path, path) != 0)) {
        i = (i + 1) & (m->cap - 1);
    }
    return &m->items[i];
}

static void grow(struct pathmap *m)
{
    struct pathmap bigger = { .cap = m->cap == 0 ? 64 : m->cap * 2, .len = m->len };
    bigger.arena = m->arena != NULL ? m->arena : arena_new();
    bigger.items = xcalloc(bigger.cap, sizeof *bigger.items);
    for (size_t i = 0; i < m->cap; i++) {
        if (m->items[i].path != NULL) {
            *slot(&bigger, m->items[i].path, m->items[i].hash) = m->items[i];
        }
    }
    free(m->items);
    *m = bigger;
}

void pathmap_put(struct pathmap *m, const char *path, size_t value)
{
    if (m->len * 2 >= m->cap) {
        grow(m);
    }
    uint64_t hash = hash_of(path);
    struct pathmap_item *item = slot(m, path, hash);
    if (item->path == NULL) {
        item->path = arena_dup(m->arena, str_of(path));
        item->hash = hash;
        m->len++;
    }
    item->value = value;
}

bool pathmap_get(const struct pathmap *m, const char *path, size_t *ret)
{
    if (m->cap == 0) {
        return false;
    }
    const struct pathmap_item *item = slot(m, path, hash_of(path));
    if (item->path != NULL && ret != NULL) {
        *ret = item->value;
    }
    return item->path != NULL;
}

bool pathmap_has(const struct pathmap *m, const char *path)
{
    return pathmap_get(m, path, NULL);
}

void pathmap_done(struct pathmap *m)
{
    free(m->items);
    m->arena = arena_free(m->arena);
    *m = (struct pathmap) { 0 };
}
