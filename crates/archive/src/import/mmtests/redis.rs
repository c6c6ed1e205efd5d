//! redis-benchmark: `redis-CLIENTS-ITERATION.log`, a line of CSV an operation. Old ones hold requests per second only,
//! current ones a head and latencies in milliseconds. Values keep MMTests' scale: thousands of requests, microseconds.

use perflab_model::Direction;

use super::super::lines::Line;
use super::super::results::{CaseId, ExecutionId};
use super::super::took::Read;
use super::bench::{Bench, number};
use super::folder::Folder;
use crate::ArchiveError;

const THOUSAND: f64 = 1e3;
/// Columns behind the name: theirs, ours.
const COLUMNS: &[(&str, &str)] = &[
    ("rps", "RPS"),
    ("avg_latency_ms", "latAvg"),
    ("min_latency_ms", "latMin"),
    ("p50_latency_ms", "lat50"),
    ("p95_latency_ms", "lat95"),
    ("p99_latency_ms", "lat99"),
    ("max_latency_ms", "latMax"),
];

pub(super) fn read(folder: &Folder, bench: &mut Bench<'_>) -> Result<(), ArchiveError> {
    for log in folder.logs("redis") {
        let (Some(clients), Some(_)) = (log.number(0), log.number(1)) else { continue };
        let case = bench.case(&[("clients", clients)]);
        let execution = bench.execution(case);
        let mut head: Vec<String> = vec!["rps".into()];
        let took = bench.read(log.path, |bench, line| {
            let fields = fields(line.text)?;
            if let Some(("test", rest)) = fields.split_first().map(|(first, rest)| (first.as_str(), rest)) {
                head = rest.to_vec();
                return None;
            }
            Some(row(line, &fields, &head, (case, execution), bench))
        })?;
        bench.keep(took);
    }
    Ok(())
}

/// The quoted fields of a line; nothing where it is no CSV.
fn fields(text: &str) -> Option<Vec<String>> {
    let inner = text.trim().strip_prefix('"')?;
    let inner = inner.strip_suffix('"').unwrap_or(inner);
    Some(inner.split("\",\"").map(String::from).collect())
}

fn row(
    line: Line<'_>,
    fields: &[String],
    head: &[String],
    (case, execution): (CaseId, ExecutionId),
    bench: &mut Bench<'_>,
) -> Read {
    let Some((name, values)) = fields.split_first() else { return Read::Unusable("it is empty".into()) };
    if values.len() != head.len() || !line.text.trim_end().ends_with('"') {
        let reason =
            format!("it has {} values and not {}: it is cut off or another's", values.len(), head.len());
        return Read::Unusable(reason);
    }
    let values: Result<Vec<f64>, String> = values.iter().map(|value| number(value)).collect();
    let values = match values {
        Ok(values) => values,
        Err(reason) => return Read::Unusable(reason),
    };
    let operation = operation(name);
    for (column, value) in head.iter().zip(values) {
        let Some((_, ours)) = COLUMNS.iter().find(|(theirs, _)| theirs == column) else { continue };
        let name = format!("{operation}-{ours}");
        let (metric, value) = match *ours {
            "RPS" => (bench.named(case, &name, "kops/s", Direction::Higher, true), value / THOUSAND),
            _ => (bench.named(case, &name, "us", Direction::Lower, false), value * THOUSAND),
        };
        bench.sample(execution, metric, value);
    }
    Read::Used
}

/// `LRANGE_100 (first 100 elements)` is known as LRANGE_100; the LPUSH that only prepares another test is not LPUSH.
fn operation(name: &str) -> String {
    match name.split_once(" (") {
        Some((name, note)) if note.starts_with("needed") => format!("{name}-prepare"),
        Some((name, _)) => name.into(),
        None => name.into(),
    }
}
