/* SPDX-License-Identifier: MIT
 *
 * struct trial: one scenario on one adapter. Has a directory of its own, where it lays out what is
 * given, runs `cinch run` for each run of the scenario as a user would, and holds the records
 * against what must be true.
 *
 *   trial_start(loop, &(struct trial_opts){ … }, &t, e);   on_done comes once, from the loop
 *   trial_free(t);                                          ends what still runs
 *
 * Whatever goes wrong in between is a verdict, too, never a silent pass. Held for every trial, on
 * top of what the scenario says: the workspace is byte for byte what it was, no process is left,
 * nothing was written beside the run directory and the view.
 */
#pragma once

#include "ack/scenario.h"
#include "ack/verdict.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"

struct loop;
struct profile;
struct trial;

enum { TRIAL_READS_MAX = 32 };

struct trial_opts {
    const struct scenario *scenario;
    const struct profile *adapter;
    const char *adapter_name;        /* as on the command line: "codex", "exec:/x/y" */
    const char *const *adapter_dirs; /* NULL-terminated; may be NULL */
    const char *model;               /* NULL: the adapter's own */
    const struct json *command;      /* words, for an adapter that has no program; NULL: none */
    const char *const *reads;        /* of the host, that it may see; at most TRIAL_READS_MAX */
    const char *const *secrets;      /* variables that it needs; NULL-terminated, may be NULL */
    bool live;                       /* the model is the adapter's provider, no script */
    const char *dir;                 /* new, for this trial alone */
    nsec timeout;                    /* of one run */
    const char *const *environ;
    /* From the loop. The verdict's strings live as long as the trial. */
    void (*on_done)(void *arg, const struct verdict *v);
    void *arg;
};

int trial_start(struct loop *l, const struct trial_opts *o, struct trial **ret,
                struct err *e) MUST_USE;
struct trial *trial_free(struct trial *t); /* accepts NULL, returns NULL */

/* What `cinch run` is given of the caller's environment: without a live model hardly anything, with
 * `home` as its home. An image keeps what its engine needs, its home among it: images are there. */
const char **trial_environment(struct arena *a, const struct trial_opts *o, const char *home);
