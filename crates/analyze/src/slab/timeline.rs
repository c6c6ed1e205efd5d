//! Owns usage over time: of everything, of one cache, or stacked by cache. It refuses to smooth: one point a tick.

use perflab_model::Nanos;
use serde::Serialize;

use super::error::SlabError;
use super::mean::Unweighted;
use super::phase::Phase;
use super::recording::Recording;
use super::usage::Usage;

/// Usage at every tick.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Timeline {
    /// What it is of: null for all caches.
    pub cache: Option<String>,
    /// The names that share these slabs; empty for all caches.
    pub members: Vec<String>,
    /// One a tick of the run.
    pub points: Vec<Point>,
    /// Iterations, as marks.
    pub phases: Vec<Phase>,
}

/// One tick.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Point {
    /// CLOCK_MONOTONIC.
    pub at: Nanos,
    /// Bytes, waste and ratios of sums.
    pub usage: Usage,
    /// Mean of the rows' efficiencies, each row alike; null without a row that has slabs.
    pub unweighted: Option<f64>,
    /// Rows in the sums.
    pub rows: usize,
    /// Of these, rows with a mark of doubt.
    pub flagged: usize,
}

/// Slab bytes of the largest caches over time, and of all others together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stack {
    /// Ticks, CLOCK_MONOTONIC.
    pub at: Vec<Nanos>,
    /// Largest at its peak first.
    pub layers: Vec<Layer>,
    /// S of all other caches at each tick, bytes.
    pub others: Vec<u64>,
    /// Iterations, as marks.
    pub phases: Vec<Phase>,
}

/// One cache of a [`Stack`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Layer {
    /// Its label.
    pub name: String,
    /// S at each tick, bytes.
    pub bytes: Vec<u64>,
}

/// Usage over time of all caches, or of those called `cache` (a name, a label, or any name of a merged group).
///
/// # Errors
/// No cache of that name.
pub fn timeline(recording: &Recording, cache: Option<&str>) -> Result<Timeline, SlabError> {
    let wanted = cache.map(|name| recording.find(name)).transpose()?;
    let known = wanted.iter().flatten().filter_map(|number| recording.caches().get(*number));
    let members = known.flat_map(|cache| cache.members()).collect();
    let points = points(recording, wanted.as_deref());
    Ok(Timeline { cache: cache.map(Into::into), members, points, phases: recording.phases().to_vec() })
}

fn points(recording: &Recording, wanted: Option<&[usize]>) -> Vec<Point> {
    let empty = |at: &Nanos| {
        let point = Point { at: *at, usage: Usage::default(), unweighted: None, rows: 0, flagged: 0 };
        (point, Unweighted::default())
    };
    let mut points: Vec<(Point, Unweighted)> = recording.ticks().iter().map(empty).collect();
    let is_wanted = |cache: usize| wanted.is_none_or(|wanted| wanted.contains(&cache));
    for row in recording.rows().iter().filter(|row| is_wanted(row.cache)) {
        let (usage, flagged) = (row.usage(), usize::from(row.flags.any()));
        for (point, unweighted) in points.get_mut(row.ticks()).unwrap_or_default() {
            point.usage.add(&usage);
            point.rows += 1;
            point.flagged += flagged;
            unweighted.add(usage.overall(), 1);
        }
    }
    let finished =
        |(point, unweighted): (Point, Unweighted)| Point { unweighted: unweighted.mean(), ..point };
    points.into_iter().map(finished).collect()
}

/// Slab bytes of the `top` caches with the largest peaks, and of the others together.
#[must_use]
pub fn stack(recording: &Recording, top: usize) -> Stack {
    let bytes = bytes_of_caches(recording);
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
        Some(Layer { name, bytes: bytes.get(*number)?.clone() })
    };
    let layers = numbers.iter().filter_map(layer).collect();
    Stack { at: recording.ticks().to_vec(), layers, others, phases: recording.phases().to_vec() }
}

/// S of each cache at each tick, 0 where it was not there; bytes.
pub(super) fn bytes_of_caches(recording: &Recording) -> Vec<Vec<u64>> {
    let mut bytes = vec![vec![0_u64; recording.ticks().len()]; recording.caches().len()];
    for row in recording.rows() {
        let places = bytes.get_mut(row.cache).and_then(|bytes| bytes.get_mut(row.ticks()));
        places.unwrap_or_default().fill(row.slabs.saturating_mul(row.bytes_per_slab));
    }
    bytes
}
