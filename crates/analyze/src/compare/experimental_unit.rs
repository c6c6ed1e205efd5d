//! What is compared with what: boots where they repeat, else pairs of a block, else iterations.
//!
//! Levels are never pooled: iterations of one boot share its luck.

use std::borrow::Cow;
use std::collections::BTreeMap;

use perflab_stats::{StatsError, median};

use crate::compare::alignment::{MetricSamples, SampleIndex};
use crate::compare::change::{EstimationMethod, RepetitionLevel};
use crate::compare::comparison::SamplePoint;

/// Fewest pairs for an interval at 95 %; below, the sides are compared unpaired.
const FEWEST_PAIRS: usize = 6;

/// Fewest boots a side for an interval at 95 % by ranks.
const FEWEST_BY_RANKS: usize = 4;

/// Most values a side: all pairs of them are looked at. More are compared as medians of equal batches of neighbours, which
/// also keeps values that follow one another from counting as independent.
const MOST_VALUES: usize = 200;

/// The values to compare, one a unit of comparison.
#[derive(Debug)]
pub(crate) struct ComparisonUnits {
    pub(crate) level: RepetitionLevel,
    pub(crate) paired: bool,
    pub(crate) baseline: Vec<f64>,
    pub(crate) candidate: Vec<f64>,
    /// The sides come from different boots, which do not repeat on both.
    pub(crate) one_boot: bool,
    /// Of some of several runs nobody knows whether they are of one boot.
    pub(crate) unknown_boot: bool,
}

impl ComparisonUnits {
    /// Chooses them.
    pub(crate) fn choose(
        baseline: &MetricSamples,
        candidate: &MetricSamples,
        index: &SampleIndex,
    ) -> Result<Self, StatsError> {
        let (ours, theirs) = (baseline.by_boot(), candidate.by_boot());
        if ours.len() >= 2 && theirs.len() >= 2 {
            return Self::from_boots(&medians_by_boot(&ours)?, &medians_by_boot(&theirs)?);
        }
        let one_boot = !ours.keys().eq(theirs.keys());
        let unknown_boot = ours.keys().chain(theirs.keys()).any(|boot| index.is_unknown_boot(*boot));
        let unknown_boot = unknown_boot && has_several_runs(baseline, candidate);
        let pairs = pair_by_key(&values_by_block(baseline, index), &values_by_block(candidate, index));
        let paired = pairs.0.len() >= FEWEST_PAIRS;
        let (x, y) = if paired { pairs } else { values_by_iteration(baseline, candidate)? };
        let (baseline, candidate) = (batch_medians(x)?, batch_medians(y)?);
        Ok(ComparisonUnits {
            level: RepetitionLevel::Iteration,
            paired,
            baseline,
            candidate,
            one_boot,
            unknown_boot,
        })
    }

    /// Boots that measured both sides are pairs of their own.
    fn from_boots(ours: &BTreeMap<u32, f64>, theirs: &BTreeMap<u32, f64>) -> Result<Self, StatsError> {
        let pairs = pair_by_key(ours, theirs);
        let paired = pairs.0.len() >= FEWEST_PAIRS;
        let all = || (ours.values().copied().collect(), theirs.values().copied().collect());
        let (x, y) = if paired { pairs } else { all() };
        Ok(ComparisonUnits {
            level: RepetitionLevel::Boot,
            paired,
            baseline: batch_medians(x)?,
            candidate: batch_medians(y)?,
            one_boot: false,
            unknown_boot: false,
        })
    }

    /// Two or three boots have no interval by ranks: their means have one by t, where a side has any spread.
    pub(crate) fn uses_means(&self) -> bool {
        let few = self.baseline.len().min(self.candidate.len()) < FEWEST_BY_RANKS;
        let spreads = |side: &[f64]| side.windows(2).any(|pair| pair.first() != pair.last());
        let differ = spreads(&self.baseline) || spreads(&self.candidate);
        self.level == RepetitionLevel::Boot && !self.paired && few && differ
    }

    pub(crate) fn estimation_method(&self) -> EstimationMethod {
        let (baseline, candidate) = (self.baseline.len(), self.candidate.len());
        EstimationMethod {
            level: self.level,
            paired: self.paired,
            by_means: self.uses_means(),
            baseline,
            candidate,
        }
    }
}

fn has_several_runs(baseline: &MetricSamples, candidate: &MetricSamples) -> bool {
    let mut runs = baseline.points.iter().chain(candidate.points.iter()).map(|point| point.run);
    let first = runs.next();
    runs.any(|run| Some(run) != first)
}

fn medians_by_boot(boots: &BTreeMap<u32, Cow<'_, [SamplePoint]>>) -> Result<BTreeMap<u32, f64>, StatsError> {
    let of = |points: &[SamplePoint]| median(&points.iter().map(|point| point.value).collect::<Vec<_>>());
    boots.iter().map(|(boot, points)| Ok((*boot, of(points)?))).collect()
}

/// The values of both sides; where iterations of both hold several values each, their medians, since values of one
/// iteration share its luck.
fn values_by_iteration(
    baseline: &MetricSamples,
    candidate: &MetricSamples,
) -> Result<(Vec<f64>, Vec<f64>), StatsError> {
    let sides = [baseline, candidate].map(sorted_by_iteration);
    let groups = |points: &[SamplePoint]| points.chunk_by(is_same_iteration).count();
    let several = sides.iter().any(|points| groups(points) < points.len());
    if !several || sides.iter().any(|points| groups(points) < 2) {
        return Ok((baseline.values(), candidate.values()));
    }
    let middle = |group: &[SamplePoint]| median(&group.iter().map(|point| point.value).collect::<Vec<_>>());
    let [ours, theirs] =
        sides.map(|points| points.chunk_by(is_same_iteration).map(middle).collect::<Result<_, _>>());
    Ok((ours?, theirs?))
}

fn is_same_iteration(one: &SamplePoint, next: &SamplePoint) -> bool {
    one.iteration_key() == next.iteration_key()
}

/// The values by run, boot and iteration, which is their order in time more often than not.
fn sorted_by_iteration(cell: &MetricSamples) -> Cow<'_, [SamplePoint]> {
    let mut points = Cow::Borrowed(&cell.points[..]);
    if !points.is_sorted_by_key(SamplePoint::iteration_key) {
        points.to_mut().sort_by_key(SamplePoint::iteration_key);
    }
    points
}

/// The values of runs in complete blocks, by run, boot and block.
fn values_by_block(cell: &MetricSamples, index: &SampleIndex) -> BTreeMap<(u32, u32, u32), f64> {
    let in_blocks = cell.points.iter().filter(|point| index.has_blocks(point.run));
    in_blocks.map(|point| (point.iteration_key(), point.value)).collect()
}

/// Values that both sides have, in the order of the keys.
fn pair_by_key<K: Ord>(ours: &BTreeMap<K, f64>, theirs: &BTreeMap<K, f64>) -> (Vec<f64>, Vec<f64>) {
    ours.iter().filter_map(|(key, value)| Some((*value, *theirs.get(key)?))).unzip()
}

fn batch_medians(values: Vec<f64>) -> Result<Vec<f64>, StatsError> {
    if values.len() <= MOST_VALUES {
        return Ok(values);
    }
    values.chunks(values.len().div_ceil(MOST_VALUES)).map(median).collect()
}
