#!/usr/bin/env python3
"""Writes made-up Go benchmark results (old.txt, new.txt) and keeps what benchstat prints for them.

    ./record.py BENCHSTAT     (go install golang.org/x/perf/cmd/benchstat@latest; recorded with v0.0.0-20260908200009)
"""
import pathlib, random, subprocess, sys

here = pathlib.Path(__file__).parent
random.seed(7)
# No case of 7, 8 or 11 values: there benchstat may leave out one value more at the upper end, perflab is symmetric.
CASES = {  # name: (n, old, new, spread, digits)
    "Encode": (10, 13600.0, 11800.0, 0.02, 1),
    "Decode": (10, 512.0, 515.0, 0.03, 1),
    "Ties": (9, 57.0, 58.0, 0.03, 0),
    "Short": (5, 2500.0, 2900.0, 0.05, 1),
    "Tiny": (3, 7.0, 9.0, 0.02, 2),
    "Equal": (6, 100.0, 100.0, 0.0, 0),
}

def lines(side):
    out = []
    for name, (n, old, new, spread, digits) in CASES.items():
        for _ in range(n):
            value = (old, new)[side] * random.lognormvariate(0, spread)
            out.append(f"Benchmark{name} 1000 {value:.{digits}f} ns/op")
    return "\n".join(out) + "\n"

for side, name in enumerate(["old.txt", "new.txt"]):
    (here / name).write_text(lines(side))
for suffix, options in (("txt", []), ("csv", ["-format", "csv"])):
    printed = subprocess.run([sys.argv[1], *options, "old.txt", "new.txt"], cwd=here, check=True, capture_output=True, text=True)
    (here / f"table.{suffix}").write_text(printed.stdout)
    if suffix == "csv":
        (here / "warnings.txt").write_text(printed.stderr)
