/* SPDX-License-Identifier: MIT
 *
 * The session: slices, rules, versions and transactions. What goes to disk is in store_json.c.
 */
#include "record/state_store.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "record/state_store_priv.h"

struct state_store *store_new(const struct store_opts *o)
{
    struct state_store *s = xcalloc(1, sizeof(*s));
    s->arena = arena_new();
    s->id = arena_str(s->arena, o->id);
    s->created_at = arena_str(s->arena, o->created_at);
    s->parent_id = arena_str(s->arena, o->parent_id);
    s->journal_fd = o->journal_fd;
    s->redactor = o->redactor;
    s->table = ARENA_NEW(s->arena, struct store_table);
    return s;
}

struct state_store *store_free(struct state_store *s)
{
    if (s != NULL) {
        (void)arena_free(s->arena);
        free(s);
    }
    return NULL;
}

/* --- slices and rules --- */

size_t store_index(const struct state_store *s, struct str slice)
{
    for (size_t i = 0; i < s->n_slices; i++) {
        if (str_eq(s->slices[i].name, slice)) {
            return i;
        }
    }
    return SIZE_MAX;
}

int store_declare(struct state_store *s, struct str slice, enum slice_policy policy, struct err *e)
{
    size_t i = store_index(s, slice);
    if (i != SIZE_MAX) {
        return s->slices[i].policy == policy
                   ? 0
                   : ERR(e, ERR_EXISTS, "slice '%.*s' is declared with another policy",
                         STR_ARG(slice));
    }
    if (slice.len == 0 || memchr(slice.ptr, '\0', slice.len) != NULL) {
        return ERR(e, ERR_USAGE, "a slice needs a name without NUL");
    }
    if (s->n_slices == SESSION_SLICES_MAX) {
        return ERR(e, ERR_LIMIT, "slice '%.*s': a session holds at most %d slices", STR_ARG(slice),
                   SESSION_SLICES_MAX);
    }
    s->slices[s->n_slices++] = (struct store_slice) { arena_str(s->arena, slice), policy };
    return 0;
}

bool store_policy(const struct state_store *s, struct str slice, enum slice_policy *ret)
{
    size_t i = store_index(s, slice);
    if (i != SIZE_MAX) {
        *ret = s->slices[i].policy;
    }
    return i != SIZE_MAX;
}

int store_index_or_new(struct state_store *s, struct str slice, size_t *ret, struct err *e)
{
    *ret = store_index(s, slice);
    if (*ret != SIZE_MAX) {
        return 0;
    }
    int r = store_declare(s, slice, SLICE_STATE, e);
    if (r == 0) {
        *ret = s->n_slices - 1;
    }
    return r;
}

bool store_reducer_parse(struct str name, enum store_reducer *ret)
{
    static const char *const names[] = {
        [REDUCE_APPEND_ALL] = "append_all",
        [REDUCE_REPLACE_LATEST] = "replace_latest",
        [REDUCE_UPSERT_BY] = "upsert_by",
        [REDUCE_REPLACE_LATEST_BY] = "replace_latest_by",
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (str_eqc(name, names[i])) {
            *ret = (enum store_reducer)i;
            return true;
        }
    }
    return false;
}

static bool needs_key(enum store_reducer r)
{
    return r == REDUCE_UPSERT_BY || r == REDUCE_REPLACE_LATEST_BY;
}

int store_reduce(struct state_store *s, const struct store_rule *rule, struct err *e)
{
    if (needs_key(rule->reducer) && rule->key.len == 0) {
        return ERR(e, ERR_CONFIG, "event '%.*s': this reducer needs a key", STR_ARG(rule->event));
    }
    for (size_t i = 0; i < s->n_rules; i++) {
        if (str_eq(s->rules[i].event, rule->event) && str_eq(s->rules[i].slice, rule->slice)) {
            return ERR(e, ERR_CONFIG, "event '%.*s' has a reducer for slice '%.*s' already",
                       STR_ARG(rule->event), STR_ARG(rule->slice));
        }
    }
    if (s->n_rules == SESSION_RULES_MAX) {
        return ERR(e, ERR_LIMIT, "a session holds at most %d reducers", SESSION_RULES_MAX);
    }
    size_t index;
    int r = store_index_or_new(s, rule->slice, &index, e);
    if (r < 0) {
        return r;
    }
    struct store_rule *to = &s->rules[s->n_rules++];
    *to = *rule;
    to->event = arena_str(s->arena, rule->event);
    to->slice = arena_str(s->arena, rule->slice);
    to->key = arena_str(s->arena, rule->key);
    return 0;
}

/* --- versions --- */

static size_t version_len(const struct store_version *v)
{
    return v->len + (v->own == NULL ? 0 : v->own->used);
}

static const struct json *version_item(const struct store_version *v, size_t i)
{
    if (i < v->len) {
        return v->list->items[i];
    }
    i -= v->len;
    return v->own != NULL && i < v->own->used ? v->own->items[i] : NULL;
}

static void list_push(struct arena *a, struct store_list *l, const struct json *item)
{
    if (l->used == l->cap) {
        size_t cap = l->cap == 0 ? 8 : l->cap * 2;
        const struct json **items = arena_array(a, cap, sizeof(struct json *));
        if (l->used > 0) {
            memcpy(items, l->items, l->used * sizeof(struct json *));
        }
        l->items = items;
        l->cap = cap;
    }
    l->items[l->used++] = item;
}

/* The version with a list that may grow at its end: the one it has, or, if that went on without
 * it, one of its own with the same items. */
static struct store_list *growable(struct arena *a, struct store_version *v)
{
    if (v->list != NULL && v->list->used == v->len) {
        return v->list;
    }
    struct store_list *l = ARENA_NEW(a, struct store_list);
    for (size_t i = 0; i < v->len; i++) {
        list_push(a, l, v->list->items[i]);
    }
    v->list = l;
    return l;
}

static void version_append(struct state_store *s, struct store_version *v, const struct json *item,
                           bool own)
{
    if (own) {
        if (v->own == NULL) {
            v->own = ARENA_NEW(s->arena, struct store_list);
        }
        list_push(s->arena, v->own, item);
        return;
    }
    list_push(s->arena, growable(s->arena, v), item);
    v->len++;
}

/* Keeps the items whose value at `key` differs; no key: keeps none. */
static void version_drop(struct state_store *s, struct store_version *v, struct str key,
                         const struct json *value)
{
    struct store_version old = *v;
    *v = (struct store_version) { 0 };
    if (key.len == 0) {
        return;
    }
    struct store_list *kept = ARENA_NEW(s->arena, struct store_list);
    for (size_t i = 0; i < version_len(&old); i++) {
        const struct json *item = version_item(&old, i);
        const struct json *at = json_pointer(item, key);
        if (at == NULL || !json_equal(at, value)) {
            list_push(s->arena, kept, item);
        }
    }
    v->list = kept;
    v->len = kept->used;
}

static struct store_table *table_copy(struct state_store *s, const struct store_table *from)
{
    struct store_table *copy =
        arena_alloc(s->arena, sizeof(*copy) + s->n_slices * sizeof(copy->versions[0]));
    copy->n = s->n_slices;
    memcpy(copy->versions, from->versions, from->n * sizeof(copy->versions[0]));
    return copy;
}

struct store_table *store_writable(struct state_store *s, struct store_table **table)
{
    const struct store_table *now = *table;
    if (now->frozen || now->n < s->n_slices) {
        *table = table_copy(s, now);
    }
    return *table;
}

int store_change_check(const struct store_change *c, struct err *e)
{
    bool wants_array = c->kind == CHANGE_EXTEND || c->kind == CHANGE_REPLACE;
    if (wants_array && !json_is(c->value, JSON_ARRAY)) {
        return ERR(e, ERR_CONFIG, "slice '%.*s': extend and replace take an array of items",
                   STR_ARG(c->slice));
    }
    if (c->kind == CHANGE_APPEND && c->value == NULL) {
        return ERR(e, ERR_CONFIG, "slice '%.*s': append takes an item", STR_ARG(c->slice));
    }
    return 0;
}

void store_change_do(struct state_store *s, struct store_table *table, size_t index,
                     const struct store_change *c, bool own)
{
    struct store_version *v = &table->versions[index];
    if (c->kind == CHANGE_REPLACE) {
        version_drop(s, v, STR_EMPTY, NULL);
    }
    if (c->kind == CHANGE_CLEAR) {
        version_drop(s, v, c->key, c->value);
        return;
    }
    if (c->kind == CHANGE_APPEND) {
        version_append(s, v, c->value, own);
        return;
    }
    for (size_t i = 0; i < json_len(c->value); i++) {
        version_append(s, v, json_item(c->value, i), own);
    }
}

/* --- transactions --- */

struct store_txn *store_begin(struct state_store *s)
{
    struct store_txn *t = ARENA_NEW(s->arena, struct store_txn);
    s->table->frozen = true;
    *t = (struct store_txn) { .session = s, .table = s->table };
    t->last = &t->first;
    return t;
}

int store_txn_apply(struct store_txn *t, const struct store_change *c, struct err *e)
{
    struct state_store *s = t->session;
    size_t index;
    int r = store_change_check(c, e);
    if (r == 0) {
        r = store_index_or_new(s, c->slice, &index, e);
    }
    if (r < 0) {
        return r;
    }
    struct store_pending *p = ARENA_NEW(s->arena, struct store_pending);
    p->change = *c;
    p->change.slice = s->slices[index].name;
    p->change.value = c->value == NULL ? NULL : json_copy(s->arena, c->value);
    p->change.key = arena_str(s->arena, c->key);
    *t->last = p;
    t->last = &p->next;
    if (t->table != NULL) {
        store_change_do(s, store_writable(s, &t->table), index, &p->change, true);
    }
    return 0;
}

/* What a reducer makes of an event: at most two changes of its slice. */
static int reduce(struct store_txn *t, const struct store_rule *rule, const struct json *value,
                  struct err *e)
{
    struct store_change add = { .kind = CHANGE_APPEND, .slice = rule->slice, .value = value };
    struct store_change drop = { .kind = CHANGE_CLEAR, .slice = rule->slice };
    if (rule->reducer == REDUCE_APPEND_ALL) {
        return store_txn_apply(t, &add, e);
    }
    if (needs_key(rule->reducer)) {
        drop.key = rule->key;
        drop.value = json_pointer(value, rule->key);
        if (drop.value == NULL) {
            return ERR(e, ERR_CONFIG, "event '%.*s' has nothing at '%.*s', the key of slice '%.*s'",
                       STR_ARG(rule->event), STR_ARG(rule->key), STR_ARG(rule->slice));
        }
    }
    int r = store_txn_apply(t, &drop, e);
    return r < 0 ? r : store_txn_apply(t, &add, e);
}

int store_txn_dispatch(struct store_txn *t, struct str event, const struct json *value,
                       struct err *e)
{
    const struct state_store *s = t->session;
    bool found = false;
    for (size_t i = 0; i < s->n_rules; i++) {
        if (str_eq(s->rules[i].event, event)) {
            found = true;
            int r = reduce(t, &s->rules[i], value, e);
            if (r < 0) {
                return r;
            }
        }
    }
    struct store_change add = { .kind = CHANGE_APPEND, .slice = event, .value = value };
    return found ? 0 : store_txn_apply(t, &add, e);
}

static void redo(struct store_txn *t, bool logs_only)
{
    struct state_store *s = t->session;
    for (const struct store_pending *p = t->first; p != NULL; p = p->next) {
        size_t i = store_index(s, p->change.slice);
        if (!logs_only || s->slices[i].policy == SLICE_LOG) {
            store_change_do(s, store_writable(s, &s->table), i, &p->change, false);
        }
    }
}

static int settle(struct store_txn *t, bool logs_only, struct err *e)
{
    int r = store_journal(t->session, t->first, logs_only, e);
    if (r == 0) {
        redo(t, logs_only);
    }
    t->first = NULL;
    t->last = &t->first;
    return r;
}

int store_commit(struct store_txn *t, struct err *e)
{
    return settle(t, false, e);
}

int store_abort(struct store_txn *t, struct err *e)
{
    return settle(t, true, e);
}

int store_dispatch(struct state_store *s, struct str event, const struct json *value, struct err *e)
{
    struct store_txn t = { .session = s };
    t.last = &t.first;
    int r = store_txn_dispatch(&t, event, value, e);
    return r < 0 ? r : store_commit(&t, e);
}

int store_apply(struct state_store *s, const struct store_change *c, struct err *e)
{
    struct store_txn t = { .session = s };
    t.last = &t.first;
    int r = store_txn_apply(&t, c, e);
    return r < 0 ? r : store_commit(&t, e);
}

/* --- reading and moments --- */

static const struct store_version *version(const struct state_store *s, const struct store_txn *t,
                                           struct str slice)
{
    size_t i = store_index(s, slice);
    const struct store_table *table = t == NULL ? s->table : t->table;
    return i < table->n ? &table->versions[i] : NULL;
}

size_t store_len(const struct state_store *s, const struct store_txn *t, struct str slice)
{
    const struct store_version *v = version(s, t, slice);
    return v == NULL ? 0 : version_len(v);
}

const struct json *store_item(const struct state_store *s, const struct store_txn *t,
                              struct str slice, size_t i)
{
    const struct store_version *v = version(s, t, slice);
    return v == NULL ? NULL : version_item(v, i);
}

const struct json *store_latest(const struct state_store *s, const struct store_txn *t,
                                struct str slice)
{
    size_t n = store_len(s, t, slice);
    return n == 0 ? NULL : store_item(s, t, slice, n - 1);
}

struct store_moment store_snapshot(struct state_store *s)
{
    s->table->frozen = true;
    return (struct store_moment) { s->table };
}

int store_restore(struct state_store *s, struct store_moment m, bool keep_logs, struct err *e)
{
    struct store_table *before = s->table;
    struct store_table *next = table_copy(s, m.table);
    for (size_t i = 0; i < before->n && keep_logs; i++) {
        if (s->slices[i].policy == SLICE_LOG) {
            next->versions[i] = before->versions[i];
        }
    }
    s->table = next;
    int r = store_journal_all(s, e);
    if (r < 0) {
        s->table = before;
    }
    return r;
}
