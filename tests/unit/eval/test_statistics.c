/* SPDX-License-Identifier: MIT
 *
 * Reference values that were computed with scipy and statsmodels, the edges where an estimate is
 * not defined, and the coverage of intervals by simulation. statistics_against_scipy.py compares
 * the same functions with scipy on random input.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/macro.h"
#include "eval/stats_agreement.h"
#include "eval/stats_bootstrap.h"
#include "eval/stats_compare.h"
#include "eval/stats_distribution.h"
#include "eval/stats_power.h"

#define assert_near(a, b, error) assert_true(fabs((a) - (b)) <= (error))
#define assert_undefined(x)      assert_false(stats_defined(x))

static void passes(void **state)
{
    struct stats_attempts a = { 10, 3 };
    assert_near(stats_pass_at_k(a, 1), 0.3, 1e-12);
    assert_near(stats_pass_at_k(a, 2), 0.533333333333, 1e-12);
    assert_near(stats_pass_at_k(a, 5), 0.916666666667, 1e-12);
    assert_near(stats_pass_at_k(a, 8), 1, 0);
    assert_near(stats_pass_all_k(a, 2), 0.066666666667, 1e-12);
    assert_near(stats_pass_all_k(a, 3), 0.008333333333, 1e-12);
    assert_near(stats_pass_all_k(a, 5), 0, 0);
    assert_undefined(stats_pass_at_k(a, 11));
    assert_undefined(stats_pass_at_k(a, 0));
    assert_undefined(stats_pass_all_k((struct stats_attempts) { 0, 0 }, 1));
    assert_near(stats_flip_rate(a), 2.0 * 3 * 7 / 90, 1e-15);
    assert_undefined(stats_flip_rate((struct stats_attempts) { 1, 1 }));
}

static void mean_over_tasks(void **state)
{
    const struct stats_attempts tasks[] = { { 4, 4 }, { 4, 0 }, { 2, 1 } };
    size_t used = 0;
    assert_near(stats_mean_over_tasks(tasks, 3, 1, stats_pass_at_k, &used), 0.5, 1e-15);
    assert_int_equal(used, 3);
    assert_near(stats_mean_over_tasks(tasks, 3, 3, stats_pass_at_k, &used), 0.5, 1e-15);
    assert_int_equal(used, 2);
    assert_undefined(stats_mean_over_tasks(tasks, 3, 9, stats_pass_at_k, &used));
    assert_int_equal(used, 0);
}

static void wilson(void **state)
{
    struct stats_interval i = stats_wilson(7, 10, 0.95);
    assert_near(i.low, 0.396778, 1e-6);
    assert_near(i.high, 0.892209, 1e-6);
    i = stats_wilson(0, 20, 0.95);
    assert_near(i.low, 0, 0);
    assert_near(i.high, 0.161125, 1e-6);
    i = stats_wilson(20, 20, 0.95);
    assert_near(i.low, 0.838875, 1e-6);
    assert_near(i.high, 1, 0);
    assert_undefined(stats_wilson(0, 0, 0.95).low);
}

static void clusters(void **state)
{
    const struct stats_cluster c[] = {
        { (double[]) { 1, 1, 0 }, 3 },
        { (double[]) { 0, 0 }, 2 },
        { (double[]) { 1, 1, 1 }, 3 },
        { (double[]) { 0, 1 }, 2 },
    };
    assert_near(stats_cluster_mean(c, 4), 0.6, 1e-15);
    assert_near(stats_cluster_error(c, 4), 0.198662, 1e-6);
    assert_undefined(stats_cluster_error(c, 1));
    struct stats_interval i = stats_t_interval(0.6, 1, 3, 0.95);
    assert_near(i.high - 0.6, 3.182446, 1e-6);
    assert_near(0.6 - i.low, 3.182446, 1e-6);
}

static void comparisons(void **state)
{
    assert_near(stats_mcnemar_exact(12, 4), 0.076813, 1e-6);
    assert_near(stats_mcnemar_mid_p(12, 4), 0.049042, 1e-6);
    assert_near(stats_mcnemar_mid_p(4, 12), 0.049042, 1e-6);
    assert_near(stats_mcnemar_exact(0, 0), 1, 0);
    const double x[] = { 1, 0, 1, 1, .5, 0, 1, 1 };
    const double y[] = { 1, 0, 0, 1, .5, 0, 0, 1 };
    struct stats_paired p = stats_paired_test(x, y, 8);
    assert_near(p.difference, 0.25, 1e-15);
    assert_near(p.error, 0.163663, 1e-6);
    assert_near(p.t, 1.527525, 1e-6);
    assert_near(p.p, 0.170471, 1e-6);
    assert_near(stats_paired_test(x, x, 8).p, 1, 0);
    assert_undefined(stats_paired_test(x, y, 1).p);
}

static void rank_tests(void **state)
{
    const double a[] = { .2, .5, .5, .9, 1, .4 };
    const double b[] = { .1, .3, .5, .6, .7 };
    struct stats_rank_test r = stats_mann_whitney(a, 6, b, 5);
    assert_near(r.u, 18, 0);
    assert_near(r.p, 0.645055, 1e-6);
    assert_near(stats_cliff_delta(a, 6, b, 5), 0.2, 1e-15);
    assert_near(stats_mann_whitney((double[]) { 1, 1 }, 2, (double[]) { 1 }, 1).p, 1, 0);
    assert_undefined(stats_mann_whitney(a, 0, b, 5).p);
    assert_undefined(stats_mann_whitney((double[]) { NAN, 1 }, 2, b, 5).p);
    const struct stats_cluster g[] = {
        { (double[]) { 1, 2, 3, 4 }, 4 },
        { (double[]) { 2, 3, 4, 5 }, 4 },
        { (double[]) { 5, 6, 7, 8 }, 4 },
    };
    assert_near(stats_kruskal_wallis(g, 3).h, 7.577128, 1e-6);
    assert_near(stats_kruskal_wallis(g, 3).p, 0.022628, 1e-6);
    assert_undefined(stats_kruskal_wallis(g, 1).p);
}

static void adjustments(void **state)
{
    double p[] = { .01, .04, .03, .005 };
    double out[4];
    const double holm[] = { .03, .06, .06, .02 };
    const double fdr[] = { .02, .04, .04, .02 };
    stats_adjust_holm(p, 4, out);
    for (size_t i = 0; i < 4; i++) {
        assert_near(out[i], holm[i], 1e-15);
    }
    stats_adjust_benjamini_hochberg(p, 4, p);
    for (size_t i = 0; i < 4; i++) {
        assert_near(p[i], fdr[i], 1e-15);
    }
}

static void verdicts(void **state)
{
    assert_int_equal(stats_judge_difference((struct stats_interval) { .1, .2 }, 5, 10),
                     STATS_BETTER);
    assert_int_equal(stats_judge_difference((struct stats_interval) { -.2, -.1 }, 5, 10),
                     STATS_WORSE);
    assert_int_equal(stats_judge_difference((struct stats_interval) { -.1, .2 }, 10, 10),
                     STATS_NOT_DECIDED);
    assert_int_equal(stats_judge_difference((struct stats_interval) { -.1, .2 }, 9, 10),
                     STATS_TOO_FEW);
    assert_int_equal(stats_judge_difference((struct stats_interval) { NAN, NAN }, 10, 10),
                     STATS_TOO_FEW);
    assert_string_equal(stats_verdict_text(STATS_NOT_DECIDED), "not decided");
}

static void plans(void **state)
{
    const struct stats_plan usual = { 0.05, 0.80 };
    assert_near(ceil(stats_tasks_unpaired(.5, .6, usual)), 388, 0);
    assert_near(ceil(stats_tasks_unpaired(.7, .8, usual)), 294, 0);
    assert_near(ceil(stats_tasks_unpaired(.5, .55, usual)), 1565, 0);
    assert_near(ceil(stats_tasks_paired(.30, .10, usual)), 234, 0);
    assert_near(ceil(stats_tasks_paired(.20, .05, usual)), 626, 0);
    double tasks = stats_tasks_paired(.30, .10, usual);
    assert_near(stats_power_paired(tasks, .30, .10, 0.05), 0.80, 1e-12);
    assert_undefined(stats_tasks_paired(.1, .2, usual));
    assert_near(stats_detectable_difference(100, 1, usual), 0.280158516, 1e-8);
    assert_near(stats_design_effect(10, .7), 7.3, 1e-15);
}

static void sequential_looks(void **state)
{
    /* Five equal looks at alpha 0.05, as published for the Lan-DeMets O'Brien-Fleming function. */
    const double looks[] = { .2, .4, .6, .8, 1 };
    const double expected[] = { 4.8769, 3.3570, 2.6803, 2.2898, 2.0310 };
    double bounds[5];
    assert_int_equal(stats_sequential_bounds(looks, 5, 0.05, bounds), 0);
    for (size_t i = 0; i < 5; i++) {
        assert_near(bounds[i], expected[i], 1e-4);
    }
    assert_int_equal(stats_sequential_bounds((double[]) { 1 }, 1, 0.05, bounds), 0);
    assert_near(bounds[0], 1.959963985, 1e-8);
    assert_int_equal(stats_sequential_bounds((double[]) { .5, .5 }, 2, 0.05, bounds), -1);
    assert_int_equal(stats_sequential_bounds((double[]) { .5, 1.1 }, 2, 0.05, bounds), -1);
    assert_int_equal(stats_sequential_bounds(looks, 0, 0.05, bounds), -1);
}

static void agreement(void **state)
{
    /* Krippendorff's example: four observers, twelve units, five categories. */
    const double n = NAN;
    const double ratings[12][4] = {
        { 1, 1, n, 1 }, { 2, 2, 3, 2 }, { 3, 3, 3, 3 }, { 3, 3, 3, 3 },
        { 2, 2, 2, 2 }, { 1, 2, 3, 4 }, { 4, 4, 4, 4 }, { 1, 1, 2, 1 },
        { 2, 2, 2, 2 }, { n, 5, 5, 5 }, { n, n, 1, 1 }, { n, n, 3, n },
    };
    assert_near(stats_krippendorff(ratings[0], 12, 4, STATS_NOMINAL), 0.743, 5e-4);
    assert_near(stats_krippendorff(ratings[0], 12, 4, STATS_ORDINAL), 0.815, 5e-4);
    assert_near(stats_krippendorff(ratings[0], 12, 4, STATS_INTERVAL), 0.849, 5e-4);
    assert_undefined(stats_krippendorff((double[]) { 1, 1, 1, 1 }, 2, 2, STATS_NOMINAL));
    assert_undefined(stats_krippendorff((double[]) { 1, n, n, 2 }, 2, 2, STATS_NOMINAL));
}

static void pareto_front(void **state)
{
    struct stats_point p[] = {
        { 1, .5, false }, { 2, .5, true }, { 2, .8, false }, { 1, .5, false }, { NAN, 1, true },
    };
    stats_mark_pareto_front(p, 5);
    assert_true(p[0].best && !p[1].best && p[2].best && p[3].best && !p[4].best);
    assert_near(stats_cost_of_pass(2, .5), 4, 0);
    assert_undefined(stats_cost_of_pass(2, 0));
}

static void domains(void **state)
{
    assert_true(isnan(stats_normal_quantile(-1)) && isnan(stats_normal_quantile(NAN)));
    assert_true(isnan(stats_student_sf(NAN, 3)) && isnan(stats_student_sf(1, 0)));
    assert_true(isnan(stats_chi2_sf(1, -1)) && isnan(stats_beta_cdf(2, 1, 1)));
    assert_true(isnan(stats_binomial_cdf(1, 2, 1.5)));
    assert_near(stats_binomial_cdf(-1, 5, .5), 0, 0);
    assert_near(stats_binomial_cdf(5, 5, .5), 1, 0);
    assert_true(isinf(stats_normal_quantile(0)) && isinf(stats_student_quantile(1, 3)));
}

static void generator(void **state)
{
    struct stats_random a = stats_random_seed(42);
    struct stats_random b = stats_random_seed(42);
    struct stats_random other = stats_random_seed(43);
    assert_int_equal(stats_random_next(&a), stats_random_next(&b));
    assert_int_not_equal(stats_random_next(&a), stats_random_next(&other));
    size_t seen[6] = { 0 };
    for (int i = 0; i < 60000; i++) {
        seen[stats_random_below(&a, 6)]++;
    }
    for (size_t i = 0; i < 6; i++) {
        assert_true(seen[i] > 9500 && seen[i] < 10500); /* five standard deviations */
    }
}

/* Draws tasks whose attempts share a success probability, as real tasks do. */
static void draw_tasks(struct stats_random *r, double values[][3], struct stats_cluster *tasks,
                       size_t count)
{
    for (size_t i = 0; i < count; i++) {
        double p = stats_random_unit(r); /* uniform: the mean is 1/2 */
        for (size_t j = 0; j < 3; j++) {
            values[i][j] = stats_random_unit(r) < p;
        }
        tasks[i] = (struct stats_cluster) { values[i], 3 };
    }
}

/* 95 % intervals contain the truth in 95 % of 1,000 evaluations, give or take four standard errors
 * and the small-sample error of the method; intervals that ignore the clusters do not. */
static void coverage(void **state)
{
    enum { ROUNDS = 1000, TASKS = 40 };
    struct stats_random r = stats_random_seed(7);
    double values[TASKS][3];
    struct stats_cluster tasks[TASKS];
    int by_t = 0;
    int by_bootstrap = 0;
    int ignoring_clusters = 0;
    for (int i = 0; i < ROUNDS; i++) {
        draw_tasks(&r, values, tasks, TASKS);
        double mean = stats_cluster_mean(tasks, TASKS);
        double error = stats_cluster_error(tasks, TASKS);
        struct stats_interval t = stats_t_interval(mean, error, TASKS - 1, 0.95);
        struct stats_resampling how = { 500, 0.95, &r };
        struct stats_interval b = stats_bootstrap_tasks(tasks, TASKS, &how);
        double naive = sqrt(stats_variance(values[0], TASKS * 3) / (TASKS * 3));
        struct stats_interval n = stats_t_interval(mean, naive, TASKS * 3 - 1, 0.95);
        by_t += t.low <= 0.5 && 0.5 <= t.high;
        by_bootstrap += b.low <= 0.5 && 0.5 <= b.high;
        ignoring_clusters += n.low <= 0.5 && 0.5 <= n.high;
    }
    assert_in_range(by_t, 922, 978);
    assert_in_range(by_bootstrap, 910, 970);
    assert_true(ignoring_clusters < 900);
}

static void paired_bootstrap(void **state)
{
    const double x[] = { 1, 0, 1, 1, .5, 0, 1, 1 };
    const double y[] = { 1, 0, 0, 1, .5, 0, 0, 1 };
    struct stats_random r = stats_random_seed(42);
    struct stats_resampling how = { STATS_RESAMPLES, 0.95, &r };
    struct stats_interval i = stats_bootstrap_paired(x, y, 8, &how);
    assert_near(i.low, 0, 1e-12);
    assert_true(i.high == 0.5 || i.high == 0.625); /* the two grid points at the 97.5 % quantile */
    assert_undefined(stats_bootstrap_paired(x, y, 0, &how).low);
    struct stats_cliff c = stats_bootstrap_cliff((struct stats_cluster) { x, 8 },
                                                 (struct stats_cluster) { y, 8 }, &how, NULL);
    assert_true(c.interval.low < c.delta && c.delta < c.interval.high);
    const double same[] = { 1, 1 };
    c = stats_bootstrap_cliff((struct stats_cluster) { same, 2 },
                              (struct stats_cluster) { same, 2 }, &how, NULL);
    assert_near(c.delta, 0, 0);
    assert_undefined(c.interval.low);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passes),      cmocka_unit_test(mean_over_tasks),
        cmocka_unit_test(wilson),      cmocka_unit_test(clusters),
        cmocka_unit_test(comparisons), cmocka_unit_test(rank_tests),
        cmocka_unit_test(adjustments), cmocka_unit_test(verdicts),
        cmocka_unit_test(plans),       cmocka_unit_test(sequential_looks),
        cmocka_unit_test(agreement),   cmocka_unit_test(pareto_front),
        cmocka_unit_test(domains),     cmocka_unit_test(generator),
        cmocka_unit_test(coverage),    cmocka_unit_test(paired_bootstrap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
