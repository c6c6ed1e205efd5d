//! Owns MMTests' own rule for a star, to say where it differs from ours: two means differ when their bands of ± 1.96
//! standard deviations do not touch. The bands do not narrow with more samples. It refuses to decide anything.

use perflab_stats::BetterDirection;

use super::operation::MmtestsOperation;
use crate::statistic::SampleStatistic;

/// Quantile of the normal distribution at 97.5 %.
const Z: f64 = 1.959_963_984_540_054;

/// The mean of MMTests and its standard deviation.
fn band_moments(values: &[f64], better: BetterDirection) -> Option<(f64, f64)> {
    let (mean, sd) = match better {
        BetterDirection::Lower => (SampleStatistic::Mean, SampleStatistic::Sd),
        BetterDirection::Higher => (SampleStatistic::Harmonic, SampleStatistic::HarmonicSd),
    };
    Some((mean.compute(values, better).ok()?, sd.compute(values, better).ok()?))
}

/// The difference of a side to the baseline in sums of both half-bands: MMTests' `s`, and a star beyond ± 1. Absent
/// where a band is not known or both have no width.
pub(super) fn band_distance(operation: &MmtestsOperation, side: usize) -> Option<f64> {
    let of = |side: usize| band_moments(operation.sides.get(side)?, operation.better);
    let ((base, base_sd), (new, new_sd)) = (of(0)?, of(side)?);
    let width = Z * (base_sd + new_sd);
    // Rounding leaves constant values a width that is none.
    let is_wide = width > 1e-12 * base.abs().max(new.abs());
    is_wide.then(|| (new - base) / width)
}
