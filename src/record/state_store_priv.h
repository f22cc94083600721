/* SPDX-License-Identifier: MIT
 *
 * How a session keeps its versions. A list grows at its end only, and only the session itself
 * appends to it; a version is that list and a length. A transaction adds what is its own in a
 * second list. Whatever rewrites items makes a new list.
 */
#pragma once

#include "base/arena.h"
#include "record/state_store.h"

struct store_list {
    const struct json **items;
    size_t used, cap;
};

/* One slice at one moment: the first `len` of `list`, then all of `own`. */
struct store_version {
    struct store_list *list;
    size_t len;
    struct store_list *own; /* transactions only */
};

/* The slices at one moment, by index; those beyond n are empty. Frozen once a moment or a
 * transaction refers to it. */
struct store_table {
    size_t n;
    bool frozen;
    struct store_version versions[];
};

struct store_slice {
    struct str name;
    enum slice_policy policy;
};

struct state_store {
    struct arena *arena;
    struct str id, created_at, parent_id;
    int journal_fd;
    const struct redactor *redactor;
    size_t n_slices, n_rules;
    struct store_slice slices[SESSION_SLICES_MAX];
    struct store_rule rules[SESSION_RULES_MAX];
    struct store_table *table;
};

struct store_pending {
    struct store_change change; /* in the session's arena */
    struct store_pending *next;
};

struct store_txn {
    struct state_store *session;
    struct store_table *table; /* what it sees; NULL: nobody will look */
    struct store_pending *first, **last;
};

size_t store_index(const struct state_store *s, struct str slice); /* SIZE_MAX: none */
/* The index, declaring the slice as STATE if there is none. */
int store_index_or_new(struct state_store *s, struct str slice, size_t *ret,
                       struct err *e) MUST_USE;
/* The table to write to: a copy if somebody holds the present one or a slice has no place in it. */
struct store_table *store_writable(struct state_store *s, struct store_table **table);
int store_change_check(const struct store_change *c, struct err *e) MUST_USE;
void store_change_do(struct state_store *s, struct store_table *table, size_t index,
                     const struct store_change *c, bool own);
int store_journal(struct state_store *s, const struct store_pending *first, bool logs_only,
                  struct err *e) MUST_USE;
/* Appends to the journal what makes the whole present state. */
int store_journal_all(struct state_store *s, struct err *e) MUST_USE;
