"""The notebooks that ship were executed, and run again: by jupyter where it is there, else cell by cell."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

import perflab

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"

#: What nobody wants to load from a repository.
LARGEST = 300_000

#: Runs cells as a notebook does: the last expression of each is shown.
RUNNER = """
import ast, json, sys
space = {"__name__": "__main__"}
for cell in json.load(sys.stdin):
    *rest, last = ast.parse(cell).body
    if not isinstance(last, ast.Expr):
        rest, last = [*rest, last], None
    exec(compile(ast.Module(rest, []), "cell", "exec"), space)
    if last is not None:
        value = eval(compile(ast.Expression(last.value), "cell", "eval"), space)
        print(value._repr_html_() if hasattr(value, "_repr_html_") else repr(value))
"""


#: Runs a notebook as jupyter does, in a folder.
JUPYTER = """
import sys
import nbformat
from nbclient import NotebookClient
path, folder = sys.argv[1:]
resources = {"metadata": {"path": folder}}
NotebookClient(nbformat.read(path, 4), timeout=300, kernel_name="python3", resources=resources).execute()
"""


def read_cells(path: Path) -> list[dict[str, Any]]:
    """The cells of code."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


class NotebookTest(unittest.TestCase):
    def test_notebooks_hold_their_outputs(self) -> None:
        paths = sorted(NOTEBOOKS.glob("*.ipynb"))
        self.assertEqual(len(paths), 2)
        for path in paths:
            self.assertLess(path.stat().st_size, LARGEST, path.name)
            cells = read_cells(path)
            self.assertEqual([cell["execution_count"] for cell in cells], list(range(1, len(cells) + 1)), path.name)
            kinds = [output["output_type"] for cell in cells for output in cell["outputs"]]
            self.assertGreaterEqual(len(kinds), len(cells) - 1, path.name)
            self.assertNotIn("error", kinds, path.name)

    def test_notebooks_run_again(self) -> None:
        if importlib.util.find_spec("pandas") is None:
            self.skipTest("no pandas")
        for path in sorted(NOTEBOOKS.glob("*.ipynb")):
            with self.subTest(path.name), tempfile.TemporaryDirectory() as folder:
                environment = {**os.environ, "PERFLAB_PROGRAM": str(perflab.find_program())}
                environment["PERFLAB_STATE"] = str(Path(folder) / "state")
                environment["PYTHONPATH"] = os.pathsep.join(os.path.abspath(entry) for entry in sys.path if entry)
                if importlib.util.find_spec("nbclient") and importlib.util.find_spec("ipykernel"):
                    command = [sys.executable, "-c", JUPYTER, str(path), folder]
                    done = subprocess.run(command, env=environment, capture_output=True, check=False)
                else:
                    cells = ["".join(cell["source"]) for cell in read_cells(path)]
                    done = subprocess.run(
                        [sys.executable, "-c", RUNNER],
                        input=json.dumps(cells).encode(),
                        cwd=folder,
                        env=environment,
                        capture_output=True,
                        check=False,
                    )
                self.assertEqual(done.returncode, 0, done.stderr.decode(errors="replace"))


if __name__ == "__main__":
    unittest.main()
