"""What a user of datashader would write: pairs of 32-bit numbers as dots over a logarithmic axis, counted, in one picture.

usage: peer_datashader.py POINTS PICTURE. Draws once, so that numba has compiled; then, for each line that it is sent, from
the file to the file, and answers with nanoseconds of CPU, KiB at the peak, and nanoseconds of wall time.
"""

import resource
import sys
import time

import datashader
import numpy
import pandas
from datashader import transfer_functions


def frame(points):
    pairs = numpy.fromfile(points, dtype="<u4").reshape(-1, 2)
    return pandas.DataFrame({"x": pairs[:, 0], "y": pairs[:, 1]})


def draw(table, picture):
    canvas = datashader.Canvas(plot_width=2160, plot_height=1920, y_axis_type="log")
    counts = canvas.points(table, "x", "y")
    image = transfer_functions.shade(counts, cmap=["#dcb6b6", "#8f1d1d"], how="log")
    transfer_functions.set_background(image, "white").to_pil().save(picture, format="PNG")


def main():
    points, picture = sys.argv[1:]
    draw(frame(points).head(1000), picture)
    for _ in sys.stdin:
        wall, busy = time.perf_counter_ns(), time.process_time_ns()
        draw(frame(points), picture)
        cpu, peak = time.process_time_ns() - busy, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(cpu, peak, time.perf_counter_ns() - wall, flush=True)


main()
