"""A run of the archive, and several."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional, Union, overload

import pyarrow as pa

from . import html
from .errors import ArchiveError, PerflabError, PerflabWarning
from .picture import Picture
from .tables import join_tables, read_hashes, read_table

if TYPE_CHECKING:
    from .archive import Archive

#: The newest format of runs that this package reads.
FORMAT = 2

#: A fact's value.
Scalar = Union[str, int, float, bool]


@dataclass(frozen=True)
class Fact:
    """What a machine says about itself."""

    #: Sizes are in bytes, times in nanoseconds.
    value: Scalar
    #: The file or command that the value comes from.
    source: str


class Facts(Mapping[str, Scalar]):
    """Facts by their keys: `facts["kernel.release"]`."""

    def __init__(self, facts: Mapping[str, Fact]) -> None:
        self._facts = dict(facts)

    def __getitem__(self, key: str) -> Scalar:
        return self._facts[key].value

    def __iter__(self) -> Iterator[str]:
        return iter(self._facts)

    def __len__(self) -> int:
        return len(self._facts)

    def __repr__(self) -> str:
        return f"Facts({dict(self)!r})"

    def source(self, key: str) -> str:
        """Where the value comes from."""
        return self._facts[key].source

    def _repr_html_(self) -> str:
        rows = [(key, str(fact.value), fact.source) for key, fact in sorted(self._facts.items())]
        return html.render_table(("fact", "value", "source"), rows)


@dataclass(frozen=True)
class Run:
    """One execution of a study, as `perflab list` shows it; its tables are read when they are asked for."""

    #: The run's id, a ULID.
    id: str
    #: The name that somebody gave it; runs that share one are repetitions of one another.
    label: Optional[str]
    #: The study's title.
    study: str
    #: `running`, `finished`, `failed`, `stopped`, `interrupted`, `disk-full`, or `damaged`.
    status: str
    #: When it began, UTC; none of a damaged run.
    begun: Optional[datetime]
    #: Iterations that ended, warm-ups too; none of a damaged run.
    ended: Optional[int]
    #: What it takes on the disk.
    bytes: int
    #: Why it cannot be read; none unless it is damaged.
    problem: Optional[str]
    #: The archive that it is in.
    archive: Archive = field(repr=False, compare=False)

    @property
    def path(self) -> Path:
        """The folder that it is in."""
        return self.archive.path / "runs" / self.id

    @cached_property
    def manifest(self) -> Mapping[str, Any]:
        """`run.json`, as docs/format.md describes it."""
        path = self.path / "run.json"
        try:
            manifest = json.loads(path.read_text(encoding="utf-8"))
            written = int(manifest["format"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ArchiveError(f"cannot read {path}: {error}", "`perflab list` names damaged runs") from error
        if written > FORMAT:
            raise ArchiveError(
                f"{path} has format {written}, and this package reads formats up to {FORMAT}",
                "pip install --upgrade perflab",
            )
        return dict(manifest)

    @property
    def study_file(self) -> str:
        """The name of the study's file, or of a study that ships."""
        return str(self.manifest.get("study_file", ""))

    @cached_property
    def facts(self) -> Facts:
        """What the machine that recorded said about itself."""
        found = self.manifest.get("facts") or {}
        return Facts({key: Fact(fact["value"], str(fact.get("source", ""))) for key, fact in found.items()})

    @property
    def factors(self) -> Mapping[str, Sequence[str]]:
        """The levels of each factor, the baseline first."""
        return {name: tuple(levels) for name, levels in self.manifest["plan"].get("factors", {}).items()}

    def samples(self, columns: Optional[Sequence[str]] = None) -> pa.Table:
        """A row for each measured value."""
        return self._read("samples.parquet", columns)

    def iterations(self, columns: Optional[Sequence[str]] = None) -> pa.Table:
        """A row for each iteration, warm-ups too."""
        return self._read("iterations.parquet", columns)

    def series(self, name: str, columns: Optional[Sequence[str]] = None) -> pa.Table:
        """A row for each row of the monitor `name` at each tick; `vmstat.guest1` is what a target recorded."""
        return self._read_named("series", name, columns)

    def edges(self, name: str, columns: Optional[Sequence[str]] = None) -> pa.Table:
        """A row for each row of the monitor `name` where an iteration began or ended."""
        return self._read_named("edges", name, columns)

    def events(self, name: str, columns: Optional[Sequence[str]] = None) -> pa.Table:
        """A row for each operation that the tracer `name` recorded."""
        return self._read_named("events", name, columns)

    def stacks(self, name: str, columns: Optional[Sequence[str]] = None) -> pa.Table:
        """Sampled call stacks: `0` of the first case and so on, the `tree` of stacks, and `frames`."""
        return self._read_named("stacks", name, columns)

    def tables(self, folder: str) -> list[str]:
        """What there is in `series`, `edges`, `events` or `stacks`."""
        if folder not in ("series", "edges", "events", "stacks"):
            raise ArchiveError(
                f"a run has no folder `{folder}` of tables", "there are series, edges, events and stacks"
            )
        return sorted(path.name[: -len(".parquet")] for path in (self.path / folder).glob("*.parquet"))

    def _read_named(self, folder: str, name: str, columns: Optional[Sequence[str]]) -> pa.Table:
        known = self.tables(folder)
        stored = name if name in known else _encode_file_name(name)
        if stored not in known:
            self._check_closed()
            hint = f"it has {', '.join(known)}" if known else f"it has no {folder} at all"
            raise ArchiveError(f"run {self.id} has no {folder} `{name}`", hint)
        return self._read(f"{folder}/{stored}.parquet", columns)

    def _read(self, name: str, columns: Optional[Sequence[str]]) -> pa.Table:
        self._check_closed()
        return read_table(self.path, name, self._hashes, columns)

    @cached_property
    def _hashes(self) -> Mapping[str, str]:
        return read_hashes(self.path)

    def _check_closed(self) -> None:
        """Refuses a run without tables: they are made when it ends."""
        if self.problem is not None:
            raise ArchiveError(f"run {self.id} is damaged: {self.problem}")
        if self.manifest.get("status") == "running":
            hint = f"`perflab export {self.id} --to parquet` has what was kept of an interrupted run"
            raise ArchiveError(f"run {self.id} is {self.status}: its tables are made when it ends", hint)

    def _repr_html_(self) -> str:
        return html.render_run(self, None if self.problem is not None else self._picture())

    def _picture(self) -> Optional[Picture]:
        """Every iteration of the metrics that decide, as the program draws them; none where it has nothing to draw."""
        by = {"by": name for name, levels in list(self.factors.items())[::-1] if len(levels) > 1}
        try:
            return self.archive.plot("strip", self, **by)
        except PerflabError:
            return None


def _encode_file_name(name: str) -> str:
    """The name of a monitor or tracer as its file has it."""
    inner = re.sub(rb"[^A-Za-z0-9_.-]", lambda found: b"%%%02X" % found[0][0], name.encode())
    return re.sub(rb"^\.|\.$", b"%2E", inner).decode()


class Runs(Sequence[Run]):
    """Runs of an archive, the oldest first. Tables of several runs begin with the column `run`, as those of `perflab query`."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self._runs = tuple(runs)

    @overload
    def __getitem__(self, place: int) -> Run: ...

    @overload
    def __getitem__(self, place: slice) -> Runs: ...

    def __getitem__(self, place: Union[int, slice]) -> Union[Run, Runs]:
        return Runs(self._runs[place]) if isinstance(place, slice) else self._runs[place]

    def __len__(self) -> int:
        return len(self._runs)

    def __repr__(self) -> str:
        return f"Runs({list(self._runs)!r})"

    @property
    def labels(self) -> list[str]:
        """The labels that these runs have, each once, in the order in which they came."""
        return list(dict.fromkeys(run.label for run in self._runs if run.label is not None))

    def samples(self, columns: Optional[Sequence[str]] = None) -> pa.Table:
        """A row for each measured value."""
        return self._join(lambda run: run.samples(columns))

    def iterations(self, columns: Optional[Sequence[str]] = None) -> pa.Table:
        """A row for each iteration, warm-ups too."""
        return self._join(lambda run: run.iterations(columns))

    def series(self, name: str, columns: Optional[Sequence[str]] = None) -> pa.Table:
        """A row for each row of the monitor `name` at each tick."""
        return self._join(lambda run: run.series(name, columns))

    def edges(self, name: str, columns: Optional[Sequence[str]] = None) -> pa.Table:
        """A row for each row of the monitor `name` where an iteration began or ended."""
        return self._join(lambda run: run.edges(name, columns))

    def events(self, name: str, columns: Optional[Sequence[str]] = None) -> pa.Table:
        """A row for each operation that the tracer `name` recorded."""
        return self._join(lambda run: run.events(name, columns))

    def facts(self) -> pa.Table:
        """A row for each fact: `run`, `key`, `value` as text, `source`."""
        rows = []
        for run in self._runs:
            if run.problem is None:
                rows += [
                    {"run": run.id, "key": key, "value": _to_text(value), "source": run.facts.source(key)}
                    for key, value in run.facts.items()
                ]
        schema = pa.schema([(name, pa.string()) for name in ("run", "key", "value", "source")])
        return pa.Table.from_pylist(rows, schema)

    def _join(self, read: Callable[[Run], pa.Table]) -> pa.Table:
        """The tables of all runs that have one; what is left out is told, unless all are."""
        tables, refused = [], []
        for run in self._runs:
            try:
                tables.append((run.id, read(run)))
            except ArchiveError as error:
                refused.append(error)
        if refused and not tables:
            raise refused[0]
        for reason in refused:
            warnings.warn(f"left out: {reason}", PerflabWarning, stacklevel=3)
        return join_tables(tables)

    def _repr_html_(self) -> str:
        return html.render_runs(self._runs)


def _to_text(value: Scalar) -> str:
    return json.dumps(value) if isinstance(value, bool) else str(value)


def run_of_row(row: Mapping[str, Any], archive: Archive) -> Run:
    """The run of a row of `perflab list`."""
    is_damaged = row["status"] == "damaged"
    begun = row["begun"]
    try:
        return Run(
            id=str(row["run"]),
            label=row["label"],
            study="" if is_damaged else str(row["study"]),
            status=str(row["status"]),
            begun=None if begun is None else _parse_time(str(begun)),
            ended=row["iterations"],
            bytes=int(row["size"]),
            problem=str(row["study"]) if is_damaged else None,
            archive=archive,
        )
    except (KeyError, ValueError) as error:
        raise PerflabError(f"`perflab list` has a row of another form: {error}: {row}") from error


def _parse_time(text: str) -> datetime:
    """`2026-11-29T00:51:39.123456789Z`; datetime has no nanoseconds."""
    found = re.fullmatch(r"([0-9T:-]+)(?:\.([0-9]+))?Z", text)
    if found is None:
        raise ValueError(f"{text} is no time")
    micros = (found[2] or "").ljust(6, "0")[:6]
    time = datetime.strptime(f"{found[1]}.{micros}", "%Y-%m-%dT%H:%M:%S.%f")
    return time.replace(tzinfo=timezone.utc)
