//! The sections Verdicts and Intervals of a report.
//!
//! Every cell is a text, so that the template decides nothing. Interval plots are SVG that needs no script: positions
//! in per cent, so that a phone gets the same figure.

use perflab_analyze::{ChangeScale, Comparison, RepetitionLevel, RowFlag, SideSummary, VerdictRow};
use perflab_model::Direction;
use serde::Serialize;

use crate::number::report::{format_percent_change, format_quantity};
use crate::run_overview::format_sentence;

/// One comparison on the page.
#[derive(Debug, Serialize)]
pub(crate) struct ComparisonView {
    heading: String,
    explanation: String,
    baseline: String,
    candidate: String,
    counts: Vec<VerdictCount>,
    primary: Vec<VerdictLine>,
    explanatory: Vec<VerdictLine>,
    footnotes: Vec<FlagFootnote>,
    warnings: Vec<DiagnosticFinding>,
    notes: Vec<String>,
    plots: Vec<IntervalPlot>,
}

/// How often a verdict was given among the rows that decide.
#[derive(Debug, Serialize)]
struct VerdictCount {
    mark: VerdictMark,
    n: usize,
}

/// A verdict as word and symbol; colour is the third sign, never the only one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct VerdictMark {
    word: &'static str,
    symbol: &'static str,
}

/// All warnings of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct DiagnosticFinding {
    headline: String,
    advice: String,
    details: Vec<String>,
}

#[derive(Debug, Serialize)]
struct VerdictLine {
    mark: VerdictMark,
    case: String,
    metric: String,
    direction: &'static str,
    change: String,
    interval: String,
    baseline: String,
    candidate: String,
    n: String,
    margin: String,
    flags: Vec<FlagFootnote>,
    advice: String,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct FlagFootnote {
    letter: char,
    meaning: &'static str,
}

const MARKS: &[(&str, &str)] = &[
    ("better", "▲"),
    ("worse", "▼"),
    ("same", "="),
    ("unclear", "?"),
    ("changed", "≠"),
    ("missing", "∅"),
    ("withheld", "×"),
];

impl VerdictMark {
    /// A row's mark.
    pub(crate) fn from_row(row: &VerdictRow) -> Self {
        let word = row.verdict_word();
        let symbol = MARKS.iter().find(|(name, _)| *name == word).map_or("·", |(_, symbol)| symbol);
        VerdictMark { word, symbol }
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

/// The case, with the candidate where there are several.
fn row_case_name(row: &VerdictRow, comparison: &Comparison) -> String {
    if comparison.candidates.len() > 1 {
        format!("{} · {}", row.subject, row.candidate_name)
    } else {
        row.subject.clone()
    }
}

/// All comparisons, ready for the template. What an earlier one has warned of is not repeated: two factors of
/// one run share its gaps.
pub(crate) fn comparison_views(comparisons: &[Comparison]) -> Vec<ComparisonView> {
    let mut shown: Vec<DiagnosticFinding> = Vec::new();
    let mut views: Vec<ComparisonView> = comparisons.iter().map(comparison_view).collect();
    for view in &mut views {
        view.warnings.retain(|finding| !shown.contains(finding));
        shown.extend(view.warnings.iter().cloned());
    }
    views
}

fn comparison_view(comparison: &Comparison) -> ComparisonView {
    let lines = |primary: bool| {
        comparison
            .rows
            .iter()
            .filter(move |row| row.primary == primary)
            .map(|row| verdict_line(row, comparison))
            .collect()
    };
    ComparisonView {
        heading: comparison_heading(comparison),
        explanation: comparison_explanation(comparison),
        baseline: comparison.baseline.clone(),
        candidate: candidate_heading(comparison),
        counts: verdict_counts(comparison),
        primary: lines(true),
        explanatory: lines(false),
        footnotes: comparison_footnotes(comparison),
        warnings: diagnostic_findings(comparison),
        notes: comparison.notes.clone(),
        plots: interval_plots(comparison),
    }
}

fn comparison_heading(comparison: &Comparison) -> String {
    let candidates = comparison.candidates.join(", ");
    match &comparison.by {
        Some(factor) => format!("{factor}: {candidates} against {}", comparison.baseline),
        None => format!("{candidates} against {}", comparison.baseline),
    }
}

/// The heading of the candidates' medians: the candidate, where there is only one.
fn candidate_heading(comparison: &Comparison) -> String {
    match comparison.candidates.as_slice() {
        [only] => only.clone(),
        _ => "candidate".into(),
    }
}

fn comparison_explanation(comparison: &Comparison) -> String {
    let confidence = comparison.confidence * 100.0;
    format!(
        "Change from {} to {}, with the {confidence:.0} % interval of the change.",
        comparison.baseline,
        comparison.candidates.join(", ")
    )
}

fn diagnostic_findings(comparison: &Comparison) -> Vec<DiagnosticFinding> {
    let mut found: Vec<DiagnosticFinding> = Vec::new();
    for warning in &comparison.warnings {
        let (headline, advice) = (format_sentence(warning.headline()), format_sentence(warning.advice()));
        let detail = warning.detail();
        match found.iter_mut().find(|finding| finding.headline == headline) {
            Some(finding) => finding.details.push(detail),
            None => found.push(DiagnosticFinding { headline, advice, details: vec![detail] }),
        }
    }
    found
}

fn verdict_counts(comparison: &Comparison) -> Vec<VerdictCount> {
    let rows = || comparison.rows.iter().filter(|row| row.primary);
    let count = |&(word, symbol): &(&'static str, &'static str)| VerdictCount {
        mark: VerdictMark { word, symbol },
        n: rows().filter(|row| row.verdict_word() == word).count(),
    };
    MARKS.iter().map(count).filter(|count| count.n > 0).collect()
}

fn verdict_line(row: &VerdictRow, comparison: &Comparison) -> VerdictLine {
    let (change, interval) = change_and_interval(row);
    VerdictLine {
        mark: VerdictMark::from_row(row),
        case: row_case_name(row, comparison),
        metric: row.metric.clone(),
        direction: direction_text(row.direction),
        change,
        interval,
        baseline: median_text(row.baseline.as_ref(), row),
        candidate: median_text(row.candidate.as_ref(), row),
        n: format!(
            "{} / {}",
            sample_count_text(row.baseline.as_ref()),
            sample_count_text(row.candidate.as_ref())
        ),
        margin: format!("± {}", format_percent_change(row.margin).trim_start_matches('+')),
        flags: row.flags.iter().map(|flag| flag_footnote(*flag)).collect(),
        advice: row_advice(row),
    }
}

fn change_and_interval(row: &VerdictRow) -> (String, String) {
    let Some(change) = row.change else { return ("–".into(), String::new()) };
    if let Some(span) = ChangeSpan::from_row(row) {
        return span.estimate_and_interval();
    }
    let own = |value: f64| match change.scale {
        ChangeScale::Ratio => format_percent_change(value),
        ChangeScale::Absolute => format_quantity(value, &row.unit.0),
    };
    let interval = change.interval.map(|i| format!("{} … {}", own(i.low), own(i.high)));
    (own(change.value), interval.unwrap_or_default())
}

fn median_text(summary: Option<&SideSummary>, row: &VerdictRow) -> String {
    summary.map_or_else(|| "–".into(), |summary| format_quantity(summary.median, &row.unit.0))
}

fn sample_count_text(summary: Option<&SideSummary>) -> String {
    summary.map_or_else(|| "0".into(), |summary| summary.n.to_string())
}

fn row_advice(row: &VerdictRow) -> String {
    let level = row.method.map_or("iterations", |method| match method.level {
        RepetitionLevel::Boot => "boots",
        RepetitionLevel::Iteration => "iterations",
    });
    row.needed.map(|needed| format!("needs about {needed} {level} a side")).unwrap_or_default()
}

fn flag_footnote(flag: RowFlag) -> FlagFootnote {
    FlagFootnote { letter: flag.letter(), meaning: flag.footnote() }
}

fn comparison_footnotes(comparison: &Comparison) -> Vec<FlagFootnote> {
    let mut all: Vec<FlagFootnote> =
        comparison.rows.iter().flat_map(|row| &row.flags).map(|flag| flag_footnote(*flag)).collect();
    all.sort();
    all.dedup();
    all
}

/// Rows that a plot shows at once; further ones are in the table.
const ROWS: usize = 40;

/// One metric's plot.
#[derive(Debug, Serialize)]
struct IntervalPlot {
    metric: String,
    direction: &'static str,
    primary: bool,
    ticks: Vec<IntervalTick>,
    bars: Vec<IntervalBar>,
    zero: String,
    left_out: usize,
}

#[derive(Debug, Serialize)]
struct IntervalTick {
    at: String,
    text: String,
    anchor: &'static str,
}

/// One case's change, in percent of the plot's width.
#[derive(Debug, Serialize)]
struct IntervalBar {
    case: String,
    mark: VerdictMark,
    change: String,
    interval: String,
    point: String,
    low: Option<String>,
    high: Option<String>,
    margin_from: String,
    margin_width: String,
}

/// The plots of a comparison, one a metric, primary ones first. Changes in a metric's own unit are shown in
/// percent of the baseline's median.
fn interval_plots(comparison: &Comparison) -> Vec<IntervalPlot> {
    let mut metrics: Vec<(&str, bool)> = Vec::new();
    for row in comparison.rows.iter().filter(|row| row.relative_change().is_some()) {
        if !metrics.iter().any(|(name, _)| *name == row.metric) {
            metrics.push((&row.metric, row.primary));
        }
    }
    metrics.sort_by_key(|(_, primary)| !primary);
    metrics.into_iter().filter_map(|(metric, _)| interval_plot(comparison, metric)).collect()
}

fn interval_plot(comparison: &Comparison, metric: &str) -> Option<IntervalPlot> {
    let mut rows: Vec<(&VerdictRow, ChangeSpan)> = comparison
        .rows
        .iter()
        .filter(|row| row.metric == metric)
        .filter_map(|row| Some((row, ChangeSpan::from_row(row)?)))
        .collect();
    let first = rows.first()?.0;
    let all = rows.len();
    if all > ROWS {
        rows.sort_by(|a, b| b.1.point.abs().total_cmp(&a.1.point.abs()));
        rows.truncate(ROWS);
    }
    let axis = IntervalAxis::spanning(rows.iter().map(|(_, span)| span));
    Some(IntervalPlot {
        metric: metric.into(),
        direction: direction_text(first.direction),
        primary: first.primary,
        ticks: axis.ticks(),
        bars: rows.iter().map(|(row, span)| interval_bar(row, span, &axis, comparison)).collect(),
        zero: axis.position_text(0.0),
        left_out: all - rows.len(),
    })
}

fn interval_bar(
    row: &VerdictRow,
    span: &ChangeSpan,
    axis: &IntervalAxis,
    comparison: &Comparison,
) -> IntervalBar {
    IntervalBar {
        case: row_case_name(row, comparison),
        mark: VerdictMark::from_row(row),
        change: span.estimate_and_interval().0,
        interval: span.estimate_and_interval().1,
        point: axis.position_text(span.point),
        low: span.limits.map(|(low, _)| axis.position_text(low)),
        high: span.limits.map(|(_, high)| axis.position_text(high)),
        margin_from: axis.position_text(-span.margin),
        margin_width: axis.width_text(2.0 * span.margin),
    }
}

/// A change with its interval, as fractions of the baseline.
struct ChangeSpan {
    point: f64,
    limits: Option<(f64, f64)>,
    margin: f64,
}

impl ChangeSpan {
    /// A row's change; none where it has none or where the baseline is zero.
    pub(crate) fn from_row(row: &VerdictRow) -> Option<Self> {
        let (change, point) = (row.change?, row.relative_change()?);
        let unit = if change.value == 0.0 { fraction_per_unit(row)? } else { point / change.value };
        let limits = change.interval.map(|interval| (interval.low * unit, interval.high * unit));
        Some(ChangeSpan { point, limits, margin: row.margin })
    }

    /// The estimate, and its interval: `+2.1 %` and `+1.0 % … +3.3 %`.
    pub(crate) fn estimate_and_interval(&self) -> (String, String) {
        let interval = self
            .limits
            .map(|(low, high)| format!("{} … {}", format_percent_change(low), format_percent_change(high)));
        (format_percent_change(self.point), interval.unwrap_or_default())
    }
}

fn fraction_per_unit(row: &VerdictRow) -> Option<f64> {
    match row.change?.scale {
        perflab_analyze::ChangeScale::Ratio => Some(1.0),
        perflab_analyze::ChangeScale::Absolute => Some(1.0 / row.baseline.as_ref()?.median.abs()),
    }
}

/// From changes to percent of the plot's width.
struct IntervalAxis {
    from: f64,
    to: f64,
}

impl IntervalAxis {
    fn spanning<'a>(spans: impl Iterator<Item = &'a ChangeSpan>) -> Self {
        let mut ends = vec![0.0];
        for span in spans {
            let (low, high) = span.limits.unwrap_or((span.point, span.point));
            ends.extend([low, high, span.point, span.margin * 1.5, span.margin * -1.5]);
        }
        let from = ends.iter().copied().filter(|n| n.is_finite()).fold(0.0, f64::min);
        let to = ends.iter().copied().filter(|n| n.is_finite()).fold(0.0, f64::max);
        let room = ((to - from) * 0.06).max(1e-4);
        IntervalAxis { from: from - room, to: to + room }
    }

    fn position_text(&self, change: f64) -> String {
        format!("{:.2}%", (change - self.from) / (self.to - self.from) * 100.0)
    }

    fn width_text(&self, change: f64) -> String {
        format!("{:.2}%", change / (self.to - self.from) * 100.0)
    }

    fn ticks(&self) -> Vec<IntervalTick> {
        let step = nice_interval_step((self.to - self.from) / 5.0);
        let first = (self.from / step).ceil() as i64;
        let last = (self.to / step).floor() as i64;
        let tick = |n: i64| {
            let share = (n as f64 * step - self.from) / (self.to - self.from);
            let anchor = if share < 0.06 {
                "start"
            } else if share > 0.94 {
                "end"
            } else {
                "middle"
            };
            IntervalTick {
                at: self.position_text(n as f64 * step),
                text: interval_tick_text(n as f64 * step, step),
                anchor,
            }
        };
        (first..=last).take(12).map(tick).collect()
    }
}

fn interval_tick_text(change: f64, step: f64) -> String {
    let decimals = (-(step * 100.0).log10().floor()).clamp(0.0, 4.0) as usize;
    let text = format!("{:+.decimals$}", change * 100.0).replacen('-', "−", 1);
    if change.abs() < step / 2.0 { "0".into() } else { format!("{text}\u{a0}%") }
}

/// The smallest of 1, 2, 5 times a power of ten that is not below `rough`.
fn nice_interval_step(rough: f64) -> f64 {
    let power = 10_f64.powf(rough.log10().floor());
    let times = [1.0, 2.0, 5.0].into_iter().find(|n| n * power >= rough * 0.999).unwrap_or(10.0);
    times * power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_hold_zero_and_have_round_ticks() {
        let span = ChangeSpan { point: 0.3, limits: Some((0.25, 0.36)), margin: 0.02 };
        let axis = IntervalAxis::spanning([span].iter());
        let texts: Vec<String> =
            axis.ticks().into_iter().map(|tick| tick.text.replace('\u{a0}', " ")).collect();
        assert_eq!(texts, ["0", "+10 %", "+20 %", "+30 %"]);
        assert_eq!(nice_interval_step(0.21), 0.5);
        assert_eq!(nice_interval_step(0.013), 0.02);
    }
}
