//! Boots or runs that hold unequally many values: each counts by what it knows, in a model of random effects.
//!
//! Medians of all units count alike by ranks, though one stands for two values and the next for twelve. Where the values suit the
//! model, none far from the rest and none missing, each side's mean is that of generalised least squares with variances by REML,
//! and the two are held against each other by Student's t. Units of about equal size stay with ranks, which fear no shape, and so do those
//! of which one lies far from the others.
//! Simulated: docs/statistics.md, and docs/decisions/random-effects.md.

use std::collections::BTreeMap;

use perflab_stats::{RandomEffects, StatsError};

use crate::compare::alignment::{IterationKey, MetricSamples};
use crate::compare::change::{ChangeEstimate, ChangeScale, RepetitionLevel, change_of_test};
use crate::compare::comparison::SamplePoint;
use crate::compare::experimental_unit::{ComparisonUnits, FEWEST_BY_RANKS};
use crate::compare::tails::FarFences;

/// Units are unequal where the largest of a side has at least half as many values again as the smallest.
const UNEQUAL: (usize, usize) = (3, 2);

/// The change by a model of random effects; none where units are about equal, paired, or few, where a value lies beyond the fences,
/// or where the model has no answer.
pub(crate) fn estimate_unequal_units(
    baseline: &MetricSamples,
    candidate: &MetricSamples,
    units: &ComparisonUnits,
    margin: f64,
    confidences: [f64; 2],
) -> Option<ChangeEstimate> {
    let level = units.level;
    let is_repeated = matches!(level, RepetitionLevel::Boot | RepetitionLevel::Run);
    let fewest = units.baseline.len().min(units.candidate.len());
    if !is_repeated || units.paired || units.relation.between_runs || fewest < FEWEST_BY_RANKS {
        return None;
    }
    let sides = [baseline, candidate];
    let sizes = sides.map(|side| unit_sizes(side, level));
    let are_unequal = |sizes: &Vec<usize>| {
        let ends = sizes.iter().max().zip(sizes.iter().min());
        ends.is_some_and(|(most, least)| most * UNEQUAL.1 >= least * UNEQUAL.0)
    };
    if [sizes[0].len(), sizes[1].len()] != [units.baseline.len(), units.candidate.len()]
        || !sizes.iter().any(are_unequal)
    {
        return None;
    }
    let values = || sides.into_iter().flat_map(|side| side.points.iter()).map(|point| point.value);
    let scale = units.scale();
    let fences = FarFences::of_sides(baseline, candidate, margin).ok().flatten()?;
    // A unit may lie far from the others, too.
    let has_far_unit = |units: &[f64]| {
        let fences = FarFences::of_values(units.to_vec(), margin);
        fences.is_ok_and(|fences| units.iter().any(|unit| fences.excludes(*unit)))
    };
    // Units may be above zero where a value of theirs is not.
    if (scale == ChangeScale::Ratio && values().any(|value| value <= 0.0))
        || values().any(|value| fences.excludes(value))
        || [&units.baseline, &units.candidate].into_iter().any(|side| has_far_unit(side))
    {
        return None;
    }
    let means = sides.map(|side| fit_side(side, level, scale).map(|fit| fit.mean));
    let [Ok(ours), Ok(theirs)] = means else { return None };
    let found = ours.compare(&theirs).ok()?;
    let on_scale = |units: &[f64]| units.iter().map(|value| scale.on_scale(*value)).collect::<Vec<f64>>();
    let (x, y) = (on_scale(&units.baseline), on_scale(&units.candidate));
    change_of_test(scale, &found, (&x, &y), confidences).ok()
}

/// The unit of a value: its boot, or its run within that.
fn unit_of(point: &SamplePoint, level: RepetitionLevel) -> (u32, u32) {
    if level == RepetitionLevel::Boot { (point.boot, 0) } else { (point.boot, point.run) }
}

fn unit_sizes(side: &MetricSamples, level: RepetitionLevel) -> Vec<usize> {
    let mut sizes: BTreeMap<(u32, u32), usize> = BTreeMap::new();
    side.points.iter().for_each(|point| *sizes.entry(unit_of(point, level)).or_default() += 1);
    sizes.into_values().collect()
}

/// Units, runs within boots, and iterations where they hold several values.
fn fit_side(
    side: &MetricSamples,
    level: RepetitionLevel,
    scale: ChangeScale,
) -> Result<RandomEffects, StatsError> {
    let mut numbers: BTreeMap<(u32, u32), u32> = BTreeMap::new();
    for point in side.points.iter() {
        let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
        numbers.entry(unit_of(point, level)).or_insert(next);
    }
    let path = |point: &SamplePoint| {
        let unit = numbers.get(&unit_of(point, level)).copied().unwrap_or_default();
        ([unit, point.run, point.iteration], scale.on_scale(point.value))
    };
    let values: Vec<([u32; 3], f64)> = side.points.iter().map(path).collect();
    let mut iterations: Vec<IterationKey> = side.points.iter().map(SamplePoint::iteration_key).collect();
    iterations.sort_unstable();
    iterations.dedup();
    if iterations.len() < values.len() {
        return RandomEffects::from_paths(&values);
    }
    let of_runs: Vec<([u32; 2], f64)> =
        values.into_iter().map(|([unit, run, _], value)| ([unit, run], value)).collect();
    RandomEffects::from_paths(&of_runs)
}
