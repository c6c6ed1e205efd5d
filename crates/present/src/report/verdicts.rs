//! The comparison table as the page's template reads it: every cell a text, every judgement `analyze`'s.

use perflab_analyze::{Comparison, Flag, Level, Row, Scale, Summary};
use perflab_model::Direction;
use serde::Serialize;

use super::interval::{self, Plot, Span};
use super::number::{percent, quantity};
use super::page::sentence;

/// One comparison on the page.
#[derive(Debug, Serialize)]
pub(super) struct View {
    heading: String,
    explanation: String,
    baseline: String,
    candidate: String,
    counts: Vec<Count>,
    primary: Vec<Line>,
    explanatory: Vec<Line>,
    footnotes: Vec<Footnote>,
    warnings: Vec<Finding>,
    notes: Vec<String>,
    plots: Vec<Plot>,
}

/// How often a verdict was given among the rows that decide.
#[derive(Debug, Serialize)]
struct Count {
    mark: Mark,
    n: usize,
}

/// A verdict as word and symbol; colour is the third sign, never the only one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Mark {
    word: &'static str,
    symbol: &'static str,
}

/// All warnings of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Finding {
    headline: String,
    advice: String,
    details: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Line {
    mark: Mark,
    case: String,
    metric: String,
    direction: &'static str,
    change: String,
    interval: String,
    baseline: String,
    candidate: String,
    n: String,
    margin: String,
    flags: Vec<Footnote>,
    advice: String,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct Footnote {
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

impl Mark {
    /// A row's mark.
    pub(super) fn of(row: &Row) -> Self {
        let word = row.word();
        let symbol = MARKS.iter().find(|(name, _)| *name == word).map_or("·", |(_, symbol)| symbol);
        Mark { word, symbol }
    }
}

/// What is good, in words.
pub(super) fn direction(direction: Direction) -> &'static str {
    match direction {
        Direction::Higher => "higher is better",
        Direction::Lower => "lower is better",
        Direction::Neither => "neither way is better",
    }
}

/// The case, with the candidate where there are several.
pub(super) fn case_name(row: &Row, comparison: &Comparison) -> String {
    if comparison.candidates.len() > 1 {
        format!("{} · {}", row.subject, row.candidate_name)
    } else {
        row.subject.clone()
    }
}

/// All comparisons, ready for the template. What an earlier one has warned of is not said again: two factors of
/// one run share its gaps.
pub(super) fn views(comparisons: &[Comparison]) -> Vec<View> {
    let mut said: Vec<Finding> = Vec::new();
    let mut views: Vec<View> = comparisons.iter().map(view).collect();
    for view in &mut views {
        view.warnings.retain(|finding| !said.contains(finding));
        said.extend(view.warnings.iter().cloned());
    }
    views
}

fn view(comparison: &Comparison) -> View {
    let lines = |primary: bool| {
        comparison
            .rows
            .iter()
            .filter(move |row| row.primary == primary)
            .map(|row| line(row, comparison))
            .collect()
    };
    View {
        heading: heading(comparison),
        explanation: explanation(comparison),
        baseline: comparison.baseline.clone(),
        candidate: column(comparison),
        counts: counts(comparison),
        primary: lines(true),
        explanatory: lines(false),
        footnotes: footnotes(comparison),
        warnings: findings(comparison),
        notes: comparison.notes.clone(),
        plots: interval::plots(comparison),
    }
}

fn heading(comparison: &Comparison) -> String {
    let candidates = comparison.candidates.join(", ");
    match &comparison.by {
        Some(factor) => format!("{factor}: {candidates} against {}", comparison.baseline),
        None => format!("{candidates} against {}", comparison.baseline),
    }
}

/// The heading of the candidates' medians: the candidate, where there is only one.
fn column(comparison: &Comparison) -> String {
    match comparison.candidates.as_slice() {
        [only] => only.clone(),
        _ => "candidate".into(),
    }
}

fn explanation(comparison: &Comparison) -> String {
    let confidence = comparison.confidence * 100.0;
    format!(
        "Change from {} to {}, with the {confidence:.0} % interval of the change.",
        comparison.baseline,
        comparison.candidates.join(", ")
    )
}

fn findings(comparison: &Comparison) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    for warning in &comparison.warnings {
        let (headline, advice) = (sentence(warning.headline()), sentence(warning.advice()));
        let detail = warning.detail();
        match found.iter_mut().find(|finding| finding.headline == headline) {
            Some(finding) => finding.details.push(detail),
            None => found.push(Finding { headline, advice, details: vec![detail] }),
        }
    }
    found
}

fn counts(comparison: &Comparison) -> Vec<Count> {
    let rows = || comparison.rows.iter().filter(|row| row.primary);
    let count = |&(word, symbol): &(&'static str, &'static str)| Count {
        mark: Mark { word, symbol },
        n: rows().filter(|row| row.word() == word).count(),
    };
    MARKS.iter().map(count).filter(|count| count.n > 0).collect()
}

fn line(row: &Row, comparison: &Comparison) -> Line {
    let (change, interval) = change(row);
    Line {
        mark: Mark::of(row),
        case: case_name(row, comparison),
        metric: row.metric.clone(),
        direction: direction(row.direction),
        change,
        interval,
        baseline: median(row.baseline.as_ref(), row),
        candidate: median(row.candidate.as_ref(), row),
        n: format!("{} / {}", number(row.baseline.as_ref()), number(row.candidate.as_ref())),
        margin: format!("± {}", percent(row.margin).trim_start_matches('+')),
        flags: row.flags.iter().map(|flag| footnote(*flag)).collect(),
        advice: advice(row),
    }
}

fn change(row: &Row) -> (String, String) {
    let Some(change) = row.change else { return ("–".into(), String::new()) };
    if let Some(span) = Span::of(row) {
        return span.parts();
    }
    let own = |value: f64| match change.scale {
        Scale::Ratio => percent(value),
        Scale::Absolute => quantity(value, &row.unit.0),
    };
    let interval = change.interval.map(|i| format!("{} … {}", own(i.low), own(i.high)));
    (own(change.value), interval.unwrap_or_default())
}

fn median(summary: Option<&Summary>, row: &Row) -> String {
    summary.map_or_else(|| "–".into(), |summary| quantity(summary.median, &row.unit.0))
}

fn number(summary: Option<&Summary>) -> String {
    summary.map_or_else(|| "0".into(), |summary| summary.n.to_string())
}

fn advice(row: &Row) -> String {
    let level = row.method.map_or("iterations", |method| match method.level {
        Level::Boot => "boots",
        Level::Iteration => "iterations",
    });
    row.needed.map(|needed| format!("needs about {needed} {level} a side")).unwrap_or_default()
}

fn footnote(flag: Flag) -> Footnote {
    Footnote { letter: flag.letter(), meaning: flag.meaning() }
}

fn footnotes(comparison: &Comparison) -> Vec<Footnote> {
    let mut all: Vec<Footnote> =
        comparison.rows.iter().flat_map(|row| &row.flags).map(|flag| footnote(*flag)).collect();
    all.sort();
    all.dedup();
    all
}
