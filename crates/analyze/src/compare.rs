//! Owns the two questions: these runs against those, and one level of a factor against the others. It refuses
//! details: lining up, numbers and verdicts have their own modules.

mod by_factor;
mod common;
mod edited;
mod noise;
mod overall;
mod twins;

use std::collections::BTreeSet;

use self::edited::EditedCases;
use crate::comparison::{COMPARISON_FORMAT, Comparison};
use crate::diagnose::diagnose;
use crate::families::{Families, settle};
use crate::rows::{Draft, drafts};
use crate::seen::{Index, Selection, Table};
use crate::warning::Warning;
use crate::{AnalyzeError, FactDifference, Options, Side, environment, planned};

pub use by_factor::compare_by_factor;
pub(crate) use by_factor::levels as factor_levels;

/// Compares runs with other runs: `perflab compare A B [C...]`.
///
/// Cases are lined up by workload, matrix parameters and levels. A factor that has one level on each side, and
/// not the same one everywhere (the booted kernel, say), is what is compared and not part of a case's name.
///
/// # Errors
/// A side without runs or samples; no candidate; sides without a metric or without a case in common; options out
/// of range.
pub fn compare(baseline: &Side, candidates: &[Side], options: &Options) -> Result<Comparison, AnalyzeError> {
    options.checked()?;
    if candidates.is_empty() {
        return Err(AnalyzeError::NoCandidate { baseline: baseline.name.clone() });
    }
    let sides: Vec<&Side> = std::iter::once(baseline).chain(candidates).collect();
    common::has_runs(&sides)?;
    let compared = common::compared_factors(&sides);
    let hidden: Vec<String> = compared.iter().map(|factor| factor.name.clone()).collect();
    let mut index = Index::default();
    let selection = Selection { level: None, hidden: hidden.clone() };
    let mut tables = sides.iter().map(|side| index.table(side, &side.name, &selection, options));
    let ours = tables.next().ok_or_else(|| AnalyzeError::NoRun { side: baseline.name.clone() })?;
    let theirs: Vec<Table> = tables.collect();
    common::have_something(&index, &ours, &theirs, &sides, options)?;
    let facts: Vec<FactDifference> = candidates
        .iter()
        .flat_map(|side| environment::differences(&baseline.runs, &side.name, &side.runs))
        .collect();
    let mut warnings = Vec::new();
    let mut edited = Vec::new();
    for side in candidates {
        if let Some(first) = baseline.runs.first() {
            let others = baseline.runs.iter().skip(1).chain(&side.runs);
            let cases = planned::edited_cases(&first.manifest, others, &hidden, &hidden);
            edited.push(EditedCases { candidate: side.name.clone(), cases });
        }
    }
    for (side, edited) in candidates.iter().zip(&edited) {
        warnings.extend(edited.warnings(&baseline.name, options));
        let differences = planned::rules_of_sides(&baseline.runs, &side.runs, &hidden);
        warnings.extend(overall::study(&baseline.name, &side.name, &differences));
        warnings.extend(overall::environment(&baseline.name, &side.name, &facts));
    }
    warnings.extend(overall::of_sides(&sides));
    warnings.extend(noise::doubts(&sides, options));
    let mut found = finish(index, ours, theirs, warnings, &edited, options)?;
    found.notes.extend(compared.iter().map(common::ComparedFactor::note));
    found.facts = facts;
    Ok(found)
}

/// Everything after the sides are lined up.
fn finish(
    index: Index,
    mut ours: Table,
    mut theirs: Vec<Table>,
    mut warnings: Vec<Warning>,
    edited: &[EditedCases],
    options: &Options,
) -> Result<Comparison, AnalyzeError> {
    for table in std::iter::once(&mut ours).chain(&mut theirs) {
        diagnose(table, &index, options.default_margin);
    }
    let (mut drafts, from_rows) = drafts(&index, &ours, &theirs, options)?;
    if options.merge_twins {
        twins::merge(&mut drafts);
    }
    let families = settle(&mut drafts, options);
    warnings.extend(families.too_many_rows.clone());
    warnings.extend(overall::of_tables(&index, &ours, &theirs, &drafts));
    warnings.extend(from_rows);
    warnings.extend(cell_warnings(&ours, &theirs));
    warnings.extend(noise::within(&mut drafts, options));
    overall::flag_rows(&index, &mut drafts, &warnings);
    drafts.iter_mut().for_each(|draft| edited::withhold(&mut draft.row, edited, options));
    Ok(Comparison {
        format: COMPARISON_FORMAT,
        writer: concat!("perflab ", env!("CARGO_PKG_VERSION")).into(),
        baseline: ours.name,
        candidates: theirs.into_iter().map(|table| table.name).collect(),
        by: None,
        confidence: options.confidence,
        runs: index.runs,
        notes: notes(&drafts, &families, options),
        rows: drafts.into_iter().map(|draft| draft.row).collect(),
        warnings,
        facts: Vec::new(),
        chosen: !options.metrics.is_empty(),
    })
}

/// The findings in every cell, in the order of the rows.
fn cell_warnings(ours: &Table, theirs: &[Table]) -> Vec<Warning> {
    let tables = || std::iter::once(ours).chain(theirs);
    let keys: BTreeSet<(usize, usize)> = tables().flat_map(|table| table.cells.keys().copied()).collect();
    let cells = keys.iter().flat_map(|key| tables().filter_map(move |table| table.cells.get(key)));
    cells.flat_map(|cell| cell.warnings.iter().cloned()).collect()
}

/// How the numbers came about.
fn notes(drafts: &[Draft], families: &Families, options: &Options) -> Vec<String> {
    let percent = |fraction: f64| (fraction * 1000.0).round() / 10.0;
    let uses =
        |paired: bool| drafts.iter().any(|d| d.row.method.is_some_and(|m| m.paired == paired && !m.by_means));
    let mut notes = Vec::new();
    if uses(true) {
        let how = "the pseudo-median over blocks or boots, with the interval that inverts Wilcoxon's signed-rank test";
        notes.push(format!("change of paired rows: {how}"));
    }
    if uses(false) {
        let rows = if uses(true) { "all other" } else { "all" };
        let how = "Hodges and Lehmann's, with the interval that inverts the Mann-Whitney test";
        notes.push(format!("change of {rows} rows: {how}"));
    }
    if drafts.iter().any(|draft| draft.row.method.is_some_and(|method| method.by_means)) {
        let how = "Welch's t on the boots' medians: two or three boots a side are too few for ranks";
        notes.push(format!("change of rows with few boots: {how}"));
    }
    notes.push(format!(
        "same: the {} % interval lies inside ± the margin; better or worse: the {} % interval excludes no change and q is below {}",
        percent(options.narrow_confidence()),
        percent(options.confidence),
        percent(1.0 - options.confidence) / 100.0,
    ));
    notes.push(format!(
        "q: Benjamini and Hochberg over {} primary and {} explanatory rows, each family by itself",
        families.primary, families.explanatory,
    ));
    notes
}
