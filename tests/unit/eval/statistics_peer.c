/* SPDX-License-Identifier: MIT
 *
 * The other side of statistics_against_scipy.py. A request is one line, a JSON array of a name and
 * arguments (numbers, arrays of numbers or null, arrays of arrays); the response is one line, an
 * array of numbers with null for NaN.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "eval/stats_agreement.h"
#include "eval/stats_bootstrap.h"
#include "eval/stats_compare.h"
#include "eval/stats_distribution.h"
#include "eval/stats_power.h"

struct call {
    struct arena *arena;
    const struct json *args;
    struct json *out;
};

static double number(const struct call *c, size_t i)
{
    return json_real(json_item(c->args, i), NAN);
}

static size_t count(const struct call *c, size_t i)
{
    return (size_t)json_int(json_item(c->args, i), 0);
}

static struct stats_cluster read_values(struct arena *a, const struct json *array)
{
    size_t n = json_len(array);
    double *x = arena_array(a, n + 1, sizeof(*x));
    for (size_t i = 0; i < n; i++) {
        x[i] = json_real(json_item(array, i), NAN);
    }
    return (struct stats_cluster) { x, n };
}

static struct stats_cluster values(const struct call *c, size_t i)
{
    return read_values(c->arena, json_item(c->args, i));
}

static struct stats_cluster *groups(const struct call *c, size_t i, size_t *n)
{
    const struct json *array = json_item(c->args, i);
    *n = json_len(array);
    struct stats_cluster *g = arena_array(c->arena, *n + 1, sizeof(*g));
    for (size_t k = 0; k < *n; k++) {
        g[k] = read_values(c->arena, json_item(array, k));
    }
    return g;
}

static void put(struct call *c, double x)
{
    json_push(c->arena, c->out, isnan(x) ? json_null(c->arena) : json_number(c->arena, x));
}

static void put_all(struct call *c, const double *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        put(c, x[i]);
    }
}

static void put_interval(struct call *c, struct stats_interval i)
{
    put(c, i.low);
    put(c, i.high);
}

static void distributions(struct call *c)
{
    double x = number(c, 1);
    double df = number(c, 2);
    put(c, stats_normal_cdf(x));
    put(c, stats_normal_sf(x));
    put(c, stats_student_sf(x, df));
    put(c, stats_chi2_sf(x, df));
}

static void quantiles(struct call *c)
{
    put(c, stats_normal_quantile(number(c, 1)));
    put(c, stats_student_quantile(number(c, 1), number(c, 2)));
}

static void beta(struct call *c)
{
    put(c, stats_beta_cdf(number(c, 1), number(c, 2), number(c, 3)));
}

static void binomial(struct call *c)
{
    put(c, stats_binomial_pmf((long)count(c, 1), (long)count(c, 2), number(c, 3)));
    put(c, stats_binomial_cdf((long)count(c, 1), (long)count(c, 2), number(c, 3)));
}

static void wilson(struct call *c)
{
    put_interval(c, stats_wilson(count(c, 1), count(c, 2), number(c, 3)));
}

static void cluster(struct call *c)
{
    size_t n = 0;
    struct stats_cluster *g = groups(c, 1, &n);
    put(c, stats_cluster_mean(g, n));
    put(c, stats_cluster_error(g, n));
}

static void paired(struct call *c)
{
    struct stats_cluster x = values(c, 1);
    struct stats_paired r = stats_paired_test(x.values, values(c, 2).values, x.count);
    put_all(c, (double[]) { r.difference, r.error, r.t, r.p }, 4);
}

static void mcnemar(struct call *c)
{
    put(c, stats_mcnemar_exact(count(c, 1), count(c, 2)));
    put(c, stats_mcnemar_mid_p(count(c, 1), count(c, 2)));
}

static void ranks(struct call *c)
{
    struct stats_cluster x = values(c, 1);
    struct stats_cluster y = values(c, 2);
    struct stats_rank_test r = stats_mann_whitney(x.values, x.count, y.values, y.count);
    put_all(c, (double[]) { r.u, r.p, stats_cliff_delta(x.values, x.count, y.values, y.count) }, 3);
}

static void kruskal(struct call *c)
{
    size_t n = 0;
    struct stats_cluster *g = groups(c, 1, &n);
    struct stats_kruskal r = stats_kruskal_wallis(g, n);
    put_all(c, (double[]) { r.h, r.p }, 2);
}

static void adjust(struct call *c)
{
    struct stats_cluster p = values(c, 1);
    double *out = arena_array(c->arena, p.count + 1, sizeof(*out));
    stats_adjust_holm(p.values, p.count, out);
    put_all(c, out, p.count);
    stats_adjust_benjamini_hochberg(p.values, p.count, out);
    put_all(c, out, p.count);
}

static void quantile(struct call *c)
{
    struct stats_cluster x = values(c, 1);
    put(c, stats_quantile(x.values, x.count, number(c, 2)));
}

/* Cliff's delta, its interval, then the whole distribution. */
static void cliff(struct call *c)
{
    struct stats_random r = stats_random_seed((uint64_t)count(c, 4));
    struct stats_resampling how = { count(c, 3), 0.95, &r };
    double *all = arena_array(c->arena, how.resamples + 1, sizeof(*all));
    struct stats_cliff result = stats_bootstrap_cliff(values(c, 1), values(c, 2), &how, all);
    put(c, result.delta);
    put_interval(c, result.interval);
    put_all(c, all, how.resamples);
}

static void bootstrap(struct call *c)
{
    struct stats_random r = stats_random_seed((uint64_t)count(c, 3));
    struct stats_resampling how = { count(c, 2), 0.95, &r };
    size_t n = 0;
    struct stats_cluster *g = groups(c, 1, &n);
    put_interval(c, stats_bootstrap_tasks(g, n, &how));
}

/* State and increment as four words of 64 bits in decimal text, then outputs as text. */
static void pcg(struct call *c)
{
    uint64_t word[4];
    for (size_t i = 0; i < 4; i++) {
        word[i] = strtoull(json_cstring(json_item(c->args, i + 1), "0"), NULL, 10);
    }
    struct stats_random r = { ((unsigned __int128)word[0] << 64) | word[1],
                              ((unsigned __int128)word[2] << 64) | word[3] };
    for (size_t i = 0; i < count(c, 5); i++) {
        const char *text =
            arena_printf(c->arena, "%llu", (unsigned long long)stats_random_next(&r));
        json_push(c->arena, c->out, json_cstr(c->arena, text));
    }
}

static void power(struct call *c)
{
    struct stats_plan plan = { number(c, 3), number(c, 4) };
    put(c, stats_tasks_unpaired(number(c, 1), number(c, 2), plan));
    put(c, stats_tasks_paired(number(c, 1), number(c, 2), plan));
    put(c, stats_power_paired(number(c, 5), number(c, 1), number(c, 2), plan.alpha));
    put(c, stats_detectable_difference(number(c, 5), number(c, 1), plan));
}

static void sequential(struct call *c)
{
    struct stats_cluster looks = values(c, 1);
    double *bounds = arena_array(c->arena, looks.count + 1, sizeof(*bounds));
    if (stats_sequential_bounds(looks.values, looks.count, number(c, 2), bounds) == 0) {
        put_all(c, bounds, looks.count);
    }
}

static void krippendorff(struct call *c)
{
    struct stats_cluster ratings = values(c, 1);
    size_t judges = count(c, 2);
    for (int scale = STATS_NOMINAL; scale <= STATS_INTERVAL; scale++) {
        put(c, stats_krippendorff(ratings.values, ratings.count / judges, judges,
                                  (enum stats_scale)scale));
    }
}

static void passes(struct call *c)
{
    struct stats_attempts a = { count(c, 1), count(c, 2) };
    put(c, stats_pass_at_k(a, count(c, 3)));
    put(c, stats_pass_all_k(a, count(c, 3)));
    put(c, stats_flip_rate(a));
}

static const struct {
    const char *name;
    void (*answer)(struct call *c);
} functions[] = {
    { "adjust", adjust },
    { "beta", beta },
    { "binomial", binomial },
    { "bootstrap", bootstrap },
    { "cliff", cliff },
    { "cluster", cluster },
    { "distributions", distributions },
    { "kruskal", kruskal },
    { "krippendorff", krippendorff },
    { "mcnemar", mcnemar },
    { "paired", paired },
    { "passes", passes },
    { "pcg", pcg },
    { "power", power },
    { "quantile", quantile },
    { "quantiles", quantiles },
    { "ranks", ranks },
    { "sequential", sequential },
    { "wilson", wilson },
};

static int serve(struct str line)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(buf) struct buf out = BUF_INIT(16 << 20);
    struct json *args = NULL;
    struct err e = { 0 };
    if (json_parse(a, line, NULL, &args, &e) < 0) {
        fprintf(stderr, "statistics_peer: %s\n", e.msg);
        return -1;
    }
    struct call c = { a, args, json_array(a) };
    for (size_t i = 0; i < ARRAY_LEN(functions); i++) {
        if (strcmp(functions[i].name, json_cstring(json_item(args, 0), "")) == 0) {
            functions[i].answer(&c);
        }
    }
    if (json_write(c.out, JSON_COMPACT, &out, &e) < 0) {
        return -1;
    }
    printf("%.*s\n", STR_ARG(buf_str(&out)));
    fflush(stdout);
    return 0;
}

int main(void)
{
    char *line = NULL;
    size_t cap = 0;
    ssize_t n = 0;
    int r = 0;
    while (r == 0 && (n = getline(&line, &cap, stdin)) > 0) {
        r = serve((struct str) { line, (size_t)n });
    }
    free(line);
    return r == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
