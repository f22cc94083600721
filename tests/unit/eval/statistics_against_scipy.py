#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Compares src/eval/stats_* with scipy, statsmodels and numpy on random input.

  statistics_against_scipy.py PEER      PEER: the built statistics_peer

Exits 77 where scipy or statsmodels is missing. The seed is fixed: a change is not red for a number that was never
tried before; set STATISTICS_SEED to explore.
"""

import itertools
import json
import math
import os
import subprocess
import sys

try:
    import numpy
    import scipy.stats
    from scipy.special import betainc, ndtr, ndtri
    from statsmodels.stats.contingency_tables import mcnemar
    from statsmodels.stats.multitest import multipletests
    from statsmodels.stats.proportion import proportion_confint
except ImportError as error:
    print(f"skipped: {error} (Debian: python3-scipy python3-statsmodels)")
    sys.exit(77)

SEED = int(os.environ.get("STATISTICS_SEED", "20261117"))
ROUNDS = 300
RELATIVE = 1e-9


class Peer:
    """The program under test; counts what was compared and keeps what differed."""

    def __init__(self, program):
        # pylint: disable=consider-using-with
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.compared = 0
        self.different = []

    def ask(self, *request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def compare(self, request, expected, absolute=1e-290):
        """Each number equal to RELATIVE or `absolute`; NaN there must be null here."""
        answer = self.ask(*request)
        expected = [float(x) for x in expected]
        good = len(answer) == len(expected)
        for ours, theirs in zip(answer, expected):
            if ours is None or math.isnan(theirs):
                good = good and ours is None and math.isnan(theirs)
            else:
                good = good and math.isclose(ours, theirs, rel_tol=RELATIVE, abs_tol=absolute)
        self.compared += 1
        if not good:
            self.different.append(f"{request[0]}{json.dumps(request[1:])[:200]}: {answer[:8]} instead of {expected[:8]}")


def check_quantiles(peer, p, df):
    """Student's quantile is checked through the distribution function: t.ppf() of scipy 1.10 is off by 1e-9."""
    normal, student = peer.ask("quantiles", p, df)
    if p < 0.5:
        back = scipy.stats.t.cdf(student, df)
    else:
        back, p = scipy.stats.t.sf(student, df), 1 - p
        normal = -normal
    peer.compared += 1
    if not math.isclose(normal, ndtri(p), rel_tol=RELATIVE) or not math.isclose(back, p, rel_tol=RELATIVE):
        peer.different.append(f"quantiles of {p}, {df}: {normal}, {student}")


def check_distributions(peer, random):
    for _ in range(ROUNDS):
        x = float(random.choice([random.normal(), 10 * random.normal(), random.uniform(-1e-3, 1e-3)]))
        df = float(random.choice([1, 2, 3, 9, 29, 1000, 10 ** random.uniform(-1, 6)]))
        peer.compare(("distributions", x, df), [
            ndtr(x), scipy.stats.norm.sf(x), scipy.stats.t.sf(x, df), scipy.stats.chi2.sf(x, df)])
        p = float(random.choice([random.uniform(), 10 ** random.uniform(-12, -1), 1 - 10 ** random.uniform(-9, -1)]))
        low = float(random.choice([1, 2, 3, 9, 100, 12345.5]))
        check_quantiles(peer, p, low)
        a, b = (float(10 ** random.uniform(-1, 5)) for _ in range(2))
        mean, spread = a / (a + b), math.sqrt(a * b / ((a + b) ** 2 * (a + b + 1)))
        share = float(min(max(mean + 3 * spread * random.normal(), 0), 1))
        peer.compare(("beta", share, a, b), [betainc(a, b, share)])
        n = int(random.choice([1, 10, 100, 10000, 1000000]))
        p = float(random.uniform())
        k = int(random.binomial(n, p))
        peer.compare(("binomial", k, n, p), [scipy.stats.binom.pmf(k, n, p), scipy.stats.binom.cdf(k, n, p)])


def check_estimates(peer, random):
    for _ in range(ROUNDS):
        n = int(random.integers(1, 200))
        c = int(random.integers(0, n + 1))
        level = float(random.choice([0.8, 0.9, 0.95, 0.99]))
        low, high = proportion_confint(c, n, alpha=1 - level, method="wilson")
        peer.compare(("wilson", c, n, level), [max(0, low) if c else 0, min(1, high) if c < n else 1])
        k = int(random.integers(1, n + 1))
        peer.compare(("passes", n, c, k), [
            1 - math.comb(n - c, k) / math.comb(n, k), math.comb(c, k) / math.comb(n, k),
            2 * c * (n - c) / (n * (n - 1)) if n > 1 else math.nan])
        groups = [list(random.integers(0, 5, random.integers(1, 6)) / 4.0) for _ in range(random.integers(2, 12))]
        groups = [[float(x) for x in g] for g in groups]
        pooled = numpy.concatenate(groups)
        sums = [float(numpy.sum(numpy.array(g) - pooled.mean())) for g in groups]
        error = math.sqrt(len(groups) / (len(groups) - 1) * sum(s * s for s in sums)) / len(pooled)
        if error > 1e-12:
            peer.compare(("cluster", groups), [pooled.mean(), error])
        x = sorted(float(v) for v in random.normal(size=random.integers(1, 50)))
        q = float(random.uniform())
        peer.compare(("quantile", x, q), [numpy.quantile(x, q)])


def check_tests(peer, random):
    for _ in range(ROUNDS):
        n = int(random.integers(2, 60))
        x, y = ([float(v) for v in random.integers(0, 6, n) / 5.0] for _ in range(2))
        difference = numpy.array(x) - numpy.array(y)
        if difference.std() > 0:
            test = scipy.stats.ttest_rel(x, y)
            peer.compare(("paired", x, y), [difference.mean(), difference.std(ddof=1) / math.sqrt(n),
                                            test.statistic, test.pvalue], 1e-14)
        b, c = int(random.integers(0, 40)), int(random.integers(0, 40))
        if b + c > 0:
            exact = mcnemar([[0, b], [c, 0]], exact=True).pvalue
            point = scipy.stats.binom.pmf(min(b, c), b + c, 0.5)
            tail = 2 * scipy.stats.binom.cdf(min(b, c), b + c, 0.5)
            peer.compare(("mcnemar", b, c), [exact, min(1, tail - point)])
        y = y[:int(random.integers(1, n + 1))]
        if len(set(x + y)) > 1:
            test = scipy.stats.mannwhitneyu(x, y, method="asymptotic", use_continuity=True)
            delta = numpy.sign(numpy.subtract.outer(x, y)).mean()
            peer.compare(("ranks", x, y), [test.statistic, test.pvalue, delta])
        groups = [[float(v) for v in random.integers(0, 9, random.integers(1, 20))]
                  for _ in range(random.integers(2, 6))]
        if len(set(sum(groups, []))) > 1:
            peer.compare(("kruskal", groups), scipy.stats.kruskal(*groups))
        p = [float(v) for v in random.uniform(size=random.integers(1, 30)) ** 2]
        peer.compare(("adjust", p), [*multipletests(p, method="holm")[1], *multipletests(p, method="fdr_bh")[1]])


def check_generator(peer, random):
    for _ in range(20):
        theirs = numpy.random.PCG64(int(random.integers(1, 2 ** 31)))
        state = theirs.state["state"]
        words = [state[name] >> shift & (2 ** 64 - 1) for name in ("state", "inc") for shift in (64, 0)]
        expected = [str(x) for x in theirs.random_raw(50)]
        peer.compared += 1
        answer = peer.ask("pcg", *[str(w) for w in words], 50)
        if answer != expected:
            peer.different.append(f"pcg: {answer[:3]} instead of {expected[:3]}")


def bca(x, y, resampled):
    """scipy's formulas, on our distribution: scipy draws other resamples."""
    def delta(a, b):
        return numpy.sign(numpy.subtract.outer(a, b)).mean()

    estimate = delta(x, y)
    share = ((resampled < estimate - 1e-12).mean() + (resampled < estimate + 1e-12).mean()) / 2
    bias = ndtri(share)
    cubes = squares = 0
    for sample, other, sign in ((x, y, 1), (y, x, -1)):
        n = len(sample)
        left_out = numpy.array([sign * delta(numpy.delete(sample, i), other) for i in range(n)])
        u = (n - 1) * (left_out.mean() - left_out)
        cubes += (u ** 3).sum() / n ** 3
        squares += (u ** 2).sum() / n ** 2
    a = cubes / (6 * squares ** 1.5)
    z = bias + ndtri([0.025, 0.975])
    return estimate, numpy.quantile(resampled, ndtr(bias + z / (1 - a * z)))


def check_bootstrap(peer, random):
    for _ in range(20):
        x, y = (random.integers(0, 8, random.integers(5, 30)) / 7.0 for _ in range(2))
        request = ("cliff", [float(v) for v in x], [float(v) for v in y], 2000, int(random.integers(1, 1000)))
        answer = peer.ask(*request)
        estimate, interval = bca(x, y, numpy.array(answer[3:]))
        ours, theirs = answer[:3], [estimate, *interval]
        peer.compared += 1
        if not numpy.allclose(ours, theirs, rtol=1e-9, atol=1e-12):
            peer.different.append(f"cliff: {ours} instead of {theirs}")
        # The distribution itself: an independent draw of numpy's, compared by mean and spread.
        draws = [numpy.sign(numpy.subtract.outer(random.choice(x, len(x)), random.choice(y, len(y)))).mean()
                 for _ in range(2000)]
        spread = max(numpy.std(draws), 1e-9)
        peer.compared += 1
        if abs(numpy.mean(answer[3:]) - numpy.mean(draws)) > 6 * spread / math.sqrt(1000) or \
                not 0.85 < numpy.std(answer[3:]) / spread < 1.15:
            peer.different.append("cliff: the resamples have another distribution than numpy's")


def check_power(peer, random):
    for _ in range(50):
        p1, p2 = (float(v) for v in random.uniform(0.05, 0.95, 2))
        if abs(p1 - p2) < 0.01:
            continue
        alpha, power, tasks = 0.05, float(random.uniform(0.5, 0.99)), float(random.integers(10, 1000))
        za, zb = -ndtri(alpha / 2), ndtri(power)
        mean = (p1 + p2) / 2
        unpaired = ((za * math.sqrt(2 * mean * (1 - mean)) + zb * math.sqrt(p1 * (1 - p1) + p2 * (1 - p2)))
                    / (p1 - p2)) ** 2
        paired = reached = math.nan
        if p2 <= p1:
            paired = ((za * math.sqrt(p1) + zb * math.sqrt(p1 - p2 ** 2)) / p2) ** 2
            reached = ndtr((p2 * math.sqrt(tasks) - za * math.sqrt(p1)) / math.sqrt(p1 - p2 ** 2))
        peer.compare(("power", p1, p2, alpha, power, tasks),
                     [unpaired, paired, reached, (za + zb) * p1 / math.sqrt(tasks)])


def check_sequential(peer, random):
    """Crossing probabilities by scipy's multivariate normal distribution are what the function may spend."""
    for looks in ([0.5, 1.0], [0.3, 0.6, 1.0], [0.25, 0.9]):
        bounds = numpy.array(peer.ask("sequential", looks, 0.05))
        covariance = [[math.sqrt(min(s, t) / max(s, t)) for t in looks] for s in looks]
        for k in range(1, len(looks) + 1):
            inside = 0.0
            joint = scipy.stats.multivariate_normal(numpy.zeros(k), numpy.array(covariance)[:k, :k])
            for corner in itertools.product((-1, 1), repeat=k):
                inside += math.prod(corner) * joint.cdf(bounds[:k] * corner)
            spent = 4 * scipy.stats.norm.sf(-ndtri(0.05 / 4) / math.sqrt(looks[k - 1]))
            peer.compared += 1
            if abs(1 - inside - spent) > 2e-4:
                peer.different.append(f"sequential {looks}: spends {1 - inside} instead of {spent}")
    del random


def alpha_by_definition(ratings, distance):
    """Krippendorff's alpha from pairs, without a matrix of coincidences."""
    units = [[r for r in unit if r is not None] for unit in ratings]
    units = [u for u in units if len(u) >= 2]
    pool = [r for u in units for r in u]
    observed = sum(distance(a, b, pool) / (len(u) - 1) for u in units for a, b in itertools.permutations(u, 2))
    expected = sum(distance(a, b, pool) for a, b in itertools.permutations(pool, 2)) / (len(pool) - 1)
    return 1 - observed / expected if expected else math.nan


def check_agreement(peer, random):
    def ordinal(a, b, pool):
        low, high = min(a, b), max(a, b)
        return (sum(1 for r in pool if low <= r <= high) - (pool.count(a) + pool.count(b)) / 2) ** 2 if a != b else 0

    scales = [lambda a, b, pool: a != b, ordinal, lambda a, b, pool: (a - b) ** 2]
    for _ in range(30):
        judges = int(random.integers(2, 5))
        ratings = [[None if random.uniform() < 0.2 else float(random.integers(0, 5)) for _ in range(judges)]
                   for _ in range(random.integers(2, 12))]
        if sum(sum(r is not None for r in u) >= 2 for u in ratings) == 0:
            continue
        peer.compare(("krippendorff", sum(ratings, []), judges),
                     [alpha_by_definition(ratings, scale) for scale in scales], 1e-12)


def main():
    peer = Peer(sys.argv[1])
    random = numpy.random.default_rng(SEED)
    for check in (check_distributions, check_estimates, check_tests, check_generator, check_bootstrap, check_power,
                  check_sequential, check_agreement):
        check(peer, random)
    peer.process.stdin.close()
    status = peer.process.wait(10)
    for line in peer.different[:20]:
        print(line)
    print(f"{peer.compared} compared, {len(peer.different)} different (seed {SEED})")
    return 1 if peer.different or status else 0


if __name__ == "__main__":
    sys.exit(main())
