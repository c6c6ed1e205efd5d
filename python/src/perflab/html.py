"""How runs, lists and comparisons look in a notebook: tables without a script, every text escaped."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Optional

from .picture import Picture

if TYPE_CHECKING:
    from .comparison import Comparison, RowText
    from .comparison_document import MetricChange, VerdictRow
    from .run import Run

#: Rows of a list that are shown.
MOST_ROWS = 50

#: Okabe and Ito's: people with any colour vision tell them apart, and a word stands beside each.
COLOURS = {"better": "#0072b2", "worse": "#d55e00"}

#: What stands before a word, as in the terminal.
SYMBOLS = {
    "better": "✓",
    "worse": "✗",
    "same": "=",
    "changed": "≠",
    "differs": "≠",
    "same here": "≈",
    "missing": "∅",
    "withheld": "×",
}


def render_table(titles: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "") -> str:
    """A table of texts."""
    cells = [[escape(text) for text in row] for row in rows]
    return _render_cells([escape(title) for title in titles], cells, escape(caption))


def _render_cells(titles: Sequence[str], rows: Sequence[Sequence[str]], caption: str) -> str:
    """The same of cells that are HTML already."""
    style = 'style="text-align:left;vertical-align:middle"'
    head = "".join(f'<th scope="col" {style}>{title}</th>' for title in titles)
    body = "".join("<tr>" + "".join(f"<td {style}>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    shown = f'<caption style="text-align:left;caption-side:top">{caption}</caption>' if caption else ""
    return f"<table>{shown}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def render_runs(runs: Sequence[Run]) -> str:
    """The list, the newest last, as `perflab list` has it."""
    shown = runs[-MOST_ROWS:]
    rows = [(run.id, run.label or "–", run.problem or run.study, _begun(run), run.status, _count(run)) for run in shown]
    left_out = len(runs) - len(shown)
    caption = f"{len(runs)} {'run' if len(runs) == 1 else 'runs'}"
    if left_out:
        caption += f", the latest {len(shown)} of them"
    return render_table(("run", "label", "study", "begun", "status", "iterations"), rows, caption)


def _begun(run: Run) -> str:
    return "–" if run.begun is None else run.begun.strftime("%Y-%m-%d %H:%M UTC")


def _count(run: Run) -> str:
    return "–" if run.ended is None else str(run.ended)


def render_run(run: Run, picture: Optional[Picture]) -> str:
    """What it is, and every iteration."""
    rows = [
        ("run", run.id),
        ("label", run.label or "–"),
        ("study", run.problem or run.study),
        ("begun", _begun(run)),
        ("status", run.status),
        ("iterations", _count(run)),
    ]
    if run.problem is None:
        rows += [(key, str(run.facts[key])) for key in ("kernel.release", "cpu.model") if key in run.facts]
        rows += [(f"factor {name}", ", ".join(levels)) for name, levels in run.factors.items()]
    table = _render_cells(("", ""), [(escape(name), escape(text)) for name, text in rows], "")
    return table + ("" if picture is None else picture._repr_html_())


def render_comparison(comparison: Comparison) -> str:
    """The rows that decide, each with its interval drawn, and what to be careful about."""
    rows = comparison.deciding_rows
    texts = comparison.row_texts
    axis = _Axis([row.change for row in rows if row.change is not None], [row.margin for row in rows])
    has_several = len(comparison.candidates) > 1
    cells = [_row_cells(row, text, axis, has_several) for row, text in zip(rows, texts)]
    level = f"{comparison.confidence * 100:.6g} %"
    titles = ["case", "metric", "medians", f"change [{level} CI]", axis.title(), "verdict", "n", "flags"]
    table = _render_cells([escape(title) for title in titles], cells, escape(_heading(comparison)))
    left_out = len(comparison.rows) - len(rows)
    further = f"<p>{left_out} rows that explain: <code>rows</code></p>" if left_out else ""
    warned = "".join(
        f"<li>{escape(one.message)}<br>→ {escape(one.advice)}</li>" for one in comparison.warnings
    )
    notes = "".join(f"<li>{escape(note)}</li>" for note in comparison.notes)
    return (
        table
        + further
        + (f"<p>Warnings</p><ul>{warned}</ul>" if warned else "")
        + (f"<details><summary>How the numbers came about</summary><ul>{notes}</ul></details>" if notes else "")
    )


def _heading(comparison: Comparison) -> str:
    """`pages: huge against ordinary`"""
    factor = "" if comparison.by is None else f"{comparison.by}: "
    return f"{factor}{', '.join(comparison.candidates)} against {comparison.baseline}"


def _row_cells(row: VerdictRow, text: Optional[RowText], axis: _Axis, has_several: bool) -> list[str]:
    medians, change, words = text if text is not None else _plain_texts(row)
    subject = f"{row.subject} · {row.candidate_name}" if has_several else row.subject
    colour = COLOURS.get(row.word, "inherit")
    verdict = f'<span style="color:{colour}">{SYMBOLS.get(row.word, "?")}</span> {escape(words)}'
    counts = [str(side.n) for side in (row.baseline, row.candidate) if side is not None]
    drawn = "" if row.change is None else axis.draw(row.change, row.margin, row.word, change)
    return [
        escape(subject),
        escape(row.metric),
        escape(medians),
        escape(change) or "–",
        drawn,
        verdict,
        escape(", ".join(dict.fromkeys(counts))),
        escape(", ".join(row.flags)),
    ]


def _plain_texts(row: VerdictRow) -> tuple[str, str, str]:
    """The same from the numbers, where the command line does not say it any more."""
    medians = [str(side.median) if side is not None else "–" for side in (row.baseline, row.candidate)]
    change = "" if row.change is None else f"{row.change.value:+} ({row.change.scale})"
    return f"{medians[0]} -> {medians[1]} {row.unit}", change, row.word


class _Axis:
    """One axis for the changes of a table; only ratios stand on it."""

    WIDTH = 220
    HEIGHT = 18

    def __init__(self, changes: Sequence[MetricChange], margins: Sequence[float]) -> None:
        reach = [0.0]
        for change in changes:
            if change.scale == "ratio":
                ends = [] if change.interval is None else [change.interval.low, change.interval.high]
                reach += [abs(end) for end in (change.value, *ends) if math.isfinite(end)]
        # The margins show how small a change is, but do not crowd out one that is large.
        self.reach = min(max(*reach, *margins, 0.001), 10.0) * 1.05

    def title(self) -> str:
        """What its ends are."""
        percent = self.reach * 100
        end = f"{percent:.0f}" if percent >= 10 else f"{percent:.1f}"
        return f"−{end} % … +{end} %"

    def place(self, change: float) -> float:
        """Where a change stands, from the left; what is beyond an end stands at it."""
        share = (max(-self.reach, min(self.reach, change)) / self.reach + 1) / 2
        return round(share * self.WIDTH, 2)

    def draw(self, change: MetricChange, margin: float, word: str, text: str) -> str:
        """The interval with its point, zero, and the margin in grey; nothing of a change in units."""
        if change.scale != "ratio" or not math.isfinite(change.value):
            return ""
        middle, colour = self.HEIGHT / 2, COLOURS.get(word, "#555555")
        left, right = self.place(-margin), self.place(margin)
        shapes = [
            f'<rect x="{left}" y="0" width="{right - left:.2f}" height="{self.HEIGHT}" fill="#e5e5e5"/>',
            f'<path d="M{self.place(0)} 0V{self.HEIGHT}" stroke="#000" stroke-width="1"/>',
        ]
        if change.interval is not None and change.covers != "unbounded":
            low, high = self.place(change.interval.low), self.place(change.interval.high)
            # A range of two runs is no interval of the change: it is dashed.
            dashes = ' stroke-dasharray="3 2"' if change.covers == "these-runs" else ""
            shapes.append(f'<path d="M{low} {middle}H{high}" stroke="{colour}" stroke-width="3"{dashes}/>')
        shapes.append(f'<circle cx="{self.place(change.value)}" cy="{middle}" r="4" fill="{colour}"/>')
        size = f'width="{self.WIDTH}" height="{self.HEIGHT}" viewBox="0 0 {self.WIDTH} {self.HEIGHT}"'
        label = escape(f"{text}, {word}", quote=True)
        svg = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{label}">{"".join(shapes)}</svg>'
        return Picture(svg)._repr_html_()
