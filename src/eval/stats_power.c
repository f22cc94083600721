/* SPDX-License-Identifier: MIT
 *
 * Normal approximations for sample sizes, and numerical integration for sequential bounds.
 */
#include "eval/stats_power.h"

#include <math.h>
#include <stdbool.h>

#include "base/arena.h"
#include "eval/stats_distribution.h"

static double critical(double alpha)
{
    return -stats_normal_quantile(alpha / 2);
}

double stats_tasks_unpaired(double p1, double p2, struct stats_plan plan)
{
    double difference = p1 - p2;
    double mean = (p1 + p2) / 2;
    double null = critical(plan.alpha) * sqrt(2 * mean * (1 - mean));
    double alternative = stats_normal_quantile(plan.power) * sqrt(p1 * (1 - p1) + p2 * (1 - p2));
    double root = (null + alternative) / difference;
    return difference == 0 ? NAN : root * root;
}

double stats_tasks_paired(double discordant, double difference, struct stats_plan plan)
{
    if (difference == 0 || fabs(difference) > discordant || discordant > 1) {
        return NAN;
    }
    double null = critical(plan.alpha) * sqrt(discordant);
    double alternative =
        stats_normal_quantile(plan.power) * sqrt(discordant - difference * difference);
    double root = (null + alternative) / difference;
    return root * root;
}

double stats_power_paired(double tasks, double discordant, double difference, double alpha)
{
    if (!(tasks > 0) || fabs(difference) > discordant || discordant > 1 || discordant <= 0) {
        return NAN;
    }
    double spread = sqrt(discordant - difference * difference);
    double shift = fabs(difference) * sqrt(tasks) - critical(alpha) * sqrt(discordant);
    if (spread == 0) {
        return shift > 0 ? 1 : 0;
    }
    return stats_normal_cdf(shift / spread);
}

double stats_detectable_difference(double tasks, double sd, struct stats_plan plan)
{
    double z = critical(plan.alpha) + stats_normal_quantile(plan.power);
    return tasks > 0 ? z * sd / sqrt(tasks) : NAN;
}

double stats_design_effect(double size, double correlation)
{
    return 1 + (size - 1) * correlation;
}

/* Sequential bounds: the density of the score process S(t) = z(t) sqrt(t), restricted to paths that
 * have not crossed a bound yet, is carried from look to look on a grid and integrated by Simpson's
 * rule (Armitage, McPherson and Rowe). */

enum { POINTS = 1001 }; /* odd */

struct density {
    double limit; /* the grid spans [-limit, limit] */
    double at[POINTS];
};

static double grid_point(const struct density *d, size_t i)
{
    return -d->limit + 2 * d->limit * (double)i / (POINTS - 1);
}

static double simpson_weight(const struct density *d, size_t i)
{
    double step = 2 * d->limit / (POINTS - 1);
    return step / 3 * (i == 0 || i == POINTS - 1 ? 1 : i % 2 == 1 ? 4 : 2);
}

/* The probability of leaving (-limit, limit) at this look after an increment of standard deviation
 * `sd`; `before` is NULL at the first look. */
static double crossing_probability(const struct density *before, double sd, double limit)
{
    if (before == NULL) {
        return 2 * stats_normal_sf(limit / sd);
    }
    double sum = 0;
    for (size_t i = 0; i < POINTS; i++) {
        double x = grid_point(before, i);
        double out = stats_normal_sf((limit - x) / sd) + stats_normal_cdf((-limit - x) / sd);
        sum += simpson_weight(before, i) * before->at[i] * out;
    }
    return sum;
}

static double normal_density(double x, double sd)
{
    double z = x / sd;
    return exp(-z * z / 2) / (sd * sqrt(2 * M_PI));
}

static void carry_density(const struct density *before, double sd, struct density *after)
{
    for (size_t i = 0; i < POINTS; i++) {
        double x = grid_point(after, i);
        double sum = 0;
        if (before == NULL) {
            sum = normal_density(x, sd);
        }
        for (size_t j = 0; before != NULL && j < POINTS; j++) {
            sum += simpson_weight(before, j) * before->at[j] *
                   normal_density(x - grid_point(before, j), sd);
        }
        after->at[i] = sum;
    }
}

static double find_limit(const struct density *before, double sd, double total_sd, double spend)
{
    double low = 0;
    double high = 40 * total_sd;
    for (int i = 0; i < 100; i++) {
        double middle = (low + high) / 2;
        if (crossing_probability(before, sd, middle) > spend) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return (low + high) / 2;
}

static double spent_alpha(double alpha, double information)
{
    return 4 * stats_normal_sf(-stats_normal_quantile(alpha / 4) / sqrt(information));
}

static bool looks_are_valid(const double *information, size_t looks)
{
    double last = 0;
    for (size_t i = 0; i < looks; i++) {
        if (!(information[i] - last >= STATS_LOOK_APART && information[i] <= 1)) {
            return false;
        }
        last = information[i];
    }
    return looks > 0 && looks <= STATS_LOOKS_MAX;
}

int stats_sequential_bounds(const double *information, size_t looks, double alpha, double *bounds)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct density *before = NULL;
    double last = 0;
    double spent = 0;
    if (!looks_are_valid(information, looks) || !(alpha > 0 && alpha < 1)) {
        return -1;
    }
    for (size_t i = 0; i < looks; i++) {
        double sd = sqrt(information[i] - last);
        double now = spent_alpha(alpha, information[i]);
        struct density *after = ARENA_NEW(a, struct density);
        after->limit = find_limit(before, sd, sqrt(information[i]), now - spent);
        bounds[i] = after->limit / sqrt(information[i]);
        if (i + 1 < looks) {
            carry_density(before, sd, after);
        }
        before = after;
        last = information[i];
        spent = now;
    }
    return 0;
}
