/* SPDX-License-Identifier: MIT
 *
 * Resampling: intervals for statistics that have no formula. The caller owns the generator, so that
 * a report can print its seed and be repeated.
 *
 * Attempts at one task are not independent, so whole tasks are resampled (the cluster bootstrap); a
 * paired comparison resamples tasks together with both arms' values.
 *
 *   struct stats_random r = stats_random_seed(42);
 *   struct stats_resampling how = { STATS_RESAMPLES, 0.95, &r };
 *   struct stats_interval ci = stats_bootstrap_tasks(tasks, count, &how);
 */
#pragma once

#include <stddef.h>

#include "eval/stats_estimate.h"
#include "eval/stats_random.h"

enum { STATS_RESAMPLES = 10000 };

struct stats_resampling {
    size_t resamples;
    double level; /* 0.95 for a 95 % interval */
    struct stats_random *random;
};

/* The percentile interval of the mean over tasks: tasks are drawn with replacement, each counts
 * with the mean of its attempts. Tasks without attempts are left out; undefined if none is left. */
struct stats_interval stats_bootstrap_tasks(const struct stats_cluster *tasks, size_t count,
                                            const struct stats_resampling *how);

/* The same for the difference of two arms' means; x[i] and y[i] belong to one task. */
struct stats_interval stats_bootstrap_paired(const double *x, const double *y, size_t n,
                                             const struct stats_resampling *how);

/* Cliff's delta with its bias-corrected and accelerated (BCa) interval. The interval is undefined
 * where the resamples do not vary around the estimate. `resampled`, if not NULL, has room for
 * how->resamples values and gets the distribution, in any order. */
struct stats_cliff {
    double delta;
    struct stats_interval interval;
};
struct stats_cliff stats_bootstrap_cliff(struct stats_cluster x, struct stats_cluster y,
                                         const struct stats_resampling *how, double *resampled);
