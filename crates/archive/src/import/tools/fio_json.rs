//! `fio --output-format=json`: bandwidth, operations and latencies of each job, each way.

use indexmap::IndexMap;
use perflab_model::{Direction, Nanos};
use serde_json::Value;

use super::super::feed::Feed;
use super::super::results::{CaseId, ExecutionId, Span};
use super::super::story::{Story, metric};
use super::super::took::{Read, Took};
use super::document::{number, text};
use super::{Document, Fault, left_out};

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
    let mut executions: Vec<(CaseId, ExecutionId)> = Vec::new();
    // The sum of all clients repeats them.
    for job in jobs.iter().filter(|job| text(job, "jobname") != "All clients") {
        one(job, ended, &mut executions, story, took);
    }
    Ok(Vec::new())
}

fn one(
    job: &Value,
    ended: Option<Nanos>,
    executions: &mut Vec<(CaseId, ExecutionId)>,
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
            figures_of(figures, (name, way), span, executions, story);
            took.count(0, Read::Used);
        }
    }
}

fn figures_of(
    figures: &Value,
    (name, way): (&str, &str),
    span: Option<Span>,
    executions: &mut Vec<(CaseId, ExecutionId)>,
    story: &mut Story,
) {
    let point = IndexMap::from([("job".to_owned(), name.into()), ("way".to_owned(), way.into())]);
    let results = &mut story.results;
    let case = results.case("fio", point);
    // Jobs of one name ran beside each other: one execution with several values.
    let known = executions.iter().find(|(known, _)| *known == case).map(|(_, execution)| *execution);
    let execution = known.unwrap_or_else(|| results.execution(case, 0, span));
    executions.push((case, execution));
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
