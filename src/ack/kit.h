/* SPDX-License-Identifier: MIT
 *
 * The kit: all scenarios on all adapters that were asked for.
 *
 *   struct kit_report report;
 *   kit_run(arena, &opts, &report, e);
 *   report_json(&report, fd, e); …                        ack/report.h
 *   return kit_failed(&report) ? 1 : 0;
 *
 * Blocks until all trials have come to an end; SIGINT and SIGTERM end those under way, and the
 * report has the rest as skipped. Scenarios are tried adapter by adapter in the order of the table,
 * or in one of chance, `jobs` at a time; before all of them, adapter by adapter, the checks of the
 * file contract (ack/contract_scenarios.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ack/contract_check.h"
#include "ack/scenario.h"
#include "ack/scenario_run.h"
#include "ack/verdict.h"
#include "adapters/profile.h"
#include "base/arena.h"
#include "base/err.h"

/* An adapter that was asked for. */
struct kit_adapter {
    const char *name;
    const struct profile *profile;
    const char *model;          /* of the command line or the environment; NULL: its own */
    const struct json *command; /* words, where the profile has no program; NULL: none */
    bool available;
    const char *why_not; /* "claude is not in PATH: npm install -g …" */
    const char *version;
    const char *untested; /* sentence: the profile was never tested on this version; NULL: it was */
    const char *path;     /* directories before those of PATH, with colons; NULL: none */
    const char *program;  /* found by kit_probe(); NULL: none */
};

/* For who shows how it goes on; all may be NULL. */
struct kit_watcher {
    void (*begin)(void *owner, size_t trials); /* how many there will be, skipped ones included */
    void (*start)(void *owner, const char *adapter, const struct scenario *s);
    /* Also for what is skipped, which never starts; not when a flaky one is tried again. */
    void (*done)(void *owner, const struct verdict *v);
    void (*tick)(void *owner); /* a few times a second */
    void *owner;
};

/* Runs a scenario: scenario_run_start() and scenario_run_free() of ack/scenario_run.h, or the
 * functions of a test. */
struct kit_engine {
    int (*start)(struct loop *l, const struct scenario_run_opts *o, struct scenario_run **ret,
                 struct err *e);
    struct scenario_run *(*free)(struct scenario_run *t);
    /* contract_check() of ack/contract_check.h; may be NULL where no scenario is such a check. */
    int (*contract)(struct arena *a, const struct contract_opts *o, struct contract_report *ret,
                    struct err *e);
};

/* Of a caller who heard signals before the kit does. It asks him when it does, so that none is
 * lost between the two: the one that came, or 0. */
struct kit_ears {
    int (*heard)(void *owner); /* may be NULL */
    void *owner;
};

struct kit_opts {
    struct kit_engine engine;
    struct kit_adapter *adapters;
    size_t adapters_len;
    const char *const *adapter_dirs; /* NULL-terminated */
    struct scenario_list scenarios;  /* those that were chosen */
    struct scenario_list known;      /* of all there are; for the file of expected failures */
    const char *const *reads;        /* paths that adapters may see, see trial.h; may be NULL */
    const char *const *secrets;      /* that adapters need, see trial.h; may be NULL */
    bool live;
    double max_usd; /* live: for all runs together, which are then one after the other; 0: none */
    unsigned jobs;
    bool shuffle; /* the order is drawn by `seed`, always the same for the same one */
    uint64_t seed;
    nsec timeout; /* of one scenario that has none of its own */
    /* Where trials work: missing, or empty. Each has DIR/ADAPTER/SCENARIO, which is made before it
     * starts and removed after, but for those that failed. */
    const char *dir;
    bool keep;            /* all of them */
    const char *expected; /* file of expected failures; NULL: none */
    const char *const *environ;
    struct kit_watcher watcher;
    struct kit_ears ears;
};

struct kit_report {
    const struct kit_adapter *adapters;
    size_t adapters_len;
    const struct verdict *verdicts; /* adapter by adapter, in the order of the table */
    size_t len;
    size_t count[VERDICT_COUNT];
    nsec took;
    char started_at[32];
    bool interrupted;
    int signo; /* by this signal */
    bool live;
    double cost_usd, max_usd; /* live */
    /* Entries of the file of expected failures that match nothing that was asked for. First those
     * whose scenario is none at all, which count as failures. */
    const char *const *stale;
    size_t stale_len, gone_len;
};

int kit_run(struct arena *a, const struct kit_opts *o, struct kit_report *ret,
            struct err *e) MUST_USE;
bool kit_failed(const struct kit_report *r);

/* Is the adapter's program here, and which version? Fills available, why_not and version. Blocks
 * for at most a minute, if the program does not answer to --version. ERR_CANCELLED as in
 * proc/probe.h. */
int kit_probe(struct arena *a, struct kit_adapter *adapter, const char *const *env,
              struct err *e) MUST_USE;
