//! sysbench of every kind: `sysbench-raw-THREADS-ITERATION` or `benchlog-THREADS-_-ITERATION`. What a log holds is told
//! by its lines: transactions of databases, events of the CPU and thread tests, the latency of the mutex test.

use perflab_model::Direction;

use super::super::lines::LogLine;
use super::bench::{BenchmarkLogReader, DeclaredMetric, number_after, outcome_of, parse_finite_number};
use super::folder::{NumberedLog, PackedFolder};
use crate::ArchiveError;

const TRANSACTIONS: DeclaredMetric = ("txn/sec", "trans/s", Direction::Higher);
const EVENTS: DeclaredMetric = ("events/sec", "events/s", Direction::Higher);
const LATENCY: DeclaredMetric = ("latency", "ms", Direction::Lower);

pub(super) fn read_sysbench(
    folder: &PackedFolder,
    bench: &mut BenchmarkLogReader<'_>,
) -> Result<(), ArchiveError> {
    for log in folder.numbered_logs("sysbench-raw").iter().chain(&folder.numbered_logs("benchlog")) {
        if let Some(threads) = log.number_at(0) {
            read_sysbench_log(log, threads, bench)?;
        }
    }
    Ok(())
}

fn read_sysbench_log(
    log: &NumberedLog<'_>,
    threads: &str,
    bench: &mut BenchmarkLogReader<'_>,
) -> Result<(), ArchiveError> {
    let mutex = bench.name.contains("mutex");
    let mut found: Vec<(DeclaredMetric, f64)> = Vec::new();
    let took = bench.read_lines(log.path, |_, line| {
        let (metric, value) = parse_sysbench_line(line)?;
        Some(outcome_of(value, |value| found.push((metric, value))))
    })?;
    let case = bench.case_at(&[("threads", threads)]);
    let decides = |metric: &DeclaredMetric| (metric.0 == LATENCY.0) == mutex;
    // A log that was appended to holds several executions, each with the same lines.
    let mut execution = None;
    let mut seen: Vec<&str> = Vec::new();
    for (metric, value) in found {
        if seen.contains(&metric.0) || execution.is_none() {
            execution = Some(bench.next_execution(case));
            seen.clear();
        }
        seen.push(metric.0);
        let id = if decides(&metric) {
            bench.primary_metric(case, metric)
        } else {
            bench.secondary_metric(case, metric)
        };
        execution.into_iter().for_each(|execution| bench.add_sample(execution, id, value));
    }
    bench.keep_report(took);
    Ok(())
}

fn parse_sysbench_line(line: LogLine<'_>) -> Option<(DeclaredMetric, Result<f64, String>)> {
    if line.text.contains("transactions:") && line.text.contains("per sec") {
        let inside = line.text.split_once('(').and_then(|(_, rest)| rest.split_ascii_whitespace().next());
        return Some((TRANSACTIONS, parse_finite_number(inside.unwrap_or(""))));
    }
    if let Some(value) = number_after(line, "events per second:") {
        return Some((EVENTS, value));
    }
    number_after(line, "95th percentile:")
        .or_else(|| number_after(line, "approx.  95 percentile:"))
        .map(|value| (LATENCY, value))
}
