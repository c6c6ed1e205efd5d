//! Owns what the sides must have in common, and which factors set them apart. It refuses sides that cannot be
//! compared, naming what each has.

use std::collections::BTreeSet;

use indexmap::IndexSet;

use crate::seen::{AlignedSide, SampleIndex};
use crate::{AnalysisOptions, AnalyzeError, ComparisonSide};

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
    pub(crate) fn describe(&self) -> String {
        let level = |(side, level): &(String, Option<String>)| {
            format!("{} on {side}", level.as_deref().unwrap_or("not varied"))
        };
        let levels: Vec<String> = self.levels.iter().map(level).collect();
        format!("compared across {}: {}", self.name, levels.join(", "))
    }
}

/// Every side has a run.
pub(crate) fn check_runs_present(sides: &[&ComparisonSide]) -> Result<(), AnalyzeError> {
    match sides.iter().find(|side| side.runs.is_empty()) {
        Some(side) => Err(AnalyzeError::NoRun { side: side.name.clone() }),
        None => Ok(()),
    }
}

/// Factors with at most one level a side, not the same everywhere.
pub(crate) fn compared_factors(sides: &[&ComparisonSide]) -> Vec<ComparedFactor> {
    let cases = || sides.iter().flat_map(|side| &side.runs).flat_map(|run| &run.manifest.plan.cases);
    let names: IndexSet<&String> = cases().flat_map(|case| case.levels.keys()).collect();
    names.into_iter().filter_map(|name| compared_factor(name, sides)).collect()
}

fn compared_factor(name: &str, sides: &[&ComparisonSide]) -> Option<ComparedFactor> {
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
pub(crate) fn check_sides_overlap(
    index: &SampleIndex,
    ours: &AlignedSide,
    theirs: &[AlignedSide],
    sides: &[&ComparisonSide],
    options: &AnalysisOptions,
) -> Result<(), AnalyzeError> {
    let filter: Vec<&str> = options.metrics.iter().chain(&options.workloads).map(String::as_str).collect();
    for table in std::iter::once(ours).chain(theirs) {
        if !table.cells.values().any(crate::seen::MetricSamples::has_values) {
            let (side, filter, known) = (table.name.clone(), filter.join(", "), sampled_metrics(sides));
            return Err(AnalyzeError::NoSamples { side, filter, known });
        }
    }
    theirs.iter().try_for_each(|candidate| check_case_in_common(index, ours, candidate))
}

/// Workloads and metrics that any side has samples of, for whoever chose none of them.
fn sampled_metrics(sides: &[&ComparisonSide]) -> Vec<String> {
    let mut names = IndexSet::new();
    for run in sides.iter().flat_map(|side| &side.runs) {
        for sample in &run.samples {
            let workload = run.manifest.plan.case(sample.case).map(|case| case.workload.as_str());
            names.insert(format!("{} {}", workload.unwrap_or_default(), sample.metric));
        }
    }
    shorten_names(&names)
}

fn check_case_in_common(
    index: &SampleIndex,
    ours: &AlignedSide,
    theirs: &AlignedSide,
) -> Result<(), AnalyzeError> {
    if ours.cells.keys().any(|key| theirs.cells.contains_key(key)) {
        return Ok(());
    }
    let (baseline, candidate) = (ours.name.clone(), theirs.name.clone());
    let (a, b) = (metric_names(index, ours), metric_names(index, theirs));
    if a.is_disjoint(&b) {
        let (baseline_metrics, candidate_metrics) = (shorten_names(&a), shorten_names(&b));
        return Err(AnalyzeError::NoCommonMetric {
            baseline,
            candidate,
            baseline_metrics,
            candidate_metrics,
        });
    }
    let (baseline_cases, candidate_cases) = (case_names(index, ours), case_names(index, theirs));
    Err(AnalyzeError::NoCommonCase { baseline, candidate, baseline_cases, candidate_cases })
}

fn metric_names(index: &SampleIndex, table: &AlignedSide) -> IndexSet<String> {
    let numbers: BTreeSet<usize> = table.cells.keys().map(|(_, metric)| *metric).collect();
    let keys = numbers.into_iter().filter_map(|number| index.metrics.get_index(number));
    keys.map(|key| format!("{} [{}]", key.name, key.unit)).collect()
}

fn case_names(index: &SampleIndex, table: &AlignedSide) -> Vec<String> {
    let numbers: BTreeSet<usize> = table.cells.keys().map(|(subject, _)| *subject).collect();
    let names = numbers.into_iter().filter_map(|number| Some(index.subjects.get_index(number)?.0.clone()));
    shorten_names(&names.collect())
}

fn shorten_names(names: &IndexSet<String>) -> Vec<String> {
    let first = names.iter().take(MOST_NAMES).cloned();
    let more = names.len().saturating_sub(MOST_NAMES);
    first.chain((more > 0).then(|| format!("{more} more"))).collect()
}
