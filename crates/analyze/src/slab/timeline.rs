//! Usage at every tick: of everything, of one cache, or stacked by cache. One point per tick, nothing smoothed.

use perflab_model::Nanos;
use serde::Serialize;

use super::recording::SlabRecording;
use super::usage::SlabUsage;
use crate::slab::recording::{IterationSpan, SlabError};
use crate::slab::usage::UnweightedMean;

/// Usage at every tick.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UsageTimeline {
    /// What it is of: null for all caches.
    pub cache: Option<String>,
    /// The names that share these slabs; empty for all caches.
    pub members: Vec<String>,
    /// One a tick of the run.
    pub points: Vec<UsagePoint>,
    /// Iterations, as marks.
    pub phases: Vec<IterationSpan>,
}

/// One tick.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct UsagePoint {
    /// CLOCK_MONOTONIC.
    pub at: Nanos,
    /// Bytes, waste and ratios of sums.
    pub usage: SlabUsage,
    /// Mean of the rows' efficiencies, each row alike; null without a row that has slabs.
    pub unweighted: Option<f64>,
    /// Rows in the sums.
    pub rows: usize,
    /// Of these, rows with a mark of doubt.
    pub flagged: usize,
}

/// Slab bytes of the largest caches over time, and of all others together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CacheStack {
    /// Ticks, CLOCK_MONOTONIC.
    pub at: Vec<Nanos>,
    /// Largest at its peak first.
    pub layers: Vec<CacheLayer>,
    /// S of all other caches at each tick, bytes.
    pub others: Vec<u64>,
    /// Iterations, as marks.
    pub phases: Vec<IterationSpan>,
}

/// One cache of a [`CacheStack`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CacheLayer {
    /// Its label.
    pub name: String,
    /// S at each tick, bytes.
    pub bytes: Vec<u64>,
}

/// Usage over time of all caches, or of those called `cache` (a name, a label, or any name of a merged group).
///
/// # Errors
/// No cache of that name.
pub fn usage_timeline(recording: &SlabRecording, cache: Option<&str>) -> Result<UsageTimeline, SlabError> {
    let requested = cache.map(|name| recording.find_caches(name)).transpose()?;
    let known = requested.iter().flatten().filter_map(|number| recording.caches().get(*number));
    let members = known.flat_map(|cache| cache.members()).collect();
    let points = usage_points(recording, requested.as_deref());
    Ok(UsageTimeline {
        cache: cache.map(Into::into),
        members,
        points,
        phases: recording.iteration_spans().to_vec(),
    })
}

fn usage_points(recording: &SlabRecording, requested: Option<&[usize]>) -> Vec<UsagePoint> {
    let empty = |at: &Nanos| {
        let point =
            UsagePoint { at: *at, usage: SlabUsage::default(), unweighted: None, rows: 0, flagged: 0 };
        (point, UnweightedMean::default())
    };
    let mut points: Vec<(UsagePoint, UnweightedMean)> = recording.ticks().iter().map(empty).collect();
    let is_wanted = |cache: usize| requested.is_none_or(|requested| requested.contains(&cache));
    for row in recording.rows().iter().filter(|row| is_wanted(row.cache)) {
        let (usage, flagged) = (row.usage(), usize::from(row.flags.is_doubtful()));
        for (point, unweighted) in points.get_mut(row.ticks()).unwrap_or_default() {
            point.usage.add(&usage);
            point.rows += 1;
            point.flagged += flagged;
            unweighted.add(usage.overall(), 1);
        }
    }
    let finished = |(point, unweighted): (UsagePoint, UnweightedMean)| UsagePoint {
        unweighted: unweighted.mean(),
        ..point
    };
    points.into_iter().map(finished).collect()
}

/// Slab bytes of the `top` caches with the largest peaks, and of the others together.
#[must_use]
pub fn cache_stack(recording: &SlabRecording, top: usize) -> CacheStack {
    let bytes = bytes_by_cache(recording);
    let peak = |number: &usize| bytes.get(*number).and_then(|bytes| bytes.iter().max()).copied().unwrap_or(0);
    let mut numbers: Vec<usize> = (0..bytes.len()).collect();
    numbers.sort_by_key(|number| std::cmp::Reverse(peak(number)));
    let rest = numbers.split_off(top.min(numbers.len()));
    let mut others = vec![0_u64; recording.ticks().len()];
    for bytes in rest.iter().filter_map(|number| bytes.get(*number)) {
        others.iter_mut().zip(bytes).for_each(|(sum, value)| *sum = sum.saturating_add(*value));
    }
    let layer = |number: &usize| {
        let name = recording.caches().get(*number)?.label();
        Some(CacheLayer { name, bytes: bytes.get(*number)?.clone() })
    };
    let layers = numbers.iter().filter_map(layer).collect();
    CacheStack {
        at: recording.ticks().to_vec(),
        layers,
        others,
        phases: recording.iteration_spans().to_vec(),
    }
}

/// S of each cache at each tick, 0 where it was not there; bytes.
pub(crate) fn bytes_by_cache(recording: &SlabRecording) -> Vec<Vec<u64>> {
    let mut bytes = vec![vec![0_u64; recording.ticks().len()]; recording.caches().len()];
    for row in recording.rows() {
        let places = bytes.get_mut(row.cache).and_then(|bytes| bytes.get_mut(row.ticks()));
        places.unwrap_or_default().fill(row.slabs.saturating_mul(row.bytes_per_slab));
    }
    bytes
}
