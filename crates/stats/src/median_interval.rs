//! What a sample says about the median of its population.
//!
//! The interval by binomial ranks holds for every distribution. Two intervals of medians that overlap say little about a change:
//! `mann_whitney` compares.

use statrs::distribution::{Binomial, DiscreteCDF};

use crate::error::{StatsError, sorted_sample};
use crate::interval::{InferenceMethod, IntervalEstimate, RankCut, tail_probability};

/// Median with its distribution-free interval [x₍k₎, x₍n+1-k₎], k the largest with P(Bin(n, ½) ≤ k - 1) ≤ α/2
/// (David and Nagaraja, Order Statistics, 3rd edition, section 7.1). At 0.95 it needs 6 values.
///
/// # Errors
/// An empty sample, a value that is not finite, a confidence outside (0, 1).
pub fn median_with_interval(values: &[f64], confidence: f64) -> Result<IntervalEstimate, StatsError> {
    let sorted = sorted_sample(values)?;
    let cut = binomial_cut(sorted.len(), tail_probability(confidence)?);
    Ok(IntervalEstimate::from_sorted(&sorted, cut, InferenceMethod::Exact))
}

fn binomial_cut(size: usize, tail: f64) -> Option<RankCut> {
    let below = Binomial::new(0.5, size as u64).ok()?;
    let mut cut = None;
    for rank in 1..=size / 2 {
        let reached = below.cdf(rank as u64 - 1);
        if reached > tail {
            break;
        }
        cut = Some(RankCut { rank, level: 1.0 - 2.0 * reached });
    }
    cut
}
