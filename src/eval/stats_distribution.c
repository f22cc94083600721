/* SPDX-License-Identifier: MIT
 *
 * The beta and gamma families share one idea: the term in front of the series or continued
 * fraction is a binomial or Poisson probability, computed in Loader's saddle-point form. Plain
 * differences of lgamma() would lose six digits at n = 10^6.
 */
#include "eval/stats_distribution.h"

#include <math.h>
#include <stdbool.h>

#define LOG_SQRT_2PI 0.918938533204672741780329736406
enum { SERIES_MAX = 100000 };
static const double EPSILON = 1e-16;
static const double TINY = 1e-300;

double stats_normal_cdf(double x)
{
    return 0.5 * erfc(-x / M_SQRT2);
}

double stats_normal_sf(double x)
{
    return 0.5 * erfc(x / M_SQRT2);
}

/* Abramowitz and Stegun 26.2.23 for 0 < p <= 0.5, refined by Halley's method. */
static double lower_quantile(double p)
{
    double t = sqrt(-2 * log(p));
    double x = (2.515517 + t * (0.802853 + t * 0.010328)) /
                   (1 + t * (1.432788 + t * (0.189269 + t * 0.001308))) -
               t;
    for (int i = 0; i < 4; i++) {
        double density = exp(-x * x / 2 - LOG_SQRT_2PI);
        if (!(density > 0)) {
            break;
        }
        double step = (stats_normal_cdf(x) - p) / density;
        x -= step / (1 + x * step / 2);
    }
    return x;
}

double stats_normal_quantile(double p)
{
    if (!(p >= 0 && p <= 1)) {
        return NAN;
    }
    if (p == 0 || p == 1) {
        return p == 0 ? -INFINITY : INFINITY;
    }
    return p <= 0.5 ? lower_quantile(p) : -lower_quantile(1 - p);
}

/* log(n!) less Stirling's approximation of it. */
static double stirling_error(double n)
{
    if (n < 16) {
        return lgamma(n + 1) - (n + 0.5) * log(n) + n - LOG_SQRT_2PI;
    }
    double s = 1 / (n * n);
    return (1.0 / 12 -
            s * (1.0 / 360 -
                 s * (1.0 / 1260 - s * (1.0 / 1680 - s * (1.0 / 1188 - s * 691 / 360360))))) /
           n;
}

/* x log(x / mean) + mean - x without cancellation where x is close to the mean. */
static double deviance(double x, double mean)
{
    if (fabs(x - mean) >= 0.1 * (x + mean)) {
        return x * log(x / mean) + mean - x;
    }
    double v = (x - mean) / (x + mean);
    double sum = (x - mean) * v;
    double term = 2 * x * v;
    for (int i = 1; i < 1000; i++) {
        term *= v * v;
        double next = sum + term / (2 * i + 1);
        if (next == sum) {
            break;
        }
        sum = next;
    }
    return sum;
}

/* x^a y^b / B(a, b) with y = 1 - x. */
static double beta_front(double a, double b, double x, double y)
{
    double n = a + b;
    double exponent = stirling_error(n) - stirling_error(a) - stirling_error(b) -
                      deviance(a, n * x) - deviance(b, n * y);
    return exp(exponent - LOG_SQRT_2PI) * sqrt(a * b / n);
}

static double away_from_zero(double x)
{
    return fabs(x) < TINY ? TINY : x;
}

/* The continued fraction of I_x(a, b), by Lentz's method. */
static double beta_fraction(double a, double b, double x)
{
    double c = 1;
    double d = 1 / away_from_zero(1 - (a + b) * x / (a + 1));
    double h = d;
    for (int m = 1; m < SERIES_MAX; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        d = 1 / away_from_zero(1 + even * d);
        c = away_from_zero(1 + even / c);
        h *= c * d;
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        d = 1 / away_from_zero(1 + odd * d);
        c = away_from_zero(1 + odd / c);
        h *= c * d;
        if (fabs(c * d - 1) < EPSILON) {
            break;
        }
    }
    return h;
}

/* I_x(a, b), or its complement; the caller gives y = 1 - x so that neither loses digits. */
static double beta_tail(double a, double b, double x, double y, bool complement)
{
    if (x <= 0 || y <= 0) {
        bool all = (x <= 0) == complement;
        return all ? 1 : 0;
    }
    bool swap = x > (a + 1) / (a + b + 2);
    double front = beta_front(a, b, x, y);
    double part = swap ? front * beta_fraction(b, a, y) / b : front * beta_fraction(a, b, x) / a;
    return swap == complement ? part : 1 - part;
}

double stats_beta_cdf(double x, double a, double b)
{
    if (!(x >= 0 && x <= 1 && a > 0 && b > 0)) {
        return NAN;
    }
    return beta_tail(a, b, x, 1 - x, false);
}

double stats_student_sf(double t, double df)
{
    if (isnan(t) || !(df > 0)) {
        return NAN;
    }
    if (isinf(t) || isinf(df)) {
        return isinf(t) ? (t > 0 ? 0 : 1) : stats_normal_sf(t);
    }
    double square = t * t;
    double tail = beta_tail(df / 2, 0.5, df / (df + square), square / (df + square), false) / 2;
    return t >= 0 ? tail : 1 - tail;
}

static double student_density(double t, double df)
{
    double square = t * t;
    return beta_front(df / 2, 0.5, df / (df + square), square / (df + square)) / fabs(t);
}

/* The t > 0 whose upper tail is `tail` < 0.5: Newton's method inside a shrinking bracket. */
static double student_upper(double tail, double df)
{
    double low = 0;
    double high = 1;
    while (stats_student_sf(high, df) > tail && high < 1e150) {
        low = high;
        high *= 2;
    }
    double t = (low + high) / 2;
    for (int i = 0; i < 200; i++) {
        double excess = stats_student_sf(t, df) - tail;
        if (excess > 0) {
            low = t;
        } else {
            high = t;
        }
        double next = t + excess / student_density(t, df);
        if (!(next > low && next < high)) {
            next = (low + high) / 2;
        }
        if (fabs(next - t) <= 1e-15 * t) {
            return next;
        }
        t = next;
    }
    return t;
}

double stats_student_quantile(double p, double df)
{
    if (!(p >= 0 && p <= 1 && df > 0)) {
        return NAN;
    }
    if (p == 0 || p == 1) {
        return p == 0 ? -INFINITY : INFINITY;
    }
    if (p == 0.5) {
        return 0;
    }
    return p > 0.5 ? student_upper(1 - p, df) : -student_upper(p, df);
}

/* x^a e^-x / Gamma(a + 1). */
static double gamma_front(double a, double x)
{
    return exp(-stirling_error(a) - deviance(a, x) - LOG_SQRT_2PI) / sqrt(a);
}

static double gamma_lower_series(double a, double x)
{
    double term = 1;
    double sum = 1;
    for (int i = 1; i < SERIES_MAX && term > sum * EPSILON; i++) {
        term *= x / (a + i);
        sum += term;
    }
    return gamma_front(a, x) * sum;
}

static double gamma_upper_fraction(double a, double x)
{
    double b = x + 1 - a;
    double c = 1 / TINY;
    double d = 1 / away_from_zero(b);
    double h = d;
    for (int i = 1; i < SERIES_MAX; i++) {
        double an = -i * (i - a);
        b += 2;
        d = 1 / away_from_zero(an * d + b);
        c = away_from_zero(b + an / c);
        h *= c * d;
        if (fabs(c * d - 1) < EPSILON) {
            break;
        }
    }
    return gamma_front(a, x) * a * h;
}

double stats_chi2_sf(double x, double df)
{
    if (isnan(x) || !(df > 0)) {
        return NAN;
    }
    if (x <= 0 || isinf(x)) {
        return x <= 0 ? 1 : 0;
    }
    double a = df / 2;
    return x / 2 < a + 1 ? 1 - gamma_lower_series(a, x / 2) : gamma_upper_fraction(a, x / 2);
}

double stats_binomial_pmf(long k, long n, double p)
{
    if (!(p >= 0 && p <= 1) || n < 0) {
        return NAN;
    }
    if (k < 0 || k > n) {
        return 0;
    }
    if (p == 0 || p == 1) {
        return (p == 0 ? k == 0 : k == n) ? 1 : 0;
    }
    if (k == 0 || k == n) {
        return k == 0 ? exp((double)n * log1p(-p)) : exp((double)n * log(p));
    }
    double size = (double)n;
    double hits = (double)k;
    return beta_front(hits, size - hits, p, 1 - p) * size / (hits * (size - hits));
}

double stats_binomial_cdf(long k, long n, double p)
{
    if (!(p >= 0 && p <= 1) || n < 0) {
        return NAN;
    }
    if (k < 0 || k >= n) {
        return k < 0 ? 0 : 1;
    }
    return beta_tail((double)k + 1, (double)(n - k), p, 1 - p, true);
}
