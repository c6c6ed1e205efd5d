"""An archive of really recorded runs, made once for all tests, and the program that made them."""

from __future__ import annotations

import atexit
import functools
import json
import os
import shutil
import subprocess
import tempfile
import unittest
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import perflab

#: Names that are markup, where somebody forgets to escape.
HOSTILE = "<img src=x onerror=alert(1)><script> & \"more\" it's"

STUDY = f"""
title = {json.dumps(HOSTILE)}
run = {{ iterations = 6, warmup = 1 }}
[workload.memory-sweep]
parameters = {{ size = "4MiB", passes = 8 }}
[factor.pages]
kind = "parameter"
levels = ["ordinary", "huge"]
[monitors]
vmstat = "5ms"
stat = "5ms"
"""


class Laboratory:
    """A folder with an archive: runs `before`, `after` and a hostile label of one study, `traced` of a command."""

    def __init__(self) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="perflab-python-"))
        atexit.register(shutil.rmtree, self.home, ignore_errors=True)
        os.environ["PERFLAB_STATE"] = str(self.home / "state")
        os.environ["PERFLAB_ARCHIVE"] = str(self.home / "archive")
        self.program = perflab.Program()
        (self.home / "mine.toml").write_text(STUDY, encoding="utf-8")
        for label in ("before", "after", HOSTILE):
            self.record("run", "mine.toml", "--no-report", "--label", label)
        self.record("trace", "run", "--label", "traced", "--", "perflab", "load", "drv_rand_ops", "2000", "intsrt")

    def record(self, *words: str) -> None:
        """Runs the program as a user does."""
        command = [str(self.program.path), *words, "--quiet"]
        if "--" in words:
            command = [str(self.program.path), "--quiet", *words]
        done = subprocess.run(command, cwd=self.home, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        if done.returncode != 0:
            raise AssertionError(f"{words} ended with {done.returncode}: {done.stderr.decode()}")

    def open(self) -> perflab.Archive:
        """The archive, as the environment names it."""
        return perflab.open()

    def copy(self) -> perflab.Archive:
        """The same runs in an archive of their own, to be damaged."""
        path = self.home / f"copy-{len(list(self.home.glob('copy-*')))}"
        shutil.copytree(self.home / "archive", path)
        return perflab.open(path)

    def say(self, *words: str) -> str:
        """What the program prints."""
        return self.program.run(words).decode()

    def say_json(self, *words: str) -> Any:
        """The same as JSON, by no code of the package."""
        command = [str(self.program.path), "--format", "json", *words]
        done = subprocess.run(command, cwd=self.home, stdin=subprocess.DEVNULL, capture_output=True, check=True)
        return json.loads(done.stdout)


@functools.lru_cache(maxsize=None)
def laboratory() -> Laboratory:
    """The one of this process."""
    return Laboratory()


class RecordedCase(unittest.TestCase):
    """Tests on the recorded archive. A warning that no test expects is a failure."""

    def setUp(self) -> None:
        self.laboratory = laboratory()
        self.archive = self.laboratory.open()
        caught = warnings.catch_warnings()
        caught.__enter__()
        self.addCleanup(caught.__exit__, None, None, None)
        warnings.simplefilter("error", perflab.PerflabWarning)

    def run_of(self, label: str) -> perflab.Run:
        """The one run with this label."""
        (run,) = self.archive.runs(label=label)
        return run

    def refusal(self, kind: type[perflab.PerflabError], call: Any, *arguments: Any, **options: Any) -> perflab.PerflabError:
        """The error that a call ends with."""
        with self.assertRaises(kind) as caught:
            call(*arguments, **options)
        error = caught.exception
        self.assertIs(type(error), kind)
        return error


def rows(table: Any) -> Sequence[dict[str, Any]]:
    """A table of pyarrow's as objects."""
    found: list[dict[str, Any]] = table.to_pylist()
    return found
