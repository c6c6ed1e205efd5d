//! perflab's statistics: numbers in, numbers out.
//!
//! This crate owns the formulas behind a comparison of two samples and behind the history of a metric: estimates
//! with their intervals, tests by ranks and by t, corrections for many metrics, resampling of boots, noise on several
//! levels, warnings about the data, change points, and the size of the next experiment. It refuses I/O, units, names of metrics and verdicts: whoever calls it knows what the numbers mean.
//!
//! Rules that hold everywhere:
//!
//! - Samples are `&[f64]` in any order, except where a function says *in time order*. The first sample is
//!   the baseline, the second the candidate; a shift is candidate minus baseline, a ratio candidate over
//!   baseline.
//! - A confidence is a fraction inside (0, 1), such as 0.95. Exact rank intervals come in steps, so each
//!   [`ConfidenceInterval`] carries the level that it really has, which is never below the one asked for.
//! - Where the sample is too small for the level there is no interval (`None`), not an invented one.
//! - Whatever draws random numbers takes a seed, and gives the same answer for it on every machine.
//! - NaN, infinities, empty samples and the like are a [`StatsError`], never a panic.
//!
//! ```
//! let before = [10.1, 10.3, 9.9, 10.0, 10.2, 10.4];
//! let after = [11.0, 11.4, 11.1, 10.9, 11.2, 11.3];
//! let change = perflab_stats::hodges_lehmann_ratio(&before, &after, 0.95)?;
//! let interval = change.interval.expect("six against six suffice for 95 %");
//! assert!(interval.low > 1.06 && interval.high < 1.13 && interval.level >= 0.95);
//! # Ok::<(), perflab_stats::StatsError>(())
//! ```

mod best_of;
mod bootstrap;
mod centre;
mod change_points;
mod cliffs_delta;
mod contrast;
mod correlation;
mod differences;
mod dip;
mod equivalence;
mod error;
mod extreme;
mod false_discovery;
mod fieller;
mod hodges_lehmann;
mod interval;
mod levels;
mod mann_whitney;
mod means;
mod median_interval;
mod modes;
mod null;
mod one_mode;
mod outliers;
mod planning;
mod prediction;
mod pseudo_median;
mod quantile_interval;
mod rank_equivalence;
mod ranks;
mod relative_spread;
mod sample;
mod segments;
mod shift_function;
mod signed_rank;
mod spread;
mod steady_state;
mod student;
mod theil_sen;
mod welch;

pub use best_of::{BetterDirection, best_of_mean, best_of_percentile, best_values};
pub use bootstrap::{ClusterBootstrap, ResampledStatistic};
pub use centre::{geometric_mean, mean, median, quantile};
pub use change_points::{ChangePoint, EDivisive, Hunter, HunterRules};
pub use cliffs_delta::cliffs_delta;
pub use contrast::mean_contrast;
pub use correlation::{
    RankCorrelation, drift_correlation, effective_size, lag_one_autocorrelation, spearman,
};
pub use dip::{DipTest, dip_test};
pub use equivalence::{EquivalenceTest, test_equivalent_ratio, test_equivalent_shift};
pub use error::StatsError;
pub use extreme::{TukeyFences, find_rosner_outliers};
pub use false_discovery::{benjamini_hochberg, benjamini_yekutieli};
pub use fieller::{UncertainMean, ratio_of_means};
pub use hodges_lehmann::{PairwiseShifts, hodges_lehmann_ratio, hodges_lehmann_shift};
pub use interval::{ConfidenceInterval, InferenceMethod, IntervalEstimate};
pub use levels::VarianceComponents;
pub use mann_whitney::{MannWhitney, mann_whitney, smallest_p};
pub use means::{harmonic_mean, harmonic_sd, trimmed_mean, winsorised_mean};
pub use median_interval::median_with_interval;
pub use modes::{TwoModes, find_two_modes};
pub use one_mode::{SilvermanTest, silverman_test};
pub use outliers::{OUTLIER_LIMIT, OutlyingValue, find_outlying_values};
pub use planning::{PowerGoal, PowerRules, SamplePairing, TwoLevelNoise};
pub use prediction::{prediction_interval, prediction_interval_log, prediction_p};
pub use pseudo_median::{WalshAverages, pseudo_median_ratio, pseudo_median_shift};
pub use quantile_interval::{expected_exceedances, harrell_davis, quantile_with_interval};
pub use rank_equivalence::{
    RankEquivalenceTest, test_equivalent_ratio_by_ranks, test_equivalent_shift_by_ranks,
};
pub use relative_spread::{coefficient_of_variation, quartile_coefficient};
pub use segments::{SeriesSegment, find_segments, find_segments_by_default};
pub use shift_function::{DecileShift, shift_function};
pub use signed_rank::{SignedRank, signed_rank};
pub use spread::{inter_quartile_range, mad, robust_sd, sd};
pub use steady_state::{SteadyState, WarmupPattern, WarmupRules, first_steady_by_variation};
pub use theil_sen::theil_sen;
pub use welch::{
    SampleMoments, WelchTest, mean_with_interval, welch, welch_of_moments, welch_ratio, welch_shift,
};
