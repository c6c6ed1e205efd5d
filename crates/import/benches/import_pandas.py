"""What a pandas user would write: both slab logs of an lkp folder into data frames, and a Parquet file of each.

usage: import_pandas.py FOLDER [REPEATS]; prints rows and the median of the repeats but the first. Needs pandas and pyarrow.
"""

import gzip
import statistics
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd

SLABINFO = ["active_objs", "num_objs", "objsize", "objperslab", "pagesperslab", "active_slabs", "num_slabs"]
TOOL = ["objects", "object_size", "slabs", "partial", "cpu", "objs_per_slab", "order", "free", "efficiency"]


def lines(path):
    """Lines with the time of their dump."""
    at = None
    with gzip.open(path, "rt") as log:
        for line in log:
            if line.startswith("time:"):
                at = int(line[5:])
            elif line.strip():
                yield at, line


def slabinfo(path):
    rows = []
    for at, line in lines(path):
        words = line.split()
        if len(words) == 16:
            rows.append([at, words[0], *words[1:6], words[13], words[14]])
    frame = pd.DataFrame(rows, columns=["time", "cache", *SLABINFO])
    frame[SLABINFO] = frame[SLABINFO].apply(pd.to_numeric)
    return frame


def slabinfo_tool(path):
    rows = []
    for at, line in lines(path):
        words = line.split()
        if words[0] != "Name":
            flags = words[9] if len(words) > 9 else ""
            rows.append([at, *words[:4], *words[4].split("/"), *words[5:9], flags])
    frame = pd.DataFrame(rows, columns=["time", "cache", *TOOL[:2], "space", *TOOL[2:], "flags"])
    frame[TOOL] = frame[TOOL].apply(pd.to_numeric)
    return frame


def once(folder, scratch):
    began, busy = time.perf_counter(), time.process_time()
    frames = {"slabinfo": slabinfo(folder / "slabinfo.gz"), "tool": slabinfo_tool(folder / "slabinfo_tool.gz")}
    for name, frame in frames.items():
        frame.to_parquet(scratch / f"{name}.parquet", compression="zstd")
    return time.perf_counter() - began, time.process_time() - busy, {name: len(frame) for name, frame in frames.items()}


def main():
    folder, repeats = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 7
    with tempfile.TemporaryDirectory() as scratch:
        results = [once(folder, Path(scratch)) for _ in range(repeats)]
    counted = results[1:] or results
    print(f"pandas {pd.__version__}: {results[0][2]}")
    print("median_wall_s", statistics.median(wall for wall, _, _ in counted))
    print("median_cpu_s", statistics.median(cpu for _, cpu, _ in counted))


main()
