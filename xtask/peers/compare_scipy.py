"""What a user of SciPy would write to compare two results of Google Benchmark: for each case Mann and Whitney's test,
Hodges and Lehmann's shift with its 95 % interval, and p-values corrected for their number. compare_scipy.py OLD NEW
"""

import json
import sys
from collections import defaultdict

import numpy
from scipy import stats


def read_cases(path):
    cases = defaultdict(list)
    with open(path) as file:
        for row in json.load(file)["benchmarks"]:
            cases[row["run_name"]].append(row["real_time"])
    return cases


def main(old, new):
    old, new = read_cases(old), read_cases(new)
    names = [name for name in old if name in new]
    x, y = (numpy.array([side[name] for name in names]) for side in (old, new))
    p = stats.mannwhitneyu(x, y, axis=1).pvalue
    q = stats.false_discovery_control(p)
    ratios = numpy.sort((y[:, :, None] / x[:, None, :]).reshape(len(names), -1), axis=1)
    pairs, m, n = ratios.shape[1], x.shape[1], y.shape[1]
    cut = int(pairs / 2 - stats.norm.ppf(0.975) * (m * n * (m + n + 1) / 12) ** 0.5)
    medians = zip(names, numpy.median(x, axis=1), numpy.median(y, axis=1), numpy.median(ratios, axis=1),
                  ratios[:, cut], ratios[:, pairs - 1 - cut], q)
    for name, before, after, ratio, low, high, corrected in medians:
        verdict = "unclear" if corrected >= 0.05 else "better" if ratio < 1 else "worse"
        print(f"{name:12} {before:9.2f} {after:9.2f} {ratio - 1:+7.2%} [{low - 1:+7.2%}, {high - 1:+7.2%}] {verdict} {corrected:.3f}")


main(*sys.argv[1:])
