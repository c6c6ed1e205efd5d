//! The one error of this crate, and the checks that every sample passes before it is used.
//!
//! Nothing is dropped, clipped or replaced.

/// Why a statistic has no answer. Indexes count from 0 in the slice that was passed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum StatsError {
    /// A sample without a single value.
    #[error("no values")]
    Empty,
    /// NaN or an infinity among the values.
    #[error("value {index} is not a finite number")]
    NotFinite {
        /// Where it stands.
        index: usize,
    },
    /// A ratio or a geometric mean was asked for a value of zero or below.
    #[error("value {index} is not above zero")]
    NotPositive {
        /// Where it stands.
        index: usize,
    },
    /// The statistic is not defined for so few values.
    #[error("{got} values, at least {needed} are needed")]
    TooFew {
        /// The least number.
        needed: usize,
        /// The number passed.
        got: usize,
    },
    /// All pairs would not fit in memory; compare summaries of groups instead.
    #[error("{got} pairs of values, more than the limit of {limit}")]
    TooMany {
        /// The most pairs that are taken.
        limit: usize,
        /// The pairs that the samples make.
        got: usize,
    },
    /// Paired samples of different length.
    #[error("{left} values cannot be paired with {right}")]
    Unpaired {
        /// Length of the first sample.
        left: usize,
        /// Length of the second sample.
        right: usize,
    },
    /// All values are equal, so nothing follows about their order or relation.
    #[error("all values are equal")]
    NoSpread,
    /// A parameter outside its range.
    #[error("{name} is {value}, which is not in {range}")]
    OutOfRange {
        /// Which parameter.
        name: &'static str,
        /// What was passed.
        value: f64,
        /// What is allowed.
        range: &'static str,
    },
    /// The values are finite, their sum or difference is not.
    #[error("the values are too large for their sum or difference to be a number")]
    Overflow,
}

/// Passes a sample that has at least one value, all finite.
pub(crate) fn check_sample(values: &[f64]) -> Result<&[f64], StatsError> {
    if values.is_empty() {
        return Err(StatsError::Empty);
    }
    match values.iter().position(|value| !value.is_finite()) {
        Some(index) => Err(StatsError::NotFinite { index }),
        None => Ok(values),
    }
}

/// Passes a sample of at least `needed` values.
pub(crate) fn check_at_least(values: &[f64], needed: usize) -> Result<&[f64], StatsError> {
    let values = check_sample(values)?;
    if values.len() < needed {
        let got = values.len();
        return Err(StatsError::TooFew { needed, got });
    }
    Ok(values)
}

/// The values in ascending order.
pub(crate) fn sorted_sample(values: &[f64]) -> Result<Vec<f64>, StatsError> {
    let mut values = check_sample(values)?.to_vec();
    values.sort_unstable_by(f64::total_cmp);
    Ok(values)
}

/// Passes a sample whose values are all above zero.
pub(crate) fn check_positive(values: &[f64]) -> Result<&[f64], StatsError> {
    let values = check_sample(values)?;
    match values.iter().position(|value| *value <= 0.0) {
        Some(index) => Err(StatsError::NotPositive { index }),
        None => Ok(values),
    }
}

/// Natural logarithms, for ratios.
pub(crate) fn logarithms(values: &[f64]) -> Result<Vec<f64>, StatsError> {
    Ok(check_positive(values)?.iter().map(|value| value.ln()).collect())
}

/// Passes two samples of equal length.
pub(crate) fn check_paired<'a>(
    left: &'a [f64],
    right: &'a [f64],
) -> Result<(&'a [f64], &'a [f64]), StatsError> {
    let (left, right) = (check_sample(left)?, check_sample(right)?);
    if left.len() == right.len() {
        return Ok((left, right));
    }
    Err(StatsError::Unpaired { left: left.len(), right: right.len() })
}

/// Most differences between values that are held in memory at once (32 MiB).
const MOST_DIFFERENCES: usize = 4_194_304;

/// Passes a number of differences that may be held at once.
pub(crate) fn check_memory(got: usize) -> Result<(), StatsError> {
    let limit = MOST_DIFFERENCES;
    if got > limit { Err(StatsError::TooMany { limit, got }) } else { Ok(()) }
}

/// Passes an answer that did not overflow on the way.
pub(crate) fn finite_or_overflow(answer: f64) -> Result<f64, StatsError> {
    if answer.is_finite() { Ok(answer) } else { Err(StatsError::Overflow) }
}

/// Passes a fraction strictly between 0 and 1.
pub(crate) fn check_open_fraction(name: &'static str, value: f64) -> Result<f64, StatsError> {
    if value > 0.0 && value < 1.0 {
        return Ok(value);
    }
    Err(StatsError::OutOfRange { name, value, range: "(0, 1)" })
}

/// Passes a finite number above zero.
pub(crate) fn check_above_zero(name: &'static str, value: f64) -> Result<f64, StatsError> {
    if value > 0.0 && value.is_finite() {
        return Ok(value);
    }
    Err(StatsError::OutOfRange { name, value, range: "(0, infinity)" })
}
