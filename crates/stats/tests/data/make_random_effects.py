#!/usr/bin/env python3
"""Makes random_effects.json beside this file: python3 make_random_effects.py, with numpy and scipy.

By another road than the Rust code: dense matrices, a general optimiser from several starts, and Kenward and Roger's sums as they
are printed (Biometrics 53, 1997, section 3), not as derivatives.
"""

import json
from pathlib import Path

import numpy as np
from scipy import optimize

HERE = Path(__file__).parent

# Snedecor and Cochran, Statistical Methods: conceptions by semen of six bulls, in per cent.
BULLS = [
    [46, 31, 37, 62, 30],
    [70, 59],
    [52, 44, 57, 40, 67, 64, 70],
    [47, 21, 70, 46, 14],
    [42, 64, 50, 69, 77, 81, 87],
    [35, 68, 59, 38, 57, 76, 57, 29, 60],
]
# Davies and Goldsmith, Statistical Methods in Research and Production: 10 batches, 3 casks each, 2 assays; lme4's Pastes.
PASTES = """62.8 62.6 60.1 62.3 62.7 63.1 60 61.4 57.5 56.9 61.1 58.9 58.7 57.5 63.9 63.1 65.4 63.7 57.1 56.4 56.9 58.6 64.7 64.5
55.1 55.1 54.7 54.2 58.8 57.5 63.4 64.9 59.3 58.1 60.5 60 62.5 62.6 61 58.7 56.9 57.7 59.2 59.4 65.2 66 64.8 64.1 54.8 54.8 64
64 57.7 56.8 58.3 59.3 59.2 59.2 58.9 56.6"""


def bulls():
    return [([bull], float(value)) for bull, values in enumerate(BULLS) for value in values]


def pastes(keep):
    values = [float(value) for value in PASTES.split()]
    paths = [[at // 6, at // 2 % 3] for at in range(60)]
    return [(path, value) for at, (path, value) in enumerate(zip(paths, values)) if keep(at, path)]


def design(rows):
    depth = len(rows[0][0])
    paths = [[tuple(path[: level + 1]) for path, _ in rows] for level in range(depth)]
    n = len(rows)
    parts = [np.array([[float(a == b) for b in level] for a in level]) for level in paths]
    return parts + [np.eye(n)], np.array([value for _, value in rows]), np.ones((n, 1))


def criterion(variances, parts, y, x):
    v = sum(s * part for s, part in zip(variances, parts))
    w = np.linalg.inv(v)
    a = x.T @ w @ x
    p = w - w @ x @ np.linalg.inv(a) @ x.T @ w
    n, k = x.shape
    return (
        np.linalg.slogdet(v)[1] + np.linalg.slogdet(a)[1] + y @ p @ y + (n - k) * np.log(2 * np.pi),
        w,
        p,
    )


def fit(rows):
    parts, y, x = design(rows)
    starts = [np.full(len(parts), np.var(y) / len(parts)), np.array([0.01] * (len(parts) - 1) + [1.0]) * np.var(y)]
    runs = [
        optimize.minimize(
            lambda roots: criterion(np.square(roots), parts, y, x)[0] if abs(roots[-1]) > 1e-3 else np.inf,
            np.sqrt(start),
            method="Nelder-Mead",
            options={"xatol": 1e-10, "fatol": 1e-13, "maxiter": 40000, "maxfev": 40000},
        )
        for start in starts
    ]
    best = min(runs, key=lambda run: run.fun)
    variances = np.square(best.x)
    variances[variances < 1e-7 * variances.sum()] = 0.0
    value, w, p = criterion(variances, parts, y, x)
    phi = np.linalg.inv(x.T @ w @ x)
    estimate = (phi @ x.T @ w @ y)[0]
    count = range(len(parts))
    information = np.array([[0.5 * np.trace(p @ parts[i] @ p @ parts[j]) for j in count] for i in count])
    covariance = np.linalg.inv(information)
    pi = [-x.T @ w @ parts[i] @ w @ x for i in count]
    q = [[x.T @ w @ parts[i] @ w @ parts[j] @ w @ x for j in count] for i in count]
    sums = sum(covariance[i, j] * (q[i][j] - pi[i] @ phi @ pi[j]) for i in count for j in count)
    adjusted = phi + 2 * phi @ sums @ phi
    theta = (phi @ phi / phi)[0, 0]
    gradient = np.array([(phi @ pi[i] @ phi)[0, 0] for i in count])
    freedom = 2 * theta**2 / (gradient @ covariance @ gradient)
    return {
        "values": [[path, value] for path, value in rows],
        "variances": variances.tolist(),
        "criterion": float(value),
        "mean": float(estimate),
        "plain_error": float(np.sqrt(theta)),
        "standard_error": float(np.sqrt(max(adjusted[0, 0], theta))),
        "freedom": float(freedom),
    }


def flat():
    """Groups that differ less than their values: the variance between them is zero."""
    groups = [[1.0, 4.0, 2.5], [2.0, 3.1], [0.5, 2.2, 4.4, 3.0], [2.6, 2.4, 2.9, 1.1, 3.8]]
    return [([group], value) for group, values in enumerate(groups) for value in values]


rows = []
for name, data in [
    ("bulls", bulls()),
    ("flat", flat()),
    ("pastes, a third left out", pastes(lambda at, path: at % 3 != 1)),
    ("pastes, casks of unequal number", pastes(lambda at, path: path[1] <= path[0] % 3 and (at % 5 != 0))),
]:
    found = {"name": name, **fit(data)}
    rows.append(found)
text = ",\n".join(json.dumps(row) for row in rows)
(HERE / "random_effects.json").write_text(f"[\n{text}\n]\n")
