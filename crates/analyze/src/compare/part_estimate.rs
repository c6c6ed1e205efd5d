//! The mean and the tail quantiles of a row: how far they moved.

use std::borrow::Cow;

use perflab_model::Direction;
use perflab_stats::{
    MeanScale, QuantileShift, StatsError, WelchTest, dependent_freedom, mean, mean_shift, paired_mean_shift,
    pooled_mean_shift,
};

use crate::compare::alignment::{MetricSamples, SampleIndex};
use crate::compare::between_runs::FARTHEST_RATIO;
use crate::compare::change::{
    BetweenRuns, ChangeInterval, ChangeScale, IntervalMeaning, MetricChange, RepetitionLevel,
};
use crate::compare::compared_part::{ComparedPart, PartComparison};
use crate::compare::comparison::{SamplePoint, SampleValues};
use crate::compare::experimental_unit::ComparisonUnits;
use crate::compare::tails::FarFences;

/// Values of a run are taken in so many batches of neighbours, which may depend on one another.
const BATCHES: usize = 20;

/// Fewest values a side for any tail quantile: ten beyond p95.
const FEWEST_FOR_QUANTILES: usize = 200;

/// What the middle of a row was estimated with.
pub(crate) struct PartContext<'a> {
    pub(crate) index: &'a SampleIndex,
    pub(crate) units: &'a ComparisonUnits,
    pub(crate) scale: ChangeScale,
    /// What its interval allows for where a side has one run.
    pub(crate) between_runs: Option<BetweenRuns>,
    pub(crate) confidences: [f64; 2],
    /// Beyond them values are far from the rest of both sides.
    pub(crate) fences: Option<FarFences>,
}

/// The parts that the values carry; one that cannot be computed is left out.
pub(crate) fn compare_parts(
    baseline: &MetricSamples,
    candidate: &MetricSamples,
    direction: Direction,
    context: &PartContext<'_>,
) -> Vec<PartComparison> {
    let quantiles: &[ComparedPart] = match direction {
        Direction::Lower => &[ComparedPart::P95, ComparedPart::P99],
        Direction::Higher => &[ComparedPart::P5, ComparedPart::P1],
        Direction::Neither => &[],
    };
    let enough = baseline.points.len().min(candidate.points.len()) >= FEWEST_FOR_QUANTILES;
    let mut parts: Vec<PartComparison> = context.mean(baseline, candidate).ok().into_iter().collect();
    if enough && !quantiles.is_empty() {
        let level = context.units.level;
        let sides = [baseline, candidate].map(|side| clusters_on_scale(side, level, context));
        let found = quantiles.iter().filter_map(|part| context.quantile(*part, &sides).ok().flatten());
        parts.extend(found);
    }
    parts
}

impl PartContext<'_> {
    fn covers(&self) -> IntervalMeaning {
        if self.between_runs.is_some() { IntervalMeaning::TheseRuns } else { IntervalMeaning::Change }
    }

    fn mean(
        &self,
        baseline: &MetricSamples,
        candidate: &MetricSamples,
    ) -> Result<PartComparison, StatsError> {
        let units;
        let (x, y) = if self.units.plain {
            let bounded = |values: &[f64]| values.iter().map(|value| self.bound(*value)).collect();
            (bounded(&self.units.baseline), bounded(&self.units.candidate))
        } else {
            let sides = (self.bound_samples(baseline), self.bound_samples(candidate));
            units = ComparisonUnits::choose(&sides.0, &sides.1, self.index, mean)?;
            (units.baseline, units.candidate)
        };
        let scale = match self.scale {
            ChangeScale::Ratio => MeanScale::LogRatio,
            ChangeScale::Absolute => MeanScale::Difference,
        };
        let single = x.len().min(y.len()) == 1;
        let found = match (self.units.paired, single) {
            (true, _) => paired_mean_shift(&x, &y, scale)?,
            (false, true) => pooled_mean_shift(&x, &y, scale)?,
            (false, false) => mean_shift(&x, &y, scale)?,
        };
        let found = match self.between_runs {
            Some(runs) => found.widened(runs.widened, dependent_freedom(x.len() + y.len(), runs.widened)),
            None => found,
        };
        let [wide, narrow] = self.confidences.map(|confidence| self.interval_of(&found, confidence));
        if self.between_runs.is_some() && self.scale == ChangeScale::Ratio {
            let limit = found.interval(self.confidences[0])?.high;
            if limit - found.difference > FARTHEST_RATIO.ln() {
                return Err(StatsError::Overflow);
            }
        }
        Ok(PartComparison {
            part: ComparedPart::Mean,
            baseline: mean(&x)?,
            candidate: mean(&y)?,
            change: MetricChange {
                scale: self.scale,
                value: self.scale.change_of_shift(found.difference),
                interval: Some(wide?),
                narrow: Some(narrow?),
                covers: self.covers(),
            },
            p: found.p,
            q: found.p,
        })
    }

    fn interval_of(&self, found: &WelchTest, confidence: f64) -> Result<ChangeInterval, StatsError> {
        let interval = found.interval(confidence)?;
        Ok(self.limits_of_change(interval.low, interval.high, confidence))
    }

    fn limits_of_change(&self, low: f64, high: f64, level: f64) -> ChangeInterval {
        let (low, high) = (self.scale.change_of_shift(low), self.scale.change_of_shift(high));
        ChangeInterval { low, high, level }
    }

    /// A value no farther off than the fences.
    fn bound(&self, value: f64) -> f64 {
        self.fences.map_or(value, |fences| fences.bound(value))
    }

    fn bound_samples<'a>(&self, samples: &'a MetricSamples) -> Cow<'a, MetricSamples> {
        if samples.points.iter().all(|point| self.bound(point.value) == point.value) {
            return Cow::Borrowed(samples);
        }
        let bounded = |point: &SamplePoint| SamplePoint { value: self.bound(point.value), ..*point };
        let points: Vec<SamplePoint> = samples.points.iter().map(bounded).collect();
        Cow::Owned(MetricSamples { points: SampleValues::from(points), ..samples.without_values() })
    }

    fn quantile(
        &self,
        part: ComparedPart,
        [baseline, candidate]: &[Vec<Vec<f64>>; 2],
    ) -> Result<Option<PartComparison>, StatsError> {
        let Some(fraction) = part.fraction() else { return Ok(None) };
        let Some(found) = QuantileShift::from_clusters(baseline, candidate, fraction)? else {
            return Ok(None);
        };
        let [wide, narrow] = self.confidences;
        let Some(interval) = found.interval(wide)? else { return Ok(None) };
        let narrow = found.interval(narrow)?;
        let value_of = |on_scale: f64| match self.scale {
            ChangeScale::Ratio => on_scale.exp(),
            ChangeScale::Absolute => on_scale,
        };
        let (before, after) = found.values();
        let p = found.p();
        Ok(Some(PartComparison {
            part,
            baseline: value_of(before),
            candidate: value_of(after),
            change: MetricChange {
                scale: self.scale,
                value: self.scale.change_of_shift(found.shift()),
                interval: Some(self.limits_of_change(interval.low, interval.high, wide)),
                narrow: narrow.map(|narrow| self.limits_of_change(narrow.low, narrow.high, narrow.level)),
                covers: self.covers(),
            },
            p,
            q: p,
        }))
    }
}

/// The values in what shares its luck: boots, runs, layouts, or batches of neighbours in time.
fn clusters_on_scale(
    samples: &MetricSamples,
    level: RepetitionLevel,
    context: &PartContext<'_>,
) -> Vec<Vec<f64>> {
    let on_scale = |value: f64| context.scale.on_scale(value);
    let all_on_scale = |values: Vec<f64>| values.into_iter().map(on_scale).collect();
    match level {
        RepetitionLevel::Boot => {
            let boots = samples.by_boot();
            boots.values().map(|points| points.iter().map(|point| on_scale(point.value)).collect()).collect()
        }
        RepetitionLevel::Machine => {
            samples.by_machine(context.index).into_values().map(all_on_scale).collect()
        }
        RepetitionLevel::Run => samples.by_run().into_values().map(all_on_scale).collect(),
        RepetitionLevel::Layout => samples.by_layout(context.index).into_values().map(all_on_scale).collect(),
        RepetitionLevel::Iteration => {
            let length = samples.points.len().div_ceil(BATCHES).max(1);
            let batches = samples.points.chunks(length);
            batches.map(|points| points.iter().map(|point| on_scale(point.value)).collect()).collect()
        }
    }
}
