//! `fio --output-format=json`: bandwidth, operations and latencies of each job, each way.

use std::collections::HashMap;

use indexmap::{IndexMap, IndexSet};
use perflab_model::{Direction, Nanos, Value as Parameter};
use serde_json::Value;

use super::super::feed::Feed;
use super::super::results::{CaseId, ExecutionId, Span};
use super::super::story::{Story, metric};
use super::super::took::{Read, Took};
use super::document::{number, text};
use super::{Document, Fault, left_out, varied_names};

const WAYS: [&str; 3] = ["read", "write", "trim"];
/// Percentiles of the completion latency: fio's key, ours.
const PERCENTILES: &[(&str, &str)] = &[
    ("50.000000", "latency-p50"),
    ("95.000000", "latency-p95"),
    ("99.000000", "latency-p99"),
    ("99.900000", "latency-p99.9"),
];
const MICROSECOND: f64 = 1e3;

pub(super) fn looks(document: &Document) -> bool {
    document.member("fio version").is_some()
}

pub(super) fn read(document: &Document, story: &mut Story, took: &mut Took) -> Result<Vec<Feed>, Fault> {
    if let Some(version) = document.member("fio version").and_then(Value::as_str) {
        story.facts.add("import.version", version, "fio version");
    }
    if document.text.matches("\"fio version\"").nth(1).is_some() {
        took.note(
            "it holds reports of one execution every few seconds: the last, which holds the others, is taken",
        );
    }
    let jobs = [document.list("jobs"), document.list("client_stats")].concat();
    if jobs.is_empty() {
        return Err(Fault::new("it has no `jobs`"));
    }
    let ended = number(document.member("timestamp_ms")).map(|ms| Nanos((ms.max(0.0) * 1e6) as u64));
    let mut executions: HashMap<CaseId, ExecutionId> = HashMap::new();
    // The sum of all clients repeats them.
    let jobs: Vec<&Value> = jobs.iter().filter(|job| text(job, "jobname") != "All clients").collect();
    let all: Vec<IndexMap<String, Parameter>> = jobs.iter().map(|job| options(document, job)).collect();
    let mut twins: HashMap<&str, Vec<&IndexMap<String, Parameter>>> = HashMap::new();
    for (job, options) in jobs.iter().zip(&all) {
        twins.entry(text(job, "jobname")).or_default().push(options);
    }
    let names: HashMap<&str, IndexSet<String>> =
        twins.into_iter().map(|(name, twins)| (name, differing_options(&twins))).collect();
    let none = IndexSet::new();
    for (job, all) in jobs.iter().zip(&all) {
        let names = names.get(text(job, "jobname")).unwrap_or(&none);
        one(job, &Options { all, names }, ended, &mut executions, story, took);
    }
    Ok(Vec::new())
}

/// The options in which jobs of one name differ: what tells them apart is part of their name here.
fn differing_options(twins: &[&IndexMap<String, Parameter>]) -> IndexSet<String> {
    let pairs = twins.iter().flat_map(|twin| twin.iter());
    varied_names(pairs, twins.len(), |_| false).into_iter().cloned().collect()
}

/// The options of a job.
struct Options<'a> {
    all: &'a IndexMap<String, Parameter>,
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
fn options(document: &Document, job: &Value) -> IndexMap<String, Parameter> {
    let global = document.member("global options").and_then(Value::as_object);
    let own = job.get("job options").and_then(Value::as_object);
    let all = global.into_iter().chain(own).flatten();
    let says =
        |name: &str| !ELSEWHERE.contains(&name) && !name.starts_with("write_") && !name.starts_with("log_");
    let parameter = |value: &Value| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        text.parse().map_or_else(|_| Parameter::Text(text.clone()), Parameter::Int)
    };
    all.filter(|(name, _)| says(name)).map(|(name, value)| (name.clone(), parameter(value))).collect()
}

fn one(
    job: &Value,
    options: &Options<'_>,
    ended: Option<Nanos>,
    executions: &mut HashMap<CaseId, ExecutionId>,
    story: &mut Story,
    took: &mut Took,
) {
    let name = text(job, "jobname");
    let error = number(job.get("error")).unwrap_or(0.0);
    if error != 0.0 {
        return left_out(took, 0, format!("job `{name}` ended with error {error}"));
    }
    let length = number(job.get("job_runtime")).map_or(0, |ms| (ms.max(0.0) * 1e6) as u64);
    let span = ended.map(|end| (Nanos(end.0.saturating_sub(length)), end));
    for way in WAYS {
        let Some(figures) = job.get(way) else { continue };
        if number(figures.get("io_bytes")).is_some_and(|bytes| bytes > 0.0) {
            figures_of(figures, (name, way), options, span, executions, story);
            took.count(0, Read::Used);
        }
    }
}

fn figures_of(
    figures: &Value,
    (name, way): (&str, &str),
    options: &Options<'_>,
    span: Option<Span>,
    executions: &mut HashMap<CaseId, ExecutionId>,
    story: &mut Story,
) {
    let mut point = IndexMap::from([("job".to_owned(), name.into()), ("way".to_owned(), way.into())]);
    let told = options.all.iter().filter(|(name, _)| options.names.contains(*name));
    point.extend(told.map(|(name, value)| (name.clone(), value.clone())));
    let results = &mut story.results;
    let case = results.case("fio", point);
    results.parameters(case, options.all.clone());
    // Jobs of one name ran beside each other: one execution with several values.
    let execution = *executions.entry(case).or_insert_with(|| results.execution(case, 0, span));
    let latency = |figure: &str, name: &str| Some(number(figures.get(figure)?.get(name))? / MICROSECOND);
    let percentile = |key| Some(number(figures.get("clat_ns")?.get("percentile")?.get(key))? / MICROSECOND);
    let mut told = vec![
        ("bandwidth", "bytes/s", Direction::Higher, true, number(figures.get("bw_bytes"))),
        ("iops", "ops/s", Direction::Higher, true, number(figures.get("iops"))),
        ("latency-mean", "us", Direction::Lower, false, latency("lat_ns", "mean")),
        ("latency-max", "us", Direction::Lower, false, latency("lat_ns", "max")),
    ];
    told.extend(
        PERCENTILES.iter().map(|(key, name)| (*name, "us", Direction::Lower, false, percentile(*key))),
    );
    for (name, unit, direction, primary, value) in told {
        let Some(value) = value else { continue };
        let id = results.metric(case, metric(name, unit, direction, primary));
        results.sample(execution, id, value, None);
    }
}
