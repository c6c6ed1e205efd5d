//! Owns the means beside the arithmetic and the geometric one: harmonic, trimmed, winsorised. It refuses to choose
//! among them, and to trim by looking at the values: the share to trim is set before.

use crate::StatsError;
use crate::centre::mean;
use crate::sample::{check_positive, check_sample, finite_or_overflow, sorted_sample};

/// Harmonic mean n / Σ 1/x, in the unit of the values: the mean for rates over equal amounts of work (Jain, The Art of
/// Computer Systems Performance Analysis, 1991, section 12.5).
///
/// # Errors
/// An empty sample, a value that is not finite or not above zero, reciprocals that overflow.
pub fn harmonic_mean(values: &[f64]) -> Result<f64, StatsError> {
    let values = check_positive(values)?;
    let reciprocals = finite_or_overflow(values.iter().map(|value| value.recip()).sum())?;
    finite_or_overflow(values.len() as f64 / reciprocals)
}

/// Mean of what is left when the lowest and the highest ⌊share · n⌋ values are cut off, in the unit of the values.
/// `share` is a fraction in [0, 0.5), for each end. Source: Wilcox, Introduction to Robust Estimation and Hypothesis
/// Testing, section 3.3; the same as `mean(trim = share)` of R.
///
/// # Errors
/// An empty sample, a value that is not finite, a share outside [0, 0.5), a sum that overflows.
pub fn trimmed_mean(values: &[f64], share: f64) -> Result<f64, StatsError> {
    let sorted = sorted_sample(values)?;
    let cut = trimmed_count(sorted.len(), share)?;
    mean(sorted.get(cut..sorted.len() - cut).unwrap_or_default())
}

/// Mean after the lowest and the highest ⌊share · n⌋ values are moved to the nearest value that stays, in the unit of
/// the values. `share` is a fraction in [0, 0.5), for each end. Source: Wilcox, as for [`trimmed_mean`], section 3.3.
///
/// # Errors
/// As [`trimmed_mean`].
pub fn winsorised_mean(values: &[f64], share: f64) -> Result<f64, StatsError> {
    let mut sorted = sorted_sample(values)?;
    let n = sorted.len();
    let cut = trimmed_count(n, share)?;
    let (low, high) = (sorted[cut], sorted[n - 1 - cut]);
    sorted.iter_mut().for_each(|value| *value = value.clamp(low, high));
    mean(&sorted)
}

/// Standard deviation that belongs to a harmonic mean H, in the unit of the values: √(H⁴ Σ (1/x - 1/H)² / n), the delta
/// method on the mean of the reciprocals. MMTests prints it for metrics where more is better (`Stat.pm`, stddev of
/// Hmean); it divides by n where the usual one divides by n - 1.
///
/// # Errors
/// As [`harmonic_mean`]; also fewer than two values.
pub fn harmonic_sd(values: &[f64]) -> Result<f64, StatsError> {
    let got = check_sample(values)?.len();
    if got < 2 {
        return Err(StatsError::TooFew { needed: 2, got });
    }
    let centre = harmonic_mean(values)?;
    let squares: f64 = values.iter().map(|value| (value.recip() - centre.recip()).powi(2)).sum();
    finite_or_overflow(centre * centre * (squares / got as f64).sqrt())
}

/// Values cut at each end; always fewer than half of them.
fn trimmed_count(n: usize, share: f64) -> Result<usize, StatsError> {
    if !(0.0..0.5).contains(&share) {
        return Err(StatsError::OutOfRange { name: "share", value: share, range: "[0, 0.5)" });
    }
    Ok(((n as f64 * share) as usize).min((n - 1) / 2))
}
