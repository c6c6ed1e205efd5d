//! Owns the ratio table: candidate over baseline for each operation, and the geometric mean over them. It refuses to mix
//! directions (a metric of the other direction is turned round) and to take missing data for "no change".

use perflab_stats::{Better, geometric_mean};

use super::operation::{Benchmark, Operation, benchmarks};
use super::report::decides;
use super::{band, note, table};
use crate::comparison::Comparison;
use crate::statistic::Statistic;

/// The ratios of one benchmark.
#[derive(Debug, Clone, PartialEq)]
pub struct RatioTable {
    /// The benchmark's name.
    pub benchmark: String,
    /// Names of the sides, the baseline first.
    pub sides: Vec<String>,
    /// Decimals of its values.
    pub decimals: usize,
    /// Which way is good: `Lower` or `Higher`.
    pub direction: &'static str,
    /// One row an operation.
    pub rows: Vec<RatioRow>,
    /// Mean, minimum and maximum of the distances of each side; absent where there is none.
    pub distances: Vec<Option<[f64; 3]>>,
    /// Geometric mean of the ratios of each side; absent where no operation has one.
    pub geometric: Vec<Option<f64>>,
    /// What was left out, and what MMTests itself would print.
    pub notes: Vec<String>,
}

/// One operation.
#[derive(Debug, Clone, PartialEq)]
pub struct RatioRow {
    /// `time-4`
    pub operation: String,
    /// The sides, the baseline first; absent where there is no ratio.
    pub cells: Vec<Option<RatioCell>>,
}

/// One side of an operation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RatioCell {
    /// Mean over mean of the baseline.
    pub ratio: f64,
    /// The same as a change in percent, positive being good.
    pub change: f64,
    /// The difference in sums of half-bands; absent where the bands have no width.
    pub distance: Option<f64>,
}

/// The ratio tables of a comparison.
#[must_use]
pub fn ratios(comparison: &Comparison) -> Vec<RatioTable> {
    benchmarks(comparison).into_iter().map(|benchmark| of(&deciding(benchmark), comparison)).collect()
}

/// The operations that MMTests' ratios are over.
fn deciding(mut benchmark: Benchmark) -> Benchmark {
    let name = &benchmark.name;
    if benchmark.operations.iter().any(|operation| decides(name, &operation.metric)) {
        benchmark.operations.retain(|operation| decides(name, &operation.metric));
    }
    benchmark
}

fn of(benchmark: &Benchmark, comparison: &Comparison) -> RatioTable {
    let main = direction(benchmark);
    let rows: Vec<RatioRow> = benchmark.operations.iter().map(|operation| row(operation, main)).collect();
    let sides: Vec<String> =
        std::iter::once(&comparison.baseline).chain(&comparison.candidates).cloned().collect();
    let per_side = 0..sides.len();
    RatioTable {
        benchmark: benchmark.name.clone(),
        decimals: table::decimals(benchmark),
        direction: if main == Better::Lower { "Lower" } else { "Higher" },
        distances: per_side.clone().map(|side| distances(&rows, side)).collect(),
        geometric: per_side.map(|side| geometric(&rows, side)).collect(),
        notes: note::of_ratios(benchmark, main, &rows, &sides),
        rows,
        sides,
    }
}

/// The direction of most operations; MMTests' own where they are split.
fn direction(benchmark: &Benchmark) -> Better {
    let lower = benchmark.operations.iter().filter(|operation| operation.better == Better::Lower).count();
    match (lower * 2).cmp(&benchmark.operations.len()) {
        std::cmp::Ordering::Greater => Better::Lower,
        std::cmp::Ordering::Less => Better::Higher,
        std::cmp::Ordering::Equal => benchmark.report.direction.unwrap_or(Better::Lower),
    }
}

fn row(operation: &Operation, main: Better) -> RatioRow {
    let statistic = if operation.better == Better::Lower { Statistic::Mean } else { Statistic::Harmonic };
    let mean = |values: &Vec<f64>| statistic.of(values, operation.better).ok().filter(|mean| *mean > 0.0);
    let means: Vec<Option<f64>> = operation.sides.iter().map(mean).collect();
    let base = means.first().copied().flatten();
    let turned = operation.better != main;
    let cell = |(side, mean): (usize, &Option<f64>)| {
        let (mean, base) = ((*mean)?, base?);
        let ratio = if turned { base / mean } else { mean / base };
        let distance = if side == 0 { Some(0.0) } else { band::distance(operation, side) };
        Some(RatioCell {
            ratio,
            change: if main == Better::Lower { 100.0 - 100.0 * ratio } else { 100.0 * ratio - 100.0 },
            distance: distance.map(|s| if turned { 0.0 - s } else { s }),
        })
    };
    RatioRow { operation: operation.label.clone(), cells: means.iter().enumerate().map(cell).collect() }
}

fn cells(rows: &[RatioRow], side: usize) -> impl Iterator<Item = RatioCell> {
    rows.iter().filter_map(move |row| row.cells.get(side).copied().flatten())
}

fn distances(rows: &[RatioRow], side: usize) -> Option<[f64; 3]> {
    let known: Vec<f64> = cells(rows, side).filter_map(|cell| cell.distance).collect();
    let of = |statistic: Statistic| statistic.of(&known, Better::Lower).ok();
    Some([of(Statistic::Mean)?, of(Statistic::Min)?, of(Statistic::Max)?])
}

fn geometric(rows: &[RatioRow], side: usize) -> Option<f64> {
    geometric_mean(&cells(rows, side).map(|cell| cell.ratio).collect::<Vec<_>>()).ok()
}
