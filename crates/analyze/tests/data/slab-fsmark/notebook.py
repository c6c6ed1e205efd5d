"""The figures of the slab notebook of 2019, by pandas, as JSON: notebook.py FOLDER OUT.json

An oracle for tests, written anew: the same steps, faults included, on a current pandas."""

import gzip
import json
import sys

import numpy as np
import pandas as pd

folder, out = sys.argv[1:]
TOOL = "time name objects size space slabs per_slab order free percent flags".split()
PROC = (
    "time name active total size per_slab pages tunables limit batch shared slabdata active_slabs slabs avail".split()
)


def log(name, width, heads):
    """Rows of words, numbers as such, each behind the time of its block; too short ones filled up."""
    time, rows = None, []
    for line in gzip.open(f"{folder}/{name}.gz", "rt"):
        words = [int(word) if word.isdigit() else word for word in line.split() if word != ":"]
        if words[0] == "time:":
            time = words[-1]
        elif words[0] not in heads:
            rows.append(([time, *words] + [None])[:width])
    return rows


def in_bins(values, bins):
    counts, edges = np.histogram(values, bins=bins)
    return {"low": float(edges[0]), "high": float(edges[-1]), "counts": counts.tolist()}


def points(series):
    return [[int(time), float(value)] for time, value in series.items()]


every = pd.DataFrame(log("slabinfo_tool", len(TOOL), {"Name"}), columns=TOOL)
tool = every[every.percent <= 100].copy()
tool["kb"] = [float(text[:-1]) * (1024 if text[-1] == "M" else 1) for text in tool.space]
by_tick = tool.groupby("time")
table = tool.groupby("name")[["percent", "kb"]].mean().sort_values("percent", kind="stable")

orders = dict(line.split() for line in gzip.open(f"{folder}/orders.gz", "rt"))
proc = pd.DataFrame(log("slabinfo", len(PROC), {"slabinfo", "#"}), columns=PROC)
order = proc.name.map(lambda name: int(orders.get(name, 0)))
with np.errstate(all="ignore"):
    packing = (proc.total * proc["size"] * 100 / (proc.slabs * (4096 * 2**order))).dropna()

json.dump(
    {
        "tool_rows": len(every),
        "dropped": len(every) - len(tool),
        "table": [[name, float(row.percent), float(row.kb)] for name, row in table.iterrows()],
        "unweighted": points(by_tick["percent"].mean()),
        "weighted": points(by_tick[["percent", "kb"]].apply(lambda tick: np.average(tick.percent, weights=tick.kb))),
        "dentry": points(tool[tool.name == "dentry"].set_index("time").percent),
        "tool_histogram": in_bins(tool.percent, 60),
        "proc_histogram": in_bins(packing, 100),
        "proc_rows": len(proc),
        "proc_empty": int(len(proc) - len(packing)),
        "minutes": (proc.time.max() - proc.time.min()) / 60,
    },
    open(out, "w"),
    indent=None,
    separators=(",", ":"),
)
