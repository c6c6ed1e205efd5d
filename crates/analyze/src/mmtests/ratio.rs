//! Owns the ratio table: candidate over baseline for each operation, and the geometric mean over them. It refuses to mix
//! directions (a metric of the other direction is turned round) and to take missing data for "no change".

use perflab_stats::{BetterDirection, geometric_mean};

use super::operation::{MmtestsBenchmark, MmtestsOperation, mmtests_benchmarks};
use super::report::is_deciding_metric;
use super::{band, note, table};
use crate::comparison::Comparison;
use crate::statistic::SampleStatistic;

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
    pub notes: Vec<String>,
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
        decimals: table::table_decimals(benchmark),
        direction: if main == BetterDirection::Lower { "Lower" } else { "Higher" },
        distances: per_side.clone().map(|side| band_distance_range(&rows, side)).collect(),
        geometric: per_side.map(|side| geometric_mean_ratio(&rows, side)).collect(),
        notes: note::ratio_differences(benchmark, main, &rows, &sides),
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
        let distance = if side == 0 { Some(0.0) } else { band::band_distance(operation, side) };
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
