/* SPDX-License-Identifier: MIT
 *
 * Planning an evaluation before money is spent: how many tasks a difference needs, and which
 * difference a number of tasks can show. `alpha` is two-sided. Results are real numbers; round
 * sample sizes up. Undefined input gives NaN.
 */
#pragma once

#include <stddef.h>

struct stats_plan {
    double alpha; /* 0.05 */
    double power; /* 0.80 */
};

/* Tasks per arm to tell the pass rates p1 and p2 apart on different tasks. */
double stats_tasks_unpaired(double p1, double p2, struct stats_plan plan);

/* Tasks to find a difference of pass rates on the same tasks, where `discordant` is the share of
 * tasks on which the arms disagree (McNemar's test). */
double stats_tasks_paired(double discordant, double difference, struct stats_plan plan);

/* The power of the paired test with `tasks` tasks. */
double stats_power_paired(double tasks, double discordant, double difference, double alpha);

/* The smallest difference of means that `tasks` tasks show, where `sd` is the standard deviation of
 * the difference of one task. */
double stats_detectable_difference(double tasks, double sd, struct stats_plan plan);

/* By how much clusters of `size` attempts with the given correlation inflate the variance. */
double stats_design_effect(double size, double correlation);

/* Looking at results before the end: critical values of |z| for looks at the shares
 * information[0..looks) of the planned data (the last at most 1), with O'Brien and Fleming's
 * spending function (Lan and DeMets). Stopping at the first |z| above its bound keeps the error of
 * the whole evaluation at `alpha`. Returns 0, or -1 if looks are less than STATS_LOOK_APART of the
 * data apart, or more than STATS_LOOKS_MAX. */
enum { STATS_LOOKS_MAX = 50 };
#define STATS_LOOK_APART 0.001
int stats_sequential_bounds(const double *information, size_t looks, double alpha, double *bounds);
