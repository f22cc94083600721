/* SPDX-License-Identifier: MIT
 *
 * statistics_bench mean|cliff SIZE ROUNDS: times bootstraps of 10,000 resamples and prints the
 * milliseconds of each round. Driven by bench/statistics.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "eval/stats_bootstrap.h"

static double *draw_scores(struct arena *a, size_t n, uint64_t seed)
{
    struct stats_random r = stats_random_seed(seed);
    double *x = arena_array(a, n, sizeof(*x));
    for (size_t i = 0; i < n; i++) {
        x[i] = (double)stats_random_below(&r, 21) / 20;
    }
    return x;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: statistics_bench mean|cliff SIZE ROUNDS\n");
        return 64;
    }
    CLEANUP(arena) struct arena *a = arena_new();
    size_t n = strtoul(argv[2], NULL, 10);
    struct stats_cluster x = { draw_scores(a, n, 1), n };
    struct stats_cluster y = { draw_scores(a, n, 2), n };
    struct stats_cluster *tasks = arena_array(a, n, sizeof(*tasks));
    for (size_t i = 0; i < n; i++) {
        tasks[i] = (struct stats_cluster) { x.values + i, 1 };
    }
    struct stats_random r = stats_random_seed(42);
    struct stats_resampling how = { STATS_RESAMPLES, 0.95, &r };
    double sum = 0;
    for (long i = strtol(argv[3], NULL, 10); i > 0; i--) {
        nsec start = clock_now();
        sum += strcmp(argv[1], "mean") == 0 ? stats_bootstrap_tasks(tasks, n, &how).low
                                            : stats_bootstrap_cliff(x, y, &how, NULL).interval.low;
        printf("%.3f\n", (double)(clock_now() - start) / 1e6);
    }
    return sum == 12345 ? 1 : 0; /* keeps the compiler from leaving the work out */
}
