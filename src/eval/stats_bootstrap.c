/* SPDX-License-Identifier: MIT
 *
 * Cliff's delta of a resample costs one pass over its values: they are replaced by their positions
 * among the distinct values once, and a resample only counts positions.
 */
#include "eval/stats_bootstrap.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "eval/stats_compare.h"
#include "eval/stats_distribution.h"

static const struct stats_interval UNDEFINED = { NAN, NAN };

static int compare_doubles(const void *x, const void *y)
{
    double a = *(const double *)x;
    double b = *(const double *)y;
    return (a > b) - (a < b);
}

static void sort_doubles(double *x, size_t n)
{
    qsort(x, n, sizeof(*x), compare_doubles);
}

static void swap_doubles(double *a, double *b)
{
    double t = *a;
    *a = *b;
    *b = t;
}

/* One step of quickselect on x[low..high]: moves values up to `pivot` before those from it on, and
 * sets the ends of both parts. Between them only values equal to the pivot are left. */
static void partition(double *x, ptrdiff_t *low, ptrdiff_t *high, double pivot)
{
    while (*low <= *high) {
        while (x[*low] < pivot) {
            ++*low;
        }
        while (x[*high] > pivot) {
            --*high;
        }
        if (*low <= *high) {
            swap_doubles(&x[(*low)++], &x[(*high)--]);
        }
    }
}

/* Moves the value of rank k to x[k], smaller ones before it and larger ones behind it: a tenth of
 * the time of sorting 10,000 resamples. */
static void select_rank(double *x, size_t n, size_t k)
{
    ptrdiff_t low = 0;
    ptrdiff_t high = (ptrdiff_t)n - 1;
    ptrdiff_t rank = (ptrdiff_t)k;
    while (low < high) {
        ptrdiff_t right = low;
        ptrdiff_t left = high;
        partition(x, &right, &left, x[low + (high - low) / 2]);
        if (rank <= left) {
            high = left;
        } else if (rank >= right) {
            low = right;
        } else {
            return;
        }
    }
}

/* stats_quantile() of values in any order, which it rearranges. */
static double quantile_of(double *x, size_t n, double p)
{
    if (!(p >= 0 && p <= 1)) {
        return NAN;
    }
    size_t below = (size_t)(p * (double)(n - 1));
    select_rank(x, n, below);
    if (below + 1 < n) {
        select_rank(x + below + 1, n - below - 1, 0);
    }
    return stats_quantile(x, n, p);
}

static struct stats_interval percentile_interval(double *resampled,
                                                 const struct stats_resampling *how)
{
    double tail = (1 - how->level) / 2;
    return (struct stats_interval) {
        quantile_of(resampled, how->resamples, tail),
        quantile_of(resampled, how->resamples, 1 - tail),
    };
}

/* The sum of n values drawn from x[0..n). Four sums, because each addition waits for the last one
 * of its chain. */
static double sum_of_draws(const double *x, const uint32_t *indices, size_t n)
{
    double sum[4] = { 0, 0, 0, 0 };
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        for (size_t lane = 0; lane < 4; lane++) {
            sum[lane] += x[indices[i + lane]];
        }
    }
    for (; i < n; i++) {
        sum[0] += x[indices[i]];
    }
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* The percentile interval of the mean of x[0..n). */
static struct stats_interval bootstrap_mean(struct arena *a, const double *x, size_t n,
                                            const struct stats_resampling *how)
{
    double *resampled = arena_array(a, how->resamples + 1, sizeof(*resampled));
    uint32_t *indices = arena_array(a, n + 1, sizeof(*indices));
    if (n == 0 || how->resamples == 0) {
        return UNDEFINED;
    }
    for (size_t i = 0; i < how->resamples; i++) {
        stats_random_indices(how->random, indices, n, n);
        resampled[i] = sum_of_draws(x, indices, n) / (double)n;
    }
    return percentile_interval(resampled, how);
}

struct stats_interval stats_bootstrap_tasks(const struct stats_cluster *tasks, size_t count,
                                            const struct stats_resampling *how)
{
    CLEANUP(arena) struct arena *a = arena_new();
    double *means = arena_array(a, count + 1, sizeof(*means));
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        if (tasks[i].count > 0) {
            means[n++] = stats_mean(tasks[i].values, tasks[i].count);
        }
    }
    return bootstrap_mean(a, means, n, how);
}

struct stats_interval stats_bootstrap_paired(const double *x, const double *y, size_t n,
                                             const struct stats_resampling *how)
{
    CLEANUP(arena) struct arena *a = arena_new();
    double *differences = arena_array(a, n + 1, sizeof(*differences));
    for (size_t i = 0; i < n; i++) {
        differences[i] = x[i] - y[i];
    }
    return bootstrap_mean(a, differences, n, how);
}

/* Both samples as positions among the distinct values of their union. */
struct positions {
    size_t *x;
    size_t *y;
    size_t nx;
    size_t ny;
    size_t distinct;
    size_t *in_x; /* how often a position occurs in a resample of x */
    size_t *in_y;
    uint32_t *drawn; /* indices of one resample */
};

static size_t find_position(const double *sorted, size_t n, double value)
{
    const double *found = bsearch(&value, sorted, n, sizeof(*sorted), compare_doubles);
    return (size_t)(found - sorted);
}

static size_t *replace_values(struct arena *a, struct stats_cluster sample, const double *distinct,
                              size_t n)
{
    size_t *positions = arena_array(a, sample.count + 1, sizeof(*positions));
    for (size_t i = 0; i < sample.count; i++) {
        positions[i] = find_position(distinct, n, sample.values[i]);
    }
    return positions;
}

static struct positions index_values(struct arena *a, struct stats_cluster x,
                                     struct stats_cluster y)
{
    size_t total = x.count + y.count;
    double *values = arena_array(a, total + 1, sizeof(*values));
    memcpy(values, x.values, x.count * sizeof(*values));
    memcpy(values + x.count, y.values, y.count * sizeof(*values));
    sort_doubles(values, total);
    size_t distinct = 0;
    for (size_t i = 0; i < total; i++) {
        if (distinct == 0 || values[i] != values[distinct - 1]) {
            values[distinct++] = values[i];
        }
    }
    return (struct positions) {
        .x = replace_values(a, x, values, distinct),
        .y = replace_values(a, y, values, distinct),
        .nx = x.count,
        .ny = y.count,
        .distinct = distinct,
        .in_x = arena_array(a, distinct + 1, sizeof(size_t)),
        .in_y = arena_array(a, distinct + 1, sizeof(size_t)),
        .drawn = arena_array(a, total + 1, sizeof(uint32_t)),
    };
}

static double delta_of_counts(const struct positions *p)
{
    double sum = 0;
    size_t below = 0;
    for (size_t i = 0; i < p->distinct; i++) {
        size_t above = p->ny - below - p->in_y[i];
        sum += (double)p->in_x[i] * ((double)below - (double)above);
        below += p->in_y[i];
    }
    return sum / ((double)p->nx * (double)p->ny);
}

static double resample_delta(struct positions *p, struct stats_random *random)
{
    memset(p->in_x, 0, p->distinct * sizeof(*p->in_x));
    memset(p->in_y, 0, p->distinct * sizeof(*p->in_y));
    stats_random_indices(random, p->drawn, p->nx, p->nx);
    for (size_t i = 0; i < p->nx; i++) {
        p->in_x[p->x[p->drawn[i]]]++;
    }
    stats_random_indices(random, p->drawn, p->ny, p->ny);
    for (size_t i = 0; i < p->ny; i++) {
        p->in_y[p->y[p->drawn[i]]]++;
    }
    return delta_of_counts(p);
}

/* Sums of powers of one sample's jackknife influences, as the BCa acceleration adds them up. */
struct influence {
    double squares;
    double cubes;
};

/* `wins` of each value of a sample: pairs it wins less pairs it loses, against the other sample. */
static struct influence jackknife(const double *wins, size_t n, size_t other)
{
    struct influence sum = { 0, 0 };
    double mean = stats_mean(wins, n);
    double size = (double)n;
    for (size_t i = 0; i < n && n > 1; i++) {
        /* (n - 1) * (mean of the leave-one-out estimates - the one without value i) */
        double u = (wins[i] - mean) / (double)other;
        sum.squares += u * u / (size * size);
        sum.cubes += u * u * u / (size * size * size);
    }
    return sum;
}

static double *count_wins(struct arena *a, const size_t *mine, size_t n, const size_t *theirs,
                          size_t other, size_t distinct)
{
    size_t *below = arena_array(a, distinct + 2, sizeof(*below)); /* theirs below a position */
    double *wins = arena_array(a, n + 1, sizeof(*wins));
    for (size_t i = 0; i < other; i++) {
        below[theirs[i] + 1]++;
    }
    for (size_t i = 0; i < distinct; i++) {
        below[i + 1] += below[i];
    }
    for (size_t i = 0; i < n; i++) {
        wins[i] = (double)below[mine[i]] - (double)(other - below[mine[i] + 1]);
    }
    return wins;
}

static double find_acceleration(struct arena *a, const struct positions *p)
{
    double *x = count_wins(a, p->x, p->nx, p->y, p->ny, p->distinct);
    double *y = count_wins(a, p->y, p->ny, p->x, p->nx, p->distinct);
    struct influence of_x = jackknife(x, p->nx, p->ny);
    struct influence of_y = jackknife(y, p->ny, p->nx);
    double squares = of_x.squares + of_y.squares;
    /* y counts against delta */
    return squares > 0 ? (of_x.cubes - of_y.cubes) / (6 * pow(squares, 1.5)) : NAN;
}

/* The share of resamples below the estimate; equal ones count half. */
static double find_bias(const double *resampled, size_t n, double estimate)
{
    size_t twice = 0;
    for (size_t i = 0; i < n; i++) {
        twice += (size_t)(resampled[i] < estimate) + (size_t)(resampled[i] <= estimate);
    }
    return stats_normal_quantile((double)twice / (2 * (double)n));
}

static double bca_quantile(double *resampled, size_t n, double bias, double acceleration, double z)
{
    double shifted = bias + z;
    double p = stats_normal_cdf(bias + shifted / (1 - acceleration * shifted));
    return quantile_of(resampled, n, p);
}

struct stats_cliff stats_bootstrap_cliff(struct stats_cluster x, struct stats_cluster y,
                                         const struct stats_resampling *how, double *resampled)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct stats_cliff result = { stats_cliff_delta(x.values, x.count, y.values, y.count),
                                  UNDEFINED };
    if (!stats_defined(result.delta) || how->resamples == 0) {
        return result;
    }
    struct positions p = index_values(a, x, y);
    size_t n = how->resamples;
    double *deltas = resampled != NULL ? resampled : arena_array(a, n, sizeof(*deltas));
    for (size_t i = 0; i < n; i++) {
        deltas[i] = resample_delta(&p, how->random);
    }
    double bias = find_bias(deltas, n, result.delta);
    double acceleration = find_acceleration(a, &p);
    double z = stats_normal_quantile((1 - how->level) / 2);
    if (stats_defined(bias) && stats_defined(acceleration)) {
        result.interval = (struct stats_interval) {
            bca_quantile(deltas, n, bias, acceleration, z),
            bca_quantile(deltas, n, bias, acceleration, -z),
        };
    }
    return result;
}
