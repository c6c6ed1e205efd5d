//! dbench: what its output holds, whole (`dbench-CLIENTS.log`, 2020) or split into `benchlog-loadfile-CLIENTS`,
//! `benchlog-tput-CLIENTS` and `benchlog-op-CLIENTS` (current). One execution for each number of clients.

use std::path::Path;

use perflab_model::Direction;

use super::super::results::{ImportedCaseId, ImportedExecutionId};
use super::super::took::LineOutcome;
use super::bench::{BenchmarkLogReader, DeclaredMetric, parse_finite_number};
use super::folder::PackedFolder;
use crate::ArchiveError;

const LOADFILE: DeclaredMetric = ("loadfile", "ms", Direction::Lower);
const THROUGHPUT: DeclaredMetric = ("tput", "MB/s", Direction::Higher);
/// More milliseconds than this are a negative number that wrapped around.
const WRAPPED: f64 = (1_u64 << 31) as f64;

pub(super) fn read_dbench(
    folder: &PackedFolder,
    bench: &mut BenchmarkLogReader<'_>,
) -> Result<(), ArchiveError> {
    let mut done: Vec<(&str, ImportedExecutionId, ImportedCaseId)> = Vec::new();
    for log in folder.numbered_logs("benchlog") {
        if let (["loadfile" | "tput" | "op", _], Some(clients)) = (&log.keys[..], log.number_at(1)) {
            let known = done.iter().find(|(known, ..)| *known == clients).copied();
            let (clients, execution, case) = known.unwrap_or_else(|| begin_dbench_execution(clients, bench));
            if known.is_none() {
                done.push((clients, execution, case));
            }
            read_dbench_report(log.path, (case, execution), bench)?;
        }
    }
    for log in folder.numbered_logs("dbench") {
        let Some(clients) =
            log.number_at(0).filter(|clients| done.iter().all(|(known, ..)| known != clients))
        else {
            continue;
        };
        let (_, execution, case) = begin_dbench_execution(clients, bench);
        read_dbench_report(log.path, (case, execution), bench)?;
    }
    Ok(())
}

fn begin_dbench_execution<'a>(
    clients: &'a str,
    bench: &mut BenchmarkLogReader<'_>,
) -> (&'a str, ImportedExecutionId, ImportedCaseId) {
    let case = bench.case_at(&[("clients", clients)]);
    (clients, bench.next_execution(case), case)
}

/// What a line says, if it is one of results.
enum DbenchLine<'a> {
    Loadfile(f64),
    Throughput(f64),
    Operation(&'a str, f64),
}

fn read_dbench_report(
    path: &Path,
    (case, execution): (ImportedCaseId, ImportedExecutionId),
    bench: &mut BenchmarkLogReader<'_>,
) -> Result<(), ArchiveError> {
    let took = bench.read_lines(path, |bench, line| {
        let words: Vec<&str> = line.text.split_ascii_whitespace().collect();
        let said = match parse_dbench_line(&words)? {
            _ if !line.whole => return Some(LineOutcome::Unusable("the line is cut off".into())),
            Err(reason) => return Some(LineOutcome::Unusable(reason)),
            Ok(said) => said,
        };
        let (metric, value) = match said {
            DbenchLine::Loadfile(value) => (bench.primary_metric(case, LOADFILE), value),
            DbenchLine::Throughput(value) => (bench.primary_metric(case, THROUGHPUT), value),
            DbenchLine::Operation(name, value) => {
                (bench.metric_named(case, &format!("op-{name}"), "ms", Direction::Lower, false), value)
            }
        };
        bench.add_sample(execution, metric, value);
        Some(LineOutcome::Used)
    })?;
    bench.keep_report(took);
    Ok(())
}

fn parse_dbench_line<'a>(words: &[&'a str]) -> Option<Result<DbenchLine<'a>, String>> {
    match words {
        [_, "completed", "in", time, ..] => Some(parse_finite_number(time).and_then(|time| {
            let sound = (0.0..=WRAPPED).contains(&time);
            if sound {
                Ok(DbenchLine::Loadfile(time))
            } else {
                Err(format!("{time} ms are a time that wrapped around"))
            }
        })),
        [_, _, rate, "MB/sec", "execute", ..] => Some(parse_finite_number(rate).map(DbenchLine::Throughput)),
        [name, count, average, most] if name.starts_with(|c: char| c.is_ascii_uppercase()) => {
            let numbers = parse_finite_number(count)
                .and_then(|_| parse_finite_number(most))
                .and_then(|_| parse_finite_number(average));
            // The head of this table has four words too, none of them a number.
            (count.starts_with(|c: char| c.is_ascii_digit()))
                .then(|| numbers.map(|average| DbenchLine::Operation(name, average)))
        }
        _ => None,
    }
}
