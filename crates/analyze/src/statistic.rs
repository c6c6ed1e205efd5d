//! Numbers about one sample, by name (`--stat p99.9`). Verdicts do not come from them, but from intervals of the
//! change.

use std::fmt;
use std::str::FromStr;

use perflab_model::Direction;
use perflab_model::error_class::{Classify, ErrorClass};
use perflab_stats::{
    BetterDirection, StatsError, best_of_mean, best_of_percentile, coefficient_of_variation, geometric_mean,
    harmonic_mean, harmonic_sd, inter_quartile_range, mad, mean, median, quantile, sd, trimmed_mean,
};

/// One number about a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SampleStatistic {
    /// number of values
    Count,
    /// smallest value
    Min,
    /// largest value
    Max,
    /// arithmetic mean
    Mean,
    /// harmonic mean
    Harmonic,
    /// geometric mean
    Geometric,
    /// median
    Median,
    /// mean without the lowest and the highest tenth
    Trimmed,
    /// standard deviation
    Sd,
    /// standard deviation that belongs to the harmonic mean, as MMTests computes it
    HarmonicSd,
    /// standard deviation in percent of the arithmetic mean
    Variation,
    /// [`SampleStatistic::HarmonicSd`] in percent of the harmonic mean
    HarmonicVariation,
    /// median absolute deviation from the median, unscaled
    Mad,
    /// distance of the quartiles
    Quartiles,
    /// the value below which so many percent lie
    Percentile(f64),
    /// mean of the best so many percent: arithmetic where less is better, else harmonic
    Best(f64),
    /// the worst value of the best so many percent
    BestPercentile(f64),
}

/// A word that names no statistic.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not a statistic: write n, min, max, mean, hmean, gmean, median, trimmed, sd, cv, mad, iqr, p95 (any \
     percentile), best95 (mean of the best 95 %) or tail95 (the worst of the best 95 %)"
)]
pub struct StatisticParseError {
    text: String,
}

impl Classify for StatisticParseError {
    fn class(&self) -> ErrorClass {
        ErrorClass::Usage
    }
}

const STATISTIC_NAMES: &[(&str, SampleStatistic)] = &[
    ("n", SampleStatistic::Count),
    ("min", SampleStatistic::Min),
    ("max", SampleStatistic::Max),
    ("mean", SampleStatistic::Mean),
    ("amean", SampleStatistic::Mean),
    ("hmean", SampleStatistic::Harmonic),
    ("gmean", SampleStatistic::Geometric),
    ("median", SampleStatistic::Median),
    ("trimmed", SampleStatistic::Trimmed),
    ("sd", SampleStatistic::Sd),
    ("stddev", SampleStatistic::Sd),
    ("hsd", SampleStatistic::HarmonicSd),
    ("cv", SampleStatistic::Variation),
    ("coeffvar", SampleStatistic::Variation),
    ("hcv", SampleStatistic::HarmonicVariation),
    ("mad", SampleStatistic::Mad),
    ("iqr", SampleStatistic::Quartiles),
];

type PercentStatistic = (&'static str, fn(f64) -> SampleStatistic);

const WITH_PERCENT: &[PercentStatistic] = &[
    ("best", SampleStatistic::Best),
    ("tail", SampleStatistic::BestPercentile),
    ("p", SampleStatistic::Percentile),
];

impl FromStr for SampleStatistic {
    type Err = StatisticParseError;

    /// Reads one of its words: `median`, `p99.9`, `best95`.
    fn from_str(text: &str) -> Result<Self, StatisticParseError> {
        let word = text.trim().to_ascii_lowercase();
        if let Some((_, found)) = STATISTIC_NAMES.iter().find(|(known, _)| *known == word) {
            return Ok(*found);
        }
        let percent = |rest: &str| rest.parse::<f64>().ok().filter(|p| *p > 0.0 && *p <= 100.0);
        let found =
            WITH_PERCENT.iter().find_map(|(head, make)| Some(make(percent(word.strip_prefix(head)?)?)));
        found.ok_or_else(|| StatisticParseError { text: text.into() })
    }
}

impl fmt::Display for SampleStatistic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SampleStatistic::Percentile(percent) => write!(f, "p{percent}"),
            SampleStatistic::Best(percent) => write!(f, "best{percent}"),
            SampleStatistic::BestPercentile(percent) => write!(f, "tail{percent}"),
            plain => {
                f.write_str(STATISTIC_NAMES.iter().find(|(_, one)| one == plain).map_or("", |(word, _)| word))
            }
        }
    }
}

impl SampleStatistic {
    /// Its value for a metric of this direction, if the sample has such a number.
    #[must_use]
    pub fn value(self, values: &[f64], direction: Direction) -> Option<f64> {
        let better =
            if direction == Direction::Higher { BetterDirection::Higher } else { BetterDirection::Lower };
        self.compute(values, better).ok()
    }

    /// Its value in the unit of the sample ([`SampleStatistic::Count`] has none, variations are percentages).
    ///
    /// # Errors
    /// A sample that has no such number: too few values, zero or negative ones in a harmonic or geometric mean.
    pub(crate) fn compute(self, values: &[f64], better: BetterDirection) -> Result<f64, StatsError> {
        match self {
            SampleStatistic::Count => Ok(values.len() as f64),
            SampleStatistic::Min => quantile(values, 0.0),
            SampleStatistic::Max => quantile(values, 1.0),
            SampleStatistic::Mean => mean(values),
            SampleStatistic::Harmonic => harmonic_mean(values),
            SampleStatistic::Geometric => geometric_mean(values),
            SampleStatistic::Median => median(values),
            SampleStatistic::Trimmed => trimmed_mean(values, 0.1),
            SampleStatistic::Sd => sd(values),
            SampleStatistic::HarmonicSd => harmonic_sd(values),
            SampleStatistic::Variation => Ok(100.0 * coefficient_of_variation(values)?),
            SampleStatistic::HarmonicVariation => Ok(100.0 * harmonic_sd(values)? / harmonic_mean(values)?),
            SampleStatistic::Mad => mad(values),
            SampleStatistic::Quartiles => inter_quartile_range(values),
            SampleStatistic::Percentile(percent) => quantile(values, percent / 100.0),
            SampleStatistic::Best(percent) => best_of_mean(values, better, percent),
            SampleStatistic::BestPercentile(percent) => best_of_percentile(values, better, percent),
        }
    }

    /// Whether it has the unit of the values.
    #[must_use]
    pub fn has_unit(self) -> bool {
        !matches!(
            self,
            SampleStatistic::Count | SampleStatistic::Variation | SampleStatistic::HarmonicVariation
        )
    }
}
