"""Reads a run with the snippets of docs/format.md: with other people's readers and not with ours.

    foreign_reader.py FORMAT.MD RUN REQUIRED...

Runs every block that is marked ```python NAME and whose module NAME can be imported, and prints a JSON
object: NAME to what the snippet found. A module that is missing is said on stderr; one of REQUIRED that is
missing, or that has no snippet, is a failure.
"""

import importlib.util
import json
import re
import sys


def snippets(document):
    """Name and code of each marked block."""
    return re.findall(r"^```python (\w+)\n(.*?)^```$", document, re.MULTILINE | re.DOTALL)


def read(code, run):
    """What a snippet leaves behind."""
    names = {"run": run}
    exec(compile(code, "format.md", "exec"), names)
    units = json.loads(names["units"]) if "units" in names else None
    return {"medians": [list(row) for row in names["medians"]], "rate": float(names["rate"]), "units": units}


def main(document, run, *required):
    found = {}
    with open(document, encoding="utf-8") as file:
        for name, code in snippets(file.read()):
            if importlib.util.find_spec(name):
                found[name] = read(code, run)
            else:
                print(f"SKIP {name}: not installed", file=sys.stderr)
    missing = sorted(set(required) - set(found))
    if missing:
        sys.exit(f"no result from {', '.join(missing)}")
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
