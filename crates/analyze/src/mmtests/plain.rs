//! Owns the tables that MMTests prints without changes: the durations of each benchmark, and the means and maxima of what a
//! monitor read. It refuses to pick the shortest of several iterations and readings that are of no benchmark's time;
//! notes say what MMTests itself would print.

use std::collections::BTreeSet;

use indexmap::IndexMap;
use perflab_stats::BetterDirection;

use crate::comparison::{Comparison, SideSummary, VerdictRow};
use crate::statistic::SampleStatistic;

/// The workload under which imports keep durations; its parameter `of` names the benchmark.
pub(super) const DURATION_WORKLOAD: &str = "duration";
/// What follows the name of a benchmark in workloads that imports make of its other reports.
const OTHER_REPORTS: [&str; 2] = ["-time", "-latency"];

/// One benchmark.
#[derive(Debug, Clone, PartialEq)]
pub struct MmtestsPlainTable {
    /// The benchmark's name.
    pub benchmark: String,
    /// Names of the sides, the baseline first.
    pub sides: Vec<String>,
    /// The rows, by statistic.
    pub rows: Vec<MmtestsPlainRow>,
    /// What MMTests itself would print.
    pub notes: Vec<String>,
}

/// One statistic of one figure.
#[derive(Debug, Clone, PartialEq)]
pub struct MmtestsPlainRow {
    /// `Duration`, `Amean` or `Max`.
    pub statistic: String,
    /// `User`, `vda-w_await`
    pub operation: String,
    /// Each side, the baseline first; absent where not known.
    pub cells: Vec<Option<f64>>,
}

/// The durations of a comparison in seconds, a table a benchmark.
#[must_use]
pub fn mmtests_duration_tables(comparison: &Comparison) -> Vec<MmtestsPlainTable> {
    let rows = comparison.rows.iter().filter(|row| row.workload == DURATION_WORKLOAD);
    let benchmark = |row: &VerdictRow| row.point.values().cloned().collect::<Vec<_>>().join("-");
    let mut tables =
        mmtests_plain_tables(rows, benchmark, comparison, &[("Duration", SampleStatistic::Mean)]);
    for (table, most) in &mut tables {
        if *most > 1 {
            table.notes.push(format!("the mean of {most} iterations; MMTests would print the shortest"));
        }
    }
    tables.into_iter().map(|(table, _)| table).collect()
}

/// Means and maxima of what a monitor read while each benchmark ran, from a comparison whose samples are
/// [readings](crate::monitor::readings).
#[must_use]
pub fn mmtests_monitor_tables(comparison: &Comparison, monitor: &str) -> Vec<MmtestsPlainTable> {
    let names: BTreeSet<&str> = comparison.rows.iter().map(|row| row.workload.as_str()).collect();
    let repeats = |name: &str| {
        let of = |ending: &&str| name.strip_suffix(ending).is_some_and(|benchmark| names.contains(benchmark));
        name == DURATION_WORKLOAD || OTHER_REPORTS.iter().any(of)
    };
    let rows = comparison.rows.iter().filter(|row| !repeats(&row.workload));
    let wanted = [("Amean", SampleStatistic::Mean), ("Max", SampleStatistic::Max)];
    let notes: Vec<String> = monitor_table_difference(monitor).map(String::from).into_iter().collect();
    let found = mmtests_plain_tables(rows, |row| row.workload.clone(), comparison, &wanted).into_iter();
    found.map(|(table, _)| MmtestsPlainTable { notes: notes.clone(), ..table }).collect()
}

/// Where MMTests' own table of a monitor differs.
fn monitor_table_difference(monitor: &str) -> Option<&'static str> {
    Some(match monitor {
        "vmstat" => {
            "MMTests prints one column (--sub-heading), counts the first row too, which is of the time since the machine was started, and prints memory in MiB; here it is bytes"
        }
        "iostat" => {
            "MMTests reads the columns of sysstat before 12: with newer ones it prints w_await for the queue size, among others"
        }
        "mpstat" => "MMTests prints nothing of mpstat but pictures by node",
        "perf-time-stat" => "MMTests calls the clock of the CPU `msec`",
        "proc-vmstat" => {
            "MMTests prints one column (--sub-heading), as growth from reading to reading also where it is a level (nr_…), with a first growth of 0 and without the last reading"
        }
        _ => return None,
    })
}

/// A table a benchmark, each with the most values that a side has in a row.
fn mmtests_plain_tables<'a>(
    rows: impl Iterator<Item = &'a VerdictRow>,
    benchmark: impl Fn(&VerdictRow) -> String,
    comparison: &Comparison,
    wanted: &[(&str, SampleStatistic)],
) -> Vec<(MmtestsPlainTable, usize)> {
    let sides: Vec<String> =
        std::iter::once(&comparison.baseline).chain(&comparison.candidates).cloned().collect();
    let mut found: IndexMap<String, IndexMap<&str, Vec<Option<&SideSummary>>>> = IndexMap::new();
    for row in rows {
        let figures = found.entry(benchmark(row)).or_default();
        let cells = figures.entry(row.metric.as_str()).or_insert_with(|| vec![None; sides.len()]);
        let side = sides.iter().skip(1).position(|name| *name == row.candidate_name).map_or(0, |at| at + 1);
        for (side, summary) in [(0, &row.baseline), (side, &row.candidate)] {
            if let (Some(cell), Some(summary)) = (cells.get_mut(side), summary) {
                *cell = Some(summary);
            }
        }
    }
    let table = |(benchmark, figures): (String, IndexMap<&str, Vec<Option<&SideSummary>>>)| {
        let most = figures.values().flatten().flatten().map(|side| side.n).max().unwrap_or(0);
        let rows = wanted.iter().flat_map(|(title, statistic)| {
            figures.iter().map(move |(name, cells)| MmtestsPlainRow {
                statistic: (*title).into(),
                operation: (*name).into(),
                cells: cells.iter().map(|side| side_statistic(*statistic, (*side)?)).collect(),
            })
        });
        (MmtestsPlainTable { benchmark, sides: sides.clone(), rows: rows.collect(), notes: Vec::new() }, most)
    };
    found.into_iter().map(table).collect()
}

fn side_statistic(statistic: SampleStatistic, side: &SideSummary) -> Option<f64> {
    let values: Vec<f64> = side.values.iter().map(|point| point.value).collect();
    statistic.compute(&values, BetterDirection::Lower).ok()
}
