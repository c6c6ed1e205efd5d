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
use crate::diagnose::check_samples;
use crate::families::{TestFamilySizes, set_verdicts};
use crate::rows::{RowEstimate, estimate_rows};
use crate::seen::{AlignedSide, CaseSelection, SampleIndex};
use crate::warning::ComparisonDiagnostic;
use crate::{AnalysisOptions, AnalyzeError, ComparisonSide, FactDifference, environment, planned};

pub use by_factor::compare_levels;
pub(crate) use by_factor::factor_levels;

/// Compares runs with other runs: `perflab compare A B [C...]`.
///
/// Cases are lined up by workload, matrix parameters and levels. A factor that has one level on each side, and
/// not the same one everywhere (the booted kernel, say), is what is compared and not part of a case's name.
///
/// # Errors
/// A side without runs or samples; no candidate; sides without a metric or without a case in common; options out
/// of range.
pub fn compare_sides(
    baseline: &ComparisonSide,
    candidates: &[ComparisonSide],
    options: &AnalysisOptions,
) -> Result<Comparison, AnalyzeError> {
    options.validate()?;
    if candidates.is_empty() {
        return Err(AnalyzeError::NoCandidate { baseline: baseline.name.clone() });
    }
    let sides: Vec<&ComparisonSide> = std::iter::once(baseline).chain(candidates).collect();
    common::check_runs_present(&sides)?;
    let compared = common::compared_factors(&sides);
    let hidden: Vec<String> = compared.iter().map(|factor| factor.name.clone()).collect();
    let mut index = SampleIndex::default();
    let selection = CaseSelection { level: None, hidden: hidden.clone() };
    let mut tables = sides.iter().map(|side| index.align_side(side, &side.name, &selection, options));
    let ours = tables.next().ok_or_else(|| AnalyzeError::NoRun { side: baseline.name.clone() })?;
    let theirs: Vec<AlignedSide> = tables.collect();
    common::check_sides_overlap(&index, &ours, &theirs, &sides, options)?;
    let facts: Vec<FactDifference> = candidates
        .iter()
        .flat_map(|side| environment::fact_differences(&baseline.runs, &side.name, &side.runs))
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
        warnings.extend(edited.diagnostics(&baseline.name, options));
        let differences = planned::side_rule_differences(&baseline.runs, &side.runs, &hidden);
        warnings.extend(overall::study_diagnostic(&baseline.name, &side.name, &differences));
        warnings.extend(overall::environment_diagnostic(&baseline.name, &side.name, &facts));
    }
    warnings.extend(overall::check_runs(&sides));
    warnings.extend(noise::noise_card_diagnostic(&sides, options));
    let mut found = conclude_comparison(index, ours, theirs, warnings, &edited, options)?;
    found.notes.extend(compared.iter().map(common::ComparedFactor::describe));
    found.facts = facts;
    Ok(found)
}

/// Everything after the sides are lined up.
fn conclude_comparison(
    index: SampleIndex,
    mut ours: AlignedSide,
    mut theirs: Vec<AlignedSide>,
    mut warnings: Vec<ComparisonDiagnostic>,
    edited: &[EditedCases],
    options: &AnalysisOptions,
) -> Result<Comparison, AnalyzeError> {
    for table in std::iter::once(&mut ours).chain(&mut theirs) {
        check_samples(table, &index, options.default_margin);
    }
    let (mut drafts, from_rows) = estimate_rows(&index, &ours, &theirs, options)?;
    if options.merge_twins {
        twins::merge_twin_rows(&mut drafts);
    }
    let families = set_verdicts(&mut drafts, options);
    warnings.extend(families.too_many_rows.clone());
    warnings.extend(overall::check_aligned_sides(&index, &ours, &theirs, &drafts));
    warnings.extend(from_rows);
    warnings.extend(sample_diagnostics(&ours, &theirs));
    warnings.extend(noise::flag_within_noise(&mut drafts, options));
    overall::flag_rows(&index, &mut drafts, &warnings);
    drafts.iter_mut().for_each(|draft| edited::withhold_verdict(&mut draft.row, edited, options));
    Ok(Comparison {
        format: COMPARISON_FORMAT,
        writer: concat!("perflab ", env!("CARGO_PKG_VERSION")).into(),
        baseline: ours.name,
        candidates: theirs.into_iter().map(|table| table.name).collect(),
        by: None,
        confidence: options.confidence,
        runs: index.runs,
        notes: describe_methods(&drafts, &families, options),
        rows: drafts.into_iter().map(|draft| draft.row).collect(),
        warnings,
        facts: Vec::new(),
        chosen: !options.metrics.is_empty(),
    })
}

/// The findings in every cell, in the order of the rows.
fn sample_diagnostics(ours: &AlignedSide, theirs: &[AlignedSide]) -> Vec<ComparisonDiagnostic> {
    let tables = || std::iter::once(ours).chain(theirs);
    let keys: BTreeSet<(usize, usize)> = tables().flat_map(|table| table.cells.keys().copied()).collect();
    let cells = keys.iter().flat_map(|key| tables().filter_map(move |table| table.cells.get(key)));
    cells.flat_map(|cell| cell.warnings.iter().cloned()).collect()
}

/// How the numbers came about.
fn describe_methods(
    drafts: &[RowEstimate],
    families: &TestFamilySizes,
    options: &AnalysisOptions,
) -> Vec<String> {
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
