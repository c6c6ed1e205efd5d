//! Owns the numbers of one row: the change, its intervals, its p-value and its noise. It refuses to judge them.

use perflab_stats::{
    Estimate, Method as StatsMethod, PairwiseShifts, StatsError, WalshAverages, mann_whitney, sd,
    signed_rank, welch,
};

use crate::Options;
use crate::blocks::Units;
use crate::comparison::{Change, Interval, Scale};

/// What the data say about one row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Estimated {
    pub(crate) change: Change,
    pub(crate) p: f64,
    /// Standard deviation of one repetition (of one difference, for pairs): of the logarithm on the scale of
    /// ratios, else in the metric's unit. Absent for a single value.
    pub(crate) sd: Option<f64>,
}

/// Estimates the change on the scale of ratios where all values are above zero, else of differences.
pub(crate) fn estimate(units: &Units, options: &Options) -> Result<Estimated, StatsError> {
    let how = (units.paired, units.by_means());
    let all = || units.baseline.iter().chain(&units.candidate);
    if all().all(|value| *value > 0.0) {
        let (x, y) = (logarithms(&units.baseline), logarithms(&units.candidate));
        return on_scale(Scale::Ratio, &x, &y, how, options);
    }
    on_scale(Scale::Absolute, &units.baseline, &units.candidate, how, options)
}

fn logarithms(values: &[f64]) -> Vec<f64> {
    values.iter().map(|value| value.ln()).collect()
}

fn on_scale(
    scale: Scale,
    x: &[f64],
    y: &[f64],
    (paired, by_means): (bool, bool),
    options: &Options,
) -> Result<Estimated, StatsError> {
    let (wide, narrow, p) = if by_means {
        let found = welch(x, y)?;
        let at = |confidence| Ok::<_, StatsError>(Some(found.interval(confidence)?));
        let estimate =
            |interval| Estimate { value: found.difference, interval, method: StatsMethod::StudentT };
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
    let change = Change {
        scale,
        value: on(scale, wide.value),
        interval: interval(scale, &wide),
        narrow: interval(scale, &narrow),
    };
    Ok(Estimated { change, p, sd: noise(x, y, paired) })
}

/// A difference of logarithms as a fraction of the baseline; other differences as they are.
fn on(scale: Scale, shift: f64) -> f64 {
    if scale == Scale::Ratio { shift.exp_m1() } else { shift }
}

fn interval(scale: Scale, estimate: &Estimate) -> Option<Interval> {
    let found = estimate.interval?;
    Some(Interval { low: on(scale, found.low), high: on(scale, found.high), level: found.level })
}

/// Standard deviation of the differences, or the pooled one of both sides.
fn noise(x: &[f64], y: &[f64], paired: bool) -> Option<f64> {
    if paired {
        let differences: Vec<f64> = x.iter().zip(y).map(|(x, y)| y - x).collect();
        return sd(&differences).ok();
    }
    let (ours, theirs) = (sd(x).ok()?, sd(y).ok()?);
    Some((ours.powi(2).midpoint(theirs.powi(2))).sqrt())
}
