/* SPDX-License-Identifier: MIT
 *
 * Dicts that keep the order of insertion. Up to eight entries are searched one by one; more get an
 * index with open addressing.
 */
#include "template/template_value_priv.h"

#include "template/template_render_priv.h"

enum { SMALL = 8 };

struct dict *tpl_dict_new(struct arena *a)
{
    return ARENA_NEW(a, struct dict);
}

static void index_one(struct dict *d, size_t entry)
{
    size_t i = (size_t)d->entries[entry].hash & (d->slots - 1);
    while (d->index[i] != 0) {
        i = (i + 1) & (d->slots - 1);
    }
    d->index[i] = (uint32_t)entry + 1;
}

static void append(struct arena *a, struct dict *d, const struct dict_entry *entry)
{
    if (d->len == d->cap) {
        d->cap = d->cap == 0 ? 4 : d->cap * 2;
        struct dict_entry *more = arena_array(a, d->cap, sizeof *more);
        if (d->len > 0) {
            memcpy(more, d->entries, d->len * sizeof *more);
        }
        d->entries = more;
    }
    d->entries[d->len++] = *entry;
    if (d->len <= SMALL) {
        return;
    }
    if (d->len * 2 > d->slots) {
        d->slots = d->slots == 0 ? 32 : d->slots * 2;
        d->index = arena_array(a, d->slots, sizeof *d->index);
        for (size_t i = 0; i < d->len; i++) {
            index_one(d, i);
        }
    } else {
        index_one(d, d->len - 1);
    }
}

/* The next entry with this hash at or after *at, which is private to the search. */
static struct dict_entry *candidate(const struct dict *d, uint64_t hash, size_t *at)
{
    if (d->index == NULL) {
        while (*at < d->len) {
            struct dict_entry *entry = &d->entries[(*at)++];
            if (entry->hash == hash) {
                return entry;
            }
        }
        return NULL;
    }
    for (;;) {
        size_t i = ((size_t)hash + *at) & (d->slots - 1);
        if (d->index[i] == 0) {
            return NULL;
        }
        ++*at;
        struct dict_entry *entry = &d->entries[d->index[i] - 1];
        if (entry->hash == hash) {
            return entry;
        }
    }
}

static struct dict_entry *find_text(const struct dict *d, struct str key, uint64_t hash)
{
    size_t at = 0;
    struct dict_entry *entry;
    while ((entry = candidate(d, hash, &at)) != NULL) {
        if (entry->key.kind == VALUE_STRING && str_eq(entry->key.string, key)) {
            return entry;
        }
    }
    return NULL;
}

struct value *tpl_dict_find_hashed(const struct dict *d, struct str key, uint64_t hash)
{
    for (size_t i = 0; d->index == NULL && i < d->len; i++) { /* most dicts are small */
        struct dict_entry *entry = &d->entries[i];
        if (entry->hash == hash && entry->key.kind == VALUE_STRING &&
            entry->key.string.len == key.len &&
            memcmp(entry->key.string.ptr, key.ptr, key.len) == 0) {
            return &entry->value;
        }
    }
    if (d->index == NULL) {
        return NULL;
    }
    struct dict_entry *entry = find_text(d, key, hash);
    return entry == NULL ? NULL : &entry->value;
}

struct value *tpl_dict_find_text(const struct dict *d, struct str key)
{
    return tpl_dict_find_hashed(d, key, tpl_value_hash_text(key));
}

void tpl_dict_set_text(struct arena *a, struct dict *d, struct str key, const struct value *value)
{
    uint64_t hash = tpl_value_hash_text(key);
    struct dict_entry *entry = find_text(d, key, hash);
    if (entry != NULL) {
        entry->value = *value;
        return;
    }
    append(a, d, &(struct dict_entry) { value_text(key), *value, hash });
}

static int find(struct render *r, const struct dict *d, const struct value *key, uint64_t hash,
                struct dict_entry **ret)
{
    size_t at = 0;
    struct dict_entry *entry;
    while ((entry = candidate(d, hash, &at)) != NULL) {
        bool same = false;
        int rc = tpl_value_equal(r, &entry->key, key, &same);
        if (rc < 0) {
            return rc;
        }
        if (same) {
            break;
        }
    }
    *ret = entry;
    return 0;
}

int tpl_dict_find(struct render *r, const struct dict *d, const struct value *key,
                  struct value **ret)
{
    uint64_t hash;
    struct dict_entry *entry = NULL;
    int rc = tpl_value_hash(r, key, &hash);
    rc = rc < 0 ? rc : find(r, d, key, hash, &entry);
    *ret = entry == NULL ? NULL : &entry->value;
    return rc;
}

int tpl_dict_set(struct render *r, struct dict *d, const struct value *key,
                 const struct value *value)
{
    uint64_t hash;
    struct dict_entry *entry = NULL;
    int rc = tpl_value_hash(r, key, &hash);
    rc = rc < 0 ? rc : find(r, d, key, hash, &entry);
    if (rc < 0) {
        return rc;
    }
    if (entry != NULL) {
        entry->value = *value;
    } else {
        append(r->arena, d, &(struct dict_entry) { *key, *value, hash });
    }
    return 0;
}

int tpl_dict_list(struct render *r, const struct dict *d, enum dict_part part, struct value *out)
{
    struct list *l = tpl_list_new(r->arena, d->len);
    int rc = 0;
    for (size_t i = 0; i < d->len && rc == 0; i++) {
        const struct dict_entry *entry = &d->entries[i];
        struct value item = part == DICT_KEYS ? entry->key : entry->value;
        if (part == DICT_ITEMS) {
            struct list *pair = tpl_list_new(r->arena, 2);
            tpl_list_add(r->arena, pair, &entry->key);
            tpl_list_add(r->arena, pair, &entry->value);
            item = value_tuple(pair);
        }
        tpl_list_add(r->arena, l, &item);
        rc = render_step(r);
    }
    *out = value_list(l);
    return rc;
}
