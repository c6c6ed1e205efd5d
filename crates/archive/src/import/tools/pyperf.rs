//! pyperf's JSON: the values of each worker process. A process is the level above iterations, as its values share its
//! memory layout and hash seed; calibration and warm-ups are left out.

use indexmap::IndexMap;
use perflab_model::Direction;
use serde_json::Value;

use super::super::feed::Feed;
use super::super::story::{Story, metric};
use super::super::took::{Read, Took};
use super::document::{number, text};
use super::{Document, Fault, left_out};

pub(super) fn looks(document: &Document) -> bool {
    document.list("benchmarks").iter().any(|benchmark| benchmark.get("runs").is_some())
}

pub(super) fn read(document: &Document, story: &mut Story, took: &mut Took) -> Result<Vec<Feed>, Fault> {
    let common = document.member("metadata").unwrap_or(&Value::Null);
    let facts =
        [("cpu_model_name", "cpu.model"), ("python_version", "python.version"), ("platform", "platform")];
    for (theirs, ours) in facts {
        let value = text(common, theirs);
        if !value.is_empty() {
            story.facts.add(ours, value, "metadata");
        }
    }
    if let Some(cpus) = common.get("cpu_count").and_then(Value::as_i64) {
        story.facts.add("cpu.online", cpus, "metadata: cpu_count");
    }
    let mut warmups = 0;
    for benchmark in document.list("benchmarks") {
        warmups += one(benchmark, common, story, took);
    }
    if warmups > 0 {
        took.note(format!("{warmups} values of warm-ups and calibration are left out"));
    }
    Ok(Vec::new())
}

/// A member of the benchmark's own metadata, or of that of all.
fn meta<'a>(benchmark: &'a Value, common: &'a Value, name: &str) -> &'a str {
    let own = benchmark.get("metadata").map_or("", |metadata| text(metadata, name));
    if own.is_empty() { text(common, name) } else { own }
}

/// Gives how many warm-ups it has.
fn one(benchmark: &Value, common: &Value, story: &mut Story, took: &mut Took) -> usize {
    let name = Some(meta(benchmark, common, "name")).filter(|name| !name.is_empty()).unwrap_or("benchmark");
    let (what, unit) = match meta(benchmark, common, "unit") {
        "byte" => ("size", "bytes"),
        "integer" => ("value", "1"),
        _ => ("time", "s"),
    };
    let case = story.results.case(name, IndexMap::new());
    let id = story.results.metric(case, metric(what, unit, Direction::Lower, true));
    let runs = benchmark.get("runs").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let (mut warmups, mut process) = (0, 0);
    for run in runs {
        warmups += run.get("warmups").and_then(Value::as_array).map_or(0, Vec::len);
        let Some(values) = run.get("values").and_then(Value::as_array) else { continue };
        for value in values {
            match number(Some(value)) {
                Some(value) => {
                    let execution = story.results.execution(case, process, None);
                    story.results.sample(execution, id, value, None);
                    took.count(0, Read::Used);
                }
                None => left_out(took, 0, format!("a value of `{name}` is no number: {value}")),
            }
        }
        process += 1;
    }
    warmups
}
