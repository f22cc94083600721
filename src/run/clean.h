/* SPDX-License-Identifier: MIT
 *
 * What runs leave on disk, and getting rid of it.
 *
 *   struct clean_item item;
 *   clean_run(arena, "out", &(struct clean_opts){ .dry_run = true }, &item, e);
 *   … item.work_bytes would be freed …
 *
 * A run that is alive is never touched. The workspace and the home of an ended run go; its record
 * (the directory itself) only when asked for. A run whose process died is closed first, as
 * `cinch recover` does it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

struct clean_opts {
    bool records;       /* remove the whole directory */
    int64_t older_than; /* wall clock: only runs that ended before; 0: all */
    bool dry_run;
};

enum clean_action { CLEAN_NOTHING, CLEAN_WORKSPACE, CLEAN_RECORD };

struct clean_item {
    const char *path;
    const char *state; /* "running", "succeeded" …; "" when it is not known */
    bool alive;
    int64_t ended;            /* wall clock; 0: not known */
    int64_t work_bytes;       /* workspace and home, on disk */
    int64_t record_bytes;     /* the rest */
    enum clean_action action; /* what was done, or would be */
};

/* ERR_INPUT when `dir` is no run directory. */
int clean_run(struct arena *a, const char *dir, const struct clean_opts *o, struct clean_item *ret,
              struct err *e) MUST_USE;
