/* SPDX-License-Identifier: MIT
 *
 * struct session: what an agent's tools remember during a run, as typed lists ("slices") of JSON
 * values.
 *
 *  1. session_new(&opts), then the slices and reducers that the task declares:
 *       session_declare(s, STR("plan"), SLICE_STATE, e)
 *       session_reduce(s, &(struct session_rule){ .event = …, .slice = …, .reducer = … }, e)
 *  2. session_dispatch(s, type, value, e): an event runs through its reducers; without any it is
 *     appended to the slice of its own name (declared on the way, as STATE).
 *  3. A tool call works on a session_txn: it sees the session as it was at the begin plus its own
 *     changes, nobody sees those before session_commit(), and session_abort() forgets them.
 *     Changes to LOG slices survive an abort: they tell what happened.
 *  4. session_snapshot() takes a moment, session_restore() goes back to it, both without copying.
 *
 * Values are never changed once they are in: a snapshot is a pointer to a table of versions, an
 * append adds behind all of them. Everything lives in the session's arena until session_free().
 * What was replaced is not given back before that: a session lasts as long as a run.
 *
 * Persistence: with a journal (session_opts), every commit appends one line with its changes and
 * session_replay() reads them back, so what was committed survives a kill. session_save() and
 * session_load() speak the interchange format of snapshots, version "1".
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
struct session;
struct session_txn;

enum slice_policy {
    SLICE_STATE, /* rolled back with a failed call, part of a snapshot */
    SLICE_LOG,   /* history: kept whatever happens */
};

enum session_reducer {
    REDUCE_APPEND_ALL,        /* adds the event */
    REDUCE_REPLACE_LATEST,    /* the event is all there is */
    REDUCE_UPSERT_BY,         /* drops items of the same key, adds the event at the end */
    REDUCE_REPLACE_LATEST_BY, /* the same, under its other name */
};

struct session_rule {
    struct str event;
    struct str slice;
    enum session_reducer reducer;
    struct str key; /* JSON pointer into event and items, for the …_BY reducers */
};

enum session_change_kind { CHANGE_APPEND, CHANGE_EXTEND, CHANGE_REPLACE, CHANGE_CLEAR };

/* A change without a reducer. APPEND takes one value, EXTEND and REPLACE an array of them. CLEAR
 * without a key drops everything, else the items whose value at `key` equals `value`. */
struct session_change {
    enum session_change_kind kind;
    struct str slice;
    const struct json *value;
    struct str key;
};

struct session_opts {
    struct str id;
    struct str created_at; /* RFC 3339 */
    struct str parent_id;  /* empty: none */
    int journal_fd;        /* opened for appending, stays the caller's; -1: none */
    /* What goes to the journal passes it; borrowed, may be NULL. */
    const struct redactor *redactor;
};

#define SESSION_SLICES_MAX 256
#define SESSION_RULES_MAX  256

struct session *session_new(const struct session_opts *o);
struct session *session_free(struct session *s); /* accepts NULL, returns NULL */

/* ERR_EXISTS when it is there with another policy, ERR_LIMIT beyond SESSION_SLICES_MAX, ERR_USAGE
 * for a name that is empty or holds a NUL. Declaring again with the same policy is no error. */
int session_declare(struct session *s, struct str slice, enum slice_policy policy,
                    struct err *e) MUST_USE;
/* ERR_CONFIG for a …_BY reducer without a key and for a rule that is there already. Declares the
 * slice (STATE) if it is not known. */
int session_reduce(struct session *s, const struct session_rule *rule, struct err *e) MUST_USE;
bool session_reducer_parse(struct str name, enum session_reducer *ret);
/* false: not declared. */
bool session_policy(const struct session *s, struct str slice, enum slice_policy *ret);

/* --- changing, each a commit of its own --- */
int session_dispatch(struct session *s, struct str event, const struct json *value,
                     struct err *e) MUST_USE;
int session_apply(struct session *s, const struct session_change *c, struct err *e) MUST_USE;

/* --- changing within a call --- */
struct session_txn *session_begin(struct session *s);
int session_txn_dispatch(struct session_txn *t, struct str event, const struct json *value,
                         struct err *e) MUST_USE;
int session_txn_apply(struct session_txn *t, const struct session_change *c,
                      struct err *e) MUST_USE;
/* The changes happen in the session, in their order, on what is there now: others may have
 * committed meanwhile. Ends the transaction also when writing the journal failed (ERR_OUTPUT), in
 * which case nothing was changed. */
int session_commit(struct session_txn *t, struct err *e) MUST_USE;
/* Only the changes to LOG slices happen. */
int session_abort(struct session_txn *t, struct err *e) MUST_USE;

/* --- reading; t NULL: the session as committed --- */
size_t session_len(const struct session *s, const struct session_txn *t, struct str slice);
/* NULL beyond the end. */
const struct json *session_item(const struct session *s, const struct session_txn *t,
                                struct str slice, size_t i);
const struct json *session_latest(const struct session *s, const struct session_txn *t,
                                  struct str slice);

/* --- moments --- */
struct session_moment {
    const struct session_table *table;
};
struct session_moment session_snapshot(struct session *s);
/* Slices born after the moment are empty again; LOG slices stay as they are if `keep_logs`. The
 * journal gets the whole state, so that a replay ends where the session stands. */
int session_restore(struct session *s, struct session_moment m, bool keep_logs,
                    struct err *e) MUST_USE;

/* {"version":"1","created_at",…,"slices":[{slice_type,item_type,items}],"tags","policies"}: slices
 * sorted by name, empty ones left out; LOG slices only if `all`. */
struct json *session_save(const struct session *s, struct arena *a, struct str now, bool all);
/* ERR_PARSE for what is no such document or has another version; ERR_CONFIG naming the slices that
 * are not declared. Nothing is changed then. */
int session_load(struct session *s, const struct json *saved, struct err *e) MUST_USE;

/* Text of a journal: applies each complete line. A last line without its end is ignored (the writer
 * was killed), any other bad line is ERR_PARSE with its number. Writes no journal. */
int session_replay(struct session *s, struct str journal, struct err *e) MUST_USE;
