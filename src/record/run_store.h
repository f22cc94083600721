/* SPDX-License-Identifier: MIT
 *
 * The run store: the directory that holds the records of runs without an output directory of their
 * own. Lists them, and finds a run by the name that a person types:
 *
 *   a path with a '/', "." or ".."     that directory
 *   last, last-1, last-2 …             the newest run of the store, the one before it, …
 *   NAME                               a directory here
 *   an id, or its first or last four or more hex digits, or a directory of the store
 *
 * Reading takes no locks and changes nothing. Everything lives in the arena.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

struct stored_run {
    const char *path;   /* absolute */
    const char *name;   /* of the directory */
    const char *run_id; /* "" if state.json cannot be read */
    int64_t started;    /* wall clock; of the directory if state.json cannot be read */
};

struct run_list {
    struct stored_run *runs; /* newest first */
    size_t count;
};

/* Directories without a state.json or manifest.json are not runs. A store that does not exist is
 * empty. */
int run_store_list(struct arena *a, const char *store, struct run_list *ret,
                   struct err *e) MUST_USE;

/* ERR_INPUT if there is no such run, ERR_USAGE if several match; the message lists them. */
int run_store_find(struct arena *a, const char *store, const char *name, const char **ret_path,
                   struct err *e) MUST_USE;

/* The part of an id that lists show: its last eight digits. */
enum { RUN_SHORT_ID = 8 };
const char *run_short_id(const char *run_id);
