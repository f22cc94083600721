/* SPDX-License-Identifier: MIT
 *
 * A hash table with chains whose entries are also a list by age.
 */
#include "llm/store.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"

#define BUCKETS 1024

struct entry {
    struct entry *next;          /* in its bucket */
    struct entry *newer, *older; /* by age */
    size_t key_len, value_len;
    char bytes[]; /* key, then value */
};

struct llm_store {
    size_t max, bytes, count;
    struct entry *newest, *oldest;
    struct entry *buckets[BUCKETS];
};

static struct str key_of(const struct entry *x)
{
    return str_n(x->bytes, x->key_len);
}

static struct str value_of(const struct entry *x)
{
    return str_n(x->bytes + x->key_len, x->value_len);
}

static size_t size_of(const struct entry *x)
{
    return sizeof *x + x->key_len + x->value_len;
}

static size_t bucket_of(struct str key)
{
    uint32_t h = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < key.len; i++) {
        h = (h ^ (unsigned char)key.ptr[i]) * 16777619u;
    }
    return h % BUCKETS;
}

struct llm_store *llm_store_new(size_t max)
{
    struct llm_store *s = xcalloc(1, sizeof *s);
    s->max = max > 0 ? max : LLM_STORE_MAX;
    return s;
}

static void remove_entry(struct llm_store *s, struct entry *x)
{
    struct entry **at = &s->buckets[bucket_of(key_of(x))];
    while (*at != x) {
        at = &(*at)->next;
    }
    *at = x->next;
    *(x->newer != NULL ? &x->newer->older : &s->newest) = x->older;
    *(x->older != NULL ? &x->older->newer : &s->oldest) = x->newer;
    s->bytes -= size_of(x);
    s->count--;
    free(x);
}

struct llm_store *llm_store_free(struct llm_store *s)
{
    while (s != NULL && s->oldest != NULL) {
        remove_entry(s, s->oldest);
    }
    free(s);
    return NULL;
}

static struct entry *find_entry(const struct llm_store *s, struct str key)
{
    struct entry *x = s == NULL ? NULL : s->buckets[bucket_of(key)];
    while (x != NULL && !str_eq(key_of(x), key)) {
        x = x->next;
    }
    return x;
}

void llm_store_put(struct llm_store *s, struct str key, struct str value)
{
    struct entry *x = find_entry(s, key);
    if (x != NULL) {
        remove_entry(s, x);
    }
    if (key.len + value.len > LLM_STORE_ENTRY_MAX || value.len == 0) {
        return;
    }
    x = xmalloc(sizeof *x + key.len + value.len);
    x->key_len = key.len;
    x->value_len = value.len;
    memcpy(x->bytes, key.ptr, key.len);
    memcpy(x->bytes + key.len, value.ptr, value.len);
    size_t b = bucket_of(key);
    x->next = s->buckets[b];
    s->buckets[b] = x;
    x->newer = NULL;
    x->older = s->newest;
    *(s->newest != NULL ? &s->newest->newer : &s->oldest) = x;
    s->newest = x;
    s->bytes += size_of(x);
    s->count++;
    while (s->bytes > s->max) {
        remove_entry(s, s->oldest);
    }
}

struct str llm_store_get(const struct llm_store *s, struct str key)
{
    const struct entry *x = find_entry(s, key);
    return x == NULL ? STR_EMPTY : value_of(x);
}

size_t llm_store_count(const struct llm_store *s)
{
    return s == NULL ? 0 : s->count;
}

struct json *llm_store_json(const struct llm_store *s, struct arena *a)
{
    struct json *v = json_array(a);
    for (const struct entry *x = s->oldest; x != NULL; x = x->newer) {
        struct json *pair = json_array(a);
        json_push(a, pair, json_string(a, arena_str(a, key_of(x))));
        json_push(a, pair, json_string(a, arena_str(a, value_of(x))));
        json_push(a, v, pair);
    }
    return v;
}

int llm_store_load(struct llm_store *s, const struct json *v, struct err *e)
{
    if (!json_is(v, JSON_ARRAY)) {
        return ERR(e, ERR_PARSE, "must be a list");
    }
    for (size_t i = 0; i < json_len(v); i++) {
        const struct json *pair = json_item(v, i);
        const struct json *key = json_item(pair, 0), *value = json_item(pair, 1);
        if (!json_is(key, JSON_STRING) || !json_is(value, JSON_STRING)) {
            return ERR(e, ERR_PARSE, "[%zu]: must be a list of two strings", i);
        }
        llm_store_put(s, key->string, value->string);
    }
    return 0;
}
