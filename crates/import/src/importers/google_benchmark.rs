//! Google Benchmark's `--benchmark_format=json`: every repetition; aggregates only where nothing else is there.

use indexmap::IndexMap;
use perflab_formats::reading_parser::LineOutcome;
use perflab_model::fact_table;
use perflab_model::{Direction, Nanos, Scalar};
use serde_json::Value;

use crate::benchmark_results::{ImportedCaseId, ImportedExecutionId};
use crate::document_import::{count_failed, count_unusable, open_document};
use crate::import_report::FileReport;
use crate::imported_run::{RunMetadata, imported_metric};
use crate::importer::{Importer, Recognition};
use crate::input_document::{DocumentError, InputDocument, finite_json_number, json_text};
use crate::log_stream::LogStream;

/// Output of Google Benchmark's --benchmark_format=json.
pub(crate) const IMPORTER: Importer = Importer {
    name: "google-benchmark",
    about: "output of Google Benchmark's --benchmark_format=json",
    knows_boots: false,
    recognises: Recognition::File(|input| input.json_document().is_some_and(is_google_benchmark_document)),
    open: |path, options| open_document("google-benchmark", path, options, read_google_benchmark_document),
};

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

fn is_google_benchmark_document(document: &InputDocument) -> bool {
    document.member("context").is_some()
        && document.list_member("benchmarks").iter().any(|benchmark| benchmark.get("real_time").is_some())
}

fn read_google_benchmark_document(
    document: &InputDocument,
    metadata: &mut RunMetadata,
    report: &mut FileReport,
) -> Result<Vec<LogStream>, DocumentError> {
    if let Some(context) = document.member("context") {
        add_context_facts(context, metadata);
    }
    let all = document.list_member("benchmarks");
    let (aggregates, single): (Vec<&Value>, Vec<&Value>) =
        all.iter().partition(|benchmark| json_text(benchmark, "run_type") == "aggregate");
    single.iter().for_each(|benchmark| read_google_benchmark(benchmark, metadata, report));
    if single.is_empty() {
        let means = aggregates.iter().filter(|benchmark| json_text(benchmark, "aggregate_name") == "mean");
        means.for_each(|benchmark| read_google_benchmark(benchmark, metadata, report));
        report.add_note(
            "it holds aggregates only: the mean of each benchmark is one value, and its scatter is lost",
        );
    }
    Ok(Vec::new())
}

fn add_context_facts(context: &Value, metadata: &mut RunMetadata) {
    if let Some(cpus) = context.get("num_cpus").and_then(Value::as_i64) {
        metadata.facts.add(fact_table::CPU_ONLINE, cpus, "context: num_cpus");
    }
    let date = json_text(context, "date").parse::<jiff::Timestamp>().ok();
    metadata.begun = date.and_then(|date| u64::try_from(date.as_nanosecond()).ok()).map(Nanos);
    let host = json_text(context, "host_name");
    if !host.is_empty() {
        metadata.target = host.into();
    }
    if json_text(context, "library_build_type") == "debug" {
        let advice = "its own overhead is in the numbers; link a release build for small benchmarks";
        metadata.notes.push(("the benchmark library was a debug build".into(), advice.into()));
    }
}

fn read_google_benchmark(benchmark: &Value, metadata: &mut RunMetadata, report: &mut FileReport) {
    let name = Some(json_text(benchmark, "run_name")).filter(|name| !name.is_empty());
    let name = name.unwrap_or_else(|| json_text(benchmark, "name"));
    let (workload, arguments) = name.split_once('/').unwrap_or((name, ""));
    let value = || arguments.parse().map_or_else(|_| Scalar::from(arguments), Scalar::Int);
    let point = (!arguments.is_empty()).then(|| ("arguments".to_owned(), value()));
    let case = metadata.results.find_or_add_case(workload, point.into_iter().collect::<IndexMap<_, _>>());
    let execution = metadata.results.next_execution(case, 0, None);
    let (unit, scale) = time_unit_scale(json_text(benchmark, "time_unit"));
    let time =
        metadata.results.find_or_add_metric(case, imported_metric("real_time", unit, Direction::Lower, true));
    if benchmark.get("error_occurred").and_then(Value::as_bool) == Some(true) {
        let reason = format!("{name}: {}", json_text(benchmark, "error_message"));
        metadata.results.mark_failed(execution, &reason);
        return count_failed(report, 0, reason);
    }
    let Some(real) = finite_json_number(benchmark.get("real_time")) else {
        return count_unusable(report, 0, format!("{name} has no `real_time`"));
    };
    metadata.results.add_sample(execution, time, real * scale, None);
    let mut tell = |name: &str, unit: &str, direction, primary, value| {
        let id = metadata.results.find_or_add_metric(case, imported_metric(name, unit, direction, primary));
        metadata.results.add_sample(execution, id, value, None);
    };
    if let Some(cpu) = finite_json_number(benchmark.get("cpu_time")) {
        tell("cpu_time", unit, Direction::Lower, false, cpu * scale);
    }
    add_user_counters(benchmark, case, execution, metadata);
    report.count_row(0, LineOutcome::Used);
}

/// The unit that times have in a run, and what makes it of the file's, which is a matter of display: `Unit(kMicrosecond)`
/// makes another metric of no benchmark.
fn time_unit_scale(unit: &str) -> (&str, f64) {
    match unit {
        "" | "ns" => ("ns", 1.0),
        "us" => ("ns", 1e3),
        "ms" => ("ns", 1e6),
        "s" => ("ns", 1e9),
        other => (other, 1.0),
    }
}

/// What the benchmark counted itself.
fn add_user_counters(
    benchmark: &Value,
    case: ImportedCaseId,
    execution: ImportedExecutionId,
    metadata: &mut RunMetadata,
) {
    for (name, value) in benchmark.as_object().into_iter().flatten() {
        let Some(value) = finite_json_number(Some(value)).filter(|_| !BOOKKEEPING.contains(&name.as_str()))
        else {
            continue;
        };
        let (unit, direction) = match name.as_str() {
            "bytes_per_second" => ("bytes/s", Direction::Higher),
            "items_per_second" => ("items/s", Direction::Higher),
            _ => ("1", Direction::Neither),
        };
        let id = metadata.results.find_or_add_metric(case, imported_metric(name, unit, direction, false));
        metadata.results.add_sample(execution, id, value, None);
    }
}
