/* SPDX-License-Identifier: MIT
 *
 * What became of a run's changes: apply/applied.json in its record lists where they were applied.
 *
 *   [{"at": "2026-…", "target": "/home/u/project", "commit": null, "branch": null,
 *     "undo": "apply/…", "undone_at": null}]
 *
 * `undo` names the directory of the record that holds what `cinch apply --undo` needs.
 */
#pragma once

#include "base/err.h"
#include "base/json.h"
#include "record/rundir.h"

#define APPLIED_FILE "apply/applied.json"

struct applied {
    const char *target;
    const char *branch, *commit; /* or NULL */
    const char *undo;            /* relative to the record; NULL: it cannot be undone */
};

/* An empty list if it was never applied. */
struct json *applied_read(const struct rundir *d, struct arena *a);
/* The latest that was not undone, to `target` (NULL: to any); NULL if there is none. */
struct json *applied_latest(struct json *list, const char *target);
int applied_add(const struct rundir *d, struct arena *a, const struct applied *one,
                struct err *e) MUST_USE;
/* `entry` is of the list. */
int applied_mark_undone(const struct rundir *d, struct arena *a, struct json *list,
                        struct json *entry, struct err *e) MUST_USE;
