//! Owns the warnings that concern whole sides and cases, and the flags that they put on rows. It refuses the shape
//! of single samples, which `diagnose` looks at.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use indexmap::IndexMap;
use perflab_model::{RunRecord, Status};

use crate::comparison::Summary;
use crate::flag::Flag;
use crate::planned::PlanDifference;
use crate::rows::Draft;
use crate::seen::{Index, Table};
use crate::warning::Warning;
use crate::{FactDifference, Side};

/// What runs say about themselves: how they ended, their order, their monitors' gaps.
pub(super) fn of_sides(sides: &[&Side]) -> Vec<Warning> {
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for (side, run) in sides.iter().flat_map(|side| side.runs.iter().map(move |run| (side, run))) {
        if seen.insert(&run.manifest.id) {
            found.extend(of_run(&side.name, run));
        }
    }
    found
}

fn of_run(side: &str, run: &RunRecord) -> Vec<Warning> {
    let (side, id, status) = (side.to_owned(), run.manifest.id.clone(), run.manifest.status);
    let ended = matches!(status, Status::Finished | Status::Failed);
    let unfinished = (!ended).then(|| Warning::NotFinished { side: side.clone(), run: id.clone(), status });
    let sequential = run.manifest.plan.order == "sequential" && run.manifest.plan.cases.len() > 1;
    let order = sequential.then(|| Warning::SequentialOrder { run: id.clone() });
    let gaps = gaps(run);
    let monitors = (!gaps.is_empty()).then_some(Warning::MonitorGaps { side, run: id, monitors: gaps });
    [unfinished, order, monitors].into_iter().flatten().collect()
}

/// Monitors with gaps, each with its first reason.
fn gaps(run: &RunRecord) -> Vec<String> {
    let mut first: BTreeMap<&str, &str> = BTreeMap::new();
    for gap in &run.gaps {
        first.entry(&gap.monitor).or_insert(&gap.reason);
    }
    first.into_iter().map(|(monitor, reason)| format!("{monitor}: {reason}")).collect()
}

/// The facts that differ between the baseline and one candidate.
pub(super) fn environment(baseline: &str, candidate: &str, facts: &[FactDifference]) -> Option<Warning> {
    let differing = || facts.iter().filter(|fact| fact.candidate_name == candidate);
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".into());
    let line = |fact: &FactDifference| {
        format!("{}: {} -> {}", fact.key, value(&fact.baseline), value(&fact.candidate))
    };
    let first: Vec<String> = differing().filter(|fact| fact.important).map(line).collect();
    // What differs between any two runs is in the comparison's facts and in `perflab diff`: nobody reads a warning that always comes.
    (!first.is_empty()).then(|| Warning::DifferentEnvironment {
        baseline: baseline.into(),
        candidate: candidate.into(),
        facts: differing().count(),
        important: first.len(),
        first,
    })
}

/// What was planned differently.
pub(super) fn study(baseline: &str, candidate: &str, differences: &[PlanDifference]) -> Option<Warning> {
    (!differences.is_empty()).then(|| Warning::DifferentStudy {
        baseline: baseline.into(),
        candidate: candidate.into(),
        differences: differences.iter().map(ToString::to_string).collect(),
    })
}

/// What only the lined-up sides can tell: failures, missing data, boots, interleaving.
pub(super) fn of_tables(index: &Index, ours: &Table, theirs: &[Table], drafts: &[Draft]) -> Vec<Warning> {
    let mut found: Vec<Warning> =
        std::iter::once(ours).chain(theirs).flat_map(|table| failed(index, table)).collect();
    found.extend(one_sided(&ours.name, drafts));
    found.extend(without_values(index, ours, theirs, drafts));
    // Whether any row of a candidate has one boot, was not measured in turn, or is of boots that nobody knows.
    let mut about: HashMap<&str, (bool, bool, bool)> = HashMap::new();
    for draft in drafts {
        let (one_boot, in_turn, unknown_boot) = about.entry(&draft.row.candidate_name).or_default();
        *unknown_boot |= draft.unknown_boot;
        *one_boot |= draft.one_boot;
        *in_turn = *in_turn || apart(draft);
    }
    for table in theirs {
        let (baseline, candidate) = (ours.name.clone(), table.name.clone());
        let (one_boot, in_turn, unknown_boot) = about.get(table.name.as_str()).copied().unwrap_or_default();
        if one_boot {
            found.push(Warning::OneBoot { baseline: baseline.clone(), candidate: candidate.clone() });
        }
        if unknown_boot {
            let (baseline, candidate) = (baseline.clone(), candidate.clone());
            found.push(Warning::UnknownBoot { baseline, candidate });
        }
        if in_turn {
            found.push(Warning::NotInterleaved { baseline, candidate });
        }
    }
    found
}

/// Both sides in one boot, though in different runs, all of one side before the other.
fn apart(draft: &Draft) -> bool {
    let (Some(ours), Some(theirs)) = (&draft.row.baseline, &draft.row.candidate) else { return false };
    let before = |a: &Summary, b: &Summary| {
        a.values.last().map(|point| point.at) < b.values.first().map(|point| point.at)
    };
    let in_turn = before(ours, theirs) || before(theirs, ours);
    !draft.one_boot && ours.boots == 1 && in_turn && !share_a_run(ours, theirs)
}

fn share_a_run(ours: &Summary, theirs: &Summary) -> bool {
    let runs: BTreeSet<u32> = runs(ours).collect();
    self::runs(theirs).any(|run| runs.contains(&run))
}

/// The runs of values that follow one another, each once.
fn runs(side: &Summary) -> impl Iterator<Item = u32> {
    let stretches = side.values.chunk_by(|one, next| one.run == next.run);
    stretches.filter_map(|points| Some(points.first()?.run))
}

fn failed(index: &Index, table: &Table) -> Vec<Warning> {
    let warning = |(subject, failures): (&usize, &crate::seen::Failures)| {
        Some(Warning::FailedIterations {
            side: table.name.clone(),
            subject: index.subjects.get_index(*subject)?.0.clone(),
            failed: failures.count,
            reason: failures.reason.clone(),
        })
    };
    table.failures.iter().filter_map(warning).collect()
}

/// One warning a case and direction, with all its metrics.
fn one_sided(baseline: &str, drafts: &[Draft]) -> Vec<Warning> {
    let mut found: IndexMap<(&str, &str, bool), Vec<String>> = IndexMap::new();
    for row in drafts.iter().map(|draft| &draft.row).filter(|row| row.flags.contains(&Flag::OneSided)) {
        let key = (row.subject.as_str(), row.candidate_name.as_str(), row.baseline.is_some());
        found.entry(key).or_default().push(row.metric.clone());
    }
    let warning = |((subject, candidate, in_baseline), metrics): ((&str, &str, bool), Vec<String>)| {
        let (present, absent) = if in_baseline { (baseline, candidate) } else { (candidate, baseline) };
        Warning::OneSided { present: present.into(), absent: absent.into(), subject: subject.into(), metrics }
    };
    found.into_iter().map(warning).collect()
}

/// Cases that were planned and have no row at all.
fn without_values(index: &Index, ours: &Table, theirs: &[Table], drafts: &[Draft]) -> Vec<Warning> {
    let with: BTreeSet<&str> = drafts.iter().map(|draft| draft.row.subject.as_str()).collect();
    let planned: BTreeSet<usize> =
        std::iter::once(ours).chain(theirs).flat_map(|table| table.subjects.iter().copied()).collect();
    let names = planned.into_iter().filter_map(|number| Some(index.subjects.get_index(number)?.0.clone()));
    names.filter(|name| !with.contains(name.as_str())).map(|subject| Warning::NoValues { subject }).collect()
}

/// Puts flags on the rows that a warning about sides or runs concerns; then puts the flags in order.
pub(super) fn flag_rows(index: &Index, drafts: &mut [Draft], warnings: &[Warning]) {
    let concerned = Concerned::of(index, warnings);
    for draft in drafts {
        let found = concerned.flags(draft);
        draft.row.flags.extend(found);
        draft.row.flags.sort_unstable();
        draft.row.flags.dedup();
    }
}

/// The sides and runs that warnings are about: all other warnings have flagged their rows where they were found.
#[derive(Default)]
struct Concerned<'a> {
    environments: HashMap<&'a str, Flag>,
    apart: HashMap<&'a str, Flag>,
    runs: HashMap<u32, Vec<Flag>>,
}

impl<'a> Concerned<'a> {
    fn of(index: &Index, warnings: &'a [Warning]) -> Self {
        let mut concerned = Concerned::default();
        for (warning, flag) in warnings.iter().filter_map(|warning| Some((warning, warning.flag()?))) {
            match warning {
                Warning::DifferentEnvironment { candidate, important: 1.., .. } => {
                    concerned.environments.insert(candidate, flag);
                }
                Warning::NotInterleaved { candidate, .. } => {
                    concerned.apart.insert(candidate, flag);
                }
                Warning::SequentialOrder { run } | Warning::MonitorGaps { run, .. } => {
                    let number = index.runs.iter().position(|known| known.id == *run);
                    let number = number.and_then(|number| u32::try_from(number).ok());
                    number.into_iter().for_each(|run| concerned.runs.entry(run).or_default().push(flag));
                }
                _ => {}
            }
        }
        concerned
    }

    fn flags(&self, draft: &Draft) -> Vec<Flag> {
        let name = draft.row.candidate_name.as_str();
        let environment = self.environments.get(name);
        let apart = self.apart.get(name).filter(|_| apart(draft));
        let sides = draft.row.baseline.iter().chain(&draft.row.candidate);
        let of_runs = sides.flat_map(runs).filter_map(|run| self.runs.get(&run)).flatten();
        environment.into_iter().chain(apart).chain(of_runs).copied().collect()
    }
}
