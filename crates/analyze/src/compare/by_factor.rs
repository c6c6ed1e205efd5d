//! Owns `--by FACTOR`: the levels of one factor against its first, everything else equal. It refuses to pool other
//! factors: each combination of their levels is a case of its own.

use indexmap::IndexSet;

use super::edited::EditedCases;
use super::{common, conclude_comparison, noise, overall};
use crate::comparison::Comparison;
use crate::planned;
use crate::seen::{AlignedSide, CaseSelection, SampleIndex};
use crate::{AnalysisOptions, AnalyzeError, ComparisonSide};

/// Compares the levels of `factor` within runs (one, or repetitions of one another), the first level being the
/// baseline; one row a combination of the other factors' levels.
///
/// # Errors
/// No run; a factor that was not varied, naming those that were; a factor with one level only; a level without
/// samples; options out of range.
pub fn compare_levels(
    side: &ComparisonSide,
    factor: &str,
    options: &AnalysisOptions,
) -> Result<Comparison, AnalyzeError> {
    options.validate()?;
    common::check_runs_present(&[side])?;
    let levels = put_baseline_first(factor_levels(side, factor)?, factor, side, options)?;
    let mut index = SampleIndex::default();
    let mut tables = levels.iter().map(|level| {
        let selection =
            CaseSelection { level: Some((factor.into(), level.clone())), hidden: vec![factor.into()] };
        index.align_side(side, level, &selection, options)
    });
    let ours = tables.next().ok_or_else(|| AnalyzeError::NoRun { side: side.name.clone() })?;
    let theirs: Vec<AlignedSide> = tables.collect();
    common::check_sides_overlap(&index, &ours, &theirs, &[side], options)?;
    for run in &mut index.runs {
        run.side.clear();
    }
    let edited = edited_repetition_cases(side, factor, theirs.iter().map(|table| table.name.clone()));
    let mut warnings = edited.first().map_or(Vec::new(), |one| one.diagnostics(&ours.name, options));
    warnings.extend(overall::check_runs(&[side]));
    warnings.extend(noise::noise_card_diagnostic(&[side], options));
    let mut found = conclude_comparison(index, ours, theirs, warnings, &edited, options)?;
    found.by = Some(factor.into());
    Ok(found)
}

/// Cases that were edited between the runs that are taken for repetitions of one another.
fn edited_repetition_cases(
    side: &ComparisonSide,
    factor: &str,
    candidates: impl Iterator<Item = String>,
) -> Vec<EditedCases> {
    let Some(first) = side.runs.first() else { return Vec::new() };
    let cases = planned::edited_cases(&first.manifest, side.runs.iter().skip(1), &[], &[factor.into()]);
    candidates.map(|candidate| EditedCases { candidate, cases: cases.clone() }).collect()
}

/// The levels with the wanted baseline in front.
fn put_baseline_first(
    mut levels: Vec<String>,
    factor: &str,
    side: &ComparisonSide,
    options: &AnalysisOptions,
) -> Result<Vec<String>, AnalyzeError> {
    let Some(wanted) = &options.baseline else { return Ok(levels) };
    let at = levels.iter().position(|level| level == wanted).ok_or_else(|| AnalyzeError::UnknownLevel {
        factor: factor.into(),
        level: wanted.clone(),
        side: side.name.clone(),
        known: levels.clone(),
    })?;
    levels.get_mut(..=at).unwrap_or_default().rotate_right(1);
    Ok(levels)
}

/// Its levels that were run, in the order of the study.
pub(crate) fn factor_levels(side: &ComparisonSide, factor: &str) -> Result<Vec<String>, AnalyzeError> {
    let plans = || side.runs.iter().map(|run| &run.manifest.plan);
    let used: IndexSet<&String> =
        plans().flat_map(|plan| &plan.cases).filter_map(|case| case.levels.get(factor)).collect();
    let declared = plans().flat_map(|plan| plan.factors.get(factor)).flatten();
    let ordered: IndexSet<&String> = declared.filter(|level| used.contains(level)).collect();
    let levels: IndexSet<&String> = ordered.into_iter().chain(used).collect();
    match levels.len() {
        0 => Err(unknown_factor(side, factor)),
        1 => Err(AnalyzeError::OneLevel {
            factor: factor.into(),
            level: levels.iter().map(|level| (*level).clone()).collect(),
            side: side.name.clone(),
        }),
        _ => Ok(levels.into_iter().cloned().collect()),
    }
}

fn unknown_factor(side: &ComparisonSide, factor: &str) -> AnalyzeError {
    let cases = side.runs.iter().flat_map(|run| &run.manifest.plan.cases);
    let known: IndexSet<&String> = cases.flat_map(|case| case.levels.keys()).collect();
    AnalyzeError::UnknownFactor {
        factor: factor.into(),
        side: side.name.clone(),
        known: known.into_iter().cloned().collect(),
    }
}
