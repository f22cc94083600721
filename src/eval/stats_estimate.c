/* SPDX-License-Identifier: MIT
 *
 * Formulas; each is a few lines, in the order of the header.
 */
#include "eval/stats_estimate.h"

#include <math.h>

#include "eval/stats_distribution.h"

bool stats_defined(double x)
{
    return isfinite(x);
}

double stats_pass_at_k(struct stats_attempts a, size_t k)
{
    if (k == 0 || k > a.total || a.passed > a.total) {
        return NAN;
    }
    double all_fail = 1;
    for (size_t i = 0; i < k && all_fail > 0; i++) {
        size_t failed = a.total - a.passed;
        all_fail *= failed > i ? (double)(failed - i) / (double)(a.total - i) : 0;
    }
    return 1 - all_fail;
}

double stats_pass_all_k(struct stats_attempts a, size_t k)
{
    if (k == 0 || k > a.total || a.passed > a.total) {
        return NAN;
    }
    double all_pass = 1;
    for (size_t i = 0; i < k && all_pass > 0; i++) {
        all_pass *= a.passed > i ? (double)(a.passed - i) / (double)(a.total - i) : 0;
    }
    return all_pass;
}

double stats_mean_over_tasks(const struct stats_attempts *tasks, size_t count, size_t k,
                             double (*estimate)(struct stats_attempts, size_t), size_t *used)
{
    double sum = 0;
    size_t defined = 0;
    for (size_t i = 0; i < count; i++) {
        double value = estimate(tasks[i], k);
        if (stats_defined(value)) {
            sum += value;
            defined++;
        }
    }
    if (used != NULL) {
        *used = defined;
    }
    return defined == 0 ? NAN : sum / (double)defined;
}

double stats_flip_rate(struct stats_attempts a)
{
    if (a.total < 2 || a.passed > a.total) {
        return NAN;
    }
    double n = (double)a.total;
    double c = (double)a.passed;
    return 2 * c * (n - c) / (n * (n - 1));
}

struct stats_interval stats_wilson(size_t passed, size_t total, double level)
{
    if (total == 0 || passed > total || !(level > 0 && level < 1)) {
        return (struct stats_interval) { NAN, NAN };
    }
    double z = -stats_normal_quantile((1 - level) / 2);
    double n = (double)total;
    double share = (double)passed / n;
    double scale = 1 + z * z / n;
    double centre = (share + z * z / (2 * n)) / scale;
    double half = z / scale * sqrt(share * (1 - share) / n + z * z / (4 * n * n));
    return (struct stats_interval) {
        .low = passed == 0 ? 0 : fmax(0, centre - half),
        .high = passed == total ? 1 : fmin(1, centre + half),
    };
}

double stats_mean(const double *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += x[i];
    }
    return n == 0 ? NAN : sum / (double)n;
}

double stats_variance(const double *x, size_t n)
{
    if (n < 2) {
        return NAN;
    }
    double mean = stats_mean(x, n);
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += (x[i] - mean) * (x[i] - mean);
    }
    return sum / (double)(n - 1);
}

double stats_quantile(const double *sorted, size_t n, double p)
{
    if (n == 0 || !(p >= 0 && p <= 1)) {
        return NAN;
    }
    double position = p * (double)(n - 1);
    size_t below = (size_t)position;
    if (below + 1 >= n) {
        return sorted[n - 1];
    }
    double part = position - (double)below;
    double step = sorted[below + 1] - sorted[below];
    return part < 0.5 ? sorted[below] + step * part : sorted[below + 1] - step * (1 - part);
}

static size_t count_observations(const struct stats_cluster *clusters, size_t count)
{
    size_t total = 0;
    for (size_t i = 0; i < count; i++) {
        total += clusters[i].count;
    }
    return total;
}

double stats_cluster_mean(const struct stats_cluster *clusters, size_t count)
{
    size_t total = count_observations(clusters, count);
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < clusters[i].count; j++) {
            sum += clusters[i].values[j];
        }
    }
    return total == 0 ? NAN : sum / (double)total;
}

double stats_cluster_error(const struct stats_cluster *clusters, size_t count)
{
    double mean = stats_cluster_mean(clusters, count);
    double sum = 0;
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        double deviation = 0;
        for (size_t j = 0; j < clusters[i].count; j++) {
            deviation += clusters[i].values[j] - mean;
        }
        sum += deviation * deviation;
        used += clusters[i].count > 0;
    }
    if (used < 2) {
        return NAN;
    }
    double correction = (double)used / (double)(used - 1);
    return sqrt(correction * sum) / (double)count_observations(clusters, count);
}

struct stats_interval stats_t_interval(double mean, double error, double df, double level)
{
    double half = -stats_student_quantile((1 - level) / 2, df) * error;
    return (struct stats_interval) { mean - half, mean + half };
}

double stats_cost_of_pass(double cost_per_attempt, double pass_rate)
{
    return pass_rate > 0 ? cost_per_attempt / pass_rate : NAN;
}

static bool dominates(const struct stats_point *a, const struct stats_point *b)
{
    return stats_defined(a->cost) && stats_defined(a->success) && a->cost <= b->cost &&
           a->success >= b->success && (a->cost < b->cost || a->success > b->success);
}

void stats_mark_pareto_front(struct stats_point *points, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        points[i].best = stats_defined(points[i].cost) && stats_defined(points[i].success);
        for (size_t j = 0; j < count && points[i].best; j++) {
            points[i].best = !dominates(&points[j], &points[i]);
        }
    }
}
