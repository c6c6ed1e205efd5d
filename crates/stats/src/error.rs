//! Owns the one error of this crate. It refuses to guess: whatever cannot be answered says why.

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
    /// All values are equal, so nothing can be said about their order or relation.
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
