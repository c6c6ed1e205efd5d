//! dbench: what its output holds, whole (`dbench-CLIENTS.log`, 2020) or split into `benchlog-loadfile-CLIENTS`,
//! `benchlog-tput-CLIENTS` and `benchlog-op-CLIENTS` (current). One execution for each number of clients.

use std::path::Path;

use perflab_model::Direction;

use super::super::results::{CaseId, ExecutionId};
use super::super::took::Read;
use super::bench::{Bench, Declared, number};
use super::folder::Folder;
use crate::ArchiveError;

const LOADFILE: Declared = ("loadfile", "ms", Direction::Lower);
const THROUGHPUT: Declared = ("tput", "MB/s", Direction::Higher);
/// More milliseconds than this are a negative number that wrapped around.
const WRAPPED: f64 = (1_u64 << 31) as f64;

pub(super) fn read(folder: &Folder, bench: &mut Bench<'_>) -> Result<(), ArchiveError> {
    let mut done: Vec<(&str, ExecutionId, CaseId)> = Vec::new();
    for log in folder.logs("benchlog") {
        if let (["loadfile" | "tput" | "op", _], Some(clients)) = (&log.keys[..], log.number(1)) {
            let known = done.iter().find(|(known, ..)| *known == clients).copied();
            let (clients, execution, case) = known.unwrap_or_else(|| begin(clients, bench));
            if known.is_none() {
                done.push((clients, execution, case));
            }
            whole(log.path, (case, execution), bench)?;
        }
    }
    for log in folder.logs("dbench") {
        let Some(clients) = log.number(0).filter(|clients| done.iter().all(|(known, ..)| known != clients))
        else {
            continue;
        };
        let (_, execution, case) = begin(clients, bench);
        whole(log.path, (case, execution), bench)?;
    }
    Ok(())
}

fn begin<'a>(clients: &'a str, bench: &mut Bench<'_>) -> (&'a str, ExecutionId, CaseId) {
    let case = bench.case(&[("clients", clients)]);
    (clients, bench.execution(case), case)
}

/// What a line says, if it is one of results.
enum Said<'a> {
    Loadfile(f64),
    Throughput(f64),
    Operation(&'a str, f64),
}

fn whole(
    path: &Path,
    (case, execution): (CaseId, ExecutionId),
    bench: &mut Bench<'_>,
) -> Result<(), ArchiveError> {
    let took = bench.read(path, |bench, line| {
        let words: Vec<&str> = line.text.split_ascii_whitespace().collect();
        let said = match said(&words)? {
            _ if !line.whole => return Some(Read::Unusable("the line is cut off".into())),
            Err(reason) => return Some(Read::Unusable(reason)),
            Ok(said) => said,
        };
        let (metric, value) = match said {
            Said::Loadfile(value) => (bench.metric(case, LOADFILE), value),
            Said::Throughput(value) => (bench.metric(case, THROUGHPUT), value),
            Said::Operation(name, value) => {
                (bench.named(case, &format!("op-{name}"), "ms", Direction::Lower, false), value)
            }
        };
        bench.sample(execution, metric, value);
        Some(Read::Used)
    })?;
    bench.keep(took);
    Ok(())
}

fn said<'a>(words: &[&'a str]) -> Option<Result<Said<'a>, String>> {
    match words {
        [_, "completed", "in", time, ..] => Some(number(time).and_then(|time| {
            let sound = (0.0..=WRAPPED).contains(&time);
            if sound {
                Ok(Said::Loadfile(time))
            } else {
                Err(format!("{time} ms are a time that wrapped around"))
            }
        })),
        [_, _, rate, "MB/sec", "execute", ..] => Some(number(rate).map(Said::Throughput)),
        [name, count, average, most] if name.starts_with(|c: char| c.is_ascii_uppercase()) => {
            let numbers = number(count).and_then(|_| number(most)).and_then(|_| number(average));
            // The head of this table has four words too, none of them a number.
            (count.starts_with(|c: char| c.is_ascii_digit()))
                .then(|| numbers.map(|average| Said::Operation(name, average)))
        }
        _ => None,
    }
}
