/* SPDX-License-Identifier: MIT
 *
 * Estimates for one arm of an evaluation: success rates, their uncertainty, and what a success
 * costs. Everything here is a pure function; an estimate that is not defined for its input (no
 * attempts, one cluster, no success) is NaN, never 0 and never infinite: see stats_defined().
 *
 * A *task* is tried several times; its attempts share a cluster, because they succeed and fail
 * together. Averages over tasks give each task the same weight.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct stats_interval {
    double low;
    double high;
};

/* The attempts at one task: how many, and how many of them passed. */
struct stats_attempts {
    size_t total;
    size_t passed;
};

/* Observations that belong together: values[0..count). */
struct stats_cluster {
    const double *values;
    size_t count;
};

bool stats_defined(double x);

/* The probability that at least one (pass@k) or each (pass^k) of `k` attempts drawn without
 * replacement passes. Undefined where k is 0 or greater than the number of attempts. */
double stats_pass_at_k(struct stats_attempts a, size_t k);
double stats_pass_all_k(struct stats_attempts a, size_t k);

/* The average of one of them over the tasks for which it is defined. `*used` (may be NULL) gets the
 * number of those tasks. */
double stats_mean_over_tasks(const struct stats_attempts *tasks, size_t count, size_t k,
                             double (*estimate)(struct stats_attempts, size_t), size_t *used);

/* The share of pairs of attempts at one task that disagree. Undefined below two attempts. */
double stats_flip_rate(struct stats_attempts a);

/* Wilson's score interval for a proportion; `level` is 0.95 for a 95 % interval. */
struct stats_interval stats_wilson(size_t passed, size_t total, double level);

double stats_mean(const double *x, size_t n);
double stats_variance(const double *x, size_t n); /* divides by n - 1; undefined below 2 */
double stats_quantile(const double *sorted, size_t n, double p); /* linear interpolation */

/* The mean of all observations and its standard error. The clustered one adds up the deviations of
 * each cluster first and is corrected by C / (C - 1); undefined below two clusters. */
double stats_cluster_mean(const struct stats_cluster *clusters, size_t count);
double stats_cluster_error(const struct stats_cluster *clusters, size_t count);

/* mean +- t * error with `df` degrees of freedom (clusters - 1, tasks - 1). */
struct stats_interval stats_t_interval(double mean, double error, double df, double level);

/* Cost per success: the average cost of an attempt divided by the pass rate. Undefined where
 * nothing passed. */
double stats_cost_of_pass(double cost_per_attempt, double pass_rate);

/* A point of the plane of cost and success. */
struct stats_point {
    double cost;
    double success;
    bool best; /* no other point is at least as good in both and better in one */
};

/* Sets `best` of each point. Points that are not defined are never best. */
void stats_mark_pareto_front(struct stats_point *points, size_t count);
