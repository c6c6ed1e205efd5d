//! The three benchmark logs that need arithmetic: netperf, pgbench, fio.
//!
//! - netperf: `PROTOCOL-SIZE.N`, one execution each; its unit is the one that its own head names.
//! - pgbench: `pgbench-transactions-CLIENTS.log`, a line per second (or whatever was aggregated). As MMTests does,
//!   the first intervals are warm-up and each four following ones are a value; without that log, the rate that
//!   pgbench printed.
//! - fio: `fio.log`, its terse output, a line per job; and `fio_lat.N.log`, the latency of every I/O.

use std::path::Path;

use indexmap::IndexMap;
use perflab_formats::finite_number::require_finite_number;
use perflab_formats::reading_parser::{LineOutcome, TextLine};
use perflab_model::{Direction, Nanos};

use crate::benchmark_results::{ImportedCaseId, ImportedExecutionId};
use crate::error::ImportError;
use crate::importers::mmtests_log_reader::{BenchmarkLogReader, DeclaredMetric, number_after, outcome_of};
use crate::packed_folder::PackedFolder;

/// What the head calls a unit, and what perflab does.
const UNITS: &[(&str, &str)] = &[
    ("10^6bits/s", "Mbit/s"),
    ("10^3bits/s", "kbit/s"),
    ("10^9bits/s", "Gbit/s"),
    ("10^0bits/s", "bit/s"),
    ("KBytes/s", "KiB/s"),
    ("MBytes/s", "MiB/s"),
    ("GBytes/s", "GiB/s"),
    ("Trans/s", "trans/s"),
    ("per sec", "trans/s"),
];

/// Fields of a line of results at least.
const FIELDS: usize = 5;

const SENT: usize = 6;

const RECEIVED: usize = 4;

/// Beyond this share of what was sent, loss is a result of its own.
const LOSS: f64 = 0.1;

/// What one execution says.
#[derive(Debug, Default)]
struct NetperfOutput {
    unit: Option<&'static str>,
    sent: Option<f64>,
    received: Option<f64>,
}

pub(crate) fn read_netperf(
    folder: &PackedFolder,
    bench: &mut BenchmarkLogReader<'_>,
) -> Result<(), ImportError> {
    let mut units: Vec<&str> = Vec::new();
    for (protocol, size, path) in folder.iter().filter_map(|(name, path)| split_netperf_name(name, path)) {
        let output = read_netperf_file(protocol, size, path, bench)?;
        units.extend(output);
        units.dedup();
    }
    if let (Some(report), 2..) = (bench.report.last_mut(), units.len()) {
        report.add_note(format!("units differ between the logs of this benchmark: {}", units.join(", ")));
    }
    Ok(())
}

/// `TCP_STREAM-64.1`
fn split_netperf_name<'a>(name: &'a str, path: &'a Path) -> Option<(&'a str, &'a str, &'a Path)> {
    let (rest, sample) = name.rsplit_once('.')?;
    let (protocol, size) = rest.rsplit_once('-')?;
    let upper = !protocol.is_empty() && protocol.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    let numbers = sample.parse::<u32>().is_ok() && size.parse::<u64>().is_ok();
    (upper && numbers).then_some((protocol, size, path))
}

fn read_netperf_file(
    protocol: &str,
    size: &str,
    path: &Path,
    bench: &mut BenchmarkLogReader<'_>,
) -> Result<Option<&'static str>, ImportError> {
    let udp = protocol == "UDP_STREAM";
    let mut output = NetperfOutput::default();
    let mut report = bench.read_lines(path, |_, line| output.take_line(line, udp))?;
    let usual = if protocol.ends_with("_RR") { "trans/s" } else { "Mbit/s" };
    if output.unit.is_none() && output.sent.is_some() {
        report.add_note(format!("no head names a unit: taken as {usual}"));
    }
    output.add_samples(&protocol.to_lowercase().replace('_', ""), size, output.unit.unwrap_or(usual), bench);
    bench.keep_report(report);
    Ok(output.sent.and(output.unit))
}

impl NetperfOutput {
    fn take_line(&mut self, line: TextLine<'_>, udp: bool) -> Option<LineOutcome> {
        let unit = UNITS.iter().find(|(theirs, _)| line.text.contains(theirs));
        self.unit = self.unit.or(unit.map(|(_, ours)| *ours));
        let words: Vec<&str> = line.text.split_ascii_whitespace().collect();
        if words.is_empty() || line.text.contains(|c: char| c.is_ascii_alphabetic()) {
            return None;
        }
        let place = match (udp, words.len()) {
            (false, FIELDS..) | (true, SENT) => &mut self.sent,
            (true, RECEIVED) => &mut self.received,
            // The second line of a request/response test repeats the sizes of the other side.
            _ => return None,
        };
        if !line.whole {
            return Some(LineOutcome::Unusable(
                "the line is cut off, so that its last number may lack digits".into(),
            ));
        }
        match require_finite_number(words.last().unwrap_or(&"")) {
            Ok(value) => {
                *place = Some(value);
                Some(LineOutcome::Used)
            }
            Err(reason) => Some(LineOutcome::Unusable(reason)),
        }
    }

    fn add_samples(&self, protocol: &str, size: &str, unit: &str, bench: &mut BenchmarkLogReader<'_>) {
        let Some(sent) = self.sent else { return };
        let case = bench.case_at(&[("size", size)]);
        let execution = bench.next_execution(case);
        let loss = self.received.map(|received| sent - received).filter(|loss| *loss > sent * LOSS);
        let reported = [
            ("send", Some(sent), Direction::Higher),
            ("recv", self.received, Direction::Higher),
            ("loss", loss, Direction::Lower),
        ];
        for (which, value, direction) in reported {
            let Some(value) = value else { continue };
            let metric = bench.metric_named(case, &format!("{protocol}-{which}"), unit, direction, true);
            bench.add_sample(execution, metric, value);
        }
    }
}

const RATE: DeclaredMetric = ("txn", "trans/s", Direction::Higher);

/// Intervals of one value.
const BATCH: u64 = 4;

/// Intervals before the first that counts.
const WARMUP: u64 = 2 * BATCH - 1;

pub(crate) fn read_pgbench(
    folder: &PackedFolder,
    bench: &mut BenchmarkLogReader<'_>,
) -> Result<(), ImportError> {
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
) -> Result<u64, ImportError> {
    let metric = bench.primary_metric(case, RATE);
    let (mut batches, mut given) = (PgbenchBatches::default(), 0);
    let mut report = bench.read_lines(file, |bench, line| {
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
        report.add_note(reason);
    }
    bench.keep_report(report);
    Ok(given)
}

/// `1700000000 1234 …`: since 1970, transactions.
fn parse_pgbench_interval(line: TextLine<'_>) -> Result<(u64, f64), String> {
    let mut words = line.text.split_ascii_whitespace();
    let (Some(at), Some(count), Some(_)) = (words.next(), words.next(), words.next()) else {
        return Err("it is not `TIME TRANSACTIONS LATENCY…`".into());
    };
    let at = at.parse().map_err(|_| format!("`{at}` is no time in seconds"))?;
    let count = count.parse::<u64>().map_err(|_| format!("`{count}` is no number of transactions"))?;
    Ok((at, count as f64))
}

/// `tps = 1234.5 (…)`: without connections being established, where both are printed.
fn read_pgbench_summary(
    file: &Path,
    (case, execution): (ImportedCaseId, ImportedExecutionId),
    bench: &mut BenchmarkLogReader<'_>,
) -> Result<(), ImportError> {
    let metric = bench.primary_metric(case, RATE);
    let mut report = bench.read_lines(file, |bench, line| {
        let excluded = line.text.contains("excluding");
        let value = line.text.starts_with("tps = ").then(|| number_after(line, "tps = "))??;
        (!excluded).then(|| outcome_of(value, |value| bench.add_sample(execution, metric, value)))
    })?;
    report.add_note(
        "there is no log of transactions with enough intervals: the rate of the whole execution is taken",
    );
    bench.keep_report(report);
    Ok(())
}

/// Fields of terse output, version 3.
const NAME: usize = 2;

const ERROR: usize = 4;

/// Direction, KiB transferred, KiB/s over the whole job, and the mean of the bandwidth's samples in KiB/s.
const DIRECTIONS: [(&str, [usize; 3]); 2] = [("read", [5, 6, 44]), ("write", [46, 47, 85])];

const LATENCIES: [&str; 2] = ["latency-read", "latency-write"];

pub(crate) fn read_fio_logs(
    folder: &PackedFolder,
    bench: &mut BenchmarkLogReader<'_>,
) -> Result<(), ImportError> {
    let mut version = None;
    if let Some(file) = folder.file("fio.log") {
        version = read_terse_jobs(file, bench)?;
    }
    // A report of its own, as in MMTests: `-a latency`.
    let case = bench.results.find_or_add_case(&format!("{}-latency", bench.name), IndexMap::new());
    let mut execution = None;
    for log in folder.iter().filter(|(name, _)| name.starts_with("fio_lat.") && name.ends_with(".log")) {
        let execution = *execution.get_or_insert_with(|| bench.next_execution(case));
        read_fio_latencies(log.1, version, (case, execution), bench)?;
    }
    Ok(())
}

/// The jobs of a terse log; gives fio's major version.
fn read_terse_jobs(file: &Path, bench: &mut BenchmarkLogReader<'_>) -> Result<Option<u32>, ImportError> {
    let mut version = None;
    let mut executions: Vec<(ImportedCaseId, ImportedExecutionId)> = Vec::new();
    let report = bench.read_lines(file, |bench, line| {
        let fields: Vec<&str> = line.text.split(';').collect();
        let ["3", program, ..] = fields[..] else { return None };
        version = version.or_else(|| program.strip_prefix("fio-")?.split('.').next()?.parse().ok());
        Some(parse_terse_job(&fields, &mut executions, bench))
    })?;
    bench.keep_report(report);
    Ok(version)
}

fn parse_terse_job(
    fields: &[&str],
    executions: &mut Vec<(ImportedCaseId, ImportedExecutionId)>,
    bench: &mut BenchmarkLogReader<'_>,
) -> LineOutcome {
    let field = |place: usize| fields.get(place).copied().unwrap_or("");
    if field(ERROR) != "0" {
        return LineOutcome::Unusable(format!("job `{}` ended with error {}", field(NAME), field(ERROR)));
    }
    let mut short = Vec::new();
    for (direction, places) in DIRECTIONS {
        let [Ok(amount), Ok(whole), Ok(mean)] = places.map(|place| require_finite_number(field(place)))
        else {
            return LineOutcome::Unusable(format!(
                "it has {} fields and not all of terse version 3",
                fields.len()
            ));
        };
        if amount <= 0.0 {
            continue;
        }
        // A job that ends before the first sample of its bandwidth has a mean of 0, which MMTests takes for its rate.
        let rate = if mean > 0.0 { mean } else { whole };
        short.extend((mean <= 0.0).then_some(direction));
        let case = bench.case_at(&[("job", field(NAME)), ("direction", direction)]);
        let known = executions.iter().find(|(known, _)| *known == case).map(|(_, execution)| *execution);
        let execution = known.unwrap_or_else(|| bench.next_execution(case));
        executions.push((case, execution));
        let metric = bench.primary_metric(case, ("kb/sec", "KiB/s", Direction::Higher));
        bench.add_sample(execution, metric, rate);
    }
    if short.is_empty() {
        return LineOutcome::Used;
    }
    let (name, directions) = (field(NAME), short.join(" and "));
    LineOutcome::Flagged(format!(
        "job `{name}` ended before a sample of its {directions} bandwidth: the rate of the whole job is taken, where MMTests \
         prints 0"
    ))
}

/// `12, 81932, 0, 4096`: time in ms, latency, 0 for a read and 1 for a write, size. Latencies are in ns since fio 3.
fn read_fio_latencies(
    file: &Path,
    version: Option<u32>,
    (case, execution): (ImportedCaseId, ImportedExecutionId),
    bench: &mut BenchmarkLogReader<'_>,
) -> Result<(), ImportError> {
    let unit = if version.is_some_and(|version| version < 3) { "us" } else { "ns" };
    let metrics = LATENCIES.map(|name| {
        let declared: DeclaredMetric = (name, unit, Direction::Lower);
        bench.secondary_metric(case, declared)
    });
    let mut trims = 0_u64;
    let mut report = bench.read_lines(file, |bench, line| {
        let mut fields = line.text.split(',').map(str::trim);
        let (Some(_), Some(latency), Some(direction), Some(_)) =
            (fields.next(), fields.next(), fields.next(), fields.next())
        else {
            return Some(LineOutcome::Unusable("it is not `TIME, LATENCY, WAY, SIZE`".into()));
        };
        let metric = match direction {
            "0" => metrics[0],
            "1" => metrics[1],
            _ => {
                trims += 1;
                return None;
            }
        };
        match require_finite_number(latency) {
            Ok(latency) => bench.add_sample(execution, metric, latency),
            Err(reason) => return Some(LineOutcome::Unusable(reason)),
        }
        Some(LineOutcome::Used)
    })?;
    if version.is_none() {
        report.add_note(
            "no fio.log says which fio wrote it: latencies are taken as ns, which they are since fio 3",
        );
    }
    if trims > 0 {
        report.add_note(format!("{trims} lines are neither of a read nor of a write and are left out"));
    }
    bench.keep_report(report);
    Ok(())
}
