//! A table of verdicts for a page: every cell a text, every interval drawn on the table's one axis.
//!
//! Positions are in per cent of the drawing's width, so that a phone gets the same figure and no script is needed.

use perflab_analyze::{
    Comparison, IntervalMeaning, RepetitionLevel, RowFlag, SideSummary, VerdictBasis, VerdictRow,
};
use perflab_model::Direction;
use perflab_model::quantity::{UnitScale, decimals_for_width, format_quantity, format_signed};
use serde::Serialize;

use crate::comparison::interval_axis::{ChangeSpan, IntervalAxis};
use crate::comparison::row_text::{
    UNBOUNDED, failures_text, format_size, layout_text, no_larger_than_text, part_text, repetitions_text,
    round_repetitions, tail_text, verdict_symbol, verdict_words,
};
use crate::diagnostics::flag_footnote;

/// Verdicts under the titles of their columns.
#[derive(Debug, Serialize)]
pub struct VerdictTable {
    caption: String,
    baseline: String,
    candidate: String,
    ticks: Vec<DrawnTick>,
    zero: String,
    rows: Vec<VerdictTableRow>,
}

/// A verdict as words and symbol; colour is the third sign, never the only one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct VerdictMark {
    /// What the row counts as.
    word: &'static str,
    symbol: char,
    /// What people read: `same middle, worse tail`.
    text: String,
}

#[derive(Debug, Serialize)]
struct VerdictTableRow {
    mark: VerdictMark,
    case: String,
    metric: String,
    direction: &'static str,
    change: String,
    interval: String,
    drawn: Option<DrawnInterval>,
    baseline: String,
    candidate: String,
    n: String,
    margin: String,
    no_larger_than: String,
    detectable: String,
    flags: Vec<FlagLetter>,
    advice: String,
}

/// A flag that stands in a row.
#[derive(Debug, Serialize)]
struct FlagLetter {
    letter: char,
    meaning: &'static str,
}

#[derive(Debug, Serialize)]
struct DrawnTick {
    at: String,
    text: String,
    anchor: &'static str,
}

/// One row's change, in per cent of the drawing's width.
#[derive(Debug, Serialize)]
struct DrawnInterval {
    point: String,
    low: Option<String>,
    high: Option<String>,
    margin_from: String,
    margin_width: String,
}

impl VerdictMark {
    /// A row's mark.
    pub(crate) fn from_row(row: &VerdictRow) -> Self {
        let word = row.verdict_word();
        VerdictMark { word, symbol: verdict_symbol(word), text: verdict_words(row) }
    }
}

impl VerdictTable {
    /// The rows of a comparison under one caption.
    pub(crate) fn new(caption: &str, comparison: &Comparison, rows: &[&VerdictRow]) -> Self {
        let spans: Vec<ChangeSpan> = rows.iter().filter_map(|row| ChangeSpan::from_row(row)).collect();
        let axis = IntervalAxis::spanning(&spans);
        let ticks = if spans.is_empty() { Vec::new() } else { axis.ticks() };
        let tick = |tick: crate::comparison::interval_axis::AxisTick| DrawnTick {
            at: width_text(tick.share),
            text: tick.text,
            anchor: match tick.share {
                share if share < 0.08 => "start",
                share if share > 0.92 => "end",
                _ => "middle",
            },
        };
        VerdictTable {
            caption: format!("{caption}: {}", comparison_heading(comparison)),
            baseline: comparison.baseline.clone(),
            candidate: match comparison.candidates.as_slice() {
                [only] => only.clone(),
                _ => "candidate".into(),
            },
            ticks: ticks.into_iter().map(tick).collect(),
            zero: width_text(axis.share(0.0)),
            rows: rows.iter().map(|row| verdict_row(row, comparison, &axis)).collect(),
        }
    }
}

/// `pages: huge against ordinary`
pub(crate) fn comparison_heading(comparison: &Comparison) -> String {
    let candidates = comparison.candidates.join(", ");
    match &comparison.by {
        Some(factor) => format!("{factor}: {candidates} against {}", comparison.baseline),
        None => format!("{candidates} against {}", comparison.baseline),
    }
}

fn width_text(share: f64) -> String {
    format!("{:.2}%", share * 100.0)
}

fn verdict_row(row: &VerdictRow, comparison: &Comparison, axis: &IntervalAxis) -> VerdictTableRow {
    let (change, interval) = change_and_interval(row);
    VerdictTableRow {
        mark: VerdictMark::from_row(row),
        case: if comparison.candidates.len() > 1 {
            format!("{} · {}", row.subject, row.candidate_name)
        } else {
            row.subject.clone()
        },
        metric: row.metric.clone(),
        direction: direction_text(row.direction),
        change,
        interval,
        drawn: ChangeSpan::from_row(row).map(|span| drawn_interval(&span, axis)),
        baseline: median_text(row.baseline.as_ref(), row),
        candidate: median_text(row.candidate.as_ref(), row),
        n: repetitions_text(row),
        margin: format!("± {}", format_size(row.margin)),
        no_larger_than: no_larger_than_text(row).unwrap_or_default(),
        detectable: row.detectable.map_or_else(String::new, format_size),
        flags: row
            .flags
            .iter()
            .map(|flag| FlagLetter { letter: flag.letter(), meaning: flag_footnote(*flag) })
            .collect(),
        advice: row_advice(row, comparison),
    }
}

fn drawn_interval(span: &ChangeSpan, axis: &IntervalAxis) -> DrawnInterval {
    let at = |change: f64| width_text(axis.share(change));
    DrawnInterval {
        point: at(span.point),
        low: span.limits.map(|(low, _)| at(low)),
        high: span.limits.map(|(_, high)| at(high)),
        margin_from: at(-span.margin),
        margin_width: width_text(axis.share(span.margin) - axis.share(-span.margin)),
    }
}

/// What is good, in words.
fn direction_text(direction: Direction) -> &'static str {
    match direction {
        Direction::Higher => "higher is better",
        Direction::Lower => "lower is better",
        Direction::Neither => "neither way is better",
    }
}

/// The estimate, and its interval: `+2.1 %` and `+1.0 % … +3.3 %`; a paired one says so.
fn change_and_interval(row: &VerdictRow) -> (String, String) {
    let Some(change) = row.change else { return ("–".into(), String::new()) };
    let (point, limits, scale) = match ChangeSpan::from_row(row) {
        Some(span) => (span.point, span.limits, UnitScale { name: "%".into(), divisor: 0.01 }),
        None => {
            let limits = change.interval.map(|interval| (interval.low, interval.high));
            let largest = limits.map_or(change.value.abs(), |(low, high)| low.abs().max(high.abs()));
            (change.value, limits, UnitScale::fitting(&row.unit.0, largest))
        }
    };
    let half = limits.map_or(point.abs(), |(low, high)| (high - low) / 2.0);
    let decimals = decimals_for_width(half / scale.divisor);
    let own = |value: f64| format!("{}\u{a0}{}", format_signed(value / scale.divisor, decimals), scale.name);
    let interval = limits.map(|(low, high)| match change.covers {
        IntervalMeaning::Change => format!("{} … {}", own(low), own(high)),
        IntervalMeaning::TheseRuns => format!("({} … {})", own(low), own(high)),
        IntervalMeaning::Unbounded => String::new(),
    });
    let unbounded = if change.covers == IntervalMeaning::Unbounded { UNBOUNDED.trim() } else { "" };
    let interval = interval.unwrap_or_else(|| unbounded.into());
    let paired = if row.flags.contains(&RowFlag::Paired) { " paired" } else { "" };
    (own(point) + paired, interval)
}

fn median_text(summary: Option<&SideSummary>, row: &VerdictRow) -> String {
    summary.map_or_else(|| "–".into(), |summary| format_quantity(summary.median, &row.unit.0))
}

fn row_advice(row: &VerdictRow, comparison: &Comparison) -> String {
    let failures = failures_text(row, comparison).unwrap_or_default();
    match row.basis {
        VerdictBasis::Values => {}
        VerdictBasis::Failures => return failures,
        VerdictBasis::Tail => return tail_text(row, comparison).unwrap_or_default(),
        VerdictBasis::MissingValues => return format!("{failures}: they could turn the verdict"),
        _ => return part_text(row).unwrap_or_default(),
    }
    let level = row.method.map_or(RepetitionLevel::Iteration, |method| method.level).noun();
    let needed = row.needed.map(|needed| format!("needs about {} {level} a side", round_repetitions(needed)));
    needed.into_iter().chain(layout_text(row)).collect::<Vec<_>>().join("; ")
}
