//! Owns the warnings that concern whole sides and cases, and the flags that they put on rows. It refuses the shape
//! of single samples, which `diagnose` looks at.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use indexmap::IndexMap;
use perflab_model::{RunRecord, RunStatus};

use crate::comparison::SideSummary;
use crate::flag::RowFlag;
use crate::planned::PlanDifference;
use crate::rows::RowEstimate;
use crate::seen::{AlignedSide, SampleIndex};
use crate::warning::ComparisonDiagnostic;
use crate::{ComparisonSide, FactDifference};

/// What runs say about themselves: how they ended, their order, their monitors' gaps.
pub(super) fn check_runs(sides: &[&ComparisonSide]) -> Vec<ComparisonDiagnostic> {
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for (side, run) in sides.iter().flat_map(|side| side.runs.iter().map(move |run| (side, run))) {
        if seen.insert(&run.manifest.id) {
            found.extend(check_run(&side.name, run));
        }
    }
    found
}

fn check_run(side: &str, run: &RunRecord) -> Vec<ComparisonDiagnostic> {
    let (side, id, status) = (side.to_owned(), run.manifest.id.clone(), run.manifest.status);
    let ended = matches!(status, RunStatus::Finished | RunStatus::Failed);
    let unfinished =
        (!ended).then(|| ComparisonDiagnostic::NotFinished { side: side.clone(), run: id.clone(), status });
    let sequential = run.manifest.plan.order == "sequential" && run.manifest.plan.cases.len() > 1;
    let order = sequential.then(|| ComparisonDiagnostic::SequentialOrder { run: id.clone() });
    let gaps = monitor_gaps(run);
    let monitors =
        (!gaps.is_empty()).then_some(ComparisonDiagnostic::MonitorGaps { side, run: id, monitors: gaps });
    [unfinished, order, monitors].into_iter().flatten().collect()
}

/// Monitors with gaps, each with its first reason.
fn monitor_gaps(run: &RunRecord) -> Vec<String> {
    let mut first: BTreeMap<&str, &str> = BTreeMap::new();
    for gap in &run.gaps {
        first.entry(&gap.monitor).or_insert(&gap.reason);
    }
    first.into_iter().map(|(monitor, reason)| format!("{monitor}: {reason}")).collect()
}

/// The facts that differ between the baseline and one candidate.
pub(super) fn environment_diagnostic(
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
pub(super) fn study_diagnostic(
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
pub(super) fn check_aligned_sides(
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
    self::runs_of_side(theirs).any(|run| runs.contains(&run))
}

/// The runs of values that follow one another, each once.
fn runs_of_side(side: &SideSummary) -> impl Iterator<Item = u32> {
    let stretches = side.values.chunk_by(|one, next| one.run == next.run);
    stretches.filter_map(|points| Some(points.first()?.run))
}

fn failure_diagnostics(index: &SampleIndex, table: &AlignedSide) -> Vec<ComparisonDiagnostic> {
    let warning = |(subject, failures): (&usize, &crate::seen::CaseFailures)| {
        Some(ComparisonDiagnostic::FailedIterations {
            side: table.name.clone(),
            subject: index.subjects.get_index(*subject)?.0.clone(),
            failed: failures.count,
            reason: failures.reason.clone(),
        })
    };
    table.failures.iter().filter_map(warning).collect()
}

/// One warning a case and direction, with all its metrics.
fn one_sided_diagnostics(baseline: &str, drafts: &[RowEstimate]) -> Vec<ComparisonDiagnostic> {
    let mut found: IndexMap<(&str, &str, bool), Vec<String>> = IndexMap::new();
    for row in drafts.iter().map(|draft| &draft.row).filter(|row| row.flags.contains(&RowFlag::OneSided)) {
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
pub(super) fn flag_rows(index: &SampleIndex, drafts: &mut [RowEstimate], warnings: &[ComparisonDiagnostic]) {
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
