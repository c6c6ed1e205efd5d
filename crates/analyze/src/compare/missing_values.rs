//! The values that failed iterations would have had, at either end: whether a verdict hangs on them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use perflab_model::Direction;

use crate::compare::alignment::{AlignedSide, IterationKey, MetricSamples};
use crate::compare::comparison::{SamplePoint, SampleValues};
use crate::compare::failures::FailureCount;

/// Missing values are put this many times beyond the others. Only their rank counts.
const BEYOND: f64 = 1e6;

/// How often a case failed. Where a run does not tell of its iterations, those with a value are what is known of them.
pub(crate) fn count_failures(
    subject: usize,
    (table, cell): (&AlignedSide, Option<&MetricSamples>),
) -> FailureCount {
    let known = table.iterations.get(&subject);
    let failed = known.map_or(0, |iterations| iterations.failed.len());
    let with_value = cell.map_or(0, |cell| {
        let mut keys: Vec<IterationKey> = cell.points.iter().map(SamplePoint::iteration_key).collect();
        keys.sort_unstable();
        keys.dedup();
        keys.len()
    });
    FailureCount { failed, of: known.map_or(0, |iterations| iterations.count).max(with_value + failed) }
}

/// The same in each boot of each run, by boot and run: a run that tells of its failures alone has iterations with a value, too.
pub(crate) fn count_failures_by_run(
    subject: usize,
    (table, cell): (&AlignedSide, Option<&MetricSamples>),
) -> BTreeMap<(u32, u32), FailureCount> {
    let mut counts = table.iterations.get(&subject).map_or_else(BTreeMap::new, |known| known.by_run.clone());
    let mut keys: Vec<IterationKey> =
        cell.into_iter().flat_map(|cell| cell.points.iter()).map(SamplePoint::iteration_key).collect();
    keys.sort_unstable();
    keys.dedup();
    for of_run in keys.chunk_by(|one, next| (one.0, one.1) == (next.0, next.1)) {
        let Some((run, boot, _)) = of_run.first().copied() else { continue };
        let count = counts.entry((boot, run)).or_default();
        count.of = count.of.max(of_run.len() + count.failed);
    }
    counts
}

/// A cell with the values that failed iterations would have had, at one end.
pub(crate) fn impute_failures<'a>(
    (table, cell): (&AlignedSide, &'a MetricSamples),
    subject: usize,
    value: f64,
) -> Cow<'a, MetricSamples> {
    let Some(iterations) = table.iterations.get(&subject).filter(|one| !one.failed.is_empty()) else {
        return Cow::Borrowed(cell);
    };
    let mut points: Vec<SamplePoint> = cell.points.to_vec();
    let first = points.first().copied();
    points.extend(iterations.failed.iter().filter_map(|(run, boot, iteration)| {
        Some(SamplePoint { value, at: first?.at, run: *run, boot: *boot, iteration: *iteration })
    }));
    points.sort_by_key(SamplePoint::iteration_key);
    Cow::Owned(MetricSamples { points: SampleValues::from(points), ..cell.without_values() })
}

/// Values below and above all of both sides.
pub(crate) fn values_beyond(baseline: &MetricSamples, candidate: &MetricSamples) -> [f64; 2] {
    limits_beyond(baseline.points.iter().chain(candidate.points.iter()).map(|point| point.value))
}

/// Values below and above all of these.
pub(crate) fn limits_beyond(values: impl Iterator<Item = f64>) -> [f64; 2] {
    let widest = |(low, high): (f64, f64), value: f64| (low.min(value), high.max(value));
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), widest);
    // On the scale of ratios values stay above zero.
    if low > 0.0 {
        return [(low / BEYOND).max(f64::MIN_POSITIVE), (high * BEYOND).min(f64::MAX)];
    }
    let span = low.abs().max(high.abs()).max(1.0) * BEYOND;
    [(low - span).max(f64::MIN), (high + span).min(f64::MAX)]
}

/// The bad end, and the good one; without a direction, the upper is bad.
pub(crate) fn bad_end([low, high]: [f64; 2], direction: Direction) -> [f64; 2] {
    if direction == Direction::Higher { [low, high] } else { [high, low] }
}
