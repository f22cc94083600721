/* SPDX-License-Identifier: MIT
 *
 * How a session keeps its versions. A list grows at its end only, and only the session itself
 * appends to it; a version is that list and a length. A transaction adds what is its own in a
 * second list. Whatever rewrites items makes a new list.
 */
#pragma once

#include "base/arena.h"
#include "record/session.h"

struct session_list {
    const struct json **items;
    size_t used, cap;
};

/* One slice at one moment: the first `len` of `list`, then all of `own`. */
struct session_version {
    struct session_list *list;
    size_t len;
    struct session_list *own; /* transactions only */
};

/* The slices at one moment, by index; those beyond n are empty. Frozen once a moment or a
 * transaction refers to it. */
struct session_table {
    size_t n;
    bool frozen;
    struct session_version versions[];
};

struct session_slice {
    struct str name;
    enum slice_policy policy;
};

struct session {
    struct arena *arena;
    struct str id, created_at, parent_id;
    int journal_fd;
    const struct redactor *redactor;
    size_t n_slices, n_rules;
    struct session_slice slices[SESSION_SLICES_MAX];
    struct session_rule rules[SESSION_RULES_MAX];
    struct session_table *table;
};

struct session_pending {
    struct session_change change; /* in the session's arena */
    struct session_pending *next;
};

struct session_txn {
    struct session *session;
    struct session_table *table; /* what it sees; NULL: nobody will look */
    struct session_pending *first, **last;
};

size_t session_index(const struct session *s, struct str slice); /* SIZE_MAX: none */
/* The index, declaring the slice as STATE if there is none. */
int session_index_or_new(struct session *s, struct str slice, size_t *ret, struct err *e) MUST_USE;
/* The table to write to: a copy if somebody holds the present one or a slice has no place in it. */
struct session_table *session_writable(struct session *s, struct session_table **table);
int session_change_check(const struct session_change *c, struct err *e) MUST_USE;
void session_change_do(struct session *s, struct session_table *table, size_t index,
                       const struct session_change *c, bool own);
int session_journal(struct session *s, const struct session_pending *first, bool logs_only,
                    struct err *e) MUST_USE;
/* Appends to the journal what makes the whole present state. */
int session_journal_all(struct session *s, struct err *e) MUST_USE;
