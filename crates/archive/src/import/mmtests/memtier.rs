//! memtier_benchmark against Redis: `benchlog-CLIENTS-ITERATION`, of which the line of totals counts, in the columns that its head
//! names (percentiles of the latency came between mean and bandwidth).

use perflab_model::Direction;

use super::super::took::Read;
use super::bench::{Bench, Declared, number};
use super::folder::Folder;
use crate::ArchiveError;

/// What its head calls a column, and the metric.
const COLUMNS: &[(&str, Declared)] = &[
    ("Ops/sec", ("ops/sec", "ops/s", Direction::Higher)),
    ("Hits/sec", ("hits/sec", "ops/s", Direction::Higher)),
    ("Misses/sec", ("misses/sec", "ops/s", Direction::Higher)),
    ("Latency", ("latency", "ms", Direction::Lower)),
    ("KB/sec", ("kb/sec", "KiB/s", Direction::Higher)),
];

pub(super) fn read(folder: &Folder, bench: &mut Bench<'_>) -> Result<(), ArchiveError> {
    for log in folder.logs("benchlog") {
        let Some(clients) = log.number(0) else { continue };
        let (mut head, mut found) = (Vec::new(), Vec::new());
        let took = bench.read(log.path, |_, line| {
            let mut words = line.text.split_ascii_whitespace();
            match words.next()? {
                "Type" => head = columns(line.text),
                "Totals" if !line.whole => return Some(Read::Unusable("the line is cut off".into())),
                "Totals" => {
                    let values: Vec<&str> = words.collect();
                    return Some(totals(&head, &values, &mut found));
                }
                _ => {}
            }
            None
        })?;
        if !found.is_empty() {
            let case = bench.case(&[("clients", clients)]);
            let execution = bench.execution(case);
            for (declared, value) in found {
                let primary = declared.0 == "ops/sec";
                let id =
                    if primary { bench.metric(case, declared) } else { bench.explaining(case, declared) };
                bench.sample(execution, id, value);
            }
        }
        bench.keep(took);
    }
    Ok(())
}

/// The names of the columns behind the first; `Avg. Latency` and `p50 Latency` are one column each.
fn columns(head: &str) -> Vec<String> {
    let mut columns: Vec<String> = Vec::new();
    let mut before = None;
    for word in head.split_ascii_whitespace().skip(1) {
        match (word, before.take()) {
            ("Latency", Some(which)) if which != "Avg." => columns.push(format!("{which} Latency")),
            (word, _) if word == "Avg." || word.starts_with('p') => before = Some(word),
            (word, _) => columns.push(word.into()),
        }
    }
    columns
}

fn totals(head: &[String], values: &[&str], found: &mut Vec<(Declared, f64)>) -> Read {
    if head.len() != values.len() {
        return Read::Unusable(format!("it has {} values and its head {}", values.len(), head.len()));
    }
    for (column, value) in head.iter().zip(values) {
        let Some((_, declared)) = COLUMNS.iter().find(|(theirs, _)| theirs == column) else { continue };
        match number(value) {
            Ok(value) => found.push((*declared, value)),
            Err(_) if *value == "---" => {}
            Err(reason) => return Read::Unusable(reason),
        }
    }
    Read::Used
}

#[cfg(test)]
mod tests {
    #[test]
    fn columns_are_those_of_the_head() {
        let old = "Type         Ops/sec     Hits/sec   Misses/sec      Latency       KB/sec ";
        assert_eq!(super::columns(old), ["Ops/sec", "Hits/sec", "Misses/sec", "Latency", "KB/sec"]);
        let new = "Type   Ops/sec Hits/sec Misses/sec Avg. Latency p50 Latency p99.9 Latency KB/sec";
        let names =
            ["Ops/sec", "Hits/sec", "Misses/sec", "Latency", "p50 Latency", "p99.9 Latency", "KB/sec"];
        assert_eq!(super::columns(new), names);
        let (head, mut found) = (super::columns(new), Vec::new());
        let values = ["52011.41", "---", "47278.84", "3.84", "3.7", "9.8", "2089.4"];
        assert_eq!(super::totals(&head, &values, &mut found), super::Read::Used);
        let told: Vec<(&str, f64)> = found.iter().map(|((name, ..), value)| (*name, *value)).collect();
        assert_eq!(
            told,
            [("ops/sec", 52011.41), ("misses/sec", 47278.84), ("latency", 3.84), ("kb/sec", 2089.4)]
        );
    }
}
