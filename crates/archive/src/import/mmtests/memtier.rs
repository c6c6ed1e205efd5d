//! memtier_benchmark against Redis: `benchlog-CLIENTS-ITERATION`, of which the line of totals counts, in the columns that its head
//! names (percentiles of the latency came between mean and bandwidth).

use perflab_model::Direction;

use super::super::took::LineOutcome;
use super::bench::{BenchmarkLogReader, DeclaredMetric, parse_finite_number};
use super::folder::PackedFolder;
use crate::ArchiveError;

/// What its head calls a column, and the metric.
const COLUMNS: &[(&str, DeclaredMetric)] = &[
    ("Ops/sec", ("ops/sec", "ops/s", Direction::Higher)),
    ("Hits/sec", ("hits/sec", "ops/s", Direction::Higher)),
    ("Misses/sec", ("misses/sec", "ops/s", Direction::Higher)),
    ("Latency", ("latency", "ms", Direction::Lower)),
    ("KB/sec", ("kb/sec", "KiB/s", Direction::Higher)),
];

pub(super) fn read_memtier(
    folder: &PackedFolder,
    bench: &mut BenchmarkLogReader<'_>,
) -> Result<(), ArchiveError> {
    for log in folder.numbered_logs("benchlog") {
        let Some(clients) = log.number_at(0) else { continue };
        let (mut head, mut found) = (Vec::new(), Vec::new());
        let took = bench.read_lines(log.path, |_, line| {
            let mut words = line.text.split_ascii_whitespace();
            match words.next()? {
                "Type" => head = parse_memtier_head(line.text),
                "Totals" if !line.whole => return Some(LineOutcome::Unusable("the line is cut off".into())),
                "Totals" => {
                    let values: Vec<&str> = words.collect();
                    return Some(parse_memtier_totals(&head, &values, &mut found));
                }
                _ => {}
            }
            None
        })?;
        if !found.is_empty() {
            let case = bench.case_at(&[("clients", clients)]);
            let execution = bench.next_execution(case);
            for (declared, value) in found {
                let primary = declared.0 == "ops/sec";
                let id = if primary {
                    bench.primary_metric(case, declared)
                } else {
                    bench.secondary_metric(case, declared)
                };
                bench.add_sample(execution, id, value);
            }
        }
        bench.keep_report(took);
    }
    Ok(())
}

/// The names of the columns behind the first; `Avg. Latency` and `p50 Latency` are one column each.
fn parse_memtier_head(head: &str) -> Vec<String> {
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

fn parse_memtier_totals(
    head: &[String],
    values: &[&str],
    found: &mut Vec<(DeclaredMetric, f64)>,
) -> LineOutcome {
    if head.len() != values.len() {
        return LineOutcome::Unusable(format!("it has {} values and its head {}", values.len(), head.len()));
    }
    for (column, value) in head.iter().zip(values) {
        let Some((_, declared)) = COLUMNS.iter().find(|(theirs, _)| theirs == column) else { continue };
        match parse_finite_number(value) {
            Ok(value) => found.push((*declared, value)),
            Err(_) if *value == "---" => {}
            Err(reason) => return LineOutcome::Unusable(reason),
        }
    }
    LineOutcome::Used
}

#[cfg(test)]
mod tests {
    #[test]
    fn columns_are_those_of_the_head() {
        let old = "Type         Ops/sec     Hits/sec   Misses/sec      Latency       KB/sec ";
        assert_eq!(
            super::parse_memtier_head(old),
            ["Ops/sec", "Hits/sec", "Misses/sec", "Latency", "KB/sec"]
        );
        let new = "Type   Ops/sec Hits/sec Misses/sec Avg. Latency p50 Latency p99.9 Latency KB/sec";
        let names =
            ["Ops/sec", "Hits/sec", "Misses/sec", "Latency", "p50 Latency", "p99.9 Latency", "KB/sec"];
        assert_eq!(super::parse_memtier_head(new), names);
        let (head, mut found) = (super::parse_memtier_head(new), Vec::new());
        let values = ["52011.41", "---", "47278.84", "3.84", "3.7", "9.8", "2089.4"];
        assert_eq!(super::parse_memtier_totals(&head, &values, &mut found), super::LineOutcome::Used);
        let told: Vec<(&str, f64)> = found.iter().map(|((name, ..), value)| (*name, *value)).collect();
        assert_eq!(
            told,
            [("ops/sec", 52011.41), ("misses/sec", 47278.84), ("latency", 3.84), ("kb/sec", 2089.4)]
        );
    }
}
