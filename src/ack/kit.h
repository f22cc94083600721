/* SPDX-License-Identifier: MIT
 *
 * The kit: all scenarios on all adapters that were asked for.
 *
 *   struct kit_report report;
 *   kit_run(arena, &opts, &report, e);
 *   report_json(&report, fd, e); …                        ack/report.h
 *   return kit_failed(&report) ? 1 : 0;
 *
 * Blocks until all trials have come to an end; SIGINT ends those under way, and the report has the
 * rest as skipped. Scenarios are tried in the order of the table, `jobs` at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "ack/scenario.h"
#include "ack/verdict.h"
#include "adapters/profile.h"
#include "base/arena.h"
#include "base/err.h"

/* An adapter that was asked for. */
struct kit_adapter {
    const char *name;
    const struct profile *profile;
    const char *model;   /* of the command line or the environment; NULL: its own */
    bool available;
    const char *why_not; /* "claude is not in PATH: npm install -g …" */
    const char *version;
};

struct kit_watcher {
    void (*begin)(void *owner, size_t trials); /* how many there will be, skipped ones included */
    void (*start)(void *owner, const char *adapter, const struct scenario *s);
    void (*done)(void *owner, const struct verdict *v);
    void *owner;
};

struct kit_opts {
    struct kit_adapter *adapters;
    size_t adapters_len;
    const char *const *adapter_dirs; /* NULL-terminated */
    struct scenario_list scenarios;  /* those that were chosen */
    bool live;
    unsigned jobs;
    nsec timeout; /* of one scenario that has none of its own */
    const char *dir;      /* where trials work; removed but for those that failed */
    bool keep;            /* all of them */
    const char *expected; /* file of expected failures; NULL: none */
    const char *const *environ;
    struct kit_watcher watcher;
};

struct kit_report {
    const struct kit_adapter *adapters;
    size_t adapters_len;
    const struct verdict *verdicts; /* adapter by adapter, in the order of the table */
    size_t len;
    size_t count[VERDICT_FLAKY + 1];
    nsec took;
    char started_at[32];
    bool interrupted;
    /* Entries of the file of expected failures that name what does not exist. */
    const char *const *stale;
    size_t stale_len;
};

int kit_run(struct arena *a, const struct kit_opts *o, struct kit_report *ret,
            struct err *e) MUST_USE;
bool kit_failed(const struct kit_report *r);

/* Is the adapter's program here, and which version? Fills available, why_not and version. */
int kit_probe(struct arena *a, struct kit_adapter *adapter, const char *const *environ,
              struct err *e) MUST_USE;
