//! fio: `fio.log`, its terse output, a line a job; and `fio_lat.N.log`, the latency of every I/O.

use std::path::Path;

use indexmap::IndexMap;
use perflab_model::Direction;

use super::super::results::{ImportedCaseId, ImportedExecutionId};
use super::super::took::LineOutcome;
use super::bench::{BenchmarkLogReader, DeclaredMetric, parse_finite_number};
use super::folder::PackedFolder;
use crate::ArchiveError;

/// Fields of terse output, version 3.
const NAME: usize = 2;
const ERROR: usize = 4;
/// Which way, KiB transferred, KiB/s over the whole job, and the mean of the bandwidth's samples in KiB/s.
const WAYS: [(&str, [usize; 3]); 2] = [("read", [5, 6, 44]), ("write", [46, 47, 85])];
const LATENCIES: [&str; 2] = ["latency-read", "latency-write"];

pub(super) fn read_fio_logs(
    folder: &PackedFolder,
    bench: &mut BenchmarkLogReader<'_>,
) -> Result<(), ArchiveError> {
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
fn read_terse_jobs(file: &Path, bench: &mut BenchmarkLogReader<'_>) -> Result<Option<u32>, ArchiveError> {
    let mut version = None;
    let mut executions: Vec<(ImportedCaseId, ImportedExecutionId)> = Vec::new();
    let took = bench.read_lines(file, |bench, line| {
        let fields: Vec<&str> = line.text.split(';').collect();
        let ["3", program, ..] = fields[..] else { return None };
        version = version.or_else(|| program.strip_prefix("fio-")?.split('.').next()?.parse().ok());
        Some(parse_terse_job(&fields, &mut executions, bench))
    })?;
    bench.keep_report(took);
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
    for (way, places) in WAYS {
        let [Ok(amount), Ok(whole), Ok(mean)] = places.map(|place| parse_finite_number(field(place))) else {
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
        short.extend((mean <= 0.0).then_some(way));
        let case = bench.case_at(&[("job", field(NAME)), ("way", way)]);
        let known = executions.iter().find(|(known, _)| *known == case).map(|(_, execution)| *execution);
        let execution = known.unwrap_or_else(|| bench.next_execution(case));
        executions.push((case, execution));
        let metric = bench.primary_metric(case, ("kb/sec", "KiB/s", Direction::Higher));
        bench.add_sample(execution, metric, rate);
    }
    if short.is_empty() {
        return LineOutcome::Used;
    }
    let (name, ways) = (field(NAME), short.join(" and "));
    LineOutcome::Flagged(format!(
        "job `{name}` ended before a sample of its {ways} bandwidth: the rate of the whole job is taken, where MMTests \
         prints 0"
    ))
}

/// `12, 81932, 0, 4096`: time in ms, latency, 0 for a read and 1 for a write, size. Latencies are in ns since fio 3.
fn read_fio_latencies(
    file: &Path,
    version: Option<u32>,
    (case, execution): (ImportedCaseId, ImportedExecutionId),
    bench: &mut BenchmarkLogReader<'_>,
) -> Result<(), ArchiveError> {
    let unit = if version.is_some_and(|version| version < 3) { "us" } else { "ns" };
    let metrics = LATENCIES.map(|name| {
        let declared: DeclaredMetric = (name, unit, Direction::Lower);
        bench.secondary_metric(case, declared)
    });
    let mut trims = 0_u64;
    let mut took = bench.read_lines(file, |bench, line| {
        let mut fields = line.text.split(',').map(str::trim);
        let (Some(_), Some(latency), Some(way), Some(_)) =
            (fields.next(), fields.next(), fields.next(), fields.next())
        else {
            return Some(LineOutcome::Unusable("it is not `TIME, LATENCY, WAY, SIZE`".into()));
        };
        let metric = match way {
            "0" => metrics[0],
            "1" => metrics[1],
            _ => {
                trims += 1;
                return None;
            }
        };
        match parse_finite_number(latency) {
            Ok(latency) => bench.add_sample(execution, metric, latency),
            Err(reason) => return Some(LineOutcome::Unusable(reason)),
        }
        Some(LineOutcome::Used)
    })?;
    if version.is_none() {
        took.add_note(
            "no fio.log says which fio wrote it: latencies are taken as ns, which they are since fio 3",
        );
    }
    if trims > 0 {
        took.add_note(format!("{trims} lines are neither of a read nor of a write and are left out"));
    }
    bench.keep_report(took);
    Ok(())
}
