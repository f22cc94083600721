/* SPDX-License-Identifier: MIT
 *
 * struct scenario_run: one scenario on one adapter. It has its own directory, where it creates the
 * files that the scenario gives, executes `cinch run` for each run of the scenario as a user would,
 * and checks the records.
 *
 *   scenario_run_start(loop, &(struct scenario_run_opts){ … }, &t, e);   calls on_done once
 *   scenario_run_free(t);                                stops what is still running
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
struct scenario_run;

enum { SCENARIO_RUN_READS_MAX = 32 };

struct scenario_run_opts {
    const struct scenario *scenario;
    const struct profile *adapter;
    const char *adapter_name;        /* as on the command line: "codex", "exec:/x/y" */
    const char *const *adapter_dirs; /* NULL-terminated; may be NULL */
    const char *model;               /* NULL: the adapter's own */
    const struct json *command;      /* words, for an adapter that has no program; NULL: none */
    const char *const *reads;   /* of the host, that it may see; at most SCENARIO_RUN_READS_MAX */
    const char *const *secrets; /* variables that it needs; NULL-terminated, may be NULL */
    bool live;                  /* the model is the adapter's provider, no script */
    double max_usd;             /* live: for all of its runs together; 0: not limited */
    const char *dir;            /* new, for this trial alone */
    nsec timeout;               /* of one run */
    const char *const *environ;
    /* From the loop. The verdict's strings live as long as the trial. */
    void (*on_done)(void *arg, const struct verdict *v);
    void *arg;
};

int scenario_run_start(struct loop *l, const struct scenario_run_opts *o, struct scenario_run **ret,
                       struct err *e) MUST_USE;
struct scenario_run *scenario_run_free(struct scenario_run *t); /* accepts NULL, returns NULL */

/* What `cinch run` is given of the caller's environment: without a live model hardly anything, with
 * `home` as its home. An image keeps what its engine needs, its home among it: images are there. */
const char **scenario_run_environment(struct arena *a, const struct scenario_run_opts *o,
                                      const char *home);
