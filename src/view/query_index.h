/* SPDX-License-Identifier: MIT
 *
 * The index behind `cinch query`: an SQLite file made from the records of some runs, kept in a
 * cache and brought up to date before each query. Run directories are only read; the index can be
 * removed at any time.
 *
 *   struct query_selection s = { .key = "/home/me/runs", .runs = paths, .count = n };
 *   query_index_open(cache_dir, &s, false, &db, e);
 *
 * Only what has changed is read: a run whose files are the same is skipped, and of one that goes on
 * only the new lines are read. Each run is added in a transaction of its own, so several programs
 * may use one index, and one that is killed leaves an index that can be used. A damaged index, or
 * one of another version, is made anew.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct arena;
struct database;

struct query_selection {
    const char *key;         /* names the index: the same runs, the same key */
    const char *const *runs; /* run directories, absolute */
    size_t count;
};

/* $XDG_CACHE_HOME/cinch/query or ~/.cache/cinch/query; NULL: neither is set. */
const char *query_cache_dir(struct arena *a);
/* Opens the index for reading. With `full_text` it has the table transcript_fts. Indexes that were
 * not used for a month, or that make the cache too large, are removed. */
int query_index_open(const char *cache_dir, const struct query_selection *selection, bool full_text,
                     struct database **ret, struct err *e) MUST_USE;
