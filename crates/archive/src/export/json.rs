//! JSON: a run's cases, iterations, samples and summaries as one document. Its schema is
//! `docs/reference/export.schema.json`.

use std::collections::BTreeMap;
use std::io::{self, Write};

use perflab_model::{Direction, Outcome, Scalar};
use schemars::JsonSchema;
use serde::Serialize;

use crate::export::exporter::{ExportSheet, MetricSummary};

/// Version of the document; it goes up when a reader of the old one would misread the new.
const FORMAT: u32 = 1;

/// A run.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ExportDocument {
    /// Version of this document's format.
    format: u32,
    /// The program that wrote it.
    writer: String,
    /// The run's id, a ULID.
    run: String,
    /// Its label; runs that share one are repetitions of one another.
    label: Option<String>,
    /// What it was about.
    title: String,
    /// Nanoseconds since 1970 of the time that all times here count from.
    began_ns: u64,
    /// How it stands: finished, failed, stopped, interrupted, disk-full.
    status: String,
    /// What the target said about itself, by dotted key.
    facts: BTreeMap<String, Scalar>,
    /// Workloads at their points under their levels; samples name them by their place here.
    cases: Vec<ExportedCase>,
    /// Every measured value.
    samples: Vec<ExportedSample>,
    /// Iterations that did not end well.
    failures: Vec<FailedIteration>,
    /// The median of each metric of each case.
    summaries: Vec<ExportedSummary>,
}

/// One workload at one parameter point under one level of every factor.
#[derive(Debug, Serialize, JsonSchema)]
struct ExportedCase {
    /// The workload's name.
    workload: String,
    /// The parameters that tell it from the workload's other cases.
    point: BTreeMap<String, Scalar>,
    /// Factor to level.
    levels: BTreeMap<String, String>,
}

/// One measured value.
#[derive(Debug, Serialize, JsonSchema)]
struct ExportedSample {
    /// Place in `cases`.
    case: u32,
    /// Which boot, from 0.
    boot: u32,
    /// Which iteration of the case, from 0.
    iteration: u32,
    /// The metric's name.
    metric: String,
    /// The value, in `unit`.
    value: f64,
    /// The unit.
    unit: String,
    /// Which way is good.
    direction: Direction,
    /// Whether the metric decides or explains.
    primary: bool,
    /// When it began, in nanoseconds from `began_ns`.
    start_ns: u64,
    /// When it ended, in nanoseconds from `began_ns`.
    end_ns: u64,
}

/// An iteration without samples, and why.
#[derive(Debug, Serialize, JsonSchema)]
struct FailedIteration {
    /// Place in `cases`.
    case: u32,
    /// Which iteration of the case.
    iteration: u32,
    /// In one line.
    reason: String,
}

/// The values of one metric of one case in short.
#[derive(Debug, Serialize, JsonSchema)]
struct ExportedSummary {
    /// Place in `cases`.
    case: u32,
    /// The metric's name.
    metric: String,
    /// The unit of all figures here.
    unit: String,
    /// How many values there are.
    count: usize,
    /// Their median.
    median: f64,
    /// Lower limit of the median's 95 % interval, where the values allow one.
    low: Option<f64>,
    /// Its upper limit.
    high: Option<f64>,
    /// The least value.
    min: f64,
    /// The greatest value.
    max: f64,
}

/// The JSON Schema of the document.
pub fn export_schema() -> serde_json::Value {
    schemars::schema_for!(ExportDocument).to_value()
}

pub(crate) fn write_json_document(sheet: &ExportSheet<'_>, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, &ExportDocument::from_sheet(sheet))?;
    writeln!(out)
}

impl ExportDocument {
    fn from_sheet(sheet: &ExportSheet<'_>) -> Self {
        let manifest = &sheet.record.manifest;
        let facts = manifest.facts.iter().map(|(key, fact)| (key.to_owned(), fact.value.clone()));
        ExportDocument {
            format: FORMAT,
            writer: concat!("perflab ", env!("CARGO_PKG_VERSION")).into(),
            run: manifest.id.clone(),
            label: manifest.label.clone(),
            title: manifest.study.title.clone(),
            began_ns: manifest.anchor.realtime.0,
            status: manifest.status.to_string(),
            facts: facts.collect(),
            cases: exported_cases(sheet),
            samples: exported_samples(sheet),
            failures: failed_iterations(sheet),
            summaries: sheet.summaries.iter().map(exported_summary).collect(),
        }
    }
}

fn exported_cases(sheet: &ExportSheet<'_>) -> Vec<ExportedCase> {
    let case = |case: &perflab_model::Case| ExportedCase {
        workload: case.workload.clone(),
        point: case.point.clone().into_iter().collect(),
        levels: case.levels.clone().into_iter().collect(),
    };
    sheet.record.manifest.plan.cases.iter().map(case).collect()
}

fn exported_samples(sheet: &ExportSheet<'_>) -> Vec<ExportedSample> {
    let began = sheet.record.manifest.anchor.monotonic;
    let sample = |sample: &perflab_model::Sample| ExportedSample {
        case: sample.case,
        boot: sample.boot,
        iteration: sample.iteration,
        metric: String::from(&sample.metric),
        value: sample.value,
        unit: String::from(&sample.unit.0),
        direction: sample.direction,
        primary: sample.primary,
        start_ns: sample.start.since(began).0,
        end_ns: sample.end.since(began).0,
    };
    sheet.record.samples.iter().map(sample).collect()
}

/// Why an iteration gave nothing, in a line.
pub(crate) fn failure_reason(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Ok => None,
        Outcome::Failed { reason } => Some(reason.clone()),
        Outcome::TimedOut { limit } => Some(format!("stopped at its time limit of {limit}")),
        Outcome::Interrupted => Some("interrupted".into()),
    }
}

fn failed_iterations(sheet: &ExportSheet<'_>) -> Vec<FailedIteration> {
    let failure = |iteration: &perflab_model::IterationRecord| {
        let slot = sheet.record.manifest.plan.slots.get(iteration.slot as usize)?;
        let reason = failure_reason(&iteration.outcome)?;
        Some(FailedIteration { case: slot.case, iteration: slot.iteration, reason })
    };
    sheet.record.iterations.iter().filter_map(failure).collect()
}

fn exported_summary(summary: &MetricSummary<'_>) -> ExportedSummary {
    ExportedSummary {
        case: summary.of.case,
        metric: String::from(&summary.of.metric),
        unit: String::from(&summary.of.unit.0),
        count: summary.count,
        median: summary.median,
        low: summary.interval.map(|(low, _)| low),
        high: summary.interval.map(|(_, high)| high),
        min: summary.least,
        max: summary.greatest,
    }
}
