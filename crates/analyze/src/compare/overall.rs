//! Owns the warnings that concern whole sides and cases, and the flags that they put on rows. It refuses the shape
//! of single samples, which `diagnose` looks at.

use std::collections::{BTreeMap, BTreeSet};

use indexmap::IndexMap;
use perflab_model::{RunRecord, Status};

use crate::comparison::Summary;
use crate::flag::Flag;
use crate::rows::Draft;
use crate::seen::{Index, Table};
use crate::warning::Warning;
use crate::{FactDifference, Side};

/// As many facts are listed in the warning; the comparison has them all.
const MOST_FACTS: usize = 5;

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
    let facts = differing().count();
    (facts > 0).then(|| Warning::DifferentEnvironment {
        baseline: baseline.into(),
        candidate: candidate.into(),
        facts,
        important: differing().filter(|fact| fact.important).count(),
        first: differing().take(MOST_FACTS).map(line).collect(),
    })
}

/// What was planned differently.
pub(super) fn study(baseline: &str, candidate: &str, differences: Vec<String>) -> Option<Warning> {
    (!differences.is_empty()).then(|| Warning::DifferentStudy {
        baseline: baseline.into(),
        candidate: candidate.into(),
        differences,
    })
}

/// What only the lined-up sides can tell: failures, missing data, boots, interleaving.
pub(super) fn of_tables(index: &Index, ours: &Table, theirs: &[Table], drafts: &[Draft]) -> Vec<Warning> {
    let mut found: Vec<Warning> =
        std::iter::once(ours).chain(theirs).flat_map(|table| failed(index, table)).collect();
    found.extend(one_sided(&ours.name, drafts));
    found.extend(without_values(index, ours, theirs, drafts));
    for table in theirs {
        let (baseline, candidate) = (ours.name.clone(), table.name.clone());
        let of_table = |draft: &&Draft| draft.row.candidate_name == table.name;
        if drafts.iter().filter(of_table).any(|draft| draft.one_boot) {
            found.push(Warning::OneBoot { baseline: baseline.clone(), candidate: candidate.clone() });
        }
        if drafts.iter().filter(of_table).any(apart) {
            found.push(Warning::NotInterleaved { baseline, candidate });
        }
    }
    found
}

/// Both sides in one boot, though in different runs, all of one side before the other.
fn apart(draft: &Draft) -> bool {
    let (Some(ours), Some(theirs)) = (&draft.row.baseline, &draft.row.candidate) else { return false };
    let runs: BTreeSet<u32> = ours.values.iter().map(|point| point.run).collect();
    let shares_run = theirs.values.iter().any(|point| runs.contains(&point.run));
    let before = |a: &Summary, b: &Summary| {
        a.values.last().map(|point| point.at) < b.values.first().map(|point| point.at)
    };
    let in_turn = before(ours, theirs) || before(theirs, ours);
    !draft.one_boot && ours.boots == 1 && !shares_run && in_turn
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
    let overall: Vec<&Warning> = warnings.iter().filter(|warning| is_overall(warning)).collect();
    for draft in drafts {
        let concerned = overall.iter().filter(|warning| concerns(warning, index, draft));
        let found: Vec<Flag> = concerned.filter_map(|warning| warning.flag()).collect();
        draft.row.flags.extend(found);
        draft.row.flags.sort_unstable();
        draft.row.flags.dedup();
    }
}

/// Whether a warning is about sides or runs: all others have flagged their rows where they were found.
fn is_overall(warning: &Warning) -> bool {
    matches!(
        warning,
        Warning::DifferentEnvironment { .. }
            | Warning::NotInterleaved { .. }
            | Warning::SequentialOrder { .. }
            | Warning::MonitorGaps { .. }
    )
}

fn concerns(warning: &Warning, index: &Index, draft: &Draft) -> bool {
    match warning {
        Warning::DifferentEnvironment { candidate, important, .. } => {
            *important > 0 && *candidate == draft.row.candidate_name
        }
        Warning::NotInterleaved { candidate, .. } => *candidate == draft.row.candidate_name && apart(draft),
        Warning::SequentialOrder { run } | Warning::MonitorGaps { run, .. } => {
            let number = index.runs.iter().position(|known| known.id == *run);
            let sides = draft.row.baseline.iter().chain(&draft.row.candidate);
            let mut runs = sides.flat_map(|side| &side.values).map(|point| point.run as usize);
            runs.any(|run| Some(run) == number)
        }
        _ => false,
    }
}
