/* SPDX-License-Identifier: MIT
 *
 * The parser's index of keys: (table, key) to value and origin. Open addressing, at most two thirds
 * full, nothing is ever removed.
 */
#include "data/toml_priv.h"

#include <stdlib.h>

/* FNV-1a over the address of the table and the key. The address differs from run to run, which
 * spoils prepared collisions. */
static uint64_t hash_of(const struct json *parent, struct str key)
{
    uint64_t h = 0xcbf29ce484222325u;
    uint64_t seed = (uint64_t)(uintptr_t)parent;
    for (size_t i = 0; i < sizeof seed; i++) {
        h = (h ^ ((seed >> (8 * i)) & 0xff)) * 0x100000001b3u;
    }
    for (size_t i = 0; i < key.len; i++) {
        h = (h ^ (unsigned char)key.ptr[i]) * 0x100000001b3u;
    }
    return h ^ (h >> 32);
}

static struct toml_slot *probe(const struct toml_map *m, const struct json *parent, struct str key,
                               uint64_t hash)
{
    for (size_t i = hash & (m->cap - 1);; i = (i + 1) & (m->cap - 1)) {
        struct toml_slot *s = &m->slots[i];
        bool same = s->parent == parent && s->hash == hash && str_eq(s->key, key);
        if (s->parent == NULL || same) {
            return s;
        }
    }
}

struct toml_slot *toml_map_find(const struct toml_map *m, const struct json *parent, struct str key)
{
    if (m->cap == 0) {
        return NULL;
    }
    struct toml_slot *s = probe(m, parent, key, hash_of(parent, key));
    return s->parent == NULL ? NULL : s;
}

static void grow(struct toml_map *m)
{
    struct toml_map bigger = { .cap = m->cap == 0 ? 64 : m->cap * 2, .len = m->len };
    bigger.slots = xcalloc(bigger.cap, sizeof *bigger.slots);
    for (size_t i = 0; i < m->cap; i++) {
        const struct toml_slot *s = &m->slots[i];
        if (s->parent != NULL) {
            *probe(&bigger, s->parent, s->key, s->hash) = *s;
        }
    }
    free(m->slots);
    *m = bigger;
}

void toml_map_add(struct toml_map *m, const struct toml_slot *slot)
{
    if ((m->len + 1) * 3 > m->cap * 2) {
        grow(m);
    }
    uint64_t hash = hash_of(slot->parent, slot->key);
    struct toml_slot *s = probe(m, slot->parent, slot->key, hash);
    *s = *slot;
    s->hash = hash;
    m->len++;
}

void toml_map_done(struct toml_map *m)
{
    free(m->slots);
    *m = (struct toml_map) { 0 };
}
