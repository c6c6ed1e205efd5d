#!/usr/bin/env python3
"""Writes made-up results as MMTests logs, lets compare-mmtests.pl (commit 638401e of gormanm/mmtests) print its tables for
them, and keeps values and tables beside this script. Only its output is kept, none of its text.

    ./record.py MMTESTS-CHECKOUT     (needs perl, R, xz and the Perl modules that MMTests names)
"""
import json, lzma, pathlib, random, subprocess, sys, tempfile

here = pathlib.Path(__file__).parent
random.seed(20261121)

def around(centre, spread, n, digits):
    return [round(random.lognormvariate(0, spread) * centre, digits) for _ in range(n)]

SIDES = ["6.1-base", "6.2-rc3-vanilla", "6.2-rc3-patched"]
def three(centre, spread, n, digits, *ratios):
    return [around(centre * ratio, spread, n, digits) for ratio in (1.0, *ratios)]

DATA = {
    "hackbench-thread-pipes": {
        "time-1": three(0.11, 0.02, 7, 3, 1.0, 1.01),
        "time-7": three(0.62, 0.02, 7, 3, 0.92, 1.1),
        "time-24": three(1.93, 0.05, 7, 3, 1.0, 0.97),
    },
    "stream": {
        "Copy-8": three(21000, 0.01, 6, 1, 1.0, 1.03),
        "Scale-8": three(19000, 0.002, 6, 1, 1.02, 0.98),
        "Add-8": three(22000, 0.03, 6, 1, 0.94, 1.0),
        "Triad-8": three(23000, 0.01, 6, 1, 1.01, 0.9),
    },
    "perfpipe": {"usecs-op": three(4.4, 0.03, 40, 6, 1.0, 0.93)},
    "tbench": {
        "loadfile-1": three(31.0, 0.1, 120, 4, 1.0, 0.9),
        "loadfile-4": three(44.0, 0.3, 120, 4, 1.2, 1.0),
    },
}

def hackbench(folder, side):
    for label, sides in DATA["hackbench-thread-pipes"].items():
        text = "".join(f"     Total time: {value:.3f} [sec]\n" for value in sides[side])
        (folder / f"hackbench-{label.split('-')[1]}").write_text(text)

def stream(folder, side):
    for i in range(6):
        rows = [f"{label.split('-')[0] + ':':12}{sides[side][i]:12.1f}     0.016000     0.015000     0.017000\n"
                for label, sides in DATA["stream"].items()]
        head = "Function    Best Rate MB/s  Avg time     Min time     Max time\n"
        (folder / f"benchlog-8-_-{i + 1}").write_text(head + "".join(rows))

def perfpipe(folder, side):
    for i, value in enumerate(DATA["perfpipe"]["usecs-op"][side]):
        (folder / f"benchlog-_-_-{i + 1}").write_text(f"     {value:.6f} usecs/op\n")

def dbench(folder, side):
    for label, sides in DATA["tbench"].items():
        rows = [f"1 completed in {value:.4f} ms at time {i * 500} ms\n" for i, value in enumerate(sides[side])]
        with lzma.open(folder / f"benchlog-loadfile-{label.split('-')[1]}.xz", "wt") as out:
            out.write("".join(rows))

WRITERS = {"hackbench-thread-pipes": hackbench, "stream": stream, "perfpipe": perfpipe, "tbench": dbench}

with tempfile.TemporaryDirectory() as scratch:
    root = pathlib.Path(scratch)
    for side, name in enumerate(SIDES):
        iteration = root / name / "iter-0"
        for benchmark, write in WRITERS.items():
            logs = iteration / benchmark / "logs"
            logs.mkdir(parents=True)
            write(logs, side)
        lines = [f"test begin :: {b} 1\ntest end :: {b} 2 0\n" for b in DATA]
        (iteration / "tests-timestamp").write_text("start :: 0\n" + "".join(lines) + "finish :: 9\n")
    for benchmark in DATA:
        for suffix, options in (("", []), ("-ratio", ["--print-ratio"]), ("-significance", ["--print-significance"])):
            command = ["perl", f"{sys.argv[1]}/bin/compare-mmtests.pl", "-d", str(root), "-b", benchmark,
                       "-n", ",".join(SIDES), *options]
            printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            (here / f"{benchmark}{suffix}.txt").write_text(printed)
(here / "values.json").write_text(json.dumps({"sides": SIDES, "benchmarks": DATA}, indent=None) + "\n")
