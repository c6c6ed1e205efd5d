//! Owns labels for values far from the rest. It refuses to remove them: a slow iteration is a finding.

use crate::StatsError;
use crate::centre::{mean, median};
use crate::sample::finite_or_overflow;
use crate::spread::distances_from_median;

/// Modified z-scores beyond this are labelled (Iglewicz and Hoaglin, How to Detect and Handle Outliers, 1993).
pub const OUTLIER_LIMIT: f64 = 3.5;

/// Φ⁻¹(3/4): the MAD of standard normal values.
const NORMAL_MAD: f64 = 0.674_489_750_196_081_7;
/// √(2/π): the mean absolute deviation of standard normal values.
const NORMAL_MEAN_DEVIATION: f64 = 0.797_884_560_802_865_4;

/// A value far from the rest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OutlyingValue {
    /// Where it stands in the sample, from 0.
    pub index: usize,
    /// Its modified z-score, 0.6745 (x - median) / MAD: the sign tells the side.
    pub score: f64,
}

/// Values whose modified z-score is beyond ±[`OUTLIER_LIMIT`], in the order of the sample.
///
/// When more than half of the values are equal the MAD is zero; the mean absolute deviation takes its place,
/// as Iglewicz and Hoaglin advise. Equal values have no outliers.
///
/// # Errors
/// An empty sample, a value that is not finite, a difference that overflows.
pub fn find_outlying_values(values: &[f64]) -> Result<Vec<OutlyingValue>, StatsError> {
    let centre = median(values)?;
    let unit = robust_unit(&distances_from_median(values)?)?;
    if unit == 0.0 {
        return Ok(Vec::new());
    }
    let scores = values.iter().map(|value| (value - centre) / unit).enumerate();
    let scores = scores.map(|(index, score)| OutlyingValue { index, score });
    Ok(scores.filter(|outlier| outlier.score.abs() > OUTLIER_LIMIT).collect())
}

/// The standard deviation that the distances from the median speak for.
fn robust_unit(distances: &[f64]) -> Result<f64, StatsError> {
    let mad = median(distances)?;
    if mad > 0.0 {
        finite_or_overflow(mad / NORMAL_MAD)
    } else {
        finite_or_overflow(mean(distances)? / NORMAL_MEAN_DEVIATION)
    }
}
