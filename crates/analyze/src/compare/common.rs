//! Owns what the sides must have in common, and which factors set them apart. It refuses sides that cannot be
//! compared, naming what each has.

use std::collections::BTreeSet;

use indexmap::IndexSet;

use crate::seen::{Index, Table};
use crate::{AnalyzeError, Options, Side};

/// As many names are listed in an error.
const MOST_NAMES: usize = 5;

/// A factor with one level a side.
#[derive(Debug)]
pub(crate) struct ComparedFactor {
    pub(crate) name: String,
    /// Side and its level, if the side has the factor.
    levels: Vec<(String, Option<String>)>,
}

impl ComparedFactor {
    pub(crate) fn note(&self) -> String {
        let level = |(side, level): &(String, Option<String>)| {
            format!("{} on {side}", level.as_deref().unwrap_or("not varied"))
        };
        let levels: Vec<String> = self.levels.iter().map(level).collect();
        format!("compared across {}: {}", self.name, levels.join(", "))
    }
}

/// Every side has a run.
pub(crate) fn has_runs(sides: &[&Side]) -> Result<(), AnalyzeError> {
    match sides.iter().find(|side| side.runs.is_empty()) {
        Some(side) => Err(AnalyzeError::NoRun { side: side.name.clone() }),
        None => Ok(()),
    }
}

/// Factors with at most one level a side, not the same everywhere.
pub(crate) fn compared_factors(sides: &[&Side]) -> Vec<ComparedFactor> {
    let cases = || sides.iter().flat_map(|side| &side.runs).flat_map(|run| &run.manifest.plan.cases);
    let names: IndexSet<&String> = cases().flat_map(|case| case.levels.keys()).collect();
    names.into_iter().filter_map(|name| compared(name, sides)).collect()
}

fn compared(name: &str, sides: &[&Side]) -> Option<ComparedFactor> {
    let mut levels = Vec::new();
    for side in sides {
        let cases = side.runs.iter().flat_map(|run| &run.manifest.plan.cases);
        let mut used: BTreeSet<&String> = cases.filter_map(|case| case.levels.get(name)).collect();
        if used.len() > 1 {
            return None;
        }
        levels.push((side.name.clone(), used.pop_first().cloned()));
    }
    let differ = levels.windows(2).any(|pair| pair.first().map(|a| &a.1) != pair.last().map(|b| &b.1));
    differ.then(|| ComparedFactor { name: name.into(), levels })
}

/// Every side has samples, and each candidate shares a metric and a case with the baseline.
pub(crate) fn have_something(
    index: &Index,
    ours: &Table,
    theirs: &[Table],
    sides: &[&Side],
    options: &Options,
) -> Result<(), AnalyzeError> {
    let filter: Vec<&str> = options.metrics.iter().chain(&options.workloads).map(String::as_str).collect();
    for table in std::iter::once(ours).chain(theirs) {
        if !table.cells.values().any(crate::seen::Cell::has_values) {
            let (side, filter, known) = (table.name.clone(), filter.join(", "), known(sides));
            return Err(AnalyzeError::NoSamples { side, filter, known });
        }
    }
    theirs.iter().try_for_each(|candidate| share(index, ours, candidate))
}

/// Workloads and metrics that any side has samples of, for whoever chose none of them.
fn known(sides: &[&Side]) -> Vec<String> {
    let mut names = IndexSet::new();
    for run in sides.iter().flat_map(|side| &side.runs) {
        for sample in &run.samples {
            let workload = run.manifest.plan.case(sample.case).map(|case| case.workload.as_str());
            names.insert(format!("{} {}", workload.unwrap_or_default(), sample.metric));
        }
    }
    shortened(&names)
}

fn share(index: &Index, ours: &Table, theirs: &Table) -> Result<(), AnalyzeError> {
    if ours.cells.keys().any(|key| theirs.cells.contains_key(key)) {
        return Ok(());
    }
    let (baseline, candidate) = (ours.name.clone(), theirs.name.clone());
    let (a, b) = (metrics(index, ours), metrics(index, theirs));
    if a.is_disjoint(&b) {
        let (baseline_metrics, candidate_metrics) = (shortened(&a), shortened(&b));
        return Err(AnalyzeError::NoCommonMetric {
            baseline,
            candidate,
            baseline_metrics,
            candidate_metrics,
        });
    }
    let (baseline_cases, candidate_cases) = (cases(index, ours), cases(index, theirs));
    Err(AnalyzeError::NoCommonCase { baseline, candidate, baseline_cases, candidate_cases })
}

fn metrics(index: &Index, table: &Table) -> IndexSet<String> {
    let numbers: BTreeSet<usize> = table.cells.keys().map(|(_, metric)| *metric).collect();
    let keys = numbers.into_iter().filter_map(|number| index.metrics.get_index(number));
    keys.map(|key| format!("{} [{}]", key.name, key.unit)).collect()
}

fn cases(index: &Index, table: &Table) -> Vec<String> {
    let numbers: BTreeSet<usize> = table.cells.keys().map(|(subject, _)| *subject).collect();
    let names = numbers.into_iter().filter_map(|number| Some(index.subjects.get_index(number)?.0.clone()));
    shortened(&names.collect())
}

fn shortened(names: &IndexSet<String>) -> Vec<String> {
    let first = names.iter().take(MOST_NAMES).cloned();
    let more = names.len().saturating_sub(MOST_NAMES);
    first.chain((more > 0).then(|| format!("{more} more"))).collect()
}
