//! The test that two samples do *not* differ by more than a margin: two one-sided tests on means.
//!
//! The lack of a significant difference is not "same".

use crate::StatsError;
use crate::error::{check_above_zero, finite_or_overflow, logarithms};
use crate::interval::ConfidenceInterval;
use crate::student_t::{WelchTest, t_tail_above, welch};

/// Result of two one-sided tests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EquivalenceTest {
    /// p-value against "the change is at or below the lower margin".
    pub p_above_low: f64,
    /// p-value against "the change is at or above the upper margin".
    pub p_below_high: f64,
    /// The larger of both: at or below α, the change lies inside the margins, and the interval at 1 - 2α does too.
    pub p: f64,
    /// The change: candidate minus baseline, or their ratio.
    pub change: f64,
    difference: WelchTest,
    are_logarithms: bool,
}

impl EquivalenceTest {
    /// The interval that lies inside the margins exactly when p < α, at 1 - 2α: 90 % for α = 5 %.
    ///
    /// # Errors
    /// α outside (0, 0.5), limits that overflow.
    pub fn interval(&self, alpha: f64) -> Result<ConfidenceInterval, StatsError> {
        if !(alpha > 0.0 && alpha < 0.5) {
            return Err(StatsError::OutOfRange { name: "alpha", value: alpha, range: "(0, 0.5)" });
        }
        let found = self.difference.interval(1.0 - 2.0 * alpha)?;
        if !self.are_logarithms {
            return Ok(found);
        }
        Ok(ConfidenceInterval {
            low: finite_or_overflow(found.low.exp())?,
            high: finite_or_overflow(found.high.exp())?,
            ..found
        })
    }
}

/// Two one-sided Welch tests of whether the mean of the candidate minus that of the baseline is strictly between `low`
/// and `high`, in the unit of the values. Source: Schuirmann, "A comparison of the two one-sided tests procedure and the
/// power approach", Journal of Pharmacokinetics and Biopharmaceutics 15 (1987), with the variances of Welch.
///
/// # Errors
/// As [`welch`]; also margins that are not finite or not in order.
pub fn test_equivalent_shift(
    baseline: &[f64],
    candidate: &[f64],
    low: f64,
    high: f64,
) -> Result<EquivalenceTest, StatsError> {
    if !(low.is_finite() && high.is_finite() && low < high) {
        return Err(StatsError::OutOfRange {
            name: "upper margin",
            value: high,
            range: "(lower margin, infinity)",
        });
    }
    let difference = welch(baseline, candidate)?;
    let WelchTest { difference: change, standard_error, freedom, .. } = difference;
    let p_above_low = t_tail_above((change - low) / standard_error, freedom);
    let p_below_high = t_tail_above((high - change) / standard_error, freedom);
    let p = p_above_low.max(p_below_high);
    Ok(EquivalenceTest { p_above_low, p_below_high, p, change, difference, are_logarithms: false })
}

/// The same for the ratio of geometric means candidate / baseline: strictly between `low`, such as 1/1.03, and `high`,
/// such as 1.03.
///
/// # Errors
/// As [`test_equivalent_shift`]; also a value or a margin that is not above zero.
pub fn test_equivalent_ratio(
    baseline: &[f64],
    candidate: &[f64],
    low: f64,
    high: f64,
) -> Result<EquivalenceTest, StatsError> {
    let (x, y) = (logarithms(baseline)?, logarithms(candidate)?);
    let (low, high) =
        (check_above_zero("lower margin", low)?.ln(), check_above_zero("upper margin", high)?.ln());
    let found = test_equivalent_shift(&x, &y, low, high)?;
    Ok(EquivalenceTest { change: finite_or_overflow(found.change.exp())?, are_logarithms: true, ..found })
}
