//! One run for programs: the head of its manifest, its cases and metrics with what was measured, its monitors and facts.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use perflab_analyze::SampleStatistic;
use perflab_archive::RunDir;
use perflab_model::{Manifest, Metric, Outcome, RunRecord, Sample};
use schemars::JsonSchema;
use serde::Serialize;

use crate::laboratory::WebLaboratory;
use crate::refusal::RequestRefusal;
use crate::route::{RouteAnswer, RouteParameter, RouteParameterKind, RouteRequest};
use crate::run_lookup::find_run;

/// Names one run.
pub(crate) const RUN_PARAMETER: RouteParameter = RouteParameter::required(
    "id",
    RouteParameterKind::Path,
    "the beginning of a run's id (four characters at least), a label that one run has, or @latest",
);

/// A run without its series.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RunDocument {
    /// Version of this document.
    format: u32,
    /// Its id, a ULID.
    id: String,
    /// The shortest beginning that names it in this archive.
    short: String,
    /// running, finished, failed, stopped, interrupted or disk-full
    status: String,
    /// The name that somebody gave it.
    label: Option<String>,
    /// The study's title.
    title: String,
    /// The study's file.
    study_file: String,
    /// What recorded it.
    writer: String,
    /// Nanoseconds since 1970 at which it began.
    begun_ns: u64,
    /// CLOCK_MONOTONIC of the recording machine at that instant, in nanoseconds: that of samples and series of this machine.
    begun_monotonic_ns: u64,
    /// The kernel's boot id.
    boot_id: String,
    /// The seed of its order.
    seed: u64,
    /// Iterations that ended.
    iterations: u64,
    /// Iterations that failed.
    failed: u64,
    /// Iterations that were planned, warm-ups included.
    planned: u64,
    /// The machines on which its cases ran, where that is not the recording one.
    targets: Vec<String>,
    /// What was varied: the levels of each factor.
    factors: IndexMap<String, Vec<String>>,
    /// Its cases, in the order of the plan.
    cases: Vec<CaseDocument>,
    /// What its monitors recorded: each is had from `series/{monitor}`.
    monitors: Vec<String>,
    /// Tables of monitors that cannot be read, with the reason.
    damaged_monitors: BTreeMap<String, String>,
    /// What its machine reported about itself.
    facts: BTreeMap<String, serde_json::Value>,
    /// What perflab itself cost.
    overhead: serde_json::Value,
    /// What went wrong on the way.
    warnings: Vec<String>,
}

/// A case: one workload at one combination of levels.
#[derive(Debug, Serialize, JsonSchema)]
struct CaseDocument {
    /// Its number in samples and tables.
    index: u32,
    /// As reports call it.
    name: String,
    /// The workload.
    workload: String,
    /// The level of each factor.
    levels: IndexMap<String, String>,
    /// The parameters of the workload.
    parameters: BTreeMap<String, serde_json::Value>,
    /// Its metrics, with what was measured so far.
    metrics: Vec<CaseMetricDocument>,
}

/// A metric of a case. Figures are of all iterations but warm-ups; there are none before the first.
#[derive(Debug, Serialize, JsonSchema)]
struct CaseMetricDocument {
    name: String,
    unit: String,
    /// lower, higher or neither: which way is better
    direction: String,
    /// Whether it decides, or explains.
    primary: bool,
    /// Number of values.
    n: usize,
    min: Option<f64>,
    median: Option<f64>,
    max: Option<f64>,
}

/// `/api/v1/runs/{id}`
pub(crate) fn send_run(
    laboratory: &WebLaboratory,
    request: &RouteRequest,
) -> Result<RouteAnswer, RequestRefusal> {
    let run = find_run(laboratory, request.path_part("id"))?;
    RouteAnswer::json(&run_document(&run)?)
}

fn run_document(run: &RunDir) -> Result<RunDocument, RequestRefusal> {
    let record = run.read_record()?;
    let monitors = run.list_sound_monitors()?;
    let manifest = &record.manifest;
    let ended = |is_wanted: fn(&Outcome) -> bool| {
        record.iterations.iter().filter(|one| is_wanted(&one.outcome)).count() as u64
    };
    Ok(RunDocument {
        format: 1,
        id: manifest.id.clone(),
        short: run.short_id().to_owned(),
        status: manifest.status.as_str().to_owned(),
        label: manifest.label.clone(),
        title: manifest.study.title.clone(),
        study_file: manifest.study_file.clone(),
        writer: manifest.writer.clone(),
        begun_ns: manifest.anchor.realtime.0,
        begun_monotonic_ns: manifest.anchor.monotonic.0,
        boot_id: manifest.boot_id.clone(),
        seed: manifest.plan.seed,
        iterations: ended(|_| true),
        failed: ended(|outcome| *outcome != Outcome::Ok),
        planned: manifest.plan.slots.len() as u64,
        targets: manifest.targets.iter().map(|target| target.name.clone()).collect(),
        factors: manifest.plan.factors.clone(),
        cases: case_documents(&record),
        monitors: monitors.sound,
        damaged_monitors: monitors
            .damaged
            .into_iter()
            .map(|(table, error)| (table, error.to_string()))
            .collect(),
        facts: manifest
            .facts
            .iter()
            .map(|(key, fact)| Ok((key.to_owned(), to_json(&fact.value)?)))
            .collect::<Result<_, RequestRefusal>>()?,
        overhead: to_json(&manifest.overhead)?,
        warnings: record.warnings.iter().map(|warning| warning.message.clone()).collect(),
    })
}

fn to_json(value: &impl Serialize) -> Result<serde_json::Value, RequestRefusal> {
    serde_json::to_value(value).map_err(|error| RequestRefusal::unexpected(error.to_string()))
}

fn case_documents(record: &RunRecord) -> Vec<CaseDocument> {
    let manifest = &record.manifest;
    let cases = (0_u32..).zip(&manifest.plan.cases);
    let document = |(index, case): (u32, &perflab_model::Case)| CaseDocument {
        index,
        name: case.label(),
        workload: case.workload.clone(),
        levels: case.levels.clone(),
        parameters: case
            .parameters
            .iter()
            .map(|(name, value)| (name.clone(), to_json(value).unwrap_or_default()))
            .collect(),
        metrics: metric_documents(record, index, manifest),
    };
    cases.map(document).collect()
}

/// The metrics that the case has values of, in the order in which they first came, and those that were planned.
fn metric_documents(record: &RunRecord, case: u32, manifest: &Manifest) -> Vec<CaseMetricDocument> {
    let mut values: IndexMap<&str, (&Sample, Vec<f64>)> = IndexMap::new();
    for sample in record.samples.iter().filter(|sample| sample.case == case) {
        values.entry(&sample.metric).or_insert_with(|| (sample, Vec::new())).1.push(sample.value);
    }
    let measured = values.iter().map(|(name, (sample, values))| {
        let figure = |statistic: SampleStatistic| statistic.value(values, sample.direction);
        CaseMetricDocument {
            name: (*name).to_owned(),
            unit: sample.unit.to_string(),
            direction: sample.direction.to_string(),
            primary: sample.primary,
            n: values.len(),
            min: figure(SampleStatistic::Min),
            median: figure(SampleStatistic::Median),
            max: figure(SampleStatistic::Max),
        }
    });
    let workload = manifest.plan.case(case).map(|case| case.workload.as_str()).unwrap_or_default();
    let planned = manifest.plan.metrics.get(workload).into_iter().flatten();
    let planned = planned.filter(|metric| !values.contains_key(metric.name.as_str())).map(unmeasured_metric);
    measured.chain(planned).collect()
}

fn unmeasured_metric(metric: &Metric) -> CaseMetricDocument {
    CaseMetricDocument {
        name: metric.name.clone(),
        unit: metric.unit.to_string(),
        direction: metric.direction.to_string(),
        primary: metric.primary,
        n: 0,
        min: None,
        median: None,
        max: None,
    }
}
