//! `fio --output-format=json`: bandwidth, operations and latencies of each job, in each direction.

use std::collections::HashMap;

use indexmap::{IndexMap, IndexSet};
use perflab_formats::reading_parser::LineOutcome;
use perflab_model::fact_table;
use perflab_model::{Direction, Nanos, Scalar};
use serde_json::Value;

use crate::benchmark_results::{ImportedCaseId, ImportedExecutionId, TimeRange};
use crate::document_import::{count_failed, open_document, varied_names};
use crate::import_report::FileReport;
use crate::imported_run::{RunMetadata, imported_metric};
use crate::importer::{Importer, Recognition};
use crate::input_document::{DocumentError, InputDocument, finite_json_number, json_text};
use crate::log_stream::LogStream;

/// Output of fio --output-format=json.
pub(crate) const IMPORTER: Importer = Importer {
    name: "fio",
    about: "output of fio --output-format=json",
    knows_boots: false,
    recognises: Recognition::File(|input| input.json_document().is_some_and(is_fio_document)),
    open: |path, options| open_document("fio", path, options, read_fio_document),
};

const DIRECTIONS: [&str; 3] = ["read", "write", "trim"];

/// Percentiles of the completion latency: fio's key, ours.
const PERCENTILES: &[(&str, &str)] = &[
    ("50.000000", "latency-p50"),
    ("95.000000", "latency-p95"),
    ("99.000000", "latency-p99"),
    ("99.900000", "latency-p99.9"),
];

const MICROSECOND: f64 = 1e3;

fn is_fio_document(document: &InputDocument) -> bool {
    document.member("fio version").is_some()
}

fn read_fio_document(
    document: &InputDocument,
    metadata: &mut RunMetadata,
    report: &mut FileReport,
) -> Result<Vec<LogStream>, DocumentError> {
    if let Some(version) = document.member("fio version").and_then(Value::as_str) {
        metadata.facts.add(fact_table::IMPORT_VERSION, version, "fio version");
    }
    if document.text.matches("\"fio version\"").nth(1).is_some() {
        report.add_note(
            "it holds reports of one execution every few seconds: the last, which holds the others, is taken",
        );
    }
    let jobs = [document.list_member("jobs"), document.list_member("client_stats")].concat();
    if jobs.is_empty() {
        return Err(DocumentError::new("it has no `jobs`"));
    }
    let ended =
        finite_json_number(document.member("timestamp_ms")).map(|ms| Nanos((ms.max(0.0) * 1e6) as u64));
    let mut executions: HashMap<ImportedCaseId, ImportedExecutionId> = HashMap::new();
    // The sum of all clients repeats them.
    let jobs: Vec<&Value> = jobs.iter().filter(|job| json_text(job, "jobname") != "All clients").collect();
    let all: Vec<IndexMap<String, Scalar>> = jobs.iter().map(|job| job_options(document, job)).collect();
    let mut twins: HashMap<&str, Vec<&IndexMap<String, Scalar>>> = HashMap::new();
    for (job, options) in jobs.iter().zip(&all) {
        twins.entry(json_text(job, "jobname")).or_default().push(options);
    }
    let names: HashMap<&str, IndexSet<String>> =
        twins.into_iter().map(|(name, twins)| (name, differing_options(&twins))).collect();
    let none = IndexSet::new();
    for (job, all) in jobs.iter().zip(&all) {
        let names = names.get(json_text(job, "jobname")).unwrap_or(&none);
        read_fio_job(job, &FioJobOptions { all, names }, ended, &mut executions, metadata, report);
    }
    Ok(Vec::new())
}

/// The options in which jobs of one name differ: what tells them apart is part of their name here.
fn differing_options(twins: &[&IndexMap<String, Scalar>]) -> IndexSet<String> {
    let pairs = twins.iter().flat_map(|twin| twin.iter());
    varied_names(pairs, twins.len(), |_| false).into_iter().cloned().collect()
}

/// The options of a job.
struct FioJobOptions<'a> {
    all: &'a IndexMap<String, Scalar>,
    /// those in which it differs from others of its name
    names: &'a IndexSet<String>,
}

/// Options that do not say what is done, but where, how long files are called, and what is printed.
const ELSEWHERE: [&str; 12] = [
    "name",
    "description",
    "filename",
    "directory",
    "filename_format",
    "group_reporting",
    "stonewall",
    "new_group",
    "output",
    "output-format",
    "status-interval",
    "per_job_logs",
];

/// What a job was to do: its own options over those of all.
fn job_options(document: &InputDocument, job: &Value) -> IndexMap<String, Scalar> {
    let global = document.member("global options").and_then(Value::as_object);
    let own = job.get("job options").and_then(Value::as_object);
    let all = global.into_iter().chain(own).flatten();
    let says =
        |name: &str| !ELSEWHERE.contains(&name) && !name.starts_with("write_") && !name.starts_with("log_");
    let parameter = |value: &Value| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        text.parse().map_or_else(|_| Scalar::Text(text.clone()), Scalar::Int)
    };
    all.filter(|(name, _)| says(name)).map(|(name, value)| (name.clone(), parameter(value))).collect()
}

fn read_fio_job(
    job: &Value,
    options: &FioJobOptions<'_>,
    ended: Option<Nanos>,
    executions: &mut HashMap<ImportedCaseId, ImportedExecutionId>,
    metadata: &mut RunMetadata,
    report: &mut FileReport,
) {
    let name = json_text(job, "jobname");
    let error = finite_json_number(job.get("error")).unwrap_or(0.0);
    if error != 0.0 {
        let reason = format!("job `{name}` ended with error {error}");
        for direction in job_directions(job, options) {
            let (case, execution) =
                find_fio_execution((name, direction), options, None, executions, metadata);
            metadata.results.mark_failed(execution, &reason);
            for (name, unit) in [("bandwidth", "bytes/s"), ("iops", "ops/s")] {
                let metric = imported_metric(name, unit, Direction::Higher, true);
                metadata.results.find_or_add_metric(case, metric);
            }
        }
        return count_failed(report, 0, reason);
    }
    let length = finite_json_number(job.get("job_runtime")).map_or(0, |ms| (ms.max(0.0) * 1e6) as u64);
    let span = ended.map(|end| (Nanos(end.0.saturating_sub(length)), end));
    for direction in DIRECTIONS {
        let Some(figures) = job.get(direction) else { continue };
        if finite_json_number(figures.get("io_bytes")).is_some_and(|bytes| bytes > 0.0) {
            add_fio_figures(figures, (name, direction), options, span, executions, metadata);
            report.count_row(0, LineOutcome::Used);
        }
    }
}

/// The directions of a job that ended early: those in which it did anything, else those that it was to go.
fn job_directions(job: &Value, options: &FioJobOptions<'_>) -> Vec<&'static str> {
    let did = |direction: &str| {
        job.get(direction).and_then(|figures| finite_json_number(figures.get("io_bytes"))) > Some(0.0)
    };
    let done: Vec<&str> = DIRECTIONS.into_iter().filter(|direction| did(direction)).collect();
    let requested =
        ["rw", "readwrite"].iter().find_map(|name| options.all.get(*name)).map(ToString::to_string);
    let requested = requested.unwrap_or_else(|| "read".into());
    let mixed = requested.starts_with("rw") || requested.starts_with("randrw");
    let goes =
        |direction: &&str| requested.contains(*direction) || (mixed && ["read", "write"].contains(direction));
    if done.is_empty() { DIRECTIONS.into_iter().filter(goes).collect() } else { done }
}

/// The case of a job in a direction, and its one execution.
fn find_fio_execution(
    (name, direction): (&str, &str),
    options: &FioJobOptions<'_>,
    span: Option<TimeRange>,
    executions: &mut HashMap<ImportedCaseId, ImportedExecutionId>,
    metadata: &mut RunMetadata,
) -> (ImportedCaseId, ImportedExecutionId) {
    let mut point =
        IndexMap::from([("job".to_owned(), name.into()), ("direction".to_owned(), direction.into())]);
    let reported = options.all.iter().filter(|(name, _)| options.names.contains(*name));
    point.extend(reported.map(|(name, value)| (name.clone(), value.clone())));
    let results = &mut metadata.results;
    let case = results.find_or_add_case("fio", point);
    results.add_parameters(case, options.all.clone());
    // Jobs of one name ran beside each other: one execution with several values.
    (case, *executions.entry(case).or_insert_with(|| results.next_execution(case, 0, span)))
}

fn add_fio_figures(
    figures: &Value,
    job: (&str, &str),
    options: &FioJobOptions<'_>,
    span: Option<TimeRange>,
    executions: &mut HashMap<ImportedCaseId, ImportedExecutionId>,
    metadata: &mut RunMetadata,
) {
    let (case, execution) = find_fio_execution(job, options, span, executions, metadata);
    let results = &mut metadata.results;
    let latency =
        |figure: &str, name: &str| Some(finite_json_number(figures.get(figure)?.get(name))? / MICROSECOND);
    let percentile =
        |key| Some(finite_json_number(figures.get("clat_ns")?.get("percentile")?.get(key))? / MICROSECOND);
    let mut reported = vec![
        ("bandwidth", "bytes/s", Direction::Higher, true, finite_json_number(figures.get("bw_bytes"))),
        ("iops", "ops/s", Direction::Higher, true, finite_json_number(figures.get("iops"))),
        ("latency-mean", "us", Direction::Lower, false, latency("lat_ns", "mean")),
        ("latency-max", "us", Direction::Lower, false, latency("lat_ns", "max")),
    ];
    reported.extend(
        PERCENTILES.iter().map(|(key, name)| (*name, "us", Direction::Lower, false, percentile(*key))),
    );
    for (name, unit, direction, primary, value) in reported {
        let Some(value) = value else { continue };
        let id = results.find_or_add_metric(case, imported_metric(name, unit, direction, primary));
        results.add_sample(execution, id, value, None);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn jobs_of_one_name_are_told_apart_by_what_differs() {
        let job = |name: &str, options: &str| {
            format!(
                r#"{{"jobname":"{name}","job options":{{{options}}},"read":{{"io_bytes":1,"bw_bytes":5,"iops":3}}}}"#
            )
        };
        let mut jobs = vec![job("a", r#""bs":"4k","rw":"read""#), job("a", r#""bs":"8k","rw":"read""#)];
        jobs.extend([job("a", r#""bs":"8k","rw":"read","numjobs":"2""#), job("b", r#""bs":"16k""#)]);
        let document =
            InputDocument::from_text(&format!(r#"{{"fio version":"fio-3","jobs":[{}]}}"#, jobs.join(",")));
        let mut metadata = RunMetadata::default();
        read_fio_document(&document, &mut metadata, &mut FileReport::new(Path::new("f"), "samples"))
            .map(drop)
            .unwrap();
        let labels: Vec<String> =
            metadata.results.to_plan().cases.iter().map(perflab_model::Case::label).collect();
        let requested = [
            "fio job=a direction=read bs=4k",
            "fio job=a direction=read bs=8k",
            "fio job=a direction=read bs=8k numjobs=2",
            "fio job=b direction=read",
        ];
        assert_eq!(labels, requested);
    }
}
