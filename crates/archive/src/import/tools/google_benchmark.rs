//! Google Benchmark's `--benchmark_format=json`: every repetition; aggregates only where nothing else is there.

use indexmap::IndexMap;
use perflab_model::{Direction, Nanos, Value as Parameter};
use serde_json::Value;

use super::super::feed::Feed;
use super::super::results::{CaseId, ExecutionId};
use super::super::story::{Story, metric};
use super::super::took::{Read, Took};
use super::document::{number, text};
use super::{Document, Fault, left_out};

/// Members of a repetition that are no measurements.
const BOOKKEEPING: &[&str] = &[
    "family_index",
    "per_family_instance_index",
    "repetitions",
    "repetition_index",
    "threads",
    "iterations",
    "real_time",
    "cpu_time",
    "error_occurred",
];

pub(super) fn looks(document: &Document) -> bool {
    document.member("context").is_some()
        && document.list("benchmarks").iter().any(|benchmark| benchmark.get("real_time").is_some())
}

pub(super) fn read(document: &Document, story: &mut Story, took: &mut Took) -> Result<Vec<Feed>, Fault> {
    if let Some(context) = document.member("context") {
        facts(context, story);
    }
    let all = document.list("benchmarks");
    let (aggregates, single): (Vec<&Value>, Vec<&Value>) =
        all.iter().partition(|benchmark| text(benchmark, "run_type") == "aggregate");
    single.iter().for_each(|benchmark| one(benchmark, story, took));
    if single.is_empty() {
        let means = aggregates.iter().filter(|benchmark| text(benchmark, "aggregate_name") == "mean");
        means.for_each(|benchmark| one(benchmark, story, took));
        took.note(
            "it holds aggregates only: the mean of each benchmark is one value, and its scatter is lost",
        );
    }
    Ok(Vec::new())
}

fn facts(context: &Value, story: &mut Story) {
    if let Some(cpus) = context.get("num_cpus").and_then(Value::as_i64) {
        story.facts.add("cpu.online", cpus, "context: num_cpus");
    }
    let date = text(context, "date").parse::<jiff::Timestamp>().ok();
    story.begun = date.and_then(|date| u64::try_from(date.as_nanosecond()).ok()).map(Nanos);
    let host = text(context, "host_name");
    if !host.is_empty() {
        story.target = host.into();
    }
    if text(context, "library_build_type") == "debug" {
        let advice = "its own overhead is in the numbers; link a release build for small benchmarks";
        story.notes.push(("the benchmark library was a debug build".into(), advice.into()));
    }
}

fn one(benchmark: &Value, story: &mut Story, took: &mut Took) {
    let name = Some(text(benchmark, "run_name")).filter(|name| !name.is_empty());
    let name = name.unwrap_or_else(|| text(benchmark, "name"));
    let (workload, arguments) = name.split_once('/').unwrap_or((name, ""));
    let value = || arguments.parse().map_or_else(|_| Parameter::from(arguments), Parameter::Int);
    let point = (!arguments.is_empty()).then(|| ("arguments".to_owned(), value()));
    let case = story.results.case(workload, point.into_iter().collect::<IndexMap<_, _>>());
    let execution = story.results.execution(case, 0, None);
    if benchmark.get("error_occurred").and_then(Value::as_bool) == Some(true) {
        let reason = format!("{name}: {}", text(benchmark, "error_message"));
        story.results.failed(execution, &reason);
        return left_out(took, 0, reason);
    }
    let Some(real) = number(benchmark.get("real_time")) else {
        return left_out(took, 0, format!("{name} has no `real_time`"));
    };
    let unit = Some(text(benchmark, "time_unit")).filter(|unit| !unit.is_empty()).unwrap_or("ns");
    let mut tell = |name: &str, unit: &str, direction, primary, value| {
        let id = story.results.metric(case, metric(name, unit, direction, primary));
        story.results.sample(execution, id, value, None);
    };
    tell("real_time", unit, Direction::Lower, true, real);
    if let Some(cpu) = number(benchmark.get("cpu_time")) {
        tell("cpu_time", unit, Direction::Lower, false, cpu);
    }
    counters(benchmark, case, execution, story);
    took.count(0, Read::Used);
}

/// What the benchmark counted itself.
fn counters(benchmark: &Value, case: CaseId, execution: ExecutionId, story: &mut Story) {
    for (name, value) in benchmark.as_object().into_iter().flatten() {
        let Some(value) = number(Some(value)).filter(|_| !BOOKKEEPING.contains(&name.as_str())) else {
            continue;
        };
        let (unit, direction) = match name.as_str() {
            "bytes_per_second" => ("bytes/s", Direction::Higher),
            "items_per_second" => ("items/s", Direction::Higher),
            _ => ("1", Direction::Neither),
        };
        let id = story.results.metric(case, metric(name, unit, direction, false));
        story.results.sample(execution, id, value, None);
    }
}
