//! Owns what a step looks like, and the stretches between steps. It refuses series that are too long to search.

use crate::StatsError;
use crate::sample::check_at_least;

/// A step in a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChangePoint {
    /// The first value after the step, from 0.
    pub index: usize,
    /// How surprising the step is, were there none.
    pub p: f64,
    /// Mean of the segment before, back to the step before it, in the unit of the values.
    pub before: f64,
    /// Mean of the segment after, up to the next step, in the unit of the values.
    pub after: f64,
}

/// Most values of a series: the search takes time with their square.
const MOST_VALUES: usize = 10_000;

/// Passes a series that can be searched with segments of at least `shortest` values.
pub(super) fn check_searchable(series: &[f64], shortest: usize) -> Result<&[f64], StatsError> {
    if shortest == 0 {
        return Err(StatsError::OutOfRange { name: "shortest segment", value: 0.0, range: "[1, infinity)" });
    }
    let series = check_at_least(series, shortest.saturating_mul(2))?;
    let got = series.len();
    if got > MOST_VALUES {
        return Err(StatsError::TooMany { limit: MOST_VALUES * MOST_VALUES, got: got.saturating_mul(got) });
    }
    // A sum of so many distances must stay a number.
    let widest = series.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
    if widest > f64::MAX / 1e10 { Err(StatsError::Overflow) } else { Ok(series) }
}

/// The stretches between steps.
pub(super) fn segment_ranges(steps: &[usize], length: usize) -> Vec<std::ops::Range<usize>> {
    let starts = std::iter::once(0).chain(steps.iter().copied());
    starts.zip(steps.iter().copied().chain([length])).map(|(start, end)| start..end).collect()
}

pub(super) fn segment_mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
