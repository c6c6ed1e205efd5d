#!/usr/bin/env python3
"""Makes the tables beside this file: python3 make_tables.py, with scipy 1.17.1 and numpy.

What SciPy offers is taken from SciPy. Rank intervals and exact tests with ties, which it does not offer, follow
their definitions by other roads than the Rust code: integer recursions over the sizes, or plain enumeration.
"""

import itertools
import json
from fractions import Fraction
from functools import lru_cache
from math import comb
from pathlib import Path

import numpy as np
from scipy import stats

rng = np.random.default_rng(20261121)
HERE = Path(__file__).parent


def write(name, rows):
    text = ",\n".join(json.dumps(row) for row in rows)
    (HERE / f"{name}.json").write_text(f"[\n{text}\n]\n")


def floats(values):
    return [float(value) for value in values]


def lognormal(n, shift=0.0):
    return floats(np.exp(rng.normal(4.0 + shift, 0.05, n)))


def coarse(n, shift=0):
    return floats(rng.integers(1, 9, n) + shift)


# --- one sample -----------------------------------------------------------------------------------------------

def one_sample():
    for n in (2, 3, 4, 5, 8, 13, 30, 101):
        for x in (lognormal(n), coarse(n)):
            yield {
                "x": x,
                "mean": float(np.mean(x)),
                "median": float(np.median(x)),
                "sd": float(np.std(x, ddof=1)),
                "mad": float(stats.median_abs_deviation(x)),
                "iqr": float(stats.iqr(x)),
                "geometric_mean": float(stats.gmean(x)),
                "quantiles": [[q, float(np.quantile(x, q))] for q in (0.0, 0.05, 0.1, 0.37, 0.9, 0.99, 1.0)],
            }


def median_intervals():
    for n in (1, 5, 6, 7, 10, 31, 100):
        for level in (0.9, 0.95):
            x = lognormal(n)
            s = sorted(x)
            k = max((k for k in range(1, n // 2 + 1) if stats.binom.cdf(k - 1, n, 0.5) <= (1 - level) / 2), default=0)
            row = {"x": x, "confidence": level, "value": float(np.median(x)), "interval": None}
            if k:
                row["interval"] = [s[k - 1], s[n - k], float(1 - 2 * stats.binom.cdf(k - 1, n, 0.5))]
            yield row


# --- independent samples --------------------------------------------------------------------------------------

@lru_cache(maxsize=None)
def u_counts(m, n):
    """Mann and Whitney's recursion on who has the largest value."""
    if m == 0 or n == 0:
        return (1,)
    counts = [0] * (m * n + 1)
    for u, count in enumerate(u_counts(m - 1, n)):
        counts[u + n] += count
    for u, count in enumerate(u_counts(m, n - 1)):
        counts[u] += count
    return tuple(counts)


def rank_limits(counts, values, confidence, slack=1e-9):
    """Order statistics C and its mirror image, C the largest with P(S <= C - 1) <= alpha / 2."""
    total, below, rank, level = sum(counts), 0, 0, None
    for value, count in enumerate(counts):
        below += count
        if below / total > (1 - confidence) / 2 * (1 + slack):
            break
        rank, level = value + 1, 1 - 2 * below / total
    return None if rank == 0 else [values[rank - 1], values[len(values) - rank], level]


def normal_limits(mean, sd, values, confidence):
    rank = int(np.floor(mean + stats.norm.ppf((1 - confidence) / 2) * sd + 0.5))
    level = 1 - 2 * stats.norm.cdf((rank - 0.5 - mean) / sd)
    return None if rank < 1 else [values[rank - 1], values[len(values) - rank], float(level)]


def hodges_lehmann():
    sizes = [(1, 1), (2, 3), (3, 3), (4, 4), (3, 9), (5, 5), (6, 6), (7, 8), (10, 10), (12, 30), (30, 30), (50, 50), (60, 55)]
    for (m, n), confidence in itertools.product(sizes, (0.9, 0.95, 0.99)):
        x, y = lognormal(m), lognormal(n, 0.03)
        row = {"x": x, "y": y, "confidence": confidence}
        for name, f in (("shift", float), ("ratio", np.log)):
            d = sorted(float(f(b)) - float(f(a)) for a in x for b in y)
            if m * n <= 2500:
                limits = rank_limits(u_counts(m, n), d, confidence)
            else:
                limits = normal_limits(m * n / 2, np.sqrt(m * n * (m + n + 1) / 12), d, confidence)
            value = float(np.median(d))
            if name == "ratio":
                value = float(np.exp(value))
                limits = limits and [float(np.exp(limits[0])), float(np.exp(limits[1])), limits[2]]
            row[name] = {"value": value, "interval": limits}
        yield row


def permutation_p(x, y):
    """Over all choices of y, counted in integers by size and sum of doubled midranks."""
    ranks = [round(2 * rank) for rank in stats.rankdata(x + y)]
    counts = {(0, 0): 1}
    for rank in ranks:
        more = dict(counts)
        for (taken, total), ways in counts.items():
            if taken < len(y):
                more[taken + 1, total + rank] = more.get((taken + 1, total + rank), 0) + ways
        counts = more
    sums = {total: ways for (taken, total), ways in counts.items() if taken == len(y)}
    seen = sum(ranks[len(x):])
    low = sum(ways for total, ways in sums.items() if total <= seen)
    high = sum(ways for total, ways in sums.items() if total >= seen)
    return float(min(Fraction(1), Fraction(2 * min(low, high), sum(sums.values()))))


def mann_whitney():
    for m, n in [(1, 1), (2, 2), (3, 3), (4, 6), (5, 5), (8, 8), (10, 10), (20, 17), (30, 30), (50, 50)]:
        x, y = lognormal(m), lognormal(n, 0.04)
        r = stats.mannwhitneyu(y, x, method="exact")
        yield {"x": x, "y": y, "u": float(r.statistic), "p": float(r.pvalue), "method": "Exact"}
    for m, n in [(3, 3), (4, 5), (6, 6), (7, 5), (9, 8), (2, 20)]:
        x, y = coarse(m), coarse(n, 2)
        y[0] = x[0]
        u = float(stats.mannwhitneyu(y, x).statistic)
        yield {"x": x, "y": y, "u": u, "p": permutation_p(x, y), "method": "ExactWithTies"}
    for m, n, ties in [(12, 12, True), (30, 30, True), (80, 60, True), (60, 70, False)]:
        x, y = (coarse(m), coarse(n, 1)) if ties else (lognormal(m), lognormal(n, 0.01))
        r = stats.mannwhitneyu(y, x, method="asymptotic", use_continuity=True)
        exact = ties and m * n <= 2500
        p, method = (permutation_p(x, y), "ExactWithTies") if exact else (float(r.pvalue), "Normal")
        yield {"x": x, "y": y, "u": float(r.statistic), "p": p, "method": method}


# --- paired samples -------------------------------------------------------------------------------------------

def v_counts(n):
    """Wilcoxon's recursion on the sign of the largest rank."""
    counts = [1]
    for rank in range(1, n + 1):
        counts = [a + b for a, b in zip(counts + [0] * rank, [0] * rank + counts)]
    return counts


def pseudo_median():
    for n, confidence in itertools.product((1, 4, 5, 6, 7, 10, 20, 50, 60), (0.9, 0.95, 0.99)):
        x = lognormal(n)
        y = floats(np.array(x) * np.exp(rng.normal(0.02, 0.03, n)))
        row = {"x": x, "y": y, "confidence": confidence}
        for name, f in (("shift", float), ("ratio", np.log)):
            d = [float(f(b)) - float(f(a)) for a, b in zip(x, y)]
            walsh = sorted((d[i] + d[j]) / 2 for i in range(n) for j in range(i, n))
            if n <= 50:
                limits = rank_limits(v_counts(n), walsh, confidence)
            else:
                limits = normal_limits(n * (n + 1) / 4, np.sqrt(n * (n + 1) * (2 * n + 1) / 24), walsh, confidence)
            value = float(np.median(walsh))
            if name == "ratio":
                value = float(np.exp(value))
                limits = limits and [float(np.exp(limits[0])), float(np.exp(limits[1])), limits[2]]
            row[name] = {"value": value, "interval": limits}
        yield row


def sign_flip_p(d):
    ranks = stats.rankdata(np.abs(d))
    sums = [sum(r for r, plus in zip(ranks, signs) if plus) for signs in itertools.product((0, 1), repeat=len(d))]
    seen = sum(r for r, v in zip(ranks, d) if v > 0)
    low = sum(s <= seen for s in sums) / len(sums)
    high = sum(s >= seen for s in sums) / len(sums)
    return seen, min(1.0, 2 * min(low, high))


def signed_rank():
    for n in (1, 2, 5, 6, 10, 25, 50):
        x = lognormal(n)
        y = floats(np.array(x) * np.exp(rng.normal(0.02, 0.04, n)))
        d = np.array(y) - np.array(x)
        r = stats.wilcoxon(d, method="exact")
        positive = float(sum(stats.rankdata(np.abs(d))[d > 0]))
        yield {"x": x, "y": y, "positive": positive, "pairs": n, "p": float(r.pvalue), "method": "Exact"}
    for n in (4, 6, 9, 13):
        x, y = coarse(n), coarse(n, 1)
        x[1], y[1], x[2], y[2] = 3.0, 5.0, 6.0, 4.0
        d = [b - a for a, b in zip(x, y) if a != b]
        positive, p = sign_flip_p(d)
        yield {"x": x, "y": y, "positive": float(positive), "pairs": len(d), "p": p, "method": "ExactWithTies"}
    for n, ties in ((80, True), (70, False)):
        x, y = (coarse(n), coarse(n, 1)) if ties else (lognormal(n), lognormal(n, 0.02))
        d = np.array([b - a for a, b in zip(x, y) if a != b])
        r = stats.wilcoxon(d, method="approx", correction=True)
        positive = float(sum(stats.rankdata(np.abs(d))[d > 0]))
        yield {"x": x, "y": y, "positive": positive, "pairs": len(d), "p": float(r.pvalue), "method": "Normal"}


# --- many metrics, order, planning ----------------------------------------------------------------------------

def benjamini_hochberg():
    for n in (1, 2, 5, 50):
        p = floats(rng.beta(0.5, 2.0, n))
        yield {"p": p, "q": floats(stats.false_discovery_control(p))}
    p = [0.01, 0.04, 0.03, 0.03, 1.0, 0.0]
    yield {"p": p, "q": floats(stats.false_discovery_control(p))}


def spearman():
    for n in (3, 5, 7, 8):
        x, y = lognormal(n), lognormal(n)
        rho = float(stats.spearmanr(x, y).statistic)
        a, b = stats.rankdata(x), stats.rankdata(y)
        seen = int(round(sum((a - b) ** 2)))
        sums = [sum((i - j) ** 2 for i, j in enumerate(order)) for order in itertools.permutations(range(n))]
        tails = sum(s <= seen for s in sums), sum(s >= seen for s in sums)
        yield {"x": x, "y": y, "rho": rho, "p": min(1.0, 2 * min(tails) / len(sums)), "method": "Exact"}
    for n, ties in ((9, True), (11, False), (30, False), (30, True), (200, False)):
        x, y = (coarse(n), coarse(n)) if ties else (lognormal(n), lognormal(n))
        r = stats.spearmanr(x, y)
        yield {"x": x, "y": y, "rho": float(r.statistic), "p": float(r.pvalue), "method": "StudentT"}


def autocorrelation():
    for n in (3, 10, 40):
        x = np.cumsum(rng.normal(0, 1, n))
        c = x - x.mean()
        yield {"x": floats(x), "rho": float(np.correlate(c, c, "full")[n] / np.dot(c, c))}


def planning():
    efficiency = 3 / np.pi
    for pairing, sides in (("Independent", 2), ("Paired", 1)):
        for confidence, power, sd in ((0.95, 0.8, 0.02), (0.9, 0.9, 1.0), (0.99, 0.8, 3.0)):
            alpha = 1 - confidence

            def reach(n, t_sum):
                return sd * t_sum(sides * (n - 1)) * np.sqrt(sides / (efficiency * n))

            def detect(v):
                return stats.t.ppf(1 - alpha / 2, v) + stats.t.ppf(power, v)

            def same(v):
                return stats.t.ppf(1 - alpha, v) + stats.t.ppf((1 + power) / 2, v)

            def width(v):
                return stats.t.ppf(1 - alpha / 2, v)

            least = (lambda n: 2 / comb(2 * n, n)) if sides == 2 else (lambda n: 2 / 2**n)
            fewest = next(n for n in range(2, 99) if least(n) <= alpha * (1 + 1e-9))
            for size in (2.5, 1.0, 0.4, 0.11):
                def needed(t_sum):
                    return next(n for n in range(fewest, 10**6) if reach(n, t_sum) <= size * sd)

                yield {
                    "pairing": pairing, "confidence": confidence, "power": power, "sd": sd, "size": size * sd,
                    "detectable": [[n, float(reach(n, detect))] for n in (2, 5, 10, 30, 100)],
                    "detect": needed(detect), "same": needed(same), "half_width": needed(width),
                }


for table in (one_sample, median_intervals, hodges_lehmann, mann_whitney, pseudo_median, signed_rank,
              benjamini_hochberg, spearman, autocorrelation, planning):
    write(table.__name__, table())
