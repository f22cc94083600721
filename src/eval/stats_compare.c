/* SPDX-License-Identifier: MIT
 *
 * Tests that rank observations pool the groups, sort once and sum the ranks of each group.
 */
#include "eval/stats_compare.h"

#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "eval/stats_distribution.h"

struct stats_paired stats_paired_test(const double *x, const double *y, size_t n)
{
    CLEANUP(arena) struct arena *a = arena_new();
    double *d = arena_array(a, n + 1, sizeof(*d));
    for (size_t i = 0; i < n; i++) {
        d[i] = x[i] - y[i];
    }
    struct stats_paired r = { .difference = stats_mean(d, n), .df = (double)n - 1 };
    r.error = sqrt(stats_variance(d, n) / (double)n);
    if (r.error == 0) {
        r.t = r.difference == 0 ? 0 : copysign(INFINITY, r.difference);
    } else {
        r.t = r.difference / r.error;
    }
    r.p = n < 2 ? NAN : 2 * stats_student_sf(fabs(r.t), r.df);
    return r;
}

/* Twice the tail of the binomial distribution with p = 1/2, less `weight` times its last point. */
static double discordant_tail(size_t b, size_t c, double weight)
{
    long n = (long)(b + c);
    long smaller = (long)(b < c ? b : c);
    if (n == 0) {
        return 1;
    }
    double tail = stats_binomial_cdf(smaller, n, 0.5);
    return fmin(1, 2 * tail - weight * stats_binomial_pmf(smaller, n, 0.5));
}

double stats_mcnemar_exact(size_t b, size_t c)
{
    return discordant_tail(b, c, 0);
}

double stats_mcnemar_mid_p(size_t b, size_t c)
{
    return discordant_tail(b, c, 1);
}

/* One observation of a pooled sample. */
struct ranked {
    double value;
    size_t group;
};

static int compare_ranked(const void *x, const void *y)
{
    double a = ((const struct ranked *)x)->value;
    double b = ((const struct ranked *)y)->value;
    return (a > b) - (a < b);
}

/* Sorts the pool, adds each observation's mean rank to its group's sum, and returns the sum of
 * t^3 - t over runs of t equal values. */
static double sum_ranks(struct ranked *pool, size_t n, double *sums)
{
    double ties = 0;
    qsort(pool, n, sizeof(*pool), compare_ranked);
    for (size_t i = 0; i < n;) {
        size_t end = i + 1;
        while (end < n && pool[end].value == pool[i].value) {
            end++;
        }
        double run = (double)(end - i);
        double rank = (double)(i + 1 + end) / 2;
        for (; i < end; i++) {
            sums[pool[i].group] += rank;
        }
        ties += run * run * run - run;
    }
    return ties;
}

static struct ranked *pool_groups(struct arena *a, const struct stats_cluster *groups, size_t count,
                                  size_t *total)
{
    *total = 0;
    for (size_t i = 0; i < count; i++) {
        *total += groups[i].count;
    }
    struct ranked *pool = arena_array(a, *total + 1, sizeof(*pool));
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < groups[i].count; j++) {
            pool[n++] = (struct ranked) { groups[i].values[j], i };
        }
    }
    return pool;
}

static bool has_nan(const struct ranked *pool, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (isnan(pool[i].value)) {
            return true;
        }
    }
    return false;
}

struct stats_rank_test stats_mann_whitney(const double *x, size_t nx, const double *y, size_t ny)
{
    CLEANUP(arena) struct arena *a = arena_new();
    const struct stats_cluster groups[] = { { x, nx }, { y, ny } };
    size_t n = 0;
    struct ranked *pool = pool_groups(a, groups, 2, &n);
    if (nx == 0 || ny == 0 || has_nan(pool, n)) {
        return (struct stats_rank_test) { NAN, NAN };
    }
    double sums[2] = { 0, 0 };
    double ties = sum_ranks(pool, n, sums);
    double size = (double)n;
    double pairs = (double)nx * (double)ny;
    double u = sums[0] - (double)nx * ((double)nx + 1) / 2;
    double spread = sqrt(pairs / 12 * (size + 1 - ties / (size * (size - 1))));
    double larger = fmax(u, pairs - u);
    double z = (larger - pairs / 2 - 0.5) / spread;
    return (struct stats_rank_test) { u, spread > 0 ? fmin(1, 2 * stats_normal_sf(z)) : 1 };
}

struct stats_kruskal stats_kruskal_wallis(const struct stats_cluster *groups, size_t count)
{
    CLEANUP(arena) struct arena *a = arena_new();
    size_t n = 0;
    struct ranked *pool = pool_groups(a, groups, count, &n);
    double *sums = arena_array(a, count + 1, sizeof(*sums));
    bool empty = count < 2;
    for (size_t i = 0; i < count; i++) {
        empty = empty || groups[i].count == 0;
    }
    if (empty || has_nan(pool, n)) {
        return (struct stats_kruskal) { NAN, NAN };
    }
    double ties = sum_ranks(pool, n, sums);
    double size = (double)n;
    double correction = 1 - ties / (size * size * size - size);
    if (!(correction > 0)) { /* all values are equal */
        return (struct stats_kruskal) { NAN, NAN };
    }
    double weighted = 0;
    for (size_t i = 0; i < count; i++) {
        weighted += sums[i] * sums[i] / (double)groups[i].count;
    }
    double h = (12 / (size * (size + 1)) * weighted - 3 * (size + 1)) / correction;
    return (struct stats_kruskal) { h, stats_chi2_sf(h, (double)count - 1) };
}

double stats_cliff_delta(const double *x, size_t nx, const double *y, size_t ny)
{
    /* Twice U is an integer: the difference is exact, so that equal samples have equal deltas. */
    double pairs = (double)nx * (double)ny;
    return (2 * stats_mann_whitney(x, nx, y, ny).u - pairs) / pairs;
}

struct indexed {
    double p;
    size_t index;
};

static int compare_indexed(const void *x, const void *y)
{
    double a = ((const struct indexed *)x)->p;
    double b = ((const struct indexed *)y)->p;
    return (a > b) - (a < b);
}

static struct indexed *sort_p_values(struct arena *a, const double *p, size_t n)
{
    struct indexed *order = arena_array(a, n + 1, sizeof(*order));
    for (size_t i = 0; i < n; i++) {
        order[i] = (struct indexed) { p[i], i };
    }
    qsort(order, n, sizeof(*order), compare_indexed);
    return order;
}

void stats_adjust_holm(const double *p, size_t n, double *adjusted)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct indexed *order = sort_p_values(a, p, n);
    double largest = 0;
    for (size_t i = 0; i < n; i++) {
        largest = fmax(largest, fmin(1, (double)(n - i) * order[i].p));
        adjusted[order[i].index] = largest;
    }
}

void stats_adjust_benjamini_hochberg(const double *p, size_t n, double *adjusted)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct indexed *order = sort_p_values(a, p, n);
    double smallest = 1;
    for (size_t i = n; i-- > 0;) {
        smallest = fmin(smallest, order[i].p * (double)n / (double)(i + 1));
        adjusted[order[i].index] = smallest;
    }
}

enum stats_verdict stats_judge_difference(struct stats_interval difference, size_t tasks,
                                          size_t planned)
{
    if (difference.low > 0) {
        return STATS_BETTER;
    }
    if (difference.high < 0) {
        return STATS_WORSE;
    }
    bool known = stats_defined(difference.low) && stats_defined(difference.high);
    return !known || tasks < planned ? STATS_TOO_FEW : STATS_NOT_DECIDED;
}

const char *stats_verdict_text(enum stats_verdict v)
{
    static const char *const text[] = { "better", "worse", "not decided", "too few" };
    return text[v];
}
