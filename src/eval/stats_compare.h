/* SPDX-License-Identifier: MIT
 *
 * Comparing arms of an evaluation: tests of hypotheses, effect sizes, corrections for several
 * comparisons, and the verdict in words. All p-values are two-sided. What is not defined for its
 * input is NaN.
 */
#pragma once

#include <stddef.h>

#include "eval/stats_estimate.h"

/* The paired t test of x - y; one pair per task (average its attempts first). */
struct stats_paired {
    double difference; /* mean of x - y */
    double error;      /* its standard error */
    double t;
    double df;
    double p;
};
struct stats_paired stats_paired_test(const double *x, const double *y, size_t n);

/* McNemar's test on the numbers of discordant pairs: tasks that only the first (b) or only the
 * second (c) arm passed. Without any, both are 1. */
double stats_mcnemar_exact(size_t b, size_t c);
double stats_mcnemar_mid_p(size_t b, size_t c);

/* Mann and Whitney's rank test: normal approximation, corrected for ties and continuity. `u` is
 * that of the first sample. If all values are equal, p is 1. */
struct stats_rank_test {
    double u;
    double p;
};
struct stats_rank_test stats_mann_whitney(const double *x, size_t nx, const double *y, size_t ny);

/* Kruskal and Wallis' test of several groups, corrected for ties. */
struct stats_kruskal {
    double h;
    double p;
};
struct stats_kruskal stats_kruskal_wallis(const struct stats_cluster *groups, size_t count);

/* Cliff's delta: P(x > y) - P(x < y), from -1 to 1. */
double stats_cliff_delta(const double *x, size_t nx, const double *y, size_t ny);

/* Adjusted p-values, in the order of the input; `adjusted` may be `p`. */
void stats_adjust_holm(const double *p, size_t n, double *adjusted);
void stats_adjust_benjamini_hochberg(const double *p, size_t n, double *adjusted);

/* What an interval of the difference says. `planned` is the number of tasks that the plan asked
 * for; with fewer than that an interval that contains 0 says "too few", not "not decided". */
enum stats_verdict { STATS_BETTER, STATS_WORSE, STATS_NOT_DECIDED, STATS_TOO_FEW };
enum stats_verdict stats_judge_difference(struct stats_interval difference, size_t tasks,
                                          size_t planned);
const char *stats_verdict_text(enum stats_verdict v); /* "better", "not decided", … */
