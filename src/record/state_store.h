/* SPDX-License-Identifier: MIT
 *
 * struct state_store: the state that an agent's tools keep during a run, as typed lists ("slices")
 * of JSON values.
 *
 *  1. store_new(&opts), then the slices and reducers that the task declares:
 *       store_declare(s, STR("plan"), SLICE_STATE, e)
 *       store_reduce(s, &(struct store_rule){ .event = …, .slice = …, .reducer = … }, e)
 *  2. store_dispatch(s, type, value, e): an event runs through its reducers; without any it is
 *     appended to the slice of its own name (declared on the way, as STATE).
 *  3. A tool call works on a store_txn: it sees the session as it was at the begin plus its own
 *     changes, nobody sees those before store_commit(), and store_abort() forgets them.
 *     Changes to LOG slices survive an abort: they tell what happened.
 *  4. store_snapshot() takes a moment, store_restore() goes back to it, both without copying.
 *
 * Values are never changed once they are in: a snapshot is a pointer to a table of versions, an
 * append adds behind all of them. Everything lives in the session's arena until store_free().
 * What was replaced is not given back before that: a session lasts as long as a run.
 *
 * Persistence: with a journal (store_opts), every commit appends one line with its changes and
 * store_replay() reads them back, so what was committed survives a kill. store_save() and
 * store_load() speak the interchange format of snapshots, version "1".
 *
 * One thread. Values that are handed in are copied; values that are handed out live as long as the
 * session.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

struct arena;
struct json;
struct redactor;
struct state_store;
struct store_txn;

enum slice_policy {
    SLICE_STATE, /* rolled back with a failed call, part of a snapshot */
    SLICE_LOG,   /* history: kept whatever happens */
};

enum store_reducer {
    REDUCE_APPEND_ALL,        /* adds the event */
    REDUCE_REPLACE_LATEST,    /* the event is all there is */
    REDUCE_UPSERT_BY,         /* drops items of the same key, adds the event at the end */
    REDUCE_REPLACE_LATEST_BY, /* the same, under its other name */
};

struct store_rule {
    struct str event;
    struct str slice;
    enum store_reducer reducer;
    struct str key; /* JSON pointer into event and items, for the …_BY reducers */
};

enum store_change_kind { CHANGE_APPEND, CHANGE_EXTEND, CHANGE_REPLACE, CHANGE_CLEAR };

/* A change without a reducer. APPEND takes one value, EXTEND and REPLACE an array of them. CLEAR
 * without a key drops everything, else the items whose value at `key` equals `value`. */
struct store_change {
    enum store_change_kind kind;
    struct str slice;
    const struct json *value;
    struct str key;
};

struct store_opts {
    struct str id;
    struct str created_at; /* RFC 3339 */
    struct str parent_id;  /* empty: none */
    int journal_fd;        /* opened for appending, stays the caller's; -1: none */
    /* What goes to the journal passes it; borrowed, may be NULL. */
    const struct redactor *redactor;
};

#define SESSION_SLICES_MAX 256
#define SESSION_RULES_MAX  256

struct state_store *store_new(const struct store_opts *o);
struct state_store *store_free(struct state_store *s); /* accepts NULL, returns NULL */

/* ERR_EXISTS when it is there with another policy, ERR_LIMIT beyond SESSION_SLICES_MAX, ERR_USAGE
 * for a name that is empty or holds a NUL. Declaring again with the same policy is no error. */
int store_declare(struct state_store *s, struct str slice, enum slice_policy policy,
                  struct err *e) MUST_USE;
/* ERR_CONFIG for a …_BY reducer without a key and for a rule that is there already. Declares the
 * slice (STATE) if it is not known. */
int store_reduce(struct state_store *s, const struct store_rule *rule, struct err *e) MUST_USE;
bool store_reducer_parse(struct str name, enum store_reducer *ret);
/* false: not declared. */
bool store_policy(const struct state_store *s, struct str slice, enum slice_policy *ret);

/* --- changing, each a commit of its own --- */
int store_dispatch(struct state_store *s, struct str event, const struct json *value,
                   struct err *e) MUST_USE;
int store_apply(struct state_store *s, const struct store_change *c, struct err *e) MUST_USE;

/* --- changing within a call --- */
struct store_txn *store_begin(struct state_store *s);
int store_txn_dispatch(struct store_txn *t, struct str event, const struct json *value,
                       struct err *e) MUST_USE;
int store_txn_apply(struct store_txn *t, const struct store_change *c, struct err *e) MUST_USE;
/* The changes happen in the session, in their order, on what is there now: others may have
 * committed meanwhile. Ends the transaction also when writing the journal failed (ERR_OUTPUT), in
 * which case nothing was changed. */
int store_commit(struct store_txn *t, struct err *e) MUST_USE;
/* Only the changes to LOG slices happen. */
int store_abort(struct store_txn *t, struct err *e) MUST_USE;

/* --- reading; t NULL: the session as committed --- */
size_t store_len(const struct state_store *s, const struct store_txn *t, struct str slice);
/* NULL beyond the end. */
const struct json *store_item(const struct state_store *s, const struct store_txn *t,
                              struct str slice, size_t i);
const struct json *store_latest(const struct state_store *s, const struct store_txn *t,
                                struct str slice);

/* --- moments --- */
struct store_moment {
    const struct store_table *table;
};
struct store_moment store_snapshot(struct state_store *s);
/* Slices born after the moment are empty again; LOG slices stay as they are if `keep_logs`. The
 * journal gets the whole state, so that a replay ends where the session stands. */
int store_restore(struct state_store *s, struct store_moment m, bool keep_logs,
                  struct err *e) MUST_USE;

/* {"version":"1","created_at",…,"slices":[{slice_type,item_type,items}],"tags","policies"}: slices
 * sorted by name, empty ones left out; LOG slices only if `all`. */
struct json *store_save(const struct state_store *s, struct arena *a, struct str now, bool all);
/* ERR_PARSE for what is no such document or has another version; ERR_CONFIG naming the slices that
 * are not declared. Nothing is changed then. */
int store_load(struct state_store *s, const struct json *saved, struct err *e) MUST_USE;

/* Text of a journal: applies each complete line. A last line without its end is ignored (the writer
 * was killed), any other bad line is ERR_PARSE with its number. Writes no journal. */
int store_replay(struct state_store *s, struct str journal, struct err *e) MUST_USE;
