"""A comparison as values: what `perflab compare --format json` prints.

The classes and their fields are those of docs/reference/compare.schema.json; a test holds one against the other.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Optional, TypeVar, Union

from .errors import UnexpectedError

ChangeScale = Literal["ratio", "absolute"]

ComparedPart = Literal["mean", "p95", "p99", "p5", "p1"]

Direction = Literal["higher", "lower", "neither"]

IntervalMeaning = Literal["change", "these-runs", "unbounded"]

RepetitionLevel = Literal["machine", "boot", "run", "layout", "iteration"]

RowFlag = Literal[
    "changed", "one-sided", "other-case", "one-boot", "unknown-boot", "few", "drift", "modes",
    "outliers", "failed", "sequential", "environment", "gaps", "noise", "paired",
]

RunStatus = Literal["running", "finished", "failed", "stopped", "interrupted", "disk-full"]

ShiftEstimator = Literal["signed-ranks", "joint-ranks", "rank-sum", "means"]

SmallChange = Literal["there", "perhaps-there"]

Verdict = Literal["better", "worse", "same", "unclear", "differs", "same-here"]

VerdictBasis = Literal[
    "values", "failures", "missing-values", "tail", "mean", "p95", "p99", "p5", "p1",
]


@dataclass(frozen=True)
class BetweenRuns:
    """What an interval allows for where each side is one run, or levels were measured in turn."""

    #: How much an iteration resembles the one before it: lag-one autocorrelation within both runs.
    autocorrelation: float
    #: How much of the change a steady drift within both runs would explain, on the scale of the
    #: change; absent where they lie too far apart to tell.
    drift: Optional[float]
    #: Pairs of earlier runs that say how much a run differs from the next; 0 where too few are
    #: known.
    earlier_pairs: int
    #: The interval is so many times as wide as that of independent iterations.
    widened: float
    #: Whether these are runs of the machine's noise card, other runs of the study being too few.
    from_card: bool = False
    #: Whether the sides are levels of one run that were measured one after the other.
    in_turn: bool = False


@dataclass(frozen=True)
class ChangeInterval:
    """A confidence interval of a change."""

    #: The level that it really has, at least the comparison's `confidence`, which was asked for.
    coverage: float
    #: Upper limit.
    high: float
    #: Lower limit.
    low: float


@dataclass(frozen=True)
class ComparedRun:
    """A run that takes part."""

    #: When it began, nanoseconds since 1970.
    began: int
    #: The kernel's boot id; empty where unknown.
    boot_id: str
    #: ULID.
    id: str
    #: The user's name for it.
    label: Optional[str]
    #: Order of its iterations.
    order: str
    #: Seed of the order; 0 for a sequential order.
    seed: int
    #: The side it is on; empty where the sides are levels of a factor.
    side: str
    #: How it stands.
    status: RunStatus
    #: Its study's title.
    study: str
    #: The commit of the tree that it measured, else of the kernel that it ran on, where that is known.
    commit: Optional[str] = None
    #: Whether another tool measured it: perflab cannot repeat it.
    imported: bool = False
    #: The machines that measured, by their fact `machine.id`; empty where unknown.
    machine: str = ""
    #: The ids of what it was joined from, the oldest first, where an interrupted run was gone on with.
    parts: tuple[str, ...] = ()
    #: What ended it, where that was no number of iterations.
    until: Optional[str] = None


@dataclass(frozen=True)
class DiagnosticLocation:
    """Where in a comparison a finding stands."""

    #: The metric.
    metric: str
    #: Name of the side.
    side: str
    #: The case.
    subject: str


@dataclass(frozen=True)
class EstimationMethod:
    """How a change was estimated."""

    #: Baseline values (or pairs) that were compared.
    baseline: int
    #: Whether means were compared by t, two or three boots or runs a side, or up to five pairs of
    #: machines, being too few for ranks.
    by_means: bool
    #: Candidate values (or pairs) that were compared.
    candidate: int
    #: What was compared.
    level: RepetitionLevel
    #: Whether both sides were paired, by block, boot or machine.
    paired: bool
    #: Whether a side has a single boot or run, whose spread is taken to be that of the other side:
    #: Student's t.
    pooled: bool
    #: Whether interval and p-value hold at every look: the run was looked at after each block, to
    #: end once it was decided.
    always_valid: bool = False
    #: What the change comes from; absent where another line of this says it.
    estimator: Optional[ShiftEstimator] = None
    #: Of pairs, boots, layouts or machines of either side that have no partner on the other, and
    #: count for nothing.
    left_out: int = 0
    #: Whether boots or runs of unequal size count by what each knows: means by a model of random
    #: effects (REML), compared by t.
    random_effects: bool = False


@dataclass(frozen=True)
class FactDifference:
    """A fact that is not the same in all runs of both sides."""

    #: Its value on the baseline, as text, or each value with its number of runs where they are
    #: several; absent where not known there.
    baseline: Optional[str]
    #: The same on the candidate.
    candidate: Optional[str]
    #: Name of the candidate side.
    candidate_name: str
    #: Whether it is of a kind that often changes results.
    important: bool
    #: The fact's key.
    key: str
    #: Why a difference of this kind explains a change, or hardly does.
    reason: str


@dataclass(frozen=True)
class FailureCount:
    """How often a case failed."""

    #: Iterations that failed or ran out of time.
    failed: int
    #: Iterations that were measured.
    of: int


@dataclass(frozen=True)
class FailureComparison:
    """How often a case failed on both sides."""

    #: In the baseline.
    baseline: FailureCount
    #: In the candidate.
    candidate: FailureCount
    #: Two-sided p-value of "both fail as often": Fisher's exact test of the iterations, and no less
    #: than Welch's test of the shares of boots or runs, where they repeat on both sides.
    p: float
    #: The p-value adjusted for all cases in which something failed (Benjamini and Hochberg).
    q: float


@dataclass(frozen=True)
class KernelLogCount:
    """How often something was printed on a side."""

    #: Lines of it in warm-ups and between iterations.
    elsewhere: int
    #: Measured iterations that failed, with it or without.
    failed: int
    #: Of the iterations with it, those that failed.
    failed_with: int
    #: Measured iterations in which it was.
    iterations: int
    #: Measured iterations.
    of: int


@dataclass(frozen=True)
class KernelLogRow:
    """A line, or a kind of trouble, on every side."""

    #: Whether it is one of many of a dump: of stacks, registers, memory.
    is_dump: bool
    #: The lowest level at which it was printed: 0 (the system is unusable) to 7 (debug); none for
    #: consoles.
    level: Optional[int]
    #: The line without numbers and addresses; of a kind of trouble, the first such line.
    line: str
    #: By candidate: Fisher's p-value of as many iterations with it as in the baseline.
    p: tuple[Optional[float], ...]
    #: By side, the baseline first.
    sides: tuple[KernelLogCount, ...]
    #: What is wrong, where the line says so.
    trouble: Optional[str]


@dataclass(frozen=True)
class KernelLogComparison:
    """The kernel's log of all sides."""

    #: Lines that are on one side only: trouble first, dumps last, by level and in the order in
    #: which they came.
    lines: tuple[KernelLogRow, ...]
    #: The baseline first.
    sides: tuple[str, ...]
    #: Kinds of trouble that any side has.
    troubles: tuple[KernelLogRow, ...]
    #: Sides with a run that did not keep the log, or could not read it.
    unread: tuple[str, ...]


@dataclass(frozen=True)
class LayoutEffect:
    """What layouts do to a change."""

    #: The change in the layout as built, on the scale of the row's change; absent where one side
    #: was not measured in it.
    as_built: Optional[float]
    #: What layout explains of that: how much more it is than the change over all layouts.
    explained: Optional[float]
    #: Layouts that both sides were measured under.
    layouts: int
    #: Standard deviation of the change from one layout to the next, without what iterations add;
    #: absent where no layout was measured twice.
    sd: Optional[float]
    #: The share of the variance of the change, as one iteration a side shows it, that is layout.
    share: Optional[float]


@dataclass(frozen=True)
class MetricChange:
    """A change from baseline to candidate."""

    #: At the comparison's confidence; absent where the sample is too small for one.
    interval: Optional[ChangeInterval]
    #: At the level with twice the error, from which "same" is judged.
    narrow: Optional[ChangeInterval]
    #: Whether the numbers are fractions of the baseline or in the row's unit.
    scale: ChangeScale
    #: The estimate: 0.02 is 2 % more, 0 no change.
    value: float
    #: What the intervals are of.
    covers: IntervalMeaning = "change"


@dataclass(frozen=True)
class PartComparison:
    """A part of both distributions."""

    #: Of the baseline's values, in the row's unit.
    baseline: float
    #: Of the candidate's.
    candidate: float
    #: From one to the other, on the scale of the row's change.
    change: MetricChange
    #: Two-sided p-value of "no change", which the interval inverts.
    p: float
    #: Which.
    part: ComparedPart
    #: The p-value adjusted for the parts of the row (Holm), and for all rows of the family
    #: (Benjamini and Hochberg).
    q: float


@dataclass(frozen=True)
class PooledNoise:
    """What earlier runs add to the spread of two or three boots or runs a side."""

    #: Degrees of freedom of the pooled variance.
    freedom: float
    #: Pairs of earlier runs that say how much a boot or a run differs from the next.
    pairs: int
    #: Whether these are runs of the machine's noise card, other runs of the study being too few.
    from_card: bool = False


@dataclass(frozen=True)
class RowSuspect:
    """What goes with a change beyond chance, and can carry most of it; `perflab why` has the others."""

    #: The same of the candidate.
    after: float
    #: What of the change it can carry at most, where its slope is not known; absent where nothing
    #: limits it either.
    at_most: Optional[float]
    #: Its mean in an iteration of the baseline; of a line of the kernel's log, iterations with it.
    before: float
    #: What of the change it carries by its slope, in `unit`; absent where that is not known.
    carries: Optional[float]
    #: What people call the cause.
    cause: str
    #: The change of the mean, in the same unit; absent where a side has no value.
    change: Optional[float]
    #: The quantity that measures it; absent of a line of the kernel's log.
    series: Optional[str]
    #: Unit of both.
    series_unit: str
    #: `s` where the metric is the time of an iteration, or work a second.
    unit: str


@dataclass(frozen=True)
class SamplePoint:
    """One measured value, and where it stands."""

    #: When its iteration began, nanoseconds since 1970.
    at: int
    #: Index of its boot, counted over the whole comparison from 0.
    boot: int
    #: Index of its iteration in that run, from 0.
    iteration: int
    #: Index of its run in `runs`.
    run: int
    #: In the row's unit.
    value: float


@dataclass(frozen=True)
class SideSummary:
    """What one side measured of one metric in one case."""

    #: Boots that they come from.
    boots: int
    #: Iterations of the case that gave no value.
    failed: int
    #: Median of all values, in the row's unit.
    median: float
    #: Number of values.
    n: int
    #: Every value, in order of time.
    values: tuple[SamplePoint, ...]


@dataclass(frozen=True)
class TailCount:
    """How many values of a side lie beyond the fence."""

    #: Values beyond it.
    beyond: int
    #: All values.
    of: int


@dataclass(frozen=True)
class TailComparison:
    """The bad tails of both sides."""

    #: In the baseline.
    baseline: TailCount
    #: In the candidate.
    candidate: TailCount
    #: Values beyond it, on the bad side, are far from the rest of both sides, in the row's unit:
    #: the farther of both sides' outer fences (Tukey 1977), and farther than the margin.
    fence: float
    #: What the middle of the values says.
    middle: Verdict
    #: Two-sided p-value of "both have as many" (Fisher's exact test; shares of boots by Mann and
    #: Whitney's).
    p: float
    #: The p-value adjusted for the parts of the row (Holm), and for all rows of the family that
    #: have such values.
    q: float
    #: In other runs of the study on this machine, each beyond a fence of its own; absent where none
    #: was looked at.
    earlier: Optional[TailCount] = None


@dataclass(frozen=True)
class VerdictRow:
    """One metric of one case: baseline against one candidate."""

    #: What the baseline measured; absent where it has no value.
    baseline: Optional[SideSummary]
    #: What the candidate measured; absent where it has no value.
    candidate: Optional[SideSummary]
    #: Name of the candidate side.
    candidate_name: str
    #: The change from baseline to candidate; absent where one of them is.
    change: Optional[MetricChange]
    #: The smallest relative change that as many repetitions find in 80 % of experiments, this row
    #: being the only one; of the difference between two single runs where the interval is. Absent
    #: where nothing is known of the noise.
    detectable: Optional[float]
    #: Which way is good.
    direction: Direction
    #: What to be careful about, as letters with a footnote.
    flags: tuple[RowFlag, ...]
    #: The relative change that matters, such as 0.03.
    margin: float
    #: How the change was estimated; absent without a change.
    method: Optional[EstimationMethod]
    #: The metric's name.
    metric: str
    #: About how many repetitions (of `level`) a side would decide an unclear row.
    needed: Optional[int]
    #: The smallest margin at which the row would be the same: no change is larger, at the
    #: confidence of "same". Relative, as `margin`; of the difference between two single runs where
    #: the interval is. Absent without an interval, or for a baseline of zero.
    no_larger_than: Optional[float]
    #: Two-sided p-value of "no change".
    p: Optional[float]
    #: Matrix parameters and levels of the factors that are not compared, as texts.
    point: Mapping[str, str]
    #: Whether the metric decides or explains.
    primary: bool
    #: The p-value adjusted for all rows of the family (Benjamini and Hochberg).
    q: Optional[float]
    #: The case in one line, without what is compared: `sweep threads=2`.
    subject: str
    #: Unit of its values.
    unit: str
    #: What it means.
    verdict: Verdict
    #: The workload's name in the study.
    workload: str
    #: What the verdict stands on.
    basis: VerdictBasis = "values"
    #: What its interval allows for where a side has one run, and the sides were not interleaved.
    between_runs: Optional[BetweenRuns] = None
    #: Whether its values are assumed to be the same each time: any difference is a change. Where
    #: they are not, the row is compared by statistics, and has a `method`.
    exact: bool = False
    #: How often the case failed on both sides; absent where it never did.
    failures: Optional[FailureComparison] = None
    #: How much of the change is where code and stack lie, where both sides ran under several
    #: layouts.
    layout: Optional[LayoutEffect] = None
    #: What the middle of the values says, where the verdict stands on the tail or on a part.
    middle: Optional[Verdict] = None
    #: The mean, and tail quantiles where each side has ten values beyond them.
    parts: tuple[PartComparison, ...] = ()
    #: What earlier runs add to the spread of two or three boots or runs a side.
    pooled_noise: Optional[PooledNoise] = None
    #: Where the row, or its middle, is the same although its interval excludes "no change": whether
    #: q agrees that there is one.
    small_change: Optional[SmallChange] = None
    #: What goes with the change and can carry most of it; whoever reads runs adds it, to the rows
    #: that changed most.
    suspect: Optional[RowSuspect] = None
    #: Values far beyond the rest on the bad side; absent where neither side has any.
    tail: Optional[TailComparison] = None
    #: Other metrics with the very same values, which have no rows of their own.
    twins: tuple[str, ...] = ()
    #: Where nothing changed: bad iterations that are rarer than this share would not have shown.
    unseen_share: Optional[float] = None
    #: Why there is no verdict though there are numbers: what differs between the two sides' cases
    #: of this name.
    withheld: Optional[str] = None

    @property
    def word(self) -> str:
        """The word that people read: the verdict's, or `changed`, `missing`, `withheld`."""
        if "one-sided" in self.flags and self.basis == "values":
            return "missing"
        if self.withheld is not None:
            return "withheld"
        if "changed" in self.flags:
            return "changed"
        return self.verdict.replace("-", " ")


@dataclass(frozen=True)
class Diagnostic:
    """A warning with its texts."""

    #: What kind of warning it is: `drift`, `outliers`, `monitor-gaps` ...
    kind: str
    #: What was found.
    message: str
    #: What to do about it.
    advice: str
    #: What else the document says of this kind.
    details: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True)
class ComparisonDocument:
    """A comparison with its warnings and methods as texts."""

    #: Name of the baseline.
    baseline: str
    #: The factor whose levels are the sides, where they are not runs.
    by: Optional[str]
    #: Names of the candidates, in the order asked for.
    candidates: tuple[str, ...]
    #: Confidence of the intervals, such as 0.95.
    confidence: float
    #: Facts that are not the same on both sides, the likely causes first.
    facts: tuple[FactDifference, ...]
    #: The version of the document.
    format: int
    #: How the numbers came about.
    notes: tuple[str, ...]
    #: One row a case, metric and candidate, in that order; primary metrics first within a case.
    rows: tuple[VerdictRow, ...]
    #: All runs on all sides.
    runs: tuple[ComparedRun, ...]
    #: What to be careful about.
    warnings: tuple[Diagnostic, ...]
    #: The writer: `perflab 0.1.0`.
    writer: str
    #: What the kernel printed, where runs kept that; whoever reads runs adds it.
    kernel_log: Optional[KernelLogComparison] = None


_Class = TypeVar("_Class")


def decode(cls: type[_Class], value: object, place: str = "") -> _Class:
    """The value of a dataclass from its JSON. Keys that it does not know are left out; what does not fit is named by its place."""
    if not isinstance(value, Mapping):
        raise UnexpectedError(f"{place or 'the answer'} is no object of JSON: {value!r}")
    if cls is Diagnostic:
        known = {"kind", "message", "advice"}
        value = {**value, "details": {key: one for key, one in value.items() if key not in known}}
    arguments: dict[str, Any] = {}
    for name, annotation in _fields_of(cls).items():
        key = _key_of(name, value)
        if key is not None:
            arguments[name] = _decode_as(annotation, value[key], f"{place}.{key}".lstrip("."))
    try:
        return cls(**arguments)
    except TypeError as error:
        raise UnexpectedError(f"{place or 'the answer'} lacks something: {error}") from error


_HINTS: dict[type, Mapping[str, Any]] = {}


def _fields_of(cls: type) -> Mapping[str, Any]:
    """The type of each field; to work them out takes longer than to decode a row."""
    if cls not in _HINTS:
        _HINTS[cls] = typing.get_type_hints(cls)
    return _HINTS[cls]


def _key_of(name: str, value: Mapping[str, Any]) -> Optional[str]:
    """The key of a field: as it is, or as JSON writes words."""
    return next((key for key in (name, name.replace("_", "-")) if key in value), None)


def _decode_as(annotation: Any, value: Any, place: str) -> Any:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Union:
        return None if value is None else _decode_as(arguments[0], value, place)
    if origin is tuple:
        if not isinstance(value, list):
            raise UnexpectedError(f"{place} is no list: {value!r}")
        return tuple(_decode_as(arguments[0], one, f"{place}[{at}]") for at, one in enumerate(value))
    if isinstance(annotation, type) and dataclasses.is_dataclass(annotation):
        return decode(annotation, value, place)
    if annotation is float:
        # A whole number is one, too.
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise UnexpectedError(f"{place} is no number: {value!r}")
        return float(value)
    if annotation in (int, str, bool) and type(value) is not annotation:
        raise UnexpectedError(f"{place} is no {annotation.__name__}: {value!r}")
    return value
