//! The section Verdicts of a report: each verdict with its interval drawn, what to be careful about, and the method.

use std::collections::BTreeSet;

use indexmap::IndexMap;
use perflab_analyze::{Comparison, IntervalMeaning, RowFlag, VerdictRow};

use crate::comparison::answer::comparison_answers;
use crate::comparison::interval_axis::{ChangeSpan, IntervalAxis};
use crate::comparison::kernel_log_table::KernelLogTable;
use crate::comparison::row_text::suspect_text;
use crate::comparison::shift_chart::{MOST_SHIFT_CHARTS, shift_charts};
use crate::comparison::verdict_table::{VerdictTable, comparison_heading};
use crate::diagnostics::{
    are_runs_imported, diagnostic_advice, diagnostic_detail, diagnostic_headline, flag_footnote,
};
use crate::method_text::{describe_methods, percent_of_level};
use crate::section::{ReportData, Section, SectionBlock, SectionError};
use crate::sentence::format_sentence;

/// Verdicts with their intervals.
pub(crate) const SECTION: Section = Section {
    id: "verdicts",
    title: "Verdicts",
    conclusions: |data| Ok(comparison_answers(&data.comparisons).into_iter().map(answer_sentence).collect()),
    blocks: verdict_blocks,
};

fn answer_sentence((factor, answer): (Option<&str>, String)) -> String {
    let sentence = format_sentence(&answer);
    factor.map_or_else(|| sentence.clone(), |factor| format!("`{factor}`: {sentence}"))
}

fn verdict_blocks(data: &ReportData) -> Result<Vec<SectionBlock>, SectionError> {
    let mut blocks = Vec::new();
    // What an earlier comparison has warned of is not repeated: two factors of one run share its gaps.
    let mut shown: BTreeSet<(String, Vec<String>)> = BTreeSet::new();
    for comparison in &data.comparisons {
        blocks.push(SectionBlock::Heading(comparison_heading(comparison)));
        blocks.push(SectionBlock::Hint(comparison_explanation(comparison)));
        let (primary, explanatory): (Vec<&VerdictRow>, Vec<&VerdictRow>) =
            comparison.rows.iter().partition(|row| row.primary);
        if !primary.is_empty() {
            let table = VerdictTable::new("Metrics that decide", comparison, &primary);
            blocks.push(SectionBlock::Verdicts(table));
        }
        blocks.extend(suspect_blocks(&primary));
        if !explanatory.is_empty() {
            let table = VerdictTable::new("Explanatory metrics", comparison, &explanatory);
            blocks.push(SectionBlock::Fold {
                summary: "Explanatory metrics".into(),
                count: Some(explanatory.len()),
                blocks: vec![SectionBlock::Verdicts(table)],
            });
        }
        blocks.extend(shift_block(comparison));
        blocks.extend(kernel_log_blocks(comparison));
        blocks.extend(footnotes_block(comparison));
        for (headline, advice, details) in diagnostic_findings(comparison) {
            if shown.insert((headline.clone(), details.clone())) {
                blocks.push(SectionBlock::Diagnostic { headline, advice, details });
            }
        }
        if !comparison.notes.is_empty() {
            let notes = describe_methods(&comparison.notes);
            blocks.push(SectionBlock::Fold {
                summary: "How these numbers came about".into(),
                count: None,
                blocks: vec![SectionBlock::List(notes)],
            });
        }
    }
    Ok(blocks)
}

/// What goes with the changes of rows, where that is known.
fn suspect_blocks(rows: &[&VerdictRow]) -> Vec<SectionBlock> {
    let line = |row: &&VerdictRow| {
        let text = suspect_text(row)?;
        let case = format!("{}, {}, {}", row.subject, row.candidate_name, row.metric);
        Some(format!("{case}: {}.", text.trim_start_matches("why: ")))
    };
    let lines: Vec<String> = rows.iter().filter_map(line).collect();
    if lines.is_empty() {
        return Vec::new();
    }
    let text = "What goes with these changes, and can carry most of them; `perflab why` has the evidence:";
    vec![SectionBlock::Text(text.into()), SectionBlock::List(lines)]
}

/// What kernels printed on one side only.
fn kernel_log_blocks(comparison: &Comparison) -> Vec<SectionBlock> {
    let Some(table) = KernelLogTable::new(comparison) else { return Vec::new() };
    let notes = table.notes.iter().map(|note| SectionBlock::Hint(format_sentence(note))).collect::<Vec<_>>();
    let heading = SectionBlock::Heading(format_sentence(&table.heading));
    let grid = SectionBlock::Grid { caption: table.heading, grid: table.grid };
    [heading, grid].into_iter().chain(notes).collect()
}

/// How far each decile moved, row by row.
fn shift_block(comparison: &Comparison) -> Option<SectionBlock> {
    let (charts, left_out) = shift_charts(comparison);
    let count = Some(charts.len()).filter(|count| *count > 0)?;
    let explanation = SectionBlock::Hint(
        "The lower deciles are the fast part of the values where less is faster, the upper ones the slow part. A plain shift is a level line; \
         where only the right end rises, the tail became heavier (shift function; the band inverts Kolmogorov and Smirnov's test, Doksum and Sievers 1976)."
            .into(),
    );
    let left_out = (left_out > 0).then(|| {
        SectionBlock::Hint(format!("{left_out} rows are not drawn: fewer than ten values a side, or beyond the first {MOST_SHIFT_CHARTS}."))
    });
    let figures = charts.into_iter().map(SectionBlock::Figure);
    Some(SectionBlock::Fold {
        summary: "Where in the distribution the change lies".into(),
        count: Some(count),
        blocks: std::iter::once(explanation).chain(figures).chain(left_out).collect(),
    })
}

fn comparison_explanation(comparison: &Comparison) -> String {
    let has = |covers: IntervalMeaning| {
        let is_so = |row: &VerdictRow| row.change.is_some_and(|change| change.covers == covers);
        comparison.rows.iter().any(is_so)
    };
    let range =
        if has(IntervalMeaning::TheseRuns) { ", in brackets the range between two single runs" } else { "" };
    let unbounded = if has(IntervalMeaning::Unbounded) {
        "; unbounded where a range between so few values would reach further than ten times the estimate"
    } else {
        ""
    };
    let spans: Vec<ChangeSpan> = comparison.rows.iter().filter_map(ChangeSpan::from_row).collect();
    let scale = IntervalAxis::spanning(&spans).scale_note();
    format!(
        "Dot: the change from {} to {}. Bar: its {} % interval{range}{unbounded}. Shaded: the margin within which a change does not matter{scale}.",
        comparison.baseline,
        comparison.candidates.join(", "),
        percent_of_level(comparison.confidence)
    )
}

/// What the letters of the rows mean.
fn footnotes_block(comparison: &Comparison) -> Option<SectionBlock> {
    let flags: BTreeSet<RowFlag> = comparison.rows.iter().flat_map(|row| row.flags.iter().copied()).collect();
    let notes: Vec<(String, String)> =
        flags.iter().map(|flag| (flag.letter().to_string(), flag_footnote(*flag).to_owned())).collect();
    (!notes.is_empty()).then_some(SectionBlock::Footnotes(notes))
}

fn diagnostic_findings(comparison: &Comparison) -> Vec<(String, String, Vec<String>)> {
    let imported = are_runs_imported(comparison);
    let mut found: IndexMap<String, (String, Vec<String>)> = IndexMap::new();
    for warning in &comparison.warnings {
        let entry = found.entry(format_sentence(diagnostic_headline(warning)));
        let (_, details) =
            entry.or_insert_with(|| (format_sentence(diagnostic_advice(warning, imported)), Vec::new()));
        details.push(diagnostic_detail(warning));
    }
    found.into_iter().map(|(headline, (advice, details))| (headline, advice, details)).collect()
}
