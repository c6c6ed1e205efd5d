"""Makes what the rows of `cargo xtask long peers` read: inputs.py KIND FILE...

go-benchmarks OLD NEW      two outputs of `go test -bench . -count 10`, 1,000 benchmarks each; every other one differs
google-benchmarks OLD NEW  the same in Google Benchmark's JSON, 30 repetitions each
slab-logs FOLDER           logs of /proc/slabinfo and of the kernel's slabinfo tool, of the size of those of 2019
points RUN FILE            operations of a recorded run as pairs of 32-bit numbers: which one, nanoseconds (needs pyarrow)
"""

import gzip
import json
import random
import sys
from pathlib import Path

CASES = 1_000


def draw_sides(repetitions):
    """Each side's values by case: the second is 2 % slower in every other case; the noise is 3 %."""
    chance = random.Random(2026)
    for side in range(2):
        yield [[(100 + case) * (1.02 if side and case % 2 else 1) * chance.gauss(1, 0.03)
                for _ in range(repetitions)] for case in range(CASES)]


def write_go_benchmarks(*paths):
    for path, side in zip(paths, draw_sides(10)):
        lines = [f"BenchmarkCase{case}-2 \t 1000000\t {value:.2f} ns/op"
                 for case, values in enumerate(side) for value in values]
        Path(path).write_text("\n".join(["goos: linux", "goarch: amd64", "pkg: example.org/peers", *lines, "PASS", ""]))


def write_google_benchmarks(*paths):
    context = {"date": "2026-11-24T10:00:00+00:00", "host_name": "peers", "executable": "peers", "num_cpus": 2,
               "mhz_per_cpu": 2000, "caches": [], "load_avg": [0], "library_build_type": "release"}
    for path, side in zip(paths, draw_sides(30)):
        rows = [{"name": f"case/{case}", "run_name": f"case/{case}", "run_type": "iteration", "repetitions": 30,
                 "repetition_index": index, "threads": 1, "iterations": 1000, "time_unit": "ns",
                 "real_time": value, "cpu_time": value}
                for case, values in enumerate(side) for index, value in enumerate(values)]
        Path(path).write_text(json.dumps({"context": context, "benchmarks": rows}))


def write_slab_logs(folder):
    folder = Path(folder)
    folder.mkdir(exist_ok=True)
    began, caches = 1_570_815_211, [(24 + 8 * (cache * 37 % 250), cache % 4) for cache in range(155)]
    with gzip.open(folder / "slabinfo.gz", "wt") as log:
        for tick in range(189):
            log.write(f"time: {began + tick}\nslabinfo - version: 2.1\n# name            <active_objs> <num_objs>\n")
            for cache, (size, order) in enumerate(caches):
                slabs, each = cache * 17 + tick * (cache % 7), (4096 << order) // size
                active = max(0, slabs * each - (tick * 7 + cache) % 50)
                log.write(f"cache_{cache:<18} {active:6} {slabs * each:6} {size:6} {each:4} {1 << order:4} : tunables"
                          f"    0    0    0 : slabdata {slabs:6} {slabs:6}      0\n")
    with gzip.open(folder / "slabinfo_tool.gz", "wt") as log:
        for tick in range(176):
            log.write(f"time: {began + tick}\nName                   Objects Objsize           Space Slabs/Part/Cpu"
                      "  O/S O %Fr %Ef Flg\n")
            for cache, (size, order) in enumerate(caches[:103]):
                slabs, each = cache * 17 + tick * (cache % 7), (4096 << order) // size
                log.write(f"cache_{cache:<15} {slabs * each:8} {size:7} {'212.9K':>15} {f'{slabs}/{cache % 5}/4':>14} {each:4}"
                          f" {order} {tick % 10:3} {90 + cache % 10:3} \n")


def write_points(run, path):
    import numpy
    import pyarrow.parquet as parquet

    wall = parquet.read_table(Path(run) / "events/optrace.parquet", columns=["wall_ns"]).column("wall_ns").to_numpy()
    points = numpy.empty((len(wall), 2), dtype="<u4")
    points[:, 0], points[:, 1] = numpy.arange(len(wall)), wall
    points.tofile(path)


KINDS = {"go-benchmarks": write_go_benchmarks, "google-benchmarks": write_google_benchmarks,
         "slab-logs": write_slab_logs, "points": write_points}

if __name__ == "__main__":
    KINDS[sys.argv[1]](*sys.argv[2:])
