//! pgbench: `pgbench-transactions-CLIENTS.log`, a line a second (or whatever was aggregated). As MMTests does, the first
//! intervals are warm-up and each four following ones are a value; without that log, the rate that pgbench printed.

use std::path::Path;

use perflab_model::{Direction, Nanos};

use super::super::lines::LogLine;
use super::super::results::{ImportedCaseId, ImportedExecutionId};
use super::super::took::LineOutcome;
use super::bench::{BenchmarkLogReader, DeclaredMetric, number_after, outcome_of};
use super::folder::PackedFolder;
use crate::ArchiveError;

const RATE: DeclaredMetric = ("txn", "trans/s", Direction::Higher);
/// Intervals of one value.
const BATCH: u64 = 4;
/// Intervals before the first that counts.
const WARMUP: u64 = 2 * BATCH - 1;

pub(super) fn read_pgbench(
    folder: &PackedFolder,
    bench: &mut BenchmarkLogReader<'_>,
) -> Result<(), ArchiveError> {
    for log in folder.numbered_logs("pgbench") {
        let Some(clients) = log.number_at(0).filter(|_| log.keys.len() == 1) else { continue };
        let case = bench.case_at(&[("clients", clients)]);
        let execution = bench.next_execution(case);
        let own = match folder.file(&format!("pgbench-transactions-{clients}.log")) {
            Some(file) => read_pgbench_transactions(file, (case, execution), bench)?,
            None => 0,
        };
        if own == 0 {
            read_pgbench_summary(log.path, (case, execution), bench)?;
        }
    }
    // A transaction log may have outlived what pgbench printed.
    for log in folder.numbered_logs("pgbench-transactions") {
        let Some(clients) = log.number_at(0) else { continue };
        if folder.file(&format!("pgbench-{clients}.log")).is_none() {
            let case = bench.case_at(&[("clients", clients)]);
            let execution = bench.next_execution(case);
            read_pgbench_transactions(log.path, (case, execution), bench)?;
        }
    }
    Ok(())
}

/// The intervals of a log that were read so far.
#[derive(Default)]
struct PgbenchBatches {
    read: u64,
    in_batch: u64,
    sum: f64,
    since: Option<u64>,
    whole: bool,
}

impl PgbenchBatches {
    /// Takes an interval that began at `at`; gives a batch's rate with its times once it is whole.
    fn push(&mut self, at: u64, count: f64) -> Option<(f64, u64, u64)> {
        self.read += 1;
        let since = *self.since.get_or_insert(at);
        if self.read <= WARMUP {
            return None;
        }
        (self.in_batch, self.sum) = (self.in_batch + 1, self.sum + count);
        if self.in_batch < BATCH {
            return None;
        }
        let rate = self.sum / at.checked_sub(since)? as f64;
        let first = !std::mem::replace(&mut self.whole, true);
        (self.in_batch, self.sum, self.since) = (0, 0.0, Some(at));
        (!first && rate.is_finite()).then_some((rate, since, at))
    }
}

/// Gives how many values came of it.
fn read_pgbench_transactions(
    file: &Path,
    (case, execution): (ImportedCaseId, ImportedExecutionId),
    bench: &mut BenchmarkLogReader<'_>,
) -> Result<u64, ArchiveError> {
    let metric = bench.primary_metric(case, RATE);
    let (mut batches, mut given) = (PgbenchBatches::default(), 0);
    let mut took = bench.read_lines(file, |bench, line| {
        let (at, count) = match parse_pgbench_interval(line) {
            Ok(interval) => interval,
            Err(reason) => return Some(LineOutcome::Unusable(reason)),
        };
        if let Some((rate, since, to)) = batches.push(at, count) {
            given += 1;
            let nanos = |seconds: u64| Nanos(seconds.saturating_mul(1_000_000_000));
            bench.add_sample_at(execution, metric, rate, (nanos(since), nanos(to)));
        }
        Some(LineOutcome::Used)
    })?;
    if given == 0 {
        let reason = format!(
            "{} intervals are too few: {} are warm-up and {BATCH} make a value",
            batches.read,
            WARMUP + BATCH
        );
        took.add_note(reason);
    }
    bench.keep_report(took);
    Ok(given)
}

/// `1700000000 1234 …`: since 1970, transactions.
fn parse_pgbench_interval(line: LogLine<'_>) -> Result<(u64, f64), String> {
    let mut words = line.text.split_ascii_whitespace();
    let (Some(at), Some(count), Some(_)) = (words.next(), words.next(), words.next()) else {
        return Err("it is not `TIME TRANSACTIONS LATENCY…`".into());
    };
    let at = at.parse().map_err(|_| format!("`{at}` is no time in seconds"))?;
    let count = count.parse::<u64>().map_err(|_| format!("`{count}` is no number of transactions"))?;
    Ok((at, count as f64))
}

/// `tps = 1234.5 (…)`: without connections being established, where both are told.
fn read_pgbench_summary(
    file: &Path,
    (case, execution): (ImportedCaseId, ImportedExecutionId),
    bench: &mut BenchmarkLogReader<'_>,
) -> Result<(), ArchiveError> {
    let metric = bench.primary_metric(case, RATE);
    let mut took = bench.read_lines(file, |bench, line| {
        let excluded = line.text.contains("excluding");
        let value = line.text.starts_with("tps = ").then(|| number_after(line, "tps = "))??;
        (!excluded).then(|| outcome_of(value, |value| bench.add_sample(execution, metric, value)))
    })?;
    took.add_note(
        "there is no log of transactions with enough intervals: the rate of the whole execution is taken",
    );
    bench.keep_report(took);
    Ok(())
}
