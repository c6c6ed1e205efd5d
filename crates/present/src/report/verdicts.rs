//! The comparison table as the page's template reads it: every cell a text, every judgement `analyze`'s.

use perflab_analyze::{ChangeScale, Comparison, RepetitionLevel, RowFlag, SideSummary, VerdictRow};
use perflab_model::Direction;
use serde::Serialize;

use super::interval::{self, ChangeSpan, IntervalPlot};
use super::number::{format_percent_change, format_quantity};
use super::page::format_sentence;

/// One comparison on the page.
#[derive(Debug, Serialize)]
pub(super) struct ComparisonView {
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
pub(super) struct VerdictMark {
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
    pub(super) fn from_row(row: &VerdictRow) -> Self {
        let word = row.verdict_word();
        let symbol = MARKS.iter().find(|(name, _)| *name == word).map_or("·", |(_, symbol)| symbol);
        VerdictMark { word, symbol }
    }
}

/// What is good, in words.
pub(super) fn direction_text(direction: Direction) -> &'static str {
    match direction {
        Direction::Higher => "higher is better",
        Direction::Lower => "lower is better",
        Direction::Neither => "neither way is better",
    }
}

/// The case, with the candidate where there are several.
pub(super) fn row_case_name(row: &VerdictRow, comparison: &Comparison) -> String {
    if comparison.candidates.len() > 1 {
        format!("{} · {}", row.subject, row.candidate_name)
    } else {
        row.subject.clone()
    }
}

/// All comparisons, ready for the template. What an earlier one has warned of is not said again: two factors of
/// one run share its gaps.
pub(super) fn comparison_views(comparisons: &[Comparison]) -> Vec<ComparisonView> {
    let mut said: Vec<DiagnosticFinding> = Vec::new();
    let mut views: Vec<ComparisonView> = comparisons.iter().map(comparison_view).collect();
    for view in &mut views {
        view.warnings.retain(|finding| !said.contains(finding));
        said.extend(view.warnings.iter().cloned());
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
        plots: interval::interval_plots(comparison),
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
