/* SPDX-License-Identifier: MIT
 *
 * Works on the matrix of coincidences between distinct ratings, which is small: judges give grades
 * or scores of a few digits.
 */
#include "eval/stats_agreement.h"

#include <math.h>
#include <stdlib.h>

#include "base/arena.h"

struct table {
    double *value;       /* the distinct ratings, sorted */
    double *coincidence; /* size x size */
    double *marginal;    /* sums of its rows */
    size_t size;
    double total;
};

static int compare_doubles(const void *x, const void *y)
{
    double a = *(const double *)x;
    double b = *(const double *)y;
    return (a > b) - (a < b);
}

static size_t count_ratings(const double *unit, size_t judges)
{
    size_t n = 0;
    for (size_t i = 0; i < judges; i++) {
        n += !isnan(unit[i]);
    }
    return n;
}

static void collect_values(struct table *t, const double *ratings, size_t units, size_t judges)
{
    size_t n = 0;
    for (size_t u = 0; u < units; u++) {
        const double *unit = ratings + u * judges;
        for (size_t i = 0; count_ratings(unit, judges) >= 2 && i < judges; i++) {
            if (!isnan(unit[i])) {
                t->value[n++] = unit[i];
            }
        }
    }
    qsort(t->value, n, sizeof(*t->value), compare_doubles);
    for (size_t i = 0; i < n; i++) {
        if (t->size == 0 || t->value[i] != t->value[t->size - 1]) {
            t->value[t->size++] = t->value[i];
        }
    }
}

static size_t find_value(const struct table *t, double value)
{
    const double *found = bsearch(&value, t->value, t->size, sizeof(*t->value), compare_doubles);
    return (size_t)(found - t->value);
}

static void add_unit(struct table *t, const double *unit, size_t judges)
{
    size_t n = count_ratings(unit, judges);
    if (n < 2) {
        return;
    }
    for (size_t i = 0; i < judges; i++) {
        for (size_t j = 0; j < judges; j++) {
            if (i != j && !isnan(unit[i]) && !isnan(unit[j])) {
                size_t row = find_value(t, unit[i]);
                double weight = 1 / (double)(n - 1);
                t->coincidence[row * t->size + find_value(t, unit[j])] += weight;
                t->marginal[row] += weight;
                t->total += weight;
            }
        }
    }
}

/* The squared distance between the distinct ratings a < b. */
static double squared_distance(const struct table *t, size_t a, size_t b, enum stats_scale scale)
{
    double d = 1;
    if (scale == STATS_INTERVAL) {
        d = t->value[b] - t->value[a];
    } else if (scale == STATS_ORDINAL) {
        d = -(t->marginal[a] + t->marginal[b]) / 2;
        for (size_t i = a; i <= b; i++) {
            d += t->marginal[i];
        }
    }
    return d * d;
}

double stats_krippendorff(const double *ratings, size_t units, size_t judges,
                          enum stats_scale scale)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct table t = { .value = arena_array(a, units * judges + 1, sizeof(double)) };
    collect_values(&t, ratings, units, judges);
    t.coincidence = arena_array(a, t.size * t.size + 1, sizeof(double));
    t.marginal = arena_array(a, t.size + 1, sizeof(double));
    for (size_t u = 0; u < units; u++) {
        add_unit(&t, ratings + u * judges, judges);
    }
    double observed = 0;
    double expected = 0;
    for (size_t i = 0; i < t.size; i++) {
        for (size_t j = i + 1; j < t.size; j++) {
            double distance = squared_distance(&t, i, j, scale);
            observed += t.coincidence[i * t.size + j] * distance;
            expected += t.marginal[i] * t.marginal[j] * distance;
        }
    }
    return expected > 0 ? 1 - (t.total - 1) * observed / expected : NAN;
}
