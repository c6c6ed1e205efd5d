//! pyperf's JSON: the values of each worker process.
//!
//! A process is an iteration, since its values share its memory layout and hash seed; calibration and warm-ups are left
//! out. That processes of one file follow one another in one boot makes them no better than that: two files differ by more.

use indexmap::IndexMap;
use perflab_formats::reading_parser::LineOutcome;
use perflab_model::Direction;
use perflab_model::fact_table;
use serde_json::Value;

use crate::document_import::{count_unusable, open_document};
use crate::import_report::FileReport;
use crate::imported_run::{RunMetadata, imported_metric};
use crate::importer::{Importer, Recognition};
use crate::input_document::{DocumentError, InputDocument, finite_json_number, json_text};
use crate::log_stream::LogStream;

/// JSON of pyperf.
pub(crate) const IMPORTER: Importer = Importer {
    name: "pyperf",
    about: "JSON of pyperf",
    knows_boots: false,
    recognises: Recognition::File(|input| input.json_document().is_some_and(is_pyperf_document)),
    open: |path, options| open_document("pyperf", path, options, read_pyperf_document),
};

fn is_pyperf_document(document: &InputDocument) -> bool {
    document.list_member("benchmarks").iter().any(|benchmark| benchmark.get("runs").is_some())
}

fn read_pyperf_document(
    document: &InputDocument,
    metadata: &mut RunMetadata,
    report: &mut FileReport,
) -> Result<Vec<LogStream>, DocumentError> {
    let common = document.member("metadata").unwrap_or(&Value::Null);
    let facts = [
        ("cpu_model_name", fact_table::CPU_MODEL),
        ("python_version", fact_table::PYTHON_VERSION),
        ("platform", fact_table::PLATFORM),
    ];
    for (theirs, ours) in facts {
        let value = json_text(common, theirs);
        if !value.is_empty() {
            metadata.facts.add(ours, value, "metadata");
        }
    }
    if let Some(cpus) = common.get("cpu_count").and_then(Value::as_i64) {
        metadata.facts.add(fact_table::CPU_ONLINE, cpus, "metadata: cpu_count");
    }
    let mut warmups = 0;
    for benchmark in document.list_member("benchmarks") {
        warmups += read_pyperf_benchmark(benchmark, common, metadata, report);
    }
    if warmups > 0 {
        report.add_note(format!("{warmups} values of warm-ups and calibration are left out"));
    }
    Ok(Vec::new())
}

/// A member of the benchmark's own metadata, or of that of all.
fn metadata_text<'a>(benchmark: &'a Value, common: &'a Value, name: &str) -> &'a str {
    let own = benchmark.get("metadata").map_or("", |metadata| json_text(metadata, name));
    if own.is_empty() { json_text(common, name) } else { own }
}

/// Gives how many warm-ups it has.
fn read_pyperf_benchmark(
    benchmark: &Value,
    common: &Value,
    metadata: &mut RunMetadata,
    report: &mut FileReport,
) -> usize {
    let name =
        Some(metadata_text(benchmark, common, "name")).filter(|name| !name.is_empty()).unwrap_or("benchmark");
    let (what, unit) = match metadata_text(benchmark, common, "unit") {
        "byte" => ("size", "bytes"),
        "integer" => ("value", "1"),
        _ => ("time", "s"),
    };
    let case = metadata.results.find_or_add_case(name, IndexMap::new());
    let id = metadata.results.find_or_add_metric(case, imported_metric(what, unit, Direction::Lower, true));
    let runs = benchmark.get("runs").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let mut warmups = 0;
    for run in runs {
        warmups += run.get("warmups").and_then(Value::as_array).map_or(0, Vec::len);
        let values = run.get("values").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        if values.is_empty() {
            continue;
        }
        let process = metadata.results.next_execution(case, 0, None);
        for value in values {
            match finite_json_number(Some(value)) {
                Some(value) => {
                    metadata.results.add_sample(process, id, value, None);
                    report.count_row(0, LineOutcome::Used);
                }
                None => count_unusable(report, 0, format!("a value of `{name}` is no number: {value}")),
            }
        }
    }
    warmups
}
