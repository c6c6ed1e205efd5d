//! Owns time: usage integrated over ticks, and what it was on average. It refuses means of ratios, but for the one
//! that people compare ours with, which is called unweighted.

use serde::Serialize;

use super::ratio::Ratio;
use super::usage::{Alignment, Usage};

/// Usage summed over ticks, each with the time that it stands for (see
/// [`Recording::weights`](super::Recording::weights)).
///
/// Serialised as [`Mean`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(into = "Mean")]
pub struct Integral {
    /// sum of usage * weight; bytes times half nanoseconds.
    pub usage: Usage,
    /// sum of the weights of all ticks of the run, also of those without the cache: it then held 0 bytes.
    pub weight: u128,
}

impl Integral {
    /// Adds what was used at a tick of that weight; the weight itself is counted once a tick, by the owner.
    pub(super) fn add(&mut self, usage: &Usage, weight: u128) {
        self.usage.accumulate(usage, weight);
    }

    fn mean(&self, sum: u128) -> f64 {
        if self.weight == 0 { 0.0 } else { sum as f64 / self.weight as f64 }
    }

    fn signed_mean(&self, sum: i128) -> f64 {
        if self.weight == 0 { 0.0 } else { sum as f64 / self.weight as f64 }
    }

    /// Mean of S over time, bytes.
    #[must_use]
    pub fn slab_bytes(&self) -> f64 {
        self.mean(self.usage.slab_bytes)
    }

    /// Mean of S - U over time, bytes.
    #[must_use]
    pub fn wasted(&self) -> f64 {
        self.signed_mean(self.usage.wasted())
    }

    /// sum U*dt / sum S*dt.
    #[must_use]
    pub fn overall(&self) -> Ratio {
        self.usage.overall()
    }
}

/// An [`Integral`] as bytes on average and ratios of sums, as it stands in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Mean {
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
    pub packing: Ratio,
    /// sum A*dt / sum P*dt.
    pub alignment: Alignment,
    /// sum U*dt / sum A*dt.
    pub occupancy: Ratio,
    /// sum U*dt / sum S*dt.
    pub overall: Ratio,
    /// sum (U - hidden)*dt / sum S*dt; null without a bound for every row.
    pub overall_at_least: Option<Ratio>,
}

impl From<Integral> for Mean {
    fn from(integral: Integral) -> Self {
        let (usage, waste) = (integral.usage, integral.usage.waste());
        Mean {
            slab_bytes: integral.mean(usage.slab_bytes),
            used_bytes: integral.mean(usage.used_bytes),
            tail_bytes: integral.signed_mean(waste.tail),
            align_bytes: waste.align.map(|align| integral.signed_mean(align)),
            free_bytes: integral.signed_mean(waste.free),
            hidden_bytes: integral.mean(usage.hidden_bytes),
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
pub(super) struct Unweighted {
    sum: f64,
    count: u64,
}

impl Unweighted {
    /// Adds a ratio so many times.
    pub(super) fn add(&mut self, ratio: Ratio, times: usize) {
        if let Some(value) = ratio.value() {
            self.sum += value * times as f64;
            self.count += times as u64;
        }
    }

    pub(super) fn mean(self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }
}
