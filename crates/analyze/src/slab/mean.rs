//! Owns time: usage integrated over ticks, and what it was on average. It refuses means of ratios, but for the one
//! that people compare ours with, which is called unweighted.

use serde::Serialize;

use super::ratio::ExactRatio;
use super::usage::{AlignmentRatio, SlabUsage};

/// Usage summed over ticks, each with the time that it stands for (see
/// [`Recording::weights`](super::SlabRecording::tick_weights)).
///
/// Serialised as [`MeanUsage`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(into = "MeanUsage")]
pub struct UsageIntegral {
    /// sum of usage * weight; bytes times half nanoseconds.
    pub usage: SlabUsage,
    /// sum of the weights of all ticks of the run, also of those without the cache: it then held 0 bytes.
    pub weight: u128,
}

impl UsageIntegral {
    /// Adds what was used at a tick of that weight; the weight itself is counted once a tick, by the owner.
    pub(super) fn add(&mut self, usage: &SlabUsage, weight: u128) {
        self.usage.add_weighted(usage, weight);
    }

    fn mean_of(&self, sum: u128) -> f64 {
        if self.weight == 0 { 0.0 } else { sum as f64 / self.weight as f64 }
    }

    fn signed_mean_of(&self, sum: i128) -> f64 {
        if self.weight == 0 { 0.0 } else { sum as f64 / self.weight as f64 }
    }

    /// Mean of S over time, bytes.
    #[must_use]
    pub fn slab_bytes(&self) -> f64 {
        self.mean_of(self.usage.slab_bytes)
    }

    /// Mean of S - U over time, bytes.
    #[must_use]
    pub fn wasted_bytes(&self) -> f64 {
        self.signed_mean_of(self.usage.wasted_bytes())
    }

    /// sum U*dt / sum S*dt.
    #[must_use]
    pub fn overall(&self) -> ExactRatio {
        self.usage.overall()
    }
}

/// An [`UsageIntegral`] as bytes on average and ratios of sums, as it stands in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MeanUsage {
    /// Mean of S, bytes.
    pub slab_bytes: f64,
    /// Mean of U, bytes.
    pub used_bytes: f64,
    /// Mean of S - P, bytes.
    pub tail_bytes: f64,
    /// Mean of P - A, bytes; null where no object size is known.
    pub align_bytes: Option<f64>,
    /// Mean of A - U, bytes.
    pub free_bytes: f64,
    /// Mean of the bound on hidden free objects, bytes.
    pub hidden_bytes: f64,
    /// sum P*dt / sum S*dt.
    pub packing: ExactRatio,
    /// sum A*dt / sum P*dt.
    pub alignment: AlignmentRatio,
    /// sum U*dt / sum A*dt.
    pub occupancy: ExactRatio,
    /// sum U*dt / sum S*dt.
    pub overall: ExactRatio,
    /// sum (U - hidden)*dt / sum S*dt; null without a bound for every row.
    pub overall_at_least: Option<ExactRatio>,
}

impl From<UsageIntegral> for MeanUsage {
    fn from(integral: UsageIntegral) -> Self {
        let (usage, waste) = (integral.usage, integral.usage.waste());
        MeanUsage {
            slab_bytes: integral.mean_of(usage.slab_bytes),
            used_bytes: integral.mean_of(usage.used_bytes),
            tail_bytes: integral.signed_mean_of(waste.tail),
            align_bytes: waste.align.map(|align| integral.signed_mean_of(align)),
            free_bytes: integral.signed_mean_of(waste.free),
            hidden_bytes: integral.mean_of(usage.hidden_bytes),
            packing: usage.packing(),
            alignment: usage.alignment(),
            occupancy: usage.occupancy(),
            overall: usage.overall(),
            overall_at_least: usage.overall_at_least(),
        }
    }
}

/// An unweighted mean of ratios: what a cache of 16 KB says counts as much as one of 260 MB. Beside ours, for
/// comparison with tools that show it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct UnweightedMean {
    sum: f64,
    count: u64,
}

impl UnweightedMean {
    /// Adds a ratio so many times.
    pub(super) fn add(&mut self, ratio: ExactRatio, times: usize) {
        if let Some(value) = ratio.value() {
            self.sum += value * times as f64;
            self.count += times as u64;
        }
    }

    pub(super) fn mean(self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }
}
