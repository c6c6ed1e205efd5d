#!/usr/bin/env python3
"""Makes the second set of tables beside this file: python3 make_more_tables.py, with scipy 1.17.1 and numpy.

As in make_tables.py, whatever SciPy does not offer follows its definition by another road than the Rust code: sums over
all pairs, dynamic programming without pruning.

The samples in the tables were drawn by a version of this script that drew for more tables: a new run draws others.
"""

import itertools
import json
from pathlib import Path

import numpy as np
from scipy import stats
from scipy.stats._resampling import _bca_interval

rng = np.random.default_rng(5)
HERE = Path(__file__).parent


def write(name, rows):
    text = ",\n".join(json.dumps(row) for row in rows)
    (HERE / f"{name}.json").write_text(f"[\n{text}\n]\n")


def floats(values):
    return [float(value) for value in values]


def times(n, shift=0.0, sd=0.05):
    return floats(np.exp(rng.normal(4.0 + shift, sd, n)))


def best_of():
    """MMTests' Stat.pm in words: sort best first, keep int(n * P / 100), at least one."""
    for n, percent, higher in itertools.product((1, 2, 5, 20, 47), (5, 50, 95, 99, 100), (False, True)):
        x = times(n, sd=0.3)
        best = sorted(x, reverse=higher)[: max(1, int(n * percent / 100))]
        yield {
            "x": x, "percent": percent, "higher": higher, "percentile": best[-1],
            "mean": float(stats.hmean(best) if higher else np.mean(best)),
            "harmonic_sd": float(np.sqrt(stats.hmean(x) ** 4 * np.mean((1 / np.array(x) - 1 / stats.hmean(x)) ** 2))),
        }


def levels():
    for repetitions in ((4, 3), (10, 5), (2, 2, 2), (5, 4, 3), (3, 2, 4, 3)):
        shape = tuple(reversed(repetitions))
        values = np.full(shape, 100.0)
        for level in range(len(shape)):
            values += rng.normal(0, 1 + level, shape[: level + 1] + (1,) * (len(shape) - level - 1))
        observed, means = [], values
        for _ in repetitions:
            observed.append(float(np.mean(np.var(means, axis=-1, ddof=1))))
            means = means.mean(axis=-1)
        own = [observed[0]] + [max(0.0, observed[i] - observed[i - 1] / repetitions[i - 1]) for i in range(1, len(observed))]
        yield {"values": floats(values.ravel()), "repetitions": list(repetitions), "mean": float(values.mean()), "observed": observed, "components": own}


def bca():
    for n, two in ((5, False), (8, False), (6, True)):
        data = [np.array(times(n, 0.1 * i, 0.3)) for i in range(1 + two)]
        statistic = (lambda a, b, axis: np.mean(b, axis) / np.mean(a, axis)) if two else (lambda a, axis: np.mean(a, axis))
        draws = [np.array([rng.choice(d, len(d)) for _ in range(300)]) for d in data]
        replicates = statistic(*draws, axis=-1)
        value = statistic(*data, axis=-1)
        low, high, acceleration = (float(np.ravel(v)[0]) for v in _bca_interval(
            data, statistic, axis=-1, alpha=0.025, theta_hat_b=replicates, batch=len(data[0]), xp=np))
        yield {"sides": [floats(d) for d in data], "replicates": floats(replicates), "value": float(value),
               "acceleration": acceleration,
               "limits": floats(np.quantile(replicates, [low, high]))}


def energy():
    def q(x, y):
        a, b = len(x), len(y)
        mean = lambda v: 2 * sum(abs(p - r) for p, r in itertools.combinations(v, 2)) / (len(v) * (len(v) - 1)) if len(v) > 1 else 0
        return a * b / (a + b) * (2 / (a * b) * sum(abs(p - r) for p in x for r in y) - mean(x) - mean(y))

    for n, shortest, step in ((2, 1, 0), (7, 1, 3), (14, 3, 0), (30, 5, 2), (40, 1, 1)):
        x = floats(rng.normal(0, 1, n) + step * (np.arange(n) > n // 3))
        best = max((q(x[:t], x[t:k]), -t) for t in range(shortest, n) for k in range(t + shortest, n + 1))
        yield {"x": x, "shortest": shortest, "index": -best[1], "distance": best[0]}


def segment_costs():
    """Every cut tried, costs from the values themselves."""
    for n, penalty in ((10, 5.0), (60, 10.0), (120, 15 * np.log(120)), (90, 3.0)):
        x = rng.normal(0, 1, n) + 4 * (np.arange(n) < n // 5) + np.where(np.arange(n) > n // 2, rng.normal(0, 3, n), 0)
        least = np.var(x) * 1e-6

        def cost(part):
            v = max(np.var(part), least)
            return len(part) * (np.log(2 * np.pi * v) + np.var(part) / v)

        best, start = [-penalty] + [np.inf] * n, [0] * (n + 1)
        for end in range(2, n + 1):
            best[end], start[end] = min((best[s] + cost(x[s:end]) + penalty, s) for s in range(end - 1))
        ends, end = [], n
        while end:
            ends.append(end)
            end = start[end]
        yield {"x": floats(x), "penalty": float(penalty), "ends": ends[::-1]}


for table in (best_of, levels, bca, energy, segment_costs):
    write(table.__name__, table())
