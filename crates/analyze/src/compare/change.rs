//! A change with its intervals and its p-value, on the scale of ratios or of differences, and the one estimator of it.

use perflab_stats::{
    InferenceMethod as StatsMethod, IntervalEstimate, PairwiseShifts, StatsError, WalshAverages,
    mann_whitney, sd, signed_rank, welch,
};

use crate::compare::comparison::{ChangeInterval, ChangeScale, MetricChange};
use crate::compare::experimental_unit::ComparisonUnits;
use crate::compare::options::AnalysisOptions;

/// What the data say about one row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChangeEstimate {
    pub(crate) change: MetricChange,
    pub(crate) p: f64,
    /// Standard deviation of one repetition (of one difference, for pairs): of the logarithm on the scale of
    /// ratios, else in the metric's unit. Absent for a single value.
    pub(crate) sd: Option<f64>,
}

/// Estimates the change on the scale of ratios where all values are above zero, else of differences.
pub(crate) fn estimate_change(
    units: &ComparisonUnits,
    options: &AnalysisOptions,
) -> Result<ChangeEstimate, StatsError> {
    let how = (units.paired, units.uses_means());
    let all = || units.baseline.iter().chain(&units.candidate);
    if all().all(|value| *value > 0.0) {
        let (x, y) = (take_logarithms(&units.baseline), take_logarithms(&units.candidate));
        return estimate_on_scale(ChangeScale::Ratio, &x, &y, how, options);
    }
    estimate_on_scale(ChangeScale::Absolute, &units.baseline, &units.candidate, how, options)
}

fn take_logarithms(values: &[f64]) -> Vec<f64> {
    values.iter().map(|value| value.ln()).collect()
}

fn estimate_on_scale(
    scale: ChangeScale,
    x: &[f64],
    y: &[f64],
    (paired, by_means): (bool, bool),
    options: &AnalysisOptions,
) -> Result<ChangeEstimate, StatsError> {
    let (wide, narrow, p) = if by_means {
        let found = welch(x, y)?;
        let at = |confidence| Ok::<_, StatsError>(Some(found.interval(confidence)?));
        let estimate =
            |interval| IntervalEstimate { value: found.difference, interval, method: StatsMethod::StudentT };
        (estimate(at(options.confidence)?), estimate(at(options.narrow_confidence())?), found.p)
    } else if paired {
        let averages = WalshAverages::absolute(x, y)?;
        let at = |confidence| averages.estimate(confidence);
        (at(options.confidence)?, at(options.narrow_confidence())?, signed_rank(x, y)?.p)
    } else {
        let shifts = PairwiseShifts::absolute(x, y)?;
        let at = |confidence| shifts.estimate(confidence);
        (at(options.confidence)?, at(options.narrow_confidence())?, mann_whitney(x, y)?.p)
    };
    let change = MetricChange {
        scale,
        value: from_log_scale(scale, wide.value),
        interval: interval_on_scale(scale, &wide),
        narrow: interval_on_scale(scale, &narrow),
    };
    Ok(ChangeEstimate { change, p, sd: repetition_sd(x, y, paired) })
}

/// A difference of logarithms as a fraction of the baseline; other differences as they are.
fn from_log_scale(scale: ChangeScale, shift: f64) -> f64 {
    if scale == ChangeScale::Ratio { shift.exp_m1() } else { shift }
}

fn interval_on_scale(scale: ChangeScale, estimate: &IntervalEstimate) -> Option<ChangeInterval> {
    let found = estimate.interval?;
    Some(ChangeInterval {
        low: from_log_scale(scale, found.low),
        high: from_log_scale(scale, found.high),
        level: found.level,
    })
}

/// Standard deviation of the differences, or the pooled one of both sides.
fn repetition_sd(x: &[f64], y: &[f64], paired: bool) -> Option<f64> {
    if paired {
        let differences: Vec<f64> = x.iter().zip(y).map(|(x, y)| y - x).collect();
        return sd(&differences).ok();
    }
    let (ours, theirs) = (sd(x).ok()?, sd(y).ok()?);
    Some((ours.powi(2).midpoint(theirs.powi(2))).sqrt())
}
