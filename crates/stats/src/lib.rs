//! perflab's statistics: numbers in, numbers out.
//!
//! Here are the formulas behind a comparison of two samples and behind the history of a metric. Units, names of metrics
//! and verdicts belong to the callers, who know what the numbers mean.
//!
//! | module | content |
//! |---|---|
//! | `descriptive`, `median_interval` | one sample: middle, spread, best-of statistics, the median with its interval |
//! | `interval` | [`ConfidenceInterval`], and how an estimate carries it |
//! | `mann_whitney`, `signed_rank`, `rank_distribution` | independent and paired samples by ranks |
//! | `location_shift` | the shift of two samples or of pairs, by whichever test suits the values |
//! | `joint_permutation` | which of many quantities differ, with one bound on any false one |
//! | `least_squares` | what one quantity goes with while others are held |
//! | `dose_slope` | what a dose does, by the slope of a line in each block |
//! | `fisher` | how often something happens on two sides |
//! | `mean_shift`, `quantile_shift` | how far the mean and a tail quantile moved |
//! | `shift_band` | how far each decile moved, with a band for all at once |
//! | `student_t` | means: one, two, contrasts, ratios, the next value |
//! | `false_discovery` | corrections for many metrics |
//! | `bootstrap`, `variance_components`, `nested_components` | boots resampled; noise on several levels, of equal and of unequal size |
//! | `duet_noise` | whether two levels should run at once, each on half of the CPUs |
//! | `random_effects` | the mean of nested groups of unequal size, by REML |
//! | `power` | the size of the next experiment |
//! | `sample_shape` | two modes, outliers |
//! | `ecdf`, `histogram` | one sample as a distribution: its steps with a band, bins by a rule |
//! | `scaling_law` | throughput over processors: Amdahl and the Universal Scalability Law |
//! | `trend`, `warm_up`, `change_points` | values in time order: drift, steady state, steps |
//! | `series_groups` | neighbours that share their luck, as the runs of one day may |
//! | `shift_sequence` | the shift of pairs that keep coming, with an interval that holds at every look |
//! | `step_monitor` | a step in values that keep coming, with one bound on all looks |
//! | `serial_dependence` | values that depend on those before them, and what that does to an interval |
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

mod bootstrap;
mod change_points;
mod descriptive;
mod dose_slope;
mod duet_noise;
mod ecdf;
mod error;
mod false_discovery;
mod fisher;
mod histogram;
mod interval;
mod joint_permutation;
mod least_squares;
mod location_shift;
mod mann_whitney;
mod mean_shift;
mod median_interval;
mod nested_components;
mod power;
mod quantile_shift;
mod random_effects;
mod rank_distribution;
mod sample_shape;
mod scaling_law;
mod serial_dependence;
mod series_groups;
mod shift_band;
mod shift_sequence;
mod signed_rank;
mod step_monitor;
mod student_t;
mod trend;
mod variance_components;
mod warm_up;

pub use bootstrap::{ClusterBootstrap, ResampledStatistic};
pub use change_points::{ChangePoint, EDivisive};
pub use descriptive::{
    BetterDirection, best_of_mean, best_of_percentile, coefficient_of_variation, geometric_mean,
    harmonic_mean, harmonic_sd, inter_quartile_range, mad, mean, median, quantile, robust_sd, sd,
    trimmed_mean,
};
pub use dose_slope::{DoseCurvature, DoseSlope, dose_slope};
pub use duet_noise::{DuetNoise, DuetRound};
pub use ecdf::{DistributionStep, EmpiricalDistribution, empirical_distribution};
pub use error::StatsError;
pub use false_discovery::{benjamini_hochberg, benjamini_yekutieli, holm};
pub use fisher::{EventCount, FisherTest, fisher_exact, rarest_visible_share};
pub use histogram::{BinRule, MOST_BINS, count_in_bins, histogram_edges};
pub use interval::{ConfidenceInterval, InferenceMethod, IntervalEstimate};
pub use joint_permutation::{JointPermutation, JointShift};
pub use least_squares::{LineCoefficient, fit_line};
pub use location_shift::{JointRanks, LocationShift};
pub use mann_whitney::{MannWhitney, PairwiseShifts, hodges_lehmann_ratio, mann_whitney, smallest_p};
pub use mean_shift::{MeanScale, mean_shift, paired_mean_shift, pooled_mean_shift};
pub use median_interval::median_with_interval;
pub use nested_components::{LevelComponent, NestedComponents};
pub use power::{PowerGoal, PowerRules, SamplePairing, TwoLevelNoise};
pub use quantile_shift::QuantileShift;
pub use random_effects::{NestedMean, RandomEffects};
pub use sample_shape::{
    OutlyingValue, TukeyFences, TwoModes, find_outlying_values, find_two_modes, has_coarse_scale,
    value_resolution,
};
pub use scaling_law::{ScalingFit, ScalingLaw, fit_scaling_law};
pub use serial_dependence::{DependentShift, SerialDependence, SuccessiveDifferences, dependent_freedom};
pub use series_groups::SeriesGroups;
pub use shift_band::{DecileBand, shift_band};
pub use shift_sequence::ShiftSequence;
pub use signed_rank::{SignedRank, WalshAverages, signed_rank};
pub use step_monitor::{FEWEST_BEFORE_STEP, StepAlarm, StepEvidence, StepMonitor, WatchedSeries};
pub use student_t::{
    KnownVariance, SampleMoments, WelchTest, mean_contrast, mean_with_interval, pooled_t,
    pooled_t_with_variance, prediction_interval, prediction_p, welch, welch_of_moments,
};
pub use trend::{
    RankCorrelation, drift_correlation, effective_size, lag_one_autocorrelation, spearman, theil_sen,
};
pub use warm_up::{
    SeriesSegment, SteadyState, WarmUpPeriod, WarmupPattern, WarmupRules, find_segments,
    first_steady_by_variation,
};
