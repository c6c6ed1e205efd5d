//! Owns how fast slab bytes grow: a robust slope with its interval. It refuses more points than a sort of all pairs can
//! bear: ticks are batched first.

use perflab_model::Nanos;
use perflab_stats::StatsError;
use serde::Serialize;

use super::error::SlabError;

/// Batches of ticks that a slope is made of, at most: 120 give 7,140 pairs.
const MOST_BATCHES: usize = 120;

/// Bytes per second (Theil and Sen; see [`perflab_stats::theil_sen`]).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct GrowthSlope {
    /// Median of the slopes between all pairs of ticks.
    pub bytes_per_second: f64,
    /// Lower limit; null where there are too few independent ticks for one.
    pub low: Option<f64>,
    /// Upper limit.
    pub high: Option<f64>,
    /// The level that the limits really have.
    pub level: Option<f64>,
}

impl GrowthSlope {
    /// Whether the interval lies above zero.
    #[must_use]
    pub fn is_growing(&self) -> bool {
        self.low.is_some_and(|low| low > 0.0)
    }
}

/// Of batches of ticks, each with its median time and bytes.
pub(super) fn growth_slope(
    ticks: &[Nanos],
    bytes: &[u64],
    confidence: f64,
) -> Result<Option<GrowthSlope>, SlabError> {
    let first = ticks.first().copied().unwrap_or_default();
    if ticks.last().copied().unwrap_or_default() <= first {
        return Ok(None);
    }
    let batch = ticks.len().div_ceil(MOST_BATCHES).max(1);
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for (ticks, bytes) in ticks.chunks(batch).zip(bytes.chunks(batch)) {
        let seconds: Vec<f64> = ticks.iter().map(|at| at.since(first).seconds()).collect();
        let bytes: Vec<f64> = bytes.iter().map(|bytes| *bytes as f64).collect();
        x.push(perflab_stats::median(&seconds).map_err(statistic_error)?);
        y.push(perflab_stats::median(&bytes).map_err(statistic_error)?);
    }
    let found = match perflab_stats::theil_sen(&x, &y, confidence) {
        Err(perflab_stats::StatsError::NoSpread | perflab_stats::StatsError::TooFew { .. }) => {
            return Ok(None);
        }
        found => found.map_err(statistic_error)?,
    };
    Ok(Some(GrowthSlope {
        bytes_per_second: found.value,
        low: found.interval.map(|interval| interval.low),
        high: found.interval.map(|interval| interval.high),
        level: found.interval.map(|interval| interval.level),
    }))
}

fn statistic_error(source: StatsError) -> SlabError {
    SlabError::Statistic { subject: "slope".into(), source }
}
