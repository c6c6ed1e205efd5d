//! Fewer points than were measured, extremes kept; and how much a track varies.
//!
//! Of each pixel the first, the lowest, the highest and the last point stay, never a mean, so that a spike of one tick
//! is drawn as high as it was.

use crate::chart::scene::ScenePoint;

/// The points that matter, in their order; ascending in `x`.
pub(crate) fn keep_pixel_extremes(points: &[ScenePoint]) -> Vec<ScenePoint> {
    let mut kept = Vec::new();
    for pixel in points.chunk_by(|a, b| a.x.floor() == b.x.floor()) {
        if pixel.len() <= 4 {
            kept.extend_from_slice(pixel);
            continue;
        }
        let by_height = |(_, a): &(usize, &ScenePoint), (_, b): &(usize, &ScenePoint)| a.y.total_cmp(&b.y);
        let highest = pixel.iter().enumerate().min_by(by_height).map_or(0, |(index, _)| index);
        let lowest = pixel.iter().enumerate().max_by(by_height).map_or(0, |(index, _)| index);
        let mut indices = [0, highest.min(lowest), highest.max(lowest), pixel.len() - 1].to_vec();
        indices.dedup();
        kept.extend(indices.into_iter().filter_map(|index| pixel.get(index)));
    }
    kept
}

/// Seconds between each tick and the one before; none for the first.
pub(crate) fn tick_lengths(at: &[i64]) -> impl Iterator<Item = Option<f64>> {
    let between = at.windows(2).map(|pair| match pair {
        [before, after] if after > before => Some((after - before) as f64 / 1e6),
        _ => None,
    });
    std::iter::once(None).chain(between)
}

/// Growth per second.
pub(crate) fn counter_rates(at: &[i64], growth: &[Option<i64>]) -> Vec<Option<f64>> {
    growth.iter().zip(tick_lengths(at)).map(|(more, step)| Some((*more)? as f64 / step?)).collect()
}

/// How many ticks share two points, so that there are `limit` points at most.
#[must_use]
pub fn bucket_size(ticks: usize, limit: usize) -> usize {
    ticks.div_ceil((limit / 2).max(1)).max(1)
}

/// The times that [`bucket_extremes`] of as many ticks belong to: first and last of each bucket.
pub(crate) fn bucket_times(at: &[i64], limit: usize) -> Vec<i64> {
    let ends = |bucket: &[i64]| bucket.first().into_iter().chain(bucket.last()).copied().collect::<Vec<_>>();
    at.chunks(bucket_size(at.len(), limit)).flat_map(ends).collect()
}

/// Smallest and largest value of each bucket, in the order in which they came.
pub(crate) fn bucket_extremes(values: &[Option<f64>], limit: usize) -> Vec<Option<f64>> {
    values.chunks(bucket_size(values.len(), limit)).flat_map(extreme_pair).collect()
}

fn extreme_pair(bucket: &[Option<f64>]) -> [Option<f64>; 2] {
    let value = |at: usize| bucket.get(at).copied().flatten();
    find_extremes(bucket.iter().copied()).map_or([None, None], |found| found.map(value))
}

/// Where the smallest and the largest of these values stand, in the order in which they came; nothing without a value.
pub fn find_extremes(values: impl Iterator<Item = Option<f64>> + Clone) -> Option<[usize; 2]> {
    let present = || values.clone().enumerate().filter_map(|(at, value)| Some((at, value?)));
    let (low, _) = present().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let (high, _) = present().max_by(|a, b| a.1.total_cmp(&b.1))?;
    Some(if low <= high { [low, high] } else { [high, low] })
}

/// How much values vary: the share of their size that the middle nine tenths span, weighted by the
/// logarithm of that span, so that 200,000 to 400,000 pages come before 0 to 1.
pub(crate) fn variability(values: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.filter(|n| n.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    let at =
        |share: f64| sorted.get((sorted.len().saturating_sub(1) as f64 * share).round() as usize).copied();
    let (Some(low), Some(high)) = (at(0.05), at(0.95)) else { return 0.0 };
    let size = low.abs().max(high.abs());
    let lively = if size > 0.0 { (high - low) / size * (1.0 + high - low).log10() } else { 0.0 };
    (lively * 1e3).round() / 1e3
}
