//! Owns the main table: one row a statistic and operation, with the change from the baseline, positive being good. It
//! refuses numbers for what is not there.

use perflab_stats::BetterDirection;

use super::operation::{MmtestsBenchmark, MmtestsOperation, mmtests_benchmarks};
use super::{band, note};
use crate::comparison::Comparison;
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
    pub notes: Vec<String>,
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
        notes: note::table_differences(benchmark, comparison, limit),
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
    if benchmark.report.kind == super::report::MmtestsTableKind::Singleops && is_mean(statistic) {
        return "Ops".into();
    }
    mmtests_statistic_name(statistic, better)
}

/// The word that MMTests has for a statistic.
pub(super) fn mmtests_statistic_name(statistic: SampleStatistic, better: BetterDirection) -> String {
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
pub(super) fn signed_change(
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

pub(super) fn has_star(operation: &MmtestsOperation, side: usize, limit: f64) -> bool {
    operation.q.get(side).copied().flatten().is_some_and(|q| q < limit)
}

fn significance_row(operation: &MmtestsOperation, limit: f64) -> MmtestsRow {
    let cell = |side: usize| {
        let value = f64::from(u8::from(has_star(operation, side, limit)));
        let distance = if side == 0 { Some(0.0) } else { band::band_distance(operation, side) };
        Some(MmtestsCell { value, change: distance.map(|s| 0.0 - s), star: false })
    };
    MmtestsRow {
        statistic: "Significant".into(),
        operation: operation.label.clone(),
        cells: (0..operation.sides.len()).map(cell).collect(),
    }
}

/// MMTests' decimals; for benchmarks that it does not know, enough to show four digits of the smallest mean.
pub(super) fn table_decimals(benchmark: &MmtestsBenchmark) -> usize {
    benchmark.report.decimals.unwrap_or_else(|| {
        let means = benchmark.operations.iter().flat_map(|operation| &operation.sides);
        let sizes = means.filter_map(|values| perflab_stats::mean(values).ok()).map(f64::abs);
        let smallest = sizes.filter(|size| *size > 0.0).fold(f64::INFINITY, f64::min);
        if smallest.is_finite() { (3 - smallest.log10().floor() as i32).clamp(2, 9) as usize } else { 2 }
    })
}
