//! The two questions, runs against runs and levels of a factor against its first, each as a sequence of steps.
//!
//! With `--by FACTOR` other factors are not pooled: each combination of their levels is a case of its own.

use std::collections::BTreeSet;

use indexmap::IndexSet;

use crate::compare::alignment::{self, AlignedSide, CaseSelection, SampleIndex};
use crate::compare::between_runs::EarlierRuns;
use crate::compare::case_condition::check_conditions;
use crate::compare::change::{ChangeScale, ShiftEstimator};
use crate::compare::checks::{self, check_samples};
use crate::compare::comparison::{COMPARISON_FORMAT, Comparison, VerdictRow};
use crate::compare::diagnostic::ComparisonDiagnostic;
use crate::compare::edited_cases::EditedCases;
use crate::compare::exact_verdict::{drop_sampling_flags, judge_exact_rows};
use crate::compare::failure_verdict::judge_failures;
use crate::compare::options::{AnalysisOptions, ComparisonSide};
use crate::compare::part_verdict::judge_parts;
use crate::compare::row_estimate::{EstimateContext, RowEstimate, estimate_rows};
use crate::compare::run_differences::{self, FactDifference};
use crate::compare::same_content::count_contents_once;
use crate::compare::target_levels::{TARGET_FACTOR, has_target_levels, with_target_levels};
use crate::compare::verdict::{TestFamilySizes, set_verdicts};
use crate::compare::warm_up_values::leave_out_warm_up;
use crate::error::AnalyzeError;
use crate::method_description::MethodDescription;

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
    let (counted, same_content) = count_contents_once(baseline, candidates);
    let sides: Vec<&ComparisonSide> = counted.iter().map(AsRef::as_ref).collect();
    let (baseline, candidates) =
        sides.split_first().map_or((baseline, &[][..]), |(first, rest)| (*first, rest));
    crate::compare::alignment::check_runs_present(&sides)?;
    check_conditions(sides.iter().flat_map(|side| &side.runs), &options.conditions)?;
    let compared = crate::compare::alignment::compared_factors(&sides);
    let hidden: Vec<String> = compared.iter().map(|factor| factor.name.clone()).collect();
    let mut index = SampleIndex::default();
    let selection = CaseSelection { level: None, hidden: hidden.clone() };
    let mut tables: Vec<AlignedSide> =
        sides.iter().map(|side| index.align_side(side, &side.name, &selection, options)).collect();
    index.join_unknown_parameters(&mut tables);
    let mut tables = tables.into_iter();
    let ours = tables.next().ok_or_else(|| AnalyzeError::NoRun { side: baseline.name.clone() })?;
    let theirs: Vec<AlignedSide> = tables.collect();
    crate::compare::alignment::check_sides_overlap(&index, &ours, &theirs, &sides, options)?;
    let facts: Vec<FactDifference> = candidates
        .iter()
        .flat_map(|side| run_differences::fact_differences(&baseline.runs, &side.name, &side.runs))
        .collect();
    let mut warnings = same_content;
    let mut edited = Vec::new();
    for side in candidates {
        let cases = run_differences::edited_cases([&baseline.runs, &side.runs], &hidden, &hidden);
        edited.push(EditedCases { candidate: side.name.clone(), cases });
    }
    for (side, edited) in candidates.iter().zip(&edited) {
        warnings.extend(edited.diagnostics(&baseline.name, options));
        let differences = run_differences::side_rule_differences([&baseline.runs, &side.runs], &hidden);
        warnings.extend(crate::compare::checks::study_diagnostic(&baseline.name, &side.name, &differences));
        warnings.extend(crate::compare::checks::environment_diagnostic(&baseline.name, &side.name, &facts));
    }
    warnings.extend(crate::compare::checks::check_runs(&sides));
    warnings.extend(crate::compare::checks::noise_card_diagnostic(&sides, options));
    let earlier = EarlierRuns::on_machine_of(baseline, &hidden, options);
    let context = EstimateContext { options, earlier: &earlier };
    let mut found = conclude_comparison(index, ours, theirs, warnings, &edited, &context)?;
    found.notes.extend(compared.iter().map(crate::compare::alignment::ComparedFactor::describe));
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
    context: &EstimateContext<'_>,
) -> Result<Comparison, AnalyzeError> {
    let options = context.options;
    let warm_up_values = options
        .leave_out_warm_up
        .then(|| std::iter::once(&mut ours).chain(&mut theirs).map(leave_out_warm_up).sum::<usize>());
    for table in std::iter::once(&mut ours).chain(&mut theirs) {
        check_samples(table, &index, options.default_margin);
    }
    let (mut drafts, from_rows) = estimate_rows(&index, &ours, &theirs, context)?;
    if options.merge_twins {
        crate::compare::twin_rows::merge_twin_rows(&mut drafts);
    }
    let families = set_verdicts(&mut drafts, options);
    judge_exact_rows(&mut drafts);
    judge_parts(&mut drafts, options);
    judge_failures(&mut drafts, options);
    for row in drafts.iter_mut().map(|draft| &mut draft.row) {
        row.set_unseen_share();
        row.set_small_change(|q| options.is_significant(q));
    }
    warnings.extend(families.too_many_rows.clone());
    warnings.extend(crate::compare::checks::check_aligned_sides(&index, &ours, &theirs, &drafts));
    warnings.extend(from_rows);
    warnings.extend(sample_diagnostics(&ours, &theirs));
    warnings.extend(crate::compare::checks::flag_within_noise(&mut drafts, options));
    crate::compare::checks::flag_rows(&index, &mut drafts, &warnings);
    drop_sampling_flags(&mut drafts);
    drafts
        .iter_mut()
        .for_each(|draft| crate::compare::edited_cases::withhold_verdict(&mut draft.row, edited, options));
    crate::compare::edited_cases::withhold_contradictions(&mut drafts);
    let imported = !index.runs.is_empty() && index.runs.iter().all(|run| run.imported);
    Ok(Comparison {
        format: COMPARISON_FORMAT,
        writer: concat!("perflab ", env!("CARGO_PKG_VERSION")).into(),
        baseline: ours.name,
        candidates: theirs.into_iter().map(|table| table.name).collect(),
        by: None,
        confidence: options.confidence,
        runs: index.runs,
        notes: warm_up_values
            .map(|values| MethodDescription::WarmUpLeftOut { values })
            .into_iter()
            .chain(describe_methods(&drafts, &families, (imported, options)))
            .collect(),
        rows: drafts.into_iter().map(|draft| draft.row).collect(),
        warnings,
        facts: Vec::new(),
        kernel_log: None,
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
    (imported, options): (bool, &AnalysisOptions),
) -> Vec<MethodDescription> {
    let always_valid = drafts.iter().any(|d| d.row.method.is_some_and(|m| m.always_valid));
    let has_exact = drafts.iter().any(|draft| draft.exact);
    let by_means = |paired: bool| {
        drafts.iter().any(|draft| draft.row.method.is_some_and(|m| m.by_means && m.paired == paired))
    };
    let random_effects = drafts.iter().any(|draft| draft.row.method.is_some_and(|m| m.random_effects));
    let mut notes = Vec::new();
    notes.extend(always_valid.then_some(MethodDescription::AlwaysValid));
    let with = |estimator| {
        move |draft: &RowEstimate| draft.row.method.is_some_and(|method| method.estimator == Some(estimator))
    };
    let estimators = [
        ShiftEstimator::SignedRanks,
        ShiftEstimator::JointRanks,
        ShiftEstimator::Means,
        ShiftEstimator::RankSum,
    ];
    notes.extend(estimators.into_iter().filter(|estimator| drafts.iter().any(with(*estimator))).map(
        |estimator| {
            let is_paired = |draft: &RowEstimate| draft.row.method.is_some_and(|method| method.paired);
            let of_pairs = drafts.iter().any(|draft| with(estimator)(draft) && is_paired(draft));
            MethodDescription::ChangeBy { estimator, all: drafts.iter().all(with(estimator)), of_pairs }
        },
    ));
    let apart = drafts.iter().filter(|draft| has_medians_apart(&draft.row)).count();
    notes.extend((apart > 0).then_some(MethodDescription::MediansApart { rows: apart }));
    notes.extend(by_means(true).then_some(MethodDescription::MachinePairMeans));
    notes.extend(by_means(false).then_some(MethodDescription::BootMeans));
    notes.extend(pooled_noise(drafts));
    notes.extend(random_effects.then_some(MethodDescription::RandomEffects));
    notes.extend(one_run_a_side(drafts, imported));
    notes.extend(has_exact.then_some(MethodDescription::ExactValues));
    notes.push(MethodDescription::VerdictRule {
        narrow_confidence: options.narrow_confidence(),
        confidence: options.confidence,
    });
    notes.extend(unseen_tail(drafts));
    notes.push(MethodDescription::FalseDiscoveryRate {
        primary: families.primary,
        explanatory: families.explanatory,
    });
    notes
}

/// A change and that of the medians differ where it is by more than this, relative to the change, and by more than the margin.
const MEDIANS_APART: f64 = 0.2;

/// Whether a reader who divides the medians of a row gets another change than the row's.
fn has_medians_apart(row: &VerdictRow) -> bool {
    let (Some(ours), Some(theirs), Some(change)) = (&row.baseline, &row.candidate, row.change) else {
        return false;
    };
    // A change that may be none says little of how large it is.
    let is_known = change.interval.is_some_and(|interval| interval.low > 0.0 || interval.high < 0.0);
    if !is_known || change.scale != ChangeScale::Ratio || ours.median == 0.0 {
        return false;
    }
    let of_medians = (theirs.median - ours.median) / ours.median.abs();
    (of_medians - change.value).abs() > (MEDIANS_APART * change.value.abs()).max(row.margin)
}

/// What earlier runs add to rows with two or three boots or runs a side: by fewest of them.
fn pooled_noise(drafts: &[RowEstimate]) -> Option<MethodDescription> {
    let found = || drafts.iter().filter_map(|draft| draft.row.pooled_noise);
    let pairs = found().map(|noise| noise.pairs).min()?;
    Some(MethodDescription::PooledNoise { pairs, from_card: found().any(|noise| noise.from_card) })
}

/// What the intervals of rows with one run a side allow for: the most that any does, and what fewest earlier runs say.
fn one_run_a_side(drafts: &[RowEstimate], imported: bool) -> Option<MethodDescription> {
    let found = || drafts.iter().filter_map(|draft| draft.row.between_runs);
    let widened = found().map(|runs| runs.widened).reduce(f64::max)?;
    let earlier_pairs = found().map(|runs| runs.earlier_pairs).min()?;
    let in_turn = found().all(|runs| runs.in_turn);
    let from_card = found().any(|runs| runs.from_card);
    Some(MethodDescription::OneRunASide { widened, in_turn, earlier_pairs, from_card, imported })
}

/// What the row with fewest values could not have seen, of those that decide and are the same.
fn unseen_tail(drafts: &[RowEstimate]) -> Option<MethodDescription> {
    let has_primary = drafts.iter().any(|draft| draft.row.primary);
    let decides = |draft: &&RowEstimate| draft.row.primary || !has_primary;
    let of_row = |draft: &RowEstimate| Some((draft.row.unseen_share?, draft.row.candidate.as_ref()?.n));
    let (share, values) =
        drafts.iter().filter(decides).filter_map(of_row).max_by(|a, b| a.0.total_cmp(&b.0))?;
    Some(MethodDescription::UnseenTail { share, values })
}

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
    alignment::check_runs_present(&[side])?;
    let side = &*with_target_levels(side, factor);
    check_conditions(side.runs.iter(), &options.conditions)?;
    let (counted, same_content) = count_contents_once(side, &[]);
    let side = counted.first().map_or(side, AsRef::as_ref);
    let levels = put_baseline_first(factor_levels(side, factor)?, factor, side, options)?;
    let levels = choose_candidates(levels, factor, side, options)?;
    let mut index = SampleIndex::default();
    let mut tables = levels.iter().map(|level| {
        let selection =
            CaseSelection { level: Some((factor.into(), level.clone())), hidden: vec![factor.into()] };
        index.align_side(side, level, &selection, options)
    });
    let ours = tables.next().ok_or_else(|| AnalyzeError::NoRun { side: side.name.clone() })?;
    let theirs: Vec<AlignedSide> = tables.collect();
    alignment::check_sides_overlap(&index, &ours, &theirs, &[side], options)?;
    for run in &mut index.runs {
        run.side.clear();
    }
    let edited = edited_repetition_cases(side, factor, theirs.iter().map(|table| table.name.clone()));
    let mut warnings = edited.first().map_or(Vec::new(), |one| one.diagnostics(&ours.name, options));
    warnings.extend(same_content);
    warnings.extend(checks::check_runs(&[side]));
    warnings.extend(checks::noise_card_diagnostic(&[side], options));
    let earlier = EarlierRuns::on_machine_of(side, &[factor.to_owned()], options);
    let context = EstimateContext { options, earlier: &earlier };
    let mut found = conclude_comparison(index, ours, theirs, warnings, &edited, &context)?;
    found.by = Some(factor.into());
    Ok(found)
}

/// Cases that were edited between the runs that are taken for repetitions of one another.
fn edited_repetition_cases(
    side: &ComparisonSide,
    factor: &str,
    candidates: impl Iterator<Item = String>,
) -> Vec<EditedCases> {
    let cases = run_differences::edited_cases([&side.runs, &side.runs], &[], &[factor.into()]);
    candidates.map(|candidate| EditedCases { candidate, cases: cases.clone() }).collect()
}

/// The levels with the requested baseline in front.
fn put_baseline_first(
    mut levels: Vec<String>,
    factor: &str,
    side: &ComparisonSide,
    options: &AnalysisOptions,
) -> Result<Vec<String>, AnalyzeError> {
    let Some(requested) = &options.baseline else { return Ok(levels) };
    let at =
        levels.iter().position(|level| level == requested).ok_or_else(|| AnalyzeError::UnknownLevel {
            factor: factor.into(),
            level: requested.clone(),
            side: side.name.clone(),
            known: levels.clone(),
        })?;
    levels.get_mut(..=at).unwrap_or_default().rotate_right(1);
    Ok(levels)
}

/// The baseline, and those levels that are compared with it.
fn choose_candidates(
    levels: Vec<String>,
    factor: &str,
    side: &ComparisonSide,
    options: &AnalysisOptions,
) -> Result<Vec<String>, AnalyzeError> {
    if let Some(unknown) = options.versus.iter().find(|level| !levels.contains(level)) {
        let (factor, side, level) = (factor.into(), side.name.clone(), unknown.clone());
        return Err(AnalyzeError::UnknownLevel { factor, level, side, known: levels });
    }
    let is_chosen = |(at, level): (usize, &String)| {
        at == 0 || options.versus.is_empty() || options.versus.contains(level)
    };
    let chosen: Vec<String> = levels
        .iter()
        .enumerate()
        .filter(|(at, level)| is_chosen((*at, level)))
        .map(|(_, level)| level.clone())
        .collect();
    match chosen.as_slice() {
        [baseline] => Err(AnalyzeError::NoCandidate { baseline: baseline.clone() }),
        _ => Ok(chosen),
    }
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
    let targets = side.runs.iter().all(has_target_levels).then(|| TARGET_FACTOR.to_owned());
    AnalyzeError::UnknownFactor {
        factor: factor.into(),
        side: side.name.clone(),
        known: known.into_iter().cloned().chain(targets).collect(),
    }
}

#[cfg(test)]
mod tests {
    use fixtures::run_builder::RunBuilder;

    use super::*;
    use crate::compare::comparison::SideSummary;

    /// Values of `b` are three times those of `a`: medians that say so are no news, and others are.
    #[test]
    fn medians_that_say_another_change_are_found() {
        let builder = RunBuilder::new("01A").with(|run| {
            run.factors = vec![("how", vec!["a", "b"])];
            run.iterations = 12;
        });
        let mut count = 0.0;
        let run = builder.build_run(|point| {
            count += 1.0;
            Some(if point.level("how") == "b" { 300.0 } else { 100.0 } + count / 10.0)
        });
        let side = ComparisonSide { name: "01A".into(), runs: vec![run] };
        let found = compare_levels(&side, "how", &AnalysisOptions::default()).unwrap();
        assert!(!found.notes.iter().any(|note| matches!(note, MethodDescription::MediansApart { .. })));
        let row = &found.rows[0];
        let with_median = |median: f64| {
            let candidate = row.candidate.clone().map(|side| SideSummary { median, ..side });
            has_medians_apart(&VerdictRow { candidate, ..row.clone() })
        };
        assert_eq!([300.0, 320.0, 400.0, 100.0].map(with_median), [false, false, true, true]);
        // Of a change that may be none nothing is said.
        let unknown = row.change.map(|change| crate::MetricChange { interval: None, ..change });
        let candidate = row.candidate.clone().map(|side| SideSummary { median: 400.0, ..side });
        assert!(!has_medians_apart(&VerdictRow { candidate, change: unknown, ..row.clone() }));
    }
}
