//! Owns the value of a metric in each run. It refuses to join what has different units: each unit is a series of its own.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use perflab_model::{Case, Direction, Manifest, Nanos, RunRecord, Sample};
use perflab_stats::{median, median_with_interval};
use serde::Serialize;

use super::MetricHistory;
use crate::comparison::{ChangeInterval, ComparedRun};
use crate::planned::case_differences;
use crate::{AnalysisOptions, AnalyzeError};

/// One run's value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HistoryPoint {
    /// Index of its run in [`History::runs`](super::MetricHistories::runs).
    pub run: usize,
    /// When the run began, nanoseconds since 1970.
    pub at: Nanos,
    /// Median of the boots' medians, in the unit of the series.
    pub value: f64,
    /// Interval of the median over boots, or over iterations where there is one boot; absent where there are too few.
    pub interval: Option<ChangeInterval>,
    /// Values.
    pub n: usize,
    /// Boots.
    pub boots: usize,
}

/// Case, metric, unit, and which version of the case.
type HistorySeriesKey<'a> = (String, &'a str, &'a str, usize);

/// The versions of every case: what stands under one name, but does something else, is another series.
#[derive(Default)]
struct CaseVersions<'a>(IndexMap<String, Vec<(&'a Manifest, &'a Case)>>);

impl<'a> CaseVersions<'a> {
    /// The latest version that does the same; a new one where none does.
    fn version_number(&mut self, run: &'a Manifest, case: &'a Case) -> usize {
        let known = self.0.entry(case.label()).or_default();
        let same = known.iter().rposition(|version| case_differences(*version, (run, case)).is_empty());
        same.unwrap_or_else(|| {
            known.push((run, case));
            known.len() - 1
        })
    }

    /// What a version does differently from the one before it.
    fn edits_of_version(&self, label: &str, number: usize) -> Vec<String> {
        let version = |number: usize| self.0.get(label)?.get(number).copied();
        let pair = number.checked_sub(1).and_then(version).zip(version(number));
        pair.map(|(before, after)| case_differences(before, after))
            .unwrap_or_default()
            .iter()
            .map(ToString::to_string)
            .collect()
    }
}

/// What is known of a series before its statistics.
struct HistorySamples<'a> {
    sample: &'a Sample,
    margin: Option<f64>,
    runs: BTreeMap<usize, BTreeMap<u32, Vec<f64>>>,
}

/// All series of the runs, in the order in which they are first met.
pub(super) fn collect_series(
    runs: &[&RunRecord],
    options: &AnalysisOptions,
) -> Result<Vec<MetricHistory>, AnalyzeError> {
    let mut found: IndexMap<HistorySeriesKey<'_>, HistorySamples<'_>> = IndexMap::new();
    let mut versions = CaseVersions::default();
    for (number, run) in runs.iter().enumerate() {
        let cases = run.manifest.plan.cases.iter();
        let labels: Vec<Option<(String, usize)>> = cases
            .map(|case| {
                let version = versions.version_number(&run.manifest, case);
                options.includes_workload(&case.workload).then(|| (case.label(), version))
            })
            .collect();
        for sample in run.samples.iter().filter(|sample| options.includes_metric(sample)) {
            let Some(Some((label, version))) = labels.get(sample.case as usize) else { continue };
            let known = found
                .entry((label.clone(), &sample.metric, &sample.unit.0, *version))
                .or_insert_with(|| HistorySamples {
                    sample,
                    margin: run.manifest.plan.margins.get(sample.metric.as_str()).copied(),
                    runs: BTreeMap::new(),
                });
            if sample.value.is_finite() {
                known.runs.entry(number).or_default().entry(sample.boot).or_default().push(sample.value);
            }
        }
    }
    found.retain(|_, one| !one.runs.is_empty());
    if found.is_empty() {
        return Err(no_series_error(runs, options));
    }
    found
        .into_iter()
        .map(|(key, one)| {
            let edited = versions.edits_of_version(&key.0, key.3);
            Ok(MetricHistory { edited, ..metric_history(key, &one, runs, options)? })
        })
        .collect()
}

fn no_series_error(runs: &[&RunRecord], options: &AnalysisOptions) -> AnalyzeError {
    let names: std::collections::BTreeSet<&str> =
        runs.iter().flat_map(|run| &run.samples).map(|sample| sample.metric.as_str()).collect();
    let filter: Vec<&str> = options.metrics.iter().chain(&options.workloads).map(String::as_str).collect();
    AnalyzeError::NoSamples {
        side: "the history".into(),
        filter: filter.join(", "),
        known: names.into_iter().take(20).map(str::to_owned).collect(),
    }
}

fn metric_history(
    (subject, metric, _, _): HistorySeriesKey<'_>,
    found: &HistorySamples<'_>,
    runs: &[&RunRecord],
    options: &AnalysisOptions,
) -> Result<MetricHistory, AnalyzeError> {
    let error = |source| AnalyzeError::Statistic { subject: subject.clone(), metric: metric.into(), source };
    let point = |(number, boots): (&usize, &BTreeMap<u32, Vec<f64>>)| {
        let at = runs.get(*number).map(|run| run.manifest.anchor.realtime).unwrap_or_default();
        history_point(*number, at, boots, options.confidence)
    };
    let points = found.runs.iter().map(point).collect::<Result<Vec<_>, _>>().map_err(error)?;
    let Sample { unit, direction, primary, .. } = found.sample;
    let (direction, primary): (Direction, bool) = (*direction, *primary);
    let margin = found.margin.unwrap_or(options.default_margin);
    Ok(MetricHistory {
        metric: metric.into(),
        unit: unit.clone(),
        subject,
        direction,
        primary,
        margin,
        edited: Vec::new(),
        points,
        steps: Vec::new(),
    })
}

fn history_point(
    run: usize,
    at: Nanos,
    boots: &BTreeMap<u32, Vec<f64>>,
    confidence: f64,
) -> Result<HistoryPoint, perflab_stats::StatsError> {
    let medians: Vec<f64> = boots.values().map(|values| median(values)).collect::<Result<_, _>>()?;
    let units = if let (1, Some(only)) = (boots.len(), boots.values().next()) { only } else { &medians };
    let interval = median_with_interval(units, confidence)?.interval;
    Ok(HistoryPoint {
        run,
        at,
        value: median(&medians)?,
        interval: interval.map(|i| ChangeInterval { low: i.low, high: i.high, level: i.level }),
        n: boots.values().map(Vec::len).sum(),
        boots: boots.len(),
    })
}

/// What a history says of a run.
pub(super) fn compared_run(run: &RunRecord) -> ComparedRun {
    let manifest = &run.manifest;
    ComparedRun {
        side: String::new(),
        id: manifest.id.clone(),
        label: manifest.label.clone(),
        study: manifest.study.title.clone(),
        status: manifest.status,
        order: manifest.plan.order.clone(),
        seed: manifest.plan.seed,
        boot_id: manifest.boot_id.clone(),
        began: manifest.anchor.realtime,
    }
}
