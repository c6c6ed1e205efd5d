//! What is doubtful: in single samples (drift, two modes, outliers), in sides and runs (boots, order, gaps, failures),
//! and against the noise card.
//!
//! Checks only warn and flag: nothing is removed, straightened or given another verdict. Runs are checked one by one, since
//! what one has of luck is no drift, no second mode and no outlier of the next.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use indexmap::IndexMap;
use perflab_model::series::SeriesGap;
use perflab_model::{RunRecord, RunStatus, describe_overwritten_settings, fact_table};
use perflab_stats::{drift_correlation, find_outlying_values, find_two_modes, median, value_resolution};
use rayon::prelude::*;

use crate::compare::alignment::{AlignedSide, CaseIterations, MetricSamples, SampleIndex};
use crate::compare::comparison::{ComparedRun, SamplePoint, SideSummary, Verdict, VerdictRow};
use crate::compare::diagnostic::{ComparisonDiagnostic, DiagnosticLocation, RowFlag};
use crate::compare::exact_values::differing_range;
use crate::compare::options::{AnalysisOptions, ComparisonSide};
use crate::compare::row_estimate::{FEWEST_PER_THREAD, RowEstimate};
use crate::compare::run_differences::{FactDifference, PlanDifference};
use crate::compare::tails::REACH;
use crate::compare::warm_up_values::side_warm_ups;

/// The chance that a clean side is called drifting, or has an outlier: that of a row is at most twice it.
const FALSE_ALARM: f64 = 0.005;

/// Fills in the warnings of every cell of a side, by as many threads as there are processors.
pub(crate) fn check_samples(table: &mut AlignedSide, index: &SampleIndex, default_margin: f64) {
    let name = table.name.as_str();
    let mut cells: Vec<_> = table.cells.iter_mut().collect();
    cells.par_iter_mut().with_min_len(FEWEST_PER_THREAD).for_each(|(key, cell)| {
        let place = || diagnostic_location(name, **key, index);
        cell.warnings = check_sample(cell, &place, &index.runs, cell.margin.unwrap_or(default_margin));
    });
}

fn diagnostic_location(
    side: &str,
    (subject, metric): (usize, usize),
    index: &SampleIndex,
) -> DiagnosticLocation {
    DiagnosticLocation {
        side: side.into(),
        subject: index.subjects.get_index(subject).map_or_else(String::new, |(name, _)| name.clone()),
        metric: index.metrics.get_index(metric).map_or_else(String::new, |key| String::from(&key.name)),
    }
}

fn check_sample(
    cell: &MetricSamples,
    place: &dyn Fn() -> DiagnosticLocation,
    runs: &[ComparedRun],
    margin: f64,
) -> Vec<ComparisonDiagnostic> {
    let groups = CheckedGroups::from_samples(cell);
    let mut found = Vec::new();
    if cell.not_numbers > 0 {
        found.push(ComparisonDiagnostic::NotNumbers { place: place(), values: cell.not_numbers });
    }
    if let Some((least, most)) = differing_range(cell).filter(|_| cell.exact) {
        found.push(ComparisonDiagnostic::NotExact { place: place(), least, most });
    }
    found.extend(side_warm_ups(cell).into_iter().map(|warm_up| ComparisonDiagnostic::WarmUp {
        place: place(),
        run: runs.get(warm_up.origin.0 as usize).map_or_else(String::new, |run| run.id.clone()),
        values: warm_up.period.values,
        of: warm_up.values,
        before: warm_up.period.before,
        steady: warm_up.period.steady,
    }));
    for points in &groups.values {
        let values: Vec<f64> = points.iter().map(|point| point.value).collect();
        found.extend(drift_diagnostic(&values, groups.drift_tests(), place));
        found.extend(modes_diagnostic(&values, groups.values.len(), margin, place));
        found.extend(outliers_diagnostic(points, &values, groups.values.len(), place));
    }
    found.extend(groups.medians.iter().filter_map(|of| drift_diagnostic(of, groups.drift_tests(), place)));
    found
}

/// The values of a side by what shares its luck, each in order of time.
struct CheckedGroups<'a> {
    /// Those of one run in one boot; of a boot whose runs have one value each, those of the boot.
    values: Vec<Cow<'a, [SamplePoint]>>,
    /// The medians of the runs of one boot, where it has three or more: these drift only against the luck of runs.
    medians: Vec<Vec<f64>>,
}

/// Fewest values that can drift.
const FEWEST_TO_DRIFT: usize = 3;

impl<'a> CheckedGroups<'a> {
    fn from_samples(cell: &'a MetricSamples) -> Self {
        let mut found = CheckedGroups { values: Vec::new(), medians: Vec::new() };
        for points in cell.by_boot().into_values() {
            let mut runs: BTreeMap<u32, Vec<SamplePoint>> = BTreeMap::new();
            if points.chunk_by(|one, next| one.run == next.run).count() > 1 {
                points.iter().for_each(|point| runs.entry(point.run).or_default().push(*point));
            }
            if runs.values().all(|run| run.len() == 1) {
                found.values.push(points);
                continue;
            }
            let mut runs: Vec<Vec<SamplePoint>> = runs.into_values().collect();
            runs.sort_by_key(|run| run.first().map(|point| point.at));
            let medians = runs
                .iter()
                .filter_map(|run| median(&run.iter().map(|point| point.value).collect::<Vec<_>>()).ok());
            found.medians.extend((runs.len() >= FEWEST_TO_DRIFT).then(|| medians.collect()));
            found.values.extend(runs.into_iter().map(Cow::Owned));
        }
        found
    }

    /// So often drift is looked for.
    fn drift_tests(&self) -> usize {
        let long = self.values.iter().filter(|points| points.len() >= FEWEST_TO_DRIFT).count();
        long + self.medians.len()
    }
}

/// With several tests, one of them alarms by chance more often.
fn drift_diagnostic(
    values: &[f64],
    tests: usize,
    place: &dyn Fn() -> DiagnosticLocation,
) -> Option<ComparisonDiagnostic> {
    let found = drift_correlation(values).ok()?;
    let p = (found.p * tests as f64).min(1.0);
    (p < FALSE_ALARM).then(|| ComparisonDiagnostic::Drift { place: place(), rho: found.rho, p })
}

/// Groups closer than the margin do not matter: steps of a coarse clock, for example.
fn modes_diagnostic(
    values: &[f64],
    groups: usize,
    margin: f64,
    place: &dyn Fn() -> DiagnosticLocation,
) -> Option<ComparisonDiagnostic> {
    // Both sides of a row are looked at.
    let modes = find_two_modes(values, 2 * groups).ok()??;
    let matters = modes.high - modes.low > margin * modes.low.abs();
    let high_share = modes.high_share;
    matters.then(|| ComparisonDiagnostic::Modes {
        place: place(),
        low: modes.low,
        high: modes.high,
        high_share,
    })
}

/// Iterations whose values lie far from the rest.
fn outliers_diagnostic(
    points: &[SamplePoint],
    values: &[f64],
    groups: usize,
    place: &dyn Fn() -> DiagnosticLocation,
) -> Option<ComparisonDiagnostic> {
    let found = find_outlying_values(values, FALSE_ALARM / groups as f64).ok()?;
    // Next to the middle on a coarse scale is not far.
    let near = REACH * value_resolution(values).unwrap_or(0.0);
    let centre = median(values).ok()?;
    let far = found.iter().filter_map(|outlier| points.get(outlier.index));
    let far = far.filter(|point| (point.value - centre).abs() > near);
    let iterations: Vec<u32> = far.map(|point| point.iteration).collect();
    (!iterations.is_empty()).then(|| ComparisonDiagnostic::Outliers { place: place(), iterations })
}

/// What runs say about themselves: how they ended, their order, their monitors' gaps.
pub(crate) fn check_runs(sides: &[&ComparisonSide]) -> Vec<ComparisonDiagnostic> {
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    let all = sides.iter().flat_map(|side| &side.runs);
    // What one run lacks, another may have measured.
    let continued: BTreeSet<&str> = all.filter_map(|run| run.manifest.continues.as_deref()).collect();
    let everywhere = find_common_gaps(sides);
    for (side, run) in sides.iter().flat_map(|side| side.runs.iter().map(move |run| (side, run))) {
        if seen.insert(&run.manifest.id) {
            let is_continued = continued.contains(run.manifest.id.as_str());
            found.extend(check_run(&side.name, run, is_continued, &everywhere));
        }
    }
    found
}

/// A monitor, and why it recorded nothing.
type MonitorLack<'a> = (&'a str, &'a str);

/// What no run has a row of, for one and the same reason: what a machine lacks is no difference between the sides.
fn find_common_gaps<'a>(sides: &[&'a ComparisonSide]) -> BTreeSet<MonitorLack<'a>> {
    let runs = sides.iter().flat_map(|side| &side.runs);
    let lacks = runs.map(|run| {
        let begin = run.iterations.iter().map(|iteration| iteration.start).min();
        let is_lasting = |gap: &&SeriesGap| gap.to.is_none() && begin.is_none_or(|begin| gap.from <= begin);
        let of_run = run.gaps.iter().filter(is_lasting);
        of_run.map(|gap| (gap.monitor.as_str(), gap.reason.as_str())).collect::<BTreeSet<_>>()
    });
    lacks.reduce(|all, own| all.intersection(&own).copied().collect()).unwrap_or_default()
}

fn check_run(
    side: &str,
    run: &RunRecord,
    is_continued: bool,
    everywhere: &BTreeSet<MonitorLack<'_>>,
) -> Vec<ComparisonDiagnostic> {
    let (side, id, status) = (side.to_owned(), run.manifest.id.clone(), run.manifest.status);
    let ended = is_continued || matches!(status, RunStatus::Finished | RunStatus::Failed);
    let unfinished =
        (!ended).then(|| ComparisonDiagnostic::NotFinished { side: side.clone(), run: id.clone(), status });
    let sequential = run.manifest.plan.order == "sequential" && run.manifest.plan.cases.len() > 1;
    let order = sequential.then(|| ComparisonDiagnostic::SequentialOrder { run: id.clone() });
    let settings = describe_overwritten_settings(&run.overwritten);
    let overwritten = (!settings.is_empty()).then(|| ComparisonDiagnostic::OverwrittenSettings {
        side: side.clone(),
        run: id.clone(),
        settings,
    });
    let gaps = monitor_gaps(run, everywhere);
    let files = files_with_unusable_rows(run);
    let unusable = (!files.is_empty()).then(|| ComparisonDiagnostic::UnusableRows {
        side: side.clone(),
        run: id.clone(),
        files,
    });
    let monitors =
        (!gaps.is_empty()).then_some(ComparisonDiagnostic::MonitorGaps { side, run: id, monitors: gaps });
    [unfinished, order, overwritten, unusable, monitors].into_iter().flatten().collect()
}

/// Files of an import, each with its counts of rows, of which some could not be used.
fn files_with_unusable_rows(run: &RunRecord) -> Vec<String> {
    let all = fact_table::IMPORT_ROWS.as_str();
    let files = run.manifest.facts.iter().filter_map(|(key, fact)| {
        let file = key.strip_prefix(all)?.trim_start_matches('.');
        let counts = fact.value.to_string();
        let unusable = counts.strip_suffix(" unusable")?.rsplit(' ').next()?;
        let name = if file.is_empty() { String::new() } else { format!("{file}: ") };
        (unusable != "0").then(|| format!("{name}{counts}"))
    });
    files.collect()
}

/// Monitors with gaps that not all runs have, each with its first reason.
fn monitor_gaps(run: &RunRecord, everywhere: &BTreeSet<MonitorLack<'_>>) -> Vec<String> {
    let mut first: BTreeMap<&str, &str> = BTreeMap::new();
    let is_common = |gap: &&SeriesGap| everywhere.contains(&(gap.monitor.as_str(), gap.reason.as_str()));
    for gap in run.gaps.iter().filter(|gap| !is_common(gap)) {
        first.entry(&gap.monitor).or_insert(&gap.reason);
    }
    first.into_iter().map(|(monitor, reason)| format!("{monitor}: {reason}")).collect()
}

/// The facts that differ between the baseline and one candidate.
pub(crate) fn environment_diagnostic(
    baseline: &str,
    candidate: &str,
    facts: &[FactDifference],
) -> Option<ComparisonDiagnostic> {
    let differing = || facts.iter().filter(|fact| fact.candidate_name == candidate);
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".into());
    let line = |fact: &FactDifference| {
        format!("{}: {} -> {}", fact.key, value(&fact.baseline), value(&fact.candidate))
    };
    let first: Vec<String> = differing().filter(|fact| fact.important).map(line).collect();
    // What differs between any two runs is in the comparison's facts and in `perflab diff`: nobody reads a warning that always comes.
    (!first.is_empty()).then(|| ComparisonDiagnostic::DifferentEnvironment {
        baseline: baseline.into(),
        candidate: candidate.into(),
        facts: differing().count(),
        important: first.len(),
        first,
    })
}

/// What was planned differently.
pub(crate) fn study_diagnostic(
    baseline: &str,
    candidate: &str,
    differences: &[PlanDifference],
) -> Option<ComparisonDiagnostic> {
    (!differences.is_empty()).then(|| ComparisonDiagnostic::DifferentStudy {
        baseline: baseline.into(),
        candidate: candidate.into(),
        differences: differences.iter().map(ToString::to_string).collect(),
    })
}

/// What only the lined-up sides can tell: failures, missing data, boots, interleaving.
pub(crate) fn check_aligned_sides(
    index: &SampleIndex,
    ours: &AlignedSide,
    theirs: &[AlignedSide],
    drafts: &[RowEstimate],
) -> Vec<ComparisonDiagnostic> {
    let mut found: Vec<ComparisonDiagnostic> =
        std::iter::once(ours).chain(theirs).flat_map(|table| failure_diagnostics(index, table)).collect();
    found.extend(one_sided_diagnostics(&ours.name, drafts));
    found.extend(cases_without_values(index, ours, theirs, drafts));
    // Whether any row of a candidate has one boot, was not measured in turn, or is of boots that nobody knows.
    let mut about: HashMap<&str, (bool, bool, bool)> = HashMap::new();
    for draft in drafts {
        let (one_boot, in_turn, unknown_boot) = about.entry(&draft.row.candidate_name).or_default();
        *unknown_boot |= draft.unknown_boot;
        *one_boot |= draft.one_boot;
        *in_turn = *in_turn || is_sequential(draft);
    }
    for table in theirs {
        let (baseline, candidate) = (ours.name.clone(), table.name.clone());
        let (one_boot, in_turn, unknown_boot) = about.get(table.name.as_str()).copied().unwrap_or_default();
        if one_boot {
            found.push(ComparisonDiagnostic::OneBoot {
                baseline: baseline.clone(),
                candidate: candidate.clone(),
            });
        }
        if unknown_boot {
            let (baseline, candidate) = (baseline.clone(), candidate.clone());
            found.push(ComparisonDiagnostic::UnknownBoot { baseline, candidate });
        }
        if in_turn {
            found.push(ComparisonDiagnostic::NotInterleaved { baseline, candidate });
        }
    }
    found
}

/// Both sides in one boot, though in different runs, all of one side before the other.
fn is_sequential(draft: &RowEstimate) -> bool {
    let (Some(ours), Some(theirs)) = (&draft.row.baseline, &draft.row.candidate) else { return false };
    let before = |a: &SideSummary, b: &SideSummary| {
        a.values.last().map(|point| point.at) < b.values.first().map(|point| point.at)
    };
    let in_turn = before(ours, theirs) || before(theirs, ours);
    !draft.one_boot && ours.boots == 1 && in_turn && !has_run_in_common(ours, theirs)
}

fn has_run_in_common(ours: &SideSummary, theirs: &SideSummary) -> bool {
    let runs: BTreeSet<u32> = runs_of_side(ours).collect();
    runs_of_side(theirs).any(|run| runs.contains(&run))
}

/// The runs of values that follow one another, each once.
fn runs_of_side(side: &SideSummary) -> impl Iterator<Item = u32> {
    let ranges = side.values.chunk_by(|one, next| one.run == next.run);
    ranges.filter_map(|points| Some(points.first()?.run))
}

fn failure_diagnostics(index: &SampleIndex, table: &AlignedSide) -> Vec<ComparisonDiagnostic> {
    let warning = |(subject, iterations): (&usize, &CaseIterations)| {
        Some(ComparisonDiagnostic::FailedIterations {
            side: table.name.clone(),
            subject: index.subjects.get_index(*subject)?.0.clone(),
            failed: iterations.failed.len(),
            reason: iterations.reason.clone(),
        })
    };
    table.iterations.iter().filter(|(_, one)| !one.failed.is_empty()).filter_map(warning).collect()
}

/// One warning a case and direction, with all its metrics.
fn one_sided_diagnostics(baseline: &str, drafts: &[RowEstimate]) -> Vec<ComparisonDiagnostic> {
    let mut found: IndexMap<(&str, &str, bool), Vec<String>> = IndexMap::new();
    let rows = drafts.iter().map(|draft| &draft.row);
    // What failed, or is there in another unit, is not missing: its own warning says so.
    let is_missing = |row: &&VerdictRow| {
        row.flags.contains(&RowFlag::OneSided) && row.basis.is_values() && row.withheld.is_none()
    };
    for row in rows.filter(is_missing) {
        let key = (row.subject.as_str(), row.candidate_name.as_str(), row.baseline.is_some());
        found.entry(key).or_default().push(row.metric.clone());
    }
    let warning = |((subject, candidate, in_baseline), metrics): ((&str, &str, bool), Vec<String>)| {
        let (present, absent) = if in_baseline { (baseline, candidate) } else { (candidate, baseline) };
        ComparisonDiagnostic::OneSided {
            present: present.into(),
            absent: absent.into(),
            subject: subject.into(),
            metrics,
        }
    };
    found.into_iter().map(warning).collect()
}

/// Cases that were planned and have no row at all.
fn cases_without_values(
    index: &SampleIndex,
    ours: &AlignedSide,
    theirs: &[AlignedSide],
    drafts: &[RowEstimate],
) -> Vec<ComparisonDiagnostic> {
    let with: BTreeSet<&str> = drafts.iter().map(|draft| draft.row.subject.as_str()).collect();
    let planned: BTreeSet<usize> =
        std::iter::once(ours).chain(theirs).flat_map(|table| table.subjects.iter().copied()).collect();
    let names = planned.into_iter().filter_map(|number| Some(index.subjects.get_index(number)?.0.clone()));
    names
        .filter(|name| !with.contains(name.as_str()))
        .map(|subject| ComparisonDiagnostic::NoValues { subject })
        .collect()
}

/// Puts flags on the rows that a warning about sides or runs concerns; then puts the flags in order.
pub(crate) fn flag_rows(index: &SampleIndex, drafts: &mut [RowEstimate], warnings: &[ComparisonDiagnostic]) {
    let concerned = FlaggedSubjects::from_diagnostics(index, warnings);
    for draft in drafts {
        let found = concerned.flags_for_row(draft);
        draft.row.flags.extend(found);
        draft.row.flags.sort_unstable();
        draft.row.flags.dedup();
    }
}

/// The sides and runs that warnings are about: all other warnings have flagged their rows where they were found.
#[derive(Default)]
struct FlaggedSubjects<'a> {
    environments: HashMap<&'a str, RowFlag>,
    sequential: HashMap<&'a str, RowFlag>,
    runs: HashMap<u32, Vec<RowFlag>>,
}

impl<'a> FlaggedSubjects<'a> {
    fn from_diagnostics(index: &SampleIndex, warnings: &'a [ComparisonDiagnostic]) -> Self {
        let mut concerned = FlaggedSubjects::default();
        for (warning, flag) in warnings.iter().filter_map(|warning| Some((warning, warning.flag()?))) {
            match warning {
                ComparisonDiagnostic::DifferentEnvironment { candidate, important: 1.., .. } => {
                    concerned.environments.insert(candidate, flag);
                }
                ComparisonDiagnostic::NotInterleaved { candidate, .. } => {
                    concerned.sequential.insert(candidate, flag);
                }
                ComparisonDiagnostic::SequentialOrder { run }
                | ComparisonDiagnostic::OverwrittenSettings { run, .. }
                | ComparisonDiagnostic::MonitorGaps { run, .. } => {
                    let number = index.runs.iter().position(|known| known.id == *run);
                    let number = number.and_then(|number| u32::try_from(number).ok());
                    number.into_iter().for_each(|run| concerned.runs.entry(run).or_default().push(flag));
                }
                _ => {}
            }
        }
        concerned
    }

    fn flags_for_row(&self, draft: &RowEstimate) -> Vec<RowFlag> {
        let name = draft.row.candidate_name.as_str();
        let environment = self.environments.get(name);
        let apart = self.sequential.get(name).filter(|_| is_sequential(draft));
        let sides = draft.row.baseline.iter().chain(&draft.row.candidate);
        let of_runs = sides.flat_map(runs_of_side).filter_map(|run| self.runs.get(&run)).flatten();
        environment.into_iter().chain(apart).chain(of_runs).copied().collect()
    }
}

/// Flags what is better or worse by no more than the machine's own reach.
pub(crate) fn flag_within_noise(
    drafts: &mut [RowEstimate],
    options: &AnalysisOptions,
) -> Vec<ComparisonDiagnostic> {
    let Some(card) = &options.noise else { return Vec::new() };
    let mut found = Vec::new();
    for row in drafts.iter_mut().map(|draft| &mut draft.row) {
        let decided = matches!(row.verdict, Verdict::Better | Verdict::Worse);
        let (Some(change), Some(reach)) =
            (row.relative_change(), card.largest_change(&row.workload, &row.metric))
        else {
            continue;
        };
        if decided && change.abs() <= reach {
            row.flags.push(RowFlag::Noise);
            let place = DiagnosticLocation {
                side: row.candidate_name.clone(),
                subject: row.subject.clone(),
                metric: row.metric.clone(),
            };
            found.push(ComparisonDiagnostic::WithinNoise { place, change, reach });
        }
    }
    found
}

/// Whether the card holds for the newest run.
pub(crate) fn noise_card_diagnostic(
    sides: &[&ComparisonSide],
    options: &AnalysisOptions,
) -> Option<ComparisonDiagnostic> {
    let card = options.noise.as_ref()?;
    let manifests = sides.iter().flat_map(|side| &side.runs).map(|run| &run.manifest);
    let newest = manifests.max_by_key(|manifest| manifest.anchor.realtime)?;
    let doubts = card.reasons_for_doubt(newest);
    (!doubts.is_empty()).then_some(ComparisonDiagnostic::OldNoiseCard { doubts })
}
