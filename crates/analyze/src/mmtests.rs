//! MMTests' main, ratio and plain tables for a comparison, and what `compare-mmtests.pl` would print otherwise.
//!
//! The same rows for the same data, without its faults: the direction is each metric's own, what is missing is missing
//! (never "no change"), no iteration is thrown away, and a star comes from a test. Where MMTests' own table would say
//! something else, a note says what.
//!
//! - Main table: one row per statistic and operation, with the change from the baseline, positive being good.
//! - Ratio table: candidate over baseline for each operation, and the geometric mean over them; a metric of the
//!   other direction is inverted first.
//! - Plain tables, without changes: the durations of each benchmark, and the means and maxima of what a monitor
//!   read during it.
//! - Band rule, MMTests' own for a star: two means differ when their bands of ± 1.96 standard deviations do not
//!   touch. The bands do not narrow with more samples, so it only says where its answer differs from ours.
//!
//! Formulas: `bin/lib/MMTests/Stat.pm` and `Summarise.pm` at 638401e (June 2026), restated in `perflab-stats`.

use std::collections::BTreeSet;

use indexmap::IndexMap;
use perflab_stats::{BetterDirection, geometric_mean};

use crate::compare::comparison::{Comparison, SideSummary, VerdictRow};
use crate::mmtests_benchmarks::{
    DURATION_WORKLOAD, MmtestsBenchmark, MmtestsOperation, band_distance, has_star, is_deciding_metric,
    mmtests_benchmarks,
};
use crate::mmtests_notes::{MmtestsNote, monitor_table_difference, operation_labels, table_differences};
use crate::statistic::SampleStatistic;

/// The table of one benchmark.
#[derive(Debug, Clone, PartialEq)]
pub struct MmtestsTable {
    /// The benchmark's name.
    pub benchmark: String,
    /// Names of the sides, the baseline first.
    pub sides: Vec<String>,
    /// Decimals of its values.
    pub decimals: usize,
    /// The rows, by statistic, then by operation.
    pub rows: Vec<MmtestsRow>,
    /// For each operation whether it is marked, and MMTests' distance of the bands, a cell a side.
    pub significant: Vec<MmtestsRow>,
    /// What was left out, and what MMTests itself would print.
    pub notes: Vec<MmtestsNote>,
}

/// One statistic of one operation.
#[derive(Debug, Clone, PartialEq)]
pub struct MmtestsRow {
    /// `Amean`
    pub statistic: String,
    /// `time-4`
    pub operation: String,
    /// The sides, the baseline first; absent where the statistic has no value.
    pub cells: Vec<Option<MmtestsCell>>,
}

/// One side of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MmtestsCell {
    /// In the metric's unit (percent for variations).
    pub value: f64,
    /// Change from the baseline in percent, positive being good; absent where the baseline gives none.
    pub change: Option<f64>,
    /// The change is more than chance: q below the error, on the row of the mean.
    pub star: bool,
}

/// The tables of a comparison. `chosen` replaces the rows that MMTests prints; means and deviations then are what was
/// asked for, whatever the direction.
#[must_use]
pub fn mmtests_tables(comparison: &Comparison, chosen: &[SampleStatistic]) -> Vec<MmtestsTable> {
    let limit = 1.0 - comparison.confidence;
    mmtests_benchmarks(comparison)
        .iter()
        .map(|benchmark| mmtests_table(benchmark, comparison, chosen, limit))
        .collect()
}

fn mmtests_table(
    benchmark: &MmtestsBenchmark,
    comparison: &Comparison,
    chosen: &[SampleStatistic],
    limit: f64,
) -> MmtestsTable {
    let statistics = |better: BetterDirection| {
        if chosen.is_empty() { benchmark.report.kind.statistics(better) } else { chosen.to_vec() }
    };
    let count = statistics(BetterDirection::Lower).len();
    let of = |index: usize, operation: &MmtestsOperation| {
        Some(mmtests_row(operation, *statistics(operation.better).get(index)?, benchmark, limit))
    };
    let row = |index: usize| benchmark.operations.iter().filter_map(move |operation| of(index, operation));
    MmtestsTable {
        benchmark: benchmark.name.clone(),
        sides: std::iter::once(&comparison.baseline).chain(&comparison.candidates).cloned().collect(),
        decimals: table_decimals(benchmark),
        rows: (0..count).flat_map(row).collect(),
        significant: benchmark
            .operations
            .iter()
            .map(|operation| significance_row(operation, limit))
            .collect(),
        notes: table_differences(benchmark, comparison, limit),
    }
}

fn mmtests_row(
    operation: &MmtestsOperation,
    statistic: SampleStatistic,
    benchmark: &MmtestsBenchmark,
    limit: f64,
) -> MmtestsRow {
    let value = |values: &Vec<f64>| {
        let found = statistic.compute(values, operation.better).ok();
        // MMTests prints a deviation of one value as zero; a single value has none.
        found.filter(|value| value.is_finite())
    };
    let values: Vec<Option<f64>> = operation.sides.iter().map(value).collect();
    let base = values.first().copied().flatten();
    let cell = |(side, value): (usize, &Option<f64>)| {
        let value = (*value)?;
        let star = is_mean(statistic) && has_star(operation, side, limit);
        Some(MmtestsCell { value, change: signed_change(value, base, statistic, operation.better), star })
    };
    MmtestsRow {
        statistic: row_statistic_name(statistic, operation.better, benchmark),
        operation: operation.label.clone(),
        cells: values.iter().enumerate().map(cell).collect(),
    }
}

fn row_statistic_name(
    statistic: SampleStatistic,
    better: BetterDirection,
    benchmark: &MmtestsBenchmark,
) -> String {
    if benchmark.report.kind == crate::mmtests_benchmarks::MmtestsTableKind::Singleops && is_mean(statistic) {
        return "Ops".into();
    }
    mmtests_statistic_name(statistic, better)
}

/// The word that MMTests has for a statistic.
fn mmtests_statistic_name(statistic: SampleStatistic, better: BetterDirection) -> String {
    let mean = if better == BetterDirection::Lower { "BAmean" } else { "BHmean" };
    match statistic {
        SampleStatistic::Min => "Min".into(),
        SampleStatistic::Max => "Max".into(),
        SampleStatistic::Mean => "Amean".into(),
        SampleStatistic::Harmonic => "Hmean".into(),
        SampleStatistic::Geometric => "Gmean".into(),
        SampleStatistic::Sd => "Stddev".into(),
        SampleStatistic::HarmonicSd => "HStddev".into(),
        SampleStatistic::Variation => "CoeffVar".into(),
        SampleStatistic::HarmonicVariation => "HCoeffVar".into(),
        SampleStatistic::Best(percent) => format!("{mean}.{percent}"),
        SampleStatistic::BestPercentile(percent) => format!("Pctile.{percent}"),
        other => other.to_string(),
    }
}

fn is_mean(statistic: SampleStatistic) -> bool {
    matches!(statistic, SampleStatistic::Mean | SampleStatistic::Harmonic)
}

/// Spreads are better small, whatever the metric.
fn is_spread(statistic: SampleStatistic) -> bool {
    use SampleStatistic::{HarmonicSd, HarmonicVariation, Mad, Quartiles, Sd, Variation};
    matches!(statistic, Sd | HarmonicSd | Variation | HarmonicVariation | Mad | Quartiles)
}

/// Percent of the baseline, positive being good; nothing from a baseline of zero, unless nothing changed.
fn signed_change(
    value: f64,
    base: Option<f64>,
    statistic: SampleStatistic,
    better: BetterDirection,
) -> Option<f64> {
    let base = base?;
    if value == base {
        return Some(0.0);
    }
    let up = (base > 0.0).then(|| 100.0 * value / base - 100.0)?;
    Some(if better == BetterDirection::Lower || is_spread(statistic) { -up } else { up })
}

fn significance_row(operation: &MmtestsOperation, limit: f64) -> MmtestsRow {
    let cell = |side: usize| {
        let value = f64::from(u8::from(has_star(operation, side, limit)));
        let distance = if side == 0 { Some(0.0) } else { band_distance(operation, side) };
        Some(MmtestsCell { value, change: distance.map(|s| 0.0 - s), star: false })
    };
    MmtestsRow {
        statistic: "Significant".into(),
        operation: operation.label.clone(),
        cells: (0..operation.sides.len()).map(cell).collect(),
    }
}

/// MMTests' decimals; for benchmarks that it does not know, enough to show four digits of the smallest mean.
fn table_decimals(benchmark: &MmtestsBenchmark) -> usize {
    benchmark.report.decimals.unwrap_or_else(|| {
        let means = benchmark.operations.iter().flat_map(|operation| &operation.sides);
        let sizes = means.filter_map(|values| perflab_stats::mean(values).ok()).map(f64::abs);
        let smallest = sizes.filter(|size| *size > 0.0).fold(f64::INFINITY, f64::min);
        if smallest.is_finite() { (3 - smallest.log10().floor() as i32).clamp(2, 9) as usize } else { 2 }
    })
}

/// The ratios of one benchmark.
#[derive(Debug, Clone, PartialEq)]
pub struct MmtestsRatioTable {
    /// The benchmark's name.
    pub benchmark: String,
    /// Names of the sides, the baseline first.
    pub sides: Vec<String>,
    /// Decimals of its values.
    pub decimals: usize,
    /// Which way is good: `Lower` or `Higher`.
    pub direction: &'static str,
    /// One row an operation.
    pub rows: Vec<MmtestsRatioRow>,
    /// Mean, minimum and maximum of the distances of each side; absent where there is none.
    pub distances: Vec<Option<[f64; 3]>>,
    /// Geometric mean of the ratios of each side; absent where no operation has one.
    pub geometric: Vec<Option<f64>>,
    /// What was left out, and what MMTests itself would print.
    pub notes: Vec<MmtestsNote>,
}

/// One operation.
#[derive(Debug, Clone, PartialEq)]
pub struct MmtestsRatioRow {
    /// `time-4`
    pub operation: String,
    /// The sides, the baseline first; absent where there is no ratio.
    pub cells: Vec<Option<MmtestsRatioCell>>,
}

/// One side of an operation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MmtestsRatioCell {
    /// Mean over mean of the baseline.
    pub ratio: f64,
    /// The same as a change in percent, positive being good.
    pub change: f64,
    /// The difference in sums of half-bands; absent where the bands have no width.
    pub distance: Option<f64>,
}

/// The ratio tables of a comparison.
#[must_use]
pub fn mmtests_ratio_tables(comparison: &Comparison) -> Vec<MmtestsRatioTable> {
    mmtests_benchmarks(comparison)
        .into_iter()
        .map(|benchmark| mmtests_ratio_table(&keep_deciding_operations(benchmark), comparison))
        .collect()
}

/// The operations that MMTests' ratios are over.
fn keep_deciding_operations(mut benchmark: MmtestsBenchmark) -> MmtestsBenchmark {
    let name = &benchmark.name;
    if benchmark.operations.iter().any(|operation| is_deciding_metric(name, &operation.metric)) {
        benchmark.operations.retain(|operation| is_deciding_metric(name, &operation.metric));
    }
    benchmark
}

fn mmtests_ratio_table(benchmark: &MmtestsBenchmark, comparison: &Comparison) -> MmtestsRatioTable {
    let main = majority_direction(benchmark);
    let rows: Vec<MmtestsRatioRow> =
        benchmark.operations.iter().map(|operation| mmtests_ratio_row(operation, main)).collect();
    let sides: Vec<String> =
        std::iter::once(&comparison.baseline).chain(&comparison.candidates).cloned().collect();
    let per_side = 0..sides.len();
    MmtestsRatioTable {
        benchmark: benchmark.name.clone(),
        decimals: table_decimals(benchmark),
        direction: if main == BetterDirection::Lower { "Lower" } else { "Higher" },
        distances: per_side.clone().map(|side| band_distance_range(&rows, side)).collect(),
        geometric: per_side.map(|side| geometric_mean_ratio(&rows, side)).collect(),
        notes: ratio_differences(benchmark, main, &rows, &sides),
        rows,
        sides,
    }
}

/// The direction of most operations; MMTests' own where they are split.
fn majority_direction(benchmark: &MmtestsBenchmark) -> BetterDirection {
    let lower =
        benchmark.operations.iter().filter(|operation| operation.better == BetterDirection::Lower).count();
    match (lower * 2).cmp(&benchmark.operations.len()) {
        std::cmp::Ordering::Greater => BetterDirection::Lower,
        std::cmp::Ordering::Less => BetterDirection::Higher,
        std::cmp::Ordering::Equal => benchmark.report.direction.unwrap_or(BetterDirection::Lower),
    }
}

fn mmtests_ratio_row(operation: &MmtestsOperation, main: BetterDirection) -> MmtestsRatioRow {
    let statistic = if operation.better == BetterDirection::Lower {
        SampleStatistic::Mean
    } else {
        SampleStatistic::Harmonic
    };
    let mean =
        |values: &Vec<f64>| statistic.compute(values, operation.better).ok().filter(|mean| *mean > 0.0);
    let means: Vec<Option<f64>> = operation.sides.iter().map(mean).collect();
    let base = means.first().copied().flatten();
    let turned = operation.better != main;
    let cell = |(side, mean): (usize, &Option<f64>)| {
        let (mean, base) = ((*mean)?, base?);
        let ratio = if turned { base / mean } else { mean / base };
        let distance = if side == 0 { Some(0.0) } else { band_distance(operation, side) };
        Some(MmtestsRatioCell {
            ratio,
            change: if main == BetterDirection::Lower {
                100.0 - 100.0 * ratio
            } else {
                100.0 * ratio - 100.0
            },
            distance: distance.map(|s| if turned { 0.0 - s } else { s }),
        })
    };
    MmtestsRatioRow {
        operation: operation.label.clone(),
        cells: means.iter().enumerate().map(cell).collect(),
    }
}

fn cells_of_side(rows: &[MmtestsRatioRow], side: usize) -> impl Iterator<Item = MmtestsRatioCell> {
    rows.iter().filter_map(move |row| row.cells.get(side).copied().flatten())
}

fn band_distance_range(rows: &[MmtestsRatioRow], side: usize) -> Option<[f64; 3]> {
    let known: Vec<f64> = cells_of_side(rows, side).filter_map(|cell| cell.distance).collect();
    let of = |statistic: SampleStatistic| statistic.compute(&known, BetterDirection::Lower).ok();
    Some([of(SampleStatistic::Mean)?, of(SampleStatistic::Min)?, of(SampleStatistic::Max)?])
}

fn geometric_mean_ratio(rows: &[MmtestsRatioRow], side: usize) -> Option<f64> {
    geometric_mean(&cells_of_side(rows, side).map(|cell| cell.ratio).collect::<Vec<_>>()).ok()
}

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
    pub notes: Vec<MmtestsNote>,
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
            table.notes.push(MmtestsNote::MeanDuration { iterations: *most });
        }
    }
    tables.into_iter().map(|(table, _)| table).collect()
}

/// Means and maxima of what a monitor read while each benchmark ran, from a comparison whose samples are
/// [readings](crate::monitor_metric).
#[must_use]
pub fn mmtests_monitor_tables(comparison: &Comparison, monitor: &str) -> Vec<MmtestsPlainTable> {
    let names: BTreeSet<&str> = comparison.rows.iter().map(|row| row.workload.as_str()).collect();
    let repeats = |name: &str| {
        let of = |ending: &&str| name.strip_suffix(ending).is_some_and(|benchmark| names.contains(benchmark));
        name == DURATION_WORKLOAD || OTHER_REPORTS.iter().any(of)
    };
    let rows = comparison.rows.iter().filter(|row| !repeats(&row.workload));
    let requested = [("Amean", SampleStatistic::Mean), ("Max", SampleStatistic::Max)];
    let notes: Vec<MmtestsNote> = monitor_table_difference(monitor).into_iter().collect();
    let found = mmtests_plain_tables(rows, |row| row.workload.clone(), comparison, &requested).into_iter();
    found.map(|(table, _)| MmtestsPlainTable { notes: notes.clone(), ..table }).collect()
}

/// A table a benchmark, each with the most values that a side has in a row.
fn mmtests_plain_tables<'a>(
    rows: impl Iterator<Item = &'a VerdictRow>,
    benchmark: impl Fn(&VerdictRow) -> String,
    comparison: &Comparison,
    requested: &[(&str, SampleStatistic)],
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
        let rows = requested.iter().flat_map(|(title, statistic)| {
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

/// Notes of the ratio table, of which most operations have the direction `main`.
fn ratio_differences(
    benchmark: &MmtestsBenchmark,
    main: BetterDirection,
    rows: &[MmtestsRatioRow],
    sides: &[String],
) -> Vec<MmtestsNote> {
    let turned = operation_labels(benchmark, |operation| operation.better != main);
    let mut notes = Vec::new();
    notes.extend((!turned.is_empty()).then_some(MmtestsNote::TurnedRatios { operations: turned }));
    notes.extend(
        sides.iter().enumerate().filter_map(|(side, name)| ratio_members_difference(rows, side, name)),
    );
    notes
}

fn ratio_members_difference(rows: &[MmtestsRatioRow], side: usize, name: &str) -> Option<MmtestsNote> {
    let is_there = |row: &&MmtestsRatioRow| row.cells.get(side).is_some_and(Option::is_some);
    let missing: Vec<String> =
        rows.iter().filter(|row| !is_there(row)).map(|row| row.operation.clone()).collect();
    (side > 0 && !missing.is_empty()).then(|| MmtestsNote::GeomeanWithout {
        side: name.to_owned(),
        members: rows.len() - missing.len(),
        operations: rows.len(),
        missing,
    })
}

#[cfg(test)]
mod tests {
    use perflab_stats::BetterDirection;

    use super::signed_change;
    use crate::mmtests_benchmarks::{MmtestsReport, MmtestsTableKind, is_deciding_metric, is_unread_metric};
    use crate::statistic::SampleStatistic;

    #[test]
    fn the_longest_beginning_of_a_name_decides() {
        assert_eq!(MmtestsReport::for_benchmark("redis-memtier").kind, MmtestsTableKind::Multiops);
        assert_eq!(MmtestsReport::for_benchmark("redis").kind, MmtestsTableKind::Singleops);
        assert_eq!(MmtestsReport::for_benchmark("sysbenchcpu").direction, Some(BetterDirection::Lower));
        assert_eq!(MmtestsReport::for_benchmark("netperf-tcp-rr").direction, Some(BetterDirection::Higher));
        assert_eq!(MmtestsReport::for_benchmark("my-own").direction, None);
        assert_eq!(
            MmtestsReport::for_benchmark("pgbench-time").direction,
            Some(BetterDirection::Lower),
            "as `-a exectime`"
        );
        assert_eq!(MmtestsReport::for_benchmark("fio-randread-latency").decimals, Some(4), "as `-a latency`");
        assert!(
            is_deciding_metric("redis", "GET-RPS")
                && !is_deciding_metric("redis", "GET-lat99")
                && !is_deciding_metric("stream", "Copy")
        );
        assert!(is_unread_metric("sysbenchcpu", "latency") && !is_unread_metric("sysbenchmutex", "latency"));
    }

    #[test]
    fn a_total_loss_is_no_lack_of_change() {
        let of = |value, base, better| signed_change(value, base, SampleStatistic::Mean, better);
        assert_eq!(of(0.0, Some(100.0), BetterDirection::Higher), Some(-100.0));
        assert_eq!(of(5.0, Some(0.0), BetterDirection::Lower), None);
        assert_eq!(of(0.0, Some(0.0), BetterDirection::Lower), Some(0.0));
        assert_eq!(of(5.0, None, BetterDirection::Lower), None);
        assert_eq!(
            signed_change(2.0, Some(1.0), SampleStatistic::HarmonicSd, BetterDirection::Higher),
            Some(-100.0)
        );
    }
}
