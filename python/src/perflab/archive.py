"""An archive of runs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Optional, Union

from .comparison import Comparison, RowOrder, Warmup, compare_words, read_comparison
from .errors import UsageError
from .picture import Picture
from .program import Program
from .run import Run, Runs, run_of_row

#: What names a side: a run, or what the command line takes: an id, a label, `@latest`, a file of another tool.
Side = Union[Run, str]


class Archive:
    """The directory that holds runs, as `perflab.open` opens it."""

    def __init__(
        self,
        path: Union[str, os.PathLike[str], None] = None,
        *,
        program: Union[Program, str, os.PathLike[str], None] = None,
    ) -> None:
        #: What is asked.
        self.program = program if isinstance(program, Program) else Program(program)
        #: Where it is.
        self.path = self.program.locate_archive() if path is None else Path(path).absolute()
        if self.path.exists() and not self.path.is_dir():
            raise UsageError(f"{self.path} is no directory", "name the folder that holds the folder `runs`")

    def __repr__(self) -> str:
        return f"Archive({str(self.path)!r})"

    def runs(
        self, *, label: Optional[str] = None, study: Optional[str] = None, last: Optional[int] = None
    ) -> Runs:
        """The runs, the oldest first: those with this label, of this study, the latest `last` of them.

        A study is named by its title, its file, or that without folder and ending. UsageError where no run has the label.
        """
        words = ["list"]
        if label is not None:
            words.append(f"--label={label}")
        if last is not None and last < 0:
            raise UsageError(f"there are no {last} latest runs", "name 0 or more")
        if last is not None and study is None:
            words.append(f"--last={last}")
        rows = self.program.ask(words, archive=self.path)
        runs = [run_of_row(row, self) for row in rows]
        if study is not None:
            runs = _latest_of_study(runs, study, last)
        return Runs(runs)

    @property
    def latest(self) -> Run:
        """The newest run; UsageError where there is none."""
        runs = self.runs(last=1)
        if not runs:
            raise UsageError(f"there is no run in {self.path}", "`perflab run quickstart` makes one")
        return runs[0]

    def compare(
        self,
        first: Side,
        /,
        *others: Side,
        by: Optional[str] = None,
        monitor: Optional[str] = None,
        metric: Union[str, Sequence[str]] = (),
        workload: Union[str, Sequence[str]] = (),
        where: Union[str, Sequence[str]] = (),
        versus: Union[str, Sequence[str]] = (),
        baseline: Optional[str] = None,
        sort: Optional[RowOrder] = None,
        across: bool = False,
        boots_differ: bool = False,
        warmup: Warmup = "keep",
        confidence: Union[str, float, None] = None,
        margin: Union[str, float, None] = None,
    ) -> Comparison:
        """What `perflab compare` says of these runs, or of the levels of a factor within one.

        The first is the baseline, unless `baseline` names another or a level. All options are those of the command line.
        """
        words = compare_words(
            [self._name_side(side) for side in (first, *others)],
            by=by,
            monitor=monitor,
            metric=metric,
            workload=workload,
            where=where,
            versus=versus,
            baseline=baseline,
            sort=sort,
            across=across,
            boots_differ=boots_differ,
            warmup=warmup,
            confidence=confidence,
            margin=margin,
        )
        return read_comparison(self, words)

    def plot(self, kind: str, *sides: Side, **options: Union[str, Sequence[str]]) -> Picture:
        """What `perflab plot` draws: `strip`, `ecdf`, `histogram`, `interval`, `scaling`, `timeline` or `heatmap`.

        The options are those of the command line, `x_range` of `--x-range`; a list gives an option several times.
        """
        words = ["--quiet", "plot", kind, "--output=-"]
        for name, values in options.items():
            option = name.rstrip("_").replace("_", "-")
            words += [f"--{option}={value}" for value in ([values] if isinstance(values, str) else values)]
        words += ["--", *(self._name_side(side) for side in sides)]
        return Picture(self.program.run(words, archive=self.path).decode())

    def _name_side(self, side: Side) -> str:
        if not isinstance(side, Run):
            return side
        # A run of another archive is named by its path.
        return side.id if side.archive.path == self.path else str(side.path)

    def _repr_html_(self) -> str:
        return self.runs()._repr_html_()


def _latest_of_study(runs: Sequence[Run], study: str, last: Optional[int]) -> list[Run]:
    chosen: list[Run] = []
    for run in reversed(runs):
        if last is not None and len(chosen) >= last:
            break
        if run.problem is None and study in (run.study, *_file_names(run)):
            chosen.append(run)
    return chosen[::-1]


def _file_names(run: Run) -> tuple[str, str, str]:
    """The study's file, that without its folder, and without its ending, too."""
    file = run.study_file
    name = file.rsplit("/", 1)[-1]
    return file, name, name[: -len(".toml")] if name.endswith(".toml") else name


def compare(
    first: Side, /, *others: Side, archive: Union[Archive, str, os.PathLike[str], None] = None, **options: Any
) -> Comparison:
    """What `perflab compare` says of these runs, or of the levels of a factor within one.

    The archive is that of the first run that is one, unless it is named. The options are those of Archive.compare.
    """
    if archive is None:
        archive = next((side.archive for side in (first, *others) if isinstance(side, Run)), None)
    opened = archive if isinstance(archive, Archive) else Archive(archive)
    return opened.compare(first, *others, **options)
