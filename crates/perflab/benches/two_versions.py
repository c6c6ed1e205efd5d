#!/usr/bin/env python3
"""Holds two builds of perflab against each other: python3 two_versions.py OLD NEW [ROUNDS] [LKP-FOLDER]

Both do the same work in turn, each first in every other round. Printed is the CPU time (user and system) of each, the
median over the rounds, and the ratio new / old. The data are made here: 30,000 samples a run in Google Benchmark's
format, 1,416,100 traced insertions, a profile of the whole machine (where perf may record one), and this machine's
slab caches at 100 Hz (as root). A folder of lkp-tests is imported, too, where one is named.
"""

import json
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path


def run(command):
    """The exit code of a command, and the CPU seconds that it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    code = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return code, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def write_samples(path, scale):
    """1,000 benchmarks, 30 repetitions each; every other one differs by `scale`."""
    chance = random.Random(path.name)
    rows = [{"name": f"case/{case}", "run_name": f"case/{case}", "run_type": "iteration", "repetitions": 30,
             "repetition_index": repetition, "threads": 1, "iterations": 1000, "time_unit": "ns",
             "real_time": (value := (100 + case) * (scale if case % 2 else 1) * chance.gauss(1, 0.03)),
             "cpu_time": value} for case in range(1000) for repetition in range(30)]
    context = {"date": "2026-11-24T10:00:00+00:00", "host_name": "bench", "executable": "bench", "num_cpus": 2,
               "mhz_per_cpu": 2000, "caches": [], "load_avg": [0], "library_build_type": "release"}
    path.write_text(json.dumps({"context": context, "benchmarks": rows}))


def make_data(home, program):
    write_samples(home / "a.json", 1.0)
    write_samples(home / "b.json", 1.02)
    for side in "ab":
        run([program, "--archive", home / "compared", "import", home / f"{side}.json", "--label", side])
    run(["env", f"OPTRACE_FILE={home / 't.optrace'}", program, "load", "drv_rand_ops", "1416100", "intsrt"])
    run(["perf", "record", "-q", "-a", "-F", "4999", "-g", "-o", home / "p.data", "--", "sleep", "10"])


def list_work(home, archive, lkp):
    own = ["--archive", archive]
    yield "compare 2 x 1,000 cases x 30", [["--archive", home / "compared", "compare", "a", "b"]]
    yield "import 30,000 samples", [own + ["import", home / "a.json"]]
    if lkp:
        yield "import of lkp-tests", [own + ["import", lkp]]
    if (home / "p.data").exists():
        yield "import of perf.data", [own + ["flame", "import", home / "p.data"]]
    # Versions up to 0.1 have a verb of its own for it.
    trace = [home / "t.optrace", "--label", "t"]
    yield "import of 1.4 M operations", [own + ["import"] + trace, own + ["trace", "import"] + trace]
    yield "dots of 1.4 M operations", [own + ["trace", "plot", "t", "-o", home / "dots.png"]]
    yield "causes of 1.4 M operations", [own + ["trace", "causes", "t"]]
    yield "slab record, 100 Hz, 5 s", [own + ["slab", "record", "--every", "10ms", "--", "sleep", "5"]]
    yield "slab show", [own + ["slab", "show", "@latest"]]


def main(old, new, rounds="7", lkp=None):
    home = Path(tempfile.mkdtemp(prefix="perflab-versions-"))
    make_data(home, old)
    times = {}
    for number in range(int(rounds)):
        pair = [("old", old), ("new", new)]
        for name, program in pair if number % 2 == 0 else reversed(pair):
            archive = home / name
            shutil.rmtree(archive, ignore_errors=True)
            for work, commands in list_work(home, archive, lkp):
                for command in commands:
                    code, seconds = run([program, *command])
                    if code == 0:
                        times.setdefault(work, {}).setdefault(name, []).append(seconds)
                        break
    shutil.rmtree(home)
    for work, found in times.items():
        if len(found) == 2:
            before, after = statistics.median(found["old"]), statistics.median(found["new"])
            print(f"{work:30} old {before:7.3f} s  new {after:7.3f} s  ratio {after / before:.2f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
