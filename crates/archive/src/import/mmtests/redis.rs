//! redis-benchmark: `redis-CLIENTS-ITERATION.log`, a line of CSV an operation. Old ones hold requests per second only,
//! current ones a head and latencies in milliseconds. Values keep MMTests' scale: thousands of requests, microseconds.

use perflab_model::Direction;

use super::super::lines::LogLine;
use super::super::results::{ImportedCaseId, ImportedExecutionId};
use super::super::took::LineOutcome;
use super::bench::{BenchmarkLogReader, parse_finite_number};
use super::folder::PackedFolder;
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

pub(super) fn read_redis(
    folder: &PackedFolder,
    bench: &mut BenchmarkLogReader<'_>,
) -> Result<(), ArchiveError> {
    for log in folder.numbered_logs("redis") {
        let (Some(clients), Some(_)) = (log.number_at(0), log.number_at(1)) else { continue };
        let case = bench.case_at(&[("clients", clients)]);
        let execution = bench.next_execution(case);
        let mut head: Vec<String> = vec!["rps".into()];
        let took = bench.read_lines(log.path, |bench, line| {
            let fields = split_redis_fields(line.text)?;
            if let Some(("test", rest)) = fields.split_first().map(|(first, rest)| (first.as_str(), rest)) {
                head = rest.to_vec();
                return None;
            }
            Some(parse_redis_row(line, &fields, &head, (case, execution), bench))
        })?;
        bench.keep_report(took);
    }
    Ok(())
}

/// The quoted fields of a line; nothing where it is no CSV.
fn split_redis_fields(text: &str) -> Option<Vec<String>> {
    let inner = text.trim().strip_prefix('"')?;
    let inner = inner.strip_suffix('"').unwrap_or(inner);
    Some(inner.split("\",\"").map(String::from).collect())
}

fn parse_redis_row(
    line: LogLine<'_>,
    fields: &[String],
    head: &[String],
    (case, execution): (ImportedCaseId, ImportedExecutionId),
    bench: &mut BenchmarkLogReader<'_>,
) -> LineOutcome {
    let Some((name, values)) = fields.split_first() else {
        return LineOutcome::Unusable("it is empty".into());
    };
    if values.len() != head.len() || !line.text.trim_end().ends_with('"') {
        let reason =
            format!("it has {} values and not {}: it is cut off or another's", values.len(), head.len());
        return LineOutcome::Unusable(reason);
    }
    let values: Result<Vec<f64>, String> = values.iter().map(|value| parse_finite_number(value)).collect();
    let values = match values {
        Ok(values) => values,
        Err(reason) => return LineOutcome::Unusable(reason),
    };
    let operation = redis_operation_name(name);
    for (column, value) in head.iter().zip(values) {
        let Some((_, ours)) = COLUMNS.iter().find(|(theirs, _)| theirs == column) else { continue };
        let name = format!("{operation}-{ours}");
        let (metric, value) = match *ours {
            "RPS" => (bench.metric_named(case, &name, "kops/s", Direction::Higher, true), value / THOUSAND),
            _ => (bench.metric_named(case, &name, "us", Direction::Lower, false), value * THOUSAND),
        };
        bench.add_sample(execution, metric, value);
    }
    LineOutcome::Used
}

/// `LRANGE_100 (first 100 elements)` is known as LRANGE_100; the LPUSH that only prepares another test is not LPUSH.
fn redis_operation_name(name: &str) -> String {
    match name.split_once(" (") {
        Some((name, note)) if note.starts_with("needed") => format!("{name}-prepare"),
        Some((name, _)) => name.into(),
        None => name.into(),
    }
}
