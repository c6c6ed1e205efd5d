//! sysbench of every kind: `sysbench-raw-THREADS-ITERATION` or `benchlog-THREADS-_-ITERATION`. What a log holds is told
//! by its lines: transactions of databases, events of the CPU and thread tests, the latency of the mutex test.

use perflab_model::Direction;

use super::super::lines::Line;
use super::bench::{Bench, Declared, behind, number, used};
use super::folder::{Folder, Log};
use crate::ArchiveError;

const TRANSACTIONS: Declared = ("txn/sec", "trans/s", Direction::Higher);
const EVENTS: Declared = ("events/sec", "events/s", Direction::Higher);
const LATENCY: Declared = ("latency", "ms", Direction::Lower);

pub(super) fn read(folder: &Folder, bench: &mut Bench<'_>) -> Result<(), ArchiveError> {
    for log in folder.logs("sysbench-raw").iter().chain(&folder.logs("benchlog")) {
        if let Some(threads) = log.number(0) {
            one(log, threads, bench)?;
        }
    }
    Ok(())
}

fn one(log: &Log<'_>, threads: &str, bench: &mut Bench<'_>) -> Result<(), ArchiveError> {
    let mutex = bench.name.contains("mutex");
    let mut found: Vec<(Declared, f64)> = Vec::new();
    let took = bench.read(log.path, |_, line| {
        let (metric, value) = value(line)?;
        Some(used(value, |value| found.push((metric, value))))
    })?;
    let case = bench.case(&[("threads", threads)]);
    let decides = |metric: &Declared| (metric.0 == LATENCY.0) == mutex;
    // A log that was appended to holds several executions, each with the same lines.
    let mut execution = None;
    let mut seen: Vec<&str> = Vec::new();
    for (metric, value) in found {
        if seen.contains(&metric.0) || execution.is_none() {
            execution = Some(bench.execution(case));
            seen.clear();
        }
        seen.push(metric.0);
        let id = if decides(&metric) { bench.metric(case, metric) } else { bench.explaining(case, metric) };
        execution.into_iter().for_each(|execution| bench.sample(execution, id, value));
    }
    bench.keep(took);
    Ok(())
}

fn value(line: Line<'_>) -> Option<(Declared, Result<f64, String>)> {
    if line.text.contains("transactions:") && line.text.contains("per sec") {
        let inside = line.text.split_once('(').and_then(|(_, rest)| rest.split_ascii_whitespace().next());
        return Some((TRANSACTIONS, number(inside.unwrap_or(""))));
    }
    if let Some(value) = behind(line, "events per second:") {
        return Some((EVENTS, value));
    }
    behind(line, "95th percentile:")
        .or_else(|| behind(line, "approx.  95 percentile:"))
        .map(|value| (LATENCY, value))
}
