//! Owns the statistics that people may ask for by name (`--stat`). It refuses to judge by them: verdicts come from
//! intervals of the change.

use std::fmt;
use std::str::FromStr;

use perflab_model::Direction;
use perflab_stats::{
    Better, StatsError, best_of_mean, best_of_percentile, coefficient_of_variation, geometric_mean,
    harmonic_mean, harmonic_sd, inter_quartile_range, mad, mean, median, quantile, sd, trimmed_mean,
};

/// One number about a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Statistic {
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
    /// [`Statistic::HarmonicSd`] in percent of the harmonic mean
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
pub struct NotAStatistic {
    text: String,
}

const WORDS: &[(&str, Statistic)] = &[
    ("n", Statistic::Count),
    ("min", Statistic::Min),
    ("max", Statistic::Max),
    ("mean", Statistic::Mean),
    ("amean", Statistic::Mean),
    ("hmean", Statistic::Harmonic),
    ("gmean", Statistic::Geometric),
    ("median", Statistic::Median),
    ("trimmed", Statistic::Trimmed),
    ("sd", Statistic::Sd),
    ("stddev", Statistic::Sd),
    ("hsd", Statistic::HarmonicSd),
    ("cv", Statistic::Variation),
    ("coeffvar", Statistic::Variation),
    ("hcv", Statistic::HarmonicVariation),
    ("mad", Statistic::Mad),
    ("iqr", Statistic::Quartiles),
];

type WithPercent = (&'static str, fn(f64) -> Statistic);

const WITH_PERCENT: &[WithPercent] =
    &[("best", Statistic::Best), ("tail", Statistic::BestPercentile), ("p", Statistic::Percentile)];

impl FromStr for Statistic {
    type Err = NotAStatistic;

    /// Reads one of its words: `median`, `p99.9`, `best95`.
    fn from_str(text: &str) -> Result<Self, NotAStatistic> {
        let word = text.trim().to_ascii_lowercase();
        if let Some((_, found)) = WORDS.iter().find(|(known, _)| *known == word) {
            return Ok(*found);
        }
        let percent = |rest: &str| rest.parse::<f64>().ok().filter(|p| *p > 0.0 && *p <= 100.0);
        let found =
            WITH_PERCENT.iter().find_map(|(head, make)| Some(make(percent(word.strip_prefix(head)?)?)));
        found.ok_or_else(|| NotAStatistic { text: text.into() })
    }
}

impl fmt::Display for Statistic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Statistic::Percentile(percent) => write!(f, "p{percent}"),
            Statistic::Best(percent) => write!(f, "best{percent}"),
            Statistic::BestPercentile(percent) => write!(f, "tail{percent}"),
            plain => f.write_str(WORDS.iter().find(|(_, one)| one == plain).map_or("", |(word, _)| word)),
        }
    }
}

impl Statistic {
    /// Its value for a metric of this direction, if the sample has such a number.
    #[must_use]
    pub fn value(self, values: &[f64], direction: Direction) -> Option<f64> {
        let better = if direction == Direction::Higher { Better::Higher } else { Better::Lower };
        self.of(values, better).ok()
    }

    /// Its value in the unit of the sample ([`Statistic::Count`] has none, variations are percentages).
    ///
    /// # Errors
    /// A sample that has no such number: too few values, zero or negative ones in a harmonic or geometric mean.
    pub(crate) fn of(self, values: &[f64], better: Better) -> Result<f64, StatsError> {
        match self {
            Statistic::Count => Ok(values.len() as f64),
            Statistic::Min => quantile(values, 0.0),
            Statistic::Max => quantile(values, 1.0),
            Statistic::Mean => mean(values),
            Statistic::Harmonic => harmonic_mean(values),
            Statistic::Geometric => geometric_mean(values),
            Statistic::Median => median(values),
            Statistic::Trimmed => trimmed_mean(values, 0.1),
            Statistic::Sd => sd(values),
            Statistic::HarmonicSd => harmonic_sd(values),
            Statistic::Variation => Ok(100.0 * coefficient_of_variation(values)?),
            Statistic::HarmonicVariation => Ok(100.0 * harmonic_sd(values)? / harmonic_mean(values)?),
            Statistic::Mad => mad(values),
            Statistic::Quartiles => inter_quartile_range(values),
            Statistic::Percentile(percent) => quantile(values, percent / 100.0),
            Statistic::Best(percent) => best_of_mean(values, better, percent),
            Statistic::BestPercentile(percent) => best_of_percentile(values, better, percent),
        }
    }

    /// Whether it has the unit of the values.
    #[must_use]
    pub fn has_unit(self) -> bool {
        !matches!(self, Statistic::Count | Statistic::Variation | Statistic::HarmonicVariation)
    }
}
