"""What `perflab compare` says, asked for and shown."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Optional, Union

import pyarrow as pa

from . import html
from .comparison_document import ComparisonDocument, SideSummary, VerdictRow, decode
from .errors import PerflabError, UnexpectedError, UsageError

if TYPE_CHECKING:
    from .archive import Archive

#: The newest version of the document that this package reads.
FORMAT = 1

#: Which rows come first; those of one case stay together.
RowOrder = Literal["change", "name", "p", "verdict"]

#: What becomes of warm-up that is found: it stays, or is left out.
Warmup = Literal["keep", "auto"]


class RowText(NamedTuple):
    """A row in the words and figures of the command line."""

    #: `12.1 -> 13.4 ms`
    medians: str
    #: `+10.2 % [+8.1, +12.0]`; empty where there is none
    change: str
    #: `worse`, `same middle, worse tail`
    verdict: str


@dataclass(frozen=True)
class Comparison(ComparisonDocument):
    """What `perflab compare` says: the fields are those of its JSON, figure for figure."""

    #: The JSON that it was made of, with whatever a newer program says beyond the fields.
    document: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    #: The archive that was asked.
    archive: Optional[Archive] = field(default=None, repr=False, compare=False)
    #: What it was asked.
    words: Sequence[str] = field(default=(), repr=False, compare=False)

    @property
    def deciding_rows(self) -> tuple[VerdictRow, ...]:
        """The rows that answer the question: of metrics that decide; all, where metrics were chosen or none decides."""
        primary = tuple(row for row in self.rows if row.primary)
        chosen = any(word.startswith("--metric=") for word in self.words)
        return self.rows if chosen or not primary else primary

    def text(self) -> str:
        """The table of the command line."""
        return self._print("table")

    def markdown(self) -> str:
        """The same for a merge request."""
        return self._print("markdown")

    def to_arrow(self) -> pa.Table:
        """A row for each row, without its samples."""
        return pa.Table.from_pylist([_flatten_row(row) for row in self.rows], _ROWS)

    def _print(self, form: str) -> str:
        if self.archive is None:
            raise UsageError("this comparison knows no archive", "make it with perflab.compare")
        said = self.archive.program.run([f"--format={form}", "--quiet", *self.words], archive=self.archive.path)
        return said.decode(errors="replace")

    @cached_property
    def row_texts(self) -> tuple[Optional[RowText], ...]:
        """The deciding rows in the words of the command line, in their order; none where runs have changed since."""
        rows = self.deciding_rows
        try:
            lines = self._print("short").splitlines()
        except PerflabError:
            lines = []
        if len(lines) != len(rows):
            return (None,) * len(rows)
        has_several = len(self.candidates) > 1
        return tuple(_parse_short_line(line, row, has_several) for row, line in zip(rows, lines))

    def _repr_html_(self) -> str:
        return html.render_comparison(self)


def compare_words(
    sides: Sequence[str],
    *,
    by: Optional[str],
    monitor: Optional[str],
    baseline: Optional[str],
    metric: Union[str, Sequence[str]],
    workload: Union[str, Sequence[str]],
    where: Union[str, Sequence[str]],
    versus: Union[str, Sequence[str]],
    sort: Optional[RowOrder],
    across: bool,
    boots_differ: bool,
    warmup: Warmup,
    confidence: Union[str, float, None],
    margin: Union[str, float, None],
) -> list[str]:
    """The words of the command line for these options."""
    if by is not None and "," in by:
        raise UsageError(
            "two factors have effects and an interaction, and no rows with verdicts",
            f"`perflab compare --by {by} --format json` has them",
        )
    words = ["compare"]
    once = {"by": by, "monitor": monitor, "baseline": baseline, "sort": sort}
    words += [f"--{name}={value}" for name, value in once.items() if value is not None]
    often = {"metric": metric, "workload": workload, "where": where, "versus": versus}
    for name, values in often.items():
        words += [f"--{name}={value}" for value in ([values] if isinstance(values, str) else values)]
    words += [f"--{name}" for name, asked in {"across": across, "boots-differ": boots_differ}.items() if asked]
    words.append(f"--warmup={warmup}")
    shares = {"confidence": confidence, "margin": margin}
    words += [f"--{name}={_to_percent(value)}" for name, value in shares.items() if value is not None]
    return [*words, "--", *sides]


def _to_percent(share: Union[str, float]) -> str:
    """`95%` of 0.95, exactly; a text is what the command line takes."""
    return share if isinstance(share, str) else f"{(Decimal(repr(float(share))) * 100).normalize():f}%"


def read_comparison(archive: Archive, words: Sequence[str]) -> Comparison:
    """Asks the program, and reads its answer."""
    document = archive.program.ask(words, archive=archive.path)
    written = document.get("format") if isinstance(document, dict) else None
    if not isinstance(written, int):
        raise UnexpectedError("perflab's comparison is of no form that this package knows", command=words)
    if written > FORMAT:
        raise UnexpectedError(
            f"perflab's comparison has format {written}, and this package reads formats up to {FORMAT}",
            "pip install --upgrade perflab",
            command=words,
        )
    found = decode(ComparisonDocument, document)
    values = {one.name: getattr(found, one.name) for one in fields(found)}
    return Comparison(**values, document=document, archive=archive, words=tuple(words))


def _parse_short_line(line: str, row: VerdictRow, has_several: bool) -> Optional[RowText]:
    """`sweep threads=2 time: 12.1 -> 13.4 ms, +10.2 % [+8.1, +12.0], worse`, of which the row tells how it begins."""
    candidate = f" ({row.candidate_name})" if has_several else ""
    head = f"{row.subject} {row.metric}{candidate}: "
    if not line.startswith(head):
        return None
    medians, _, rest = line[len(head) :].partition(", ")
    if row.change is None:
        return RowText(medians, "", rest)
    found = re.fullmatch(r"([^\[(,]*(?:\[[^\]]*\]|\([^)]*\))?(?: paired)?), (.*)", rest)
    return None if found is None else RowText(medians, found[1], found[2])


_ROWS = pa.schema(
    [
        *((name, pa.string()) for name in ("subject", "workload", "candidate", "metric", "unit", "direction")),
        ("primary", pa.bool_()),
        ("verdict", pa.string()),
        *((name, pa.float64()) for name in ("baseline_median", "candidate_median")),
        *((name, pa.int64()) for name in ("baseline_n", "candidate_n")),
        ("scale", pa.string()),
        *((name, pa.float64()) for name in ("change", "low", "high", "p", "q", "margin")),
        ("flags", pa.string()),
    ]
)


def _flatten_row(row: VerdictRow) -> dict[str, Any]:
    def side(name: str, summary: Optional[SideSummary]) -> dict[str, Any]:
        if summary is None:
            return {}
        return {f"{name}_median": summary.median, f"{name}_n": summary.n}

    change = row.change
    interval = None if change is None else change.interval
    return {
        "subject": row.subject,
        "workload": row.workload,
        "candidate": row.candidate_name,
        "metric": row.metric,
        "unit": row.unit,
        "direction": row.direction,
        "primary": row.primary,
        "verdict": row.word,
        **side("baseline", row.baseline),
        **side("candidate", row.candidate),
        "scale": None if change is None else change.scale,
        "change": None if change is None else change.value,
        "low": None if interval is None else interval.low,
        "high": None if interval is None else interval.high,
        "p": row.p,
        "q": row.q,
        "margin": row.margin,
        "flags": " ".join(row.flags),
    }
