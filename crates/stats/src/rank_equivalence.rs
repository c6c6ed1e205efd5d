//! The test by ranks that two samples do *not* differ by more than a margin; `equivalence` has the one for means.

use crate::StatsError;
use crate::error::{check_above_zero, check_sample, logarithms};
use crate::mann_whitney::rank_sum_tails;

/// Result of two one-sided tests by ranks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankEquivalenceTest {
    /// p-value against "the shift is at or below the lower margin".
    pub p_above_low: f64,
    /// p-value against "the shift is at or above the upper margin".
    pub p_below_high: f64,
    /// The larger of both: where it is at or below α, Hodges and Lehmann's interval at 1 - 2α lies inside the margins.
    pub p: f64,
}

/// Two one-sided Mann-Whitney tests of whether the shift candidate - baseline is strictly between `low` and `high`, in the
/// unit of the values: of the candidate less each margin against the baseline. Exact where [`mann_whitney`] is. Source:
/// Schuirmann's procedure (1987) with the rank test for the t-test, as in Wellek, Testing Statistical Hypotheses of
/// Equivalence and Noninferiority (2010), section 6.2. This is how `same` comes about.
///
/// [`mann_whitney`]: fn@crate::mann_whitney
///
/// # Errors
/// An empty sample, a value that is not finite, margins that are not finite or not in order.
pub fn test_equivalent_shift_by_ranks(
    baseline: &[f64],
    candidate: &[f64],
    low: f64,
    high: f64,
) -> Result<RankEquivalenceTest, StatsError> {
    if !(low.is_finite() && high.is_finite() && low < high) {
        let range = "(lower margin, infinity)";
        return Err(StatsError::OutOfRange { name: "upper margin", value: high, range });
    }
    let less =
        |margin: f64| check_sample(candidate).map(|all| all.iter().map(|y| y - margin).collect::<Vec<_>>());
    let (_, above, _) = rank_sum_tails(baseline, &less(low)?)?;
    let (_, below, _) = rank_sum_tails(baseline, &less(high)?)?;
    let (p_above_low, p_below_high) = (above.upper.min(1.0), below.lower.min(1.0));
    Ok(RankEquivalenceTest { p_above_low, p_below_high, p: p_above_low.max(p_below_high) })
}

/// The same for the ratio candidate / baseline: strictly between `low`, such as 1/1.03, and `high`, such as 1.03.
///
/// # Errors
/// As [`test_equivalent_shift_by_ranks`]; also a value or a margin that is not above zero.
pub fn test_equivalent_ratio_by_ranks(
    baseline: &[f64],
    candidate: &[f64],
    low: f64,
    high: f64,
) -> Result<RankEquivalenceTest, StatsError> {
    let (x, y) = (logarithms(baseline)?, logarithms(candidate)?);
    let (low, high) =
        (check_above_zero("lower margin", low)?.ln(), check_above_zero("upper margin", high)?.ln());
    test_equivalent_shift_by_ranks(&x, &y, low, high)
}
