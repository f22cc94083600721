/* SPDX-License-Identifier: MIT
 *
 * Probability distributions for the estimators and tests of an evaluation: pure functions of
 * doubles, accurate to about 1e-12 relative error where the result is not itself subject to
 * cancellation. tests/unit/eval/statistics_against_scipy.py compares them with scipy.
 *
 * Arguments outside a distribution's domain (a NaN, a probability outside [0, 1], degrees of
 * freedom that are not positive) give NaN, so that a mistake stays visible in the result.
 */
#pragma once

/* Standard normal distribution. The quantile of 0 is -INFINITY, of 1 INFINITY. */
double stats_normal_cdf(double x);
double stats_normal_sf(double x); /* 1 - cdf, accurate in the upper tail */
double stats_normal_quantile(double p);

/* Student's t distribution with `df` degrees of freedom (any positive number). */
double stats_student_sf(double t, double df);
double stats_student_quantile(double p, double df);

/* The upper tail of the chi-squared distribution with `df` degrees of freedom. */
double stats_chi2_sf(double x, double df);

/* Regularised incomplete beta function I_x(a, b): the distribution function of Beta(a, b). */
double stats_beta_cdf(double x, double a, double b);

/* Binomial distribution of `n` trials with probability `p`. */
double stats_binomial_pmf(long k, long n, double p);
double stats_binomial_cdf(long k, long n, double p);
