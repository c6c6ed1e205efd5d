//! Owns the main table: one row a statistic and operation, with the change from the baseline, positive being good. It
//! refuses numbers for what is not there.

use perflab_stats::Better;

use super::operation::{Benchmark, Operation, benchmarks};
use super::{band, note};
use crate::comparison::Comparison;
use crate::statistic::Statistic;

/// The table of one benchmark.
#[derive(Debug, Clone, PartialEq)]
pub struct StatTable {
    /// The benchmark's name.
    pub benchmark: String,
    /// Names of the sides, the baseline first.
    pub sides: Vec<String>,
    /// Decimals of its values.
    pub decimals: usize,
    /// The rows, by statistic, then by operation.
    pub rows: Vec<StatRow>,
    /// For each operation whether it is marked, and MMTests' distance of the bands, a cell a side.
    pub significant: Vec<StatRow>,
    /// What was left out, and what MMTests itself would print.
    pub notes: Vec<String>,
}

/// One statistic of one operation.
#[derive(Debug, Clone, PartialEq)]
pub struct StatRow {
    /// `Amean`
    pub statistic: String,
    /// `time-4`
    pub operation: String,
    /// The sides, the baseline first; absent where the statistic has no value.
    pub cells: Vec<Option<StatCell>>,
}

/// One side of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StatCell {
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
pub fn tables(comparison: &Comparison, chosen: &[Statistic]) -> Vec<StatTable> {
    let limit = 1.0 - comparison.confidence;
    benchmarks(comparison).iter().map(|benchmark| table(benchmark, comparison, chosen, limit)).collect()
}

fn table(benchmark: &Benchmark, comparison: &Comparison, chosen: &[Statistic], limit: f64) -> StatTable {
    let statistics = |better: Better| {
        if chosen.is_empty() { benchmark.report.kind.statistics(better) } else { chosen.to_vec() }
    };
    let count = statistics(Better::Lower).len();
    let of = |index: usize, operation: &Operation| {
        Some(stat_row(operation, *statistics(operation.better).get(index)?, benchmark, limit))
    };
    let row = |index: usize| benchmark.operations.iter().filter_map(move |operation| of(index, operation));
    StatTable {
        benchmark: benchmark.name.clone(),
        sides: std::iter::once(&comparison.baseline).chain(&comparison.candidates).cloned().collect(),
        decimals: decimals(benchmark),
        rows: (0..count).flat_map(row).collect(),
        significant: benchmark.operations.iter().map(|operation| significant(operation, limit)).collect(),
        notes: note::of_table(benchmark, comparison, limit),
    }
}

fn stat_row(operation: &Operation, statistic: Statistic, benchmark: &Benchmark, limit: f64) -> StatRow {
    let value = |values: &Vec<f64>| {
        let found = statistic.of(values, operation.better).ok();
        // MMTests prints a deviation of one value as zero; a single value has none.
        found.filter(|value| value.is_finite())
    };
    let values: Vec<Option<f64>> = operation.sides.iter().map(value).collect();
    let base = values.first().copied().flatten();
    let cell = |(side, value): (usize, &Option<f64>)| {
        let value = (*value)?;
        let star = is_mean(statistic) && is_star(operation, side, limit);
        Some(StatCell { value, change: change(value, base, statistic, operation.better), star })
    };
    StatRow {
        statistic: name(statistic, operation.better, benchmark),
        operation: operation.label.clone(),
        cells: values.iter().enumerate().map(cell).collect(),
    }
}

fn name(statistic: Statistic, better: Better, benchmark: &Benchmark) -> String {
    if benchmark.report.kind == super::report::Kind::Singleops && is_mean(statistic) {
        return "Ops".into();
    }
    stat_name(statistic, better)
}

/// The word that MMTests has for a statistic.
pub(super) fn stat_name(statistic: Statistic, better: Better) -> String {
    let mean = if better == Better::Lower { "BAmean" } else { "BHmean" };
    match statistic {
        Statistic::Min => "Min".into(),
        Statistic::Max => "Max".into(),
        Statistic::Mean => "Amean".into(),
        Statistic::Harmonic => "Hmean".into(),
        Statistic::Geometric => "Gmean".into(),
        Statistic::Sd => "Stddev".into(),
        Statistic::HarmonicSd => "HStddev".into(),
        Statistic::Variation => "CoeffVar".into(),
        Statistic::HarmonicVariation => "HCoeffVar".into(),
        Statistic::Best(percent) => format!("{mean}.{percent}"),
        Statistic::BestPercentile(percent) => format!("Pctile.{percent}"),
        other => other.to_string(),
    }
}

fn is_mean(statistic: Statistic) -> bool {
    matches!(statistic, Statistic::Mean | Statistic::Harmonic)
}

/// Spreads are better small, whatever the metric.
fn is_spread(statistic: Statistic) -> bool {
    use Statistic::{HarmonicSd, HarmonicVariation, Mad, Quartiles, Sd, Variation};
    matches!(statistic, Sd | HarmonicSd | Variation | HarmonicVariation | Mad | Quartiles)
}

/// Percent of the baseline, positive being good; nothing from a baseline of zero, unless nothing changed.
pub(super) fn change(value: f64, base: Option<f64>, statistic: Statistic, better: Better) -> Option<f64> {
    let base = base?;
    if value == base {
        return Some(0.0);
    }
    let up = (base > 0.0).then(|| 100.0 * value / base - 100.0)?;
    Some(if better == Better::Lower || is_spread(statistic) { -up } else { up })
}

pub(super) fn is_star(operation: &Operation, side: usize, limit: f64) -> bool {
    operation.q.get(side).copied().flatten().is_some_and(|q| q < limit)
}

fn significant(operation: &Operation, limit: f64) -> StatRow {
    let cell = |side: usize| {
        let value = f64::from(u8::from(is_star(operation, side, limit)));
        let distance = if side == 0 { Some(0.0) } else { band::distance(operation, side) };
        Some(StatCell { value, change: distance.map(|s| 0.0 - s), star: false })
    };
    StatRow {
        statistic: "Significant".into(),
        operation: operation.label.clone(),
        cells: (0..operation.sides.len()).map(cell).collect(),
    }
}

/// MMTests' decimals; for benchmarks that it does not know, enough to show four digits of the smallest mean.
pub(super) fn decimals(benchmark: &Benchmark) -> usize {
    benchmark.report.decimals.unwrap_or_else(|| {
        let means = benchmark.operations.iter().flat_map(|operation| &operation.sides);
        let sizes = means.filter_map(|values| perflab_stats::mean(values).ok()).map(f64::abs);
        let smallest = sizes.filter(|size| *size > 0.0).fold(f64::INFINITY, f64::min);
        if smallest.is_finite() { (3 - smallest.log10().floor() as i32).clamp(2, 9) as usize } else { 2 }
    })
}
