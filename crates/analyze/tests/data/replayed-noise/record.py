"""Records how three programs scatter on a machine that others use: `python3 record.py > recorded.csv`.

The commands take turns, so that all of them see the same machine; each value is one process from its start to its end, in
seconds. Nothing is left out. recorded.csv: two virtual CPUs, while four people built kernels and Rust on them, November 2026.
"""

import subprocess
import time

COMMANDS = {
    "compress": ["gzip", "-6", "-c", "/usr/bin/git"],
    "interpreter": ["python3", "-c", "import json, decimal, email.message"],
    "tree": ["find", "/usr/lib", "-name", "*.so.6"],
}

print("command,seconds")
for _ in range(600):
    for name, argv in COMMANDS.items():
        began = time.perf_counter()
        subprocess.run(argv, stdout=subprocess.DEVNULL, check=True)
        print(f"{name},{time.perf_counter() - began:.6f}", flush=True)
