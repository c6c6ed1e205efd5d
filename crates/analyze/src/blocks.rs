//! Owns the choice of what is compared with what: boots where they repeat, else pairs of a block, else iterations.
//! It refuses to pool levels: iterations of one boot share its luck.

use std::borrow::Cow;
use std::collections::BTreeMap;

use perflab_stats::{StatsError, median};

use crate::comparison::{Level, Method, Point};
use crate::seen::{Cell, Index};

/// Fewest pairs for an interval at 95 %; below, the sides are compared unpaired.
const FEWEST_PAIRS: usize = 6;
/// Fewest boots a side for an interval at 95 % by ranks.
const FEWEST_BY_RANKS: usize = 4;
/// Most values a side: all pairs of them are looked at. More are compared as medians of equal batches of neighbours, which
/// also keeps values that follow one another from counting as independent.
const MOST_VALUES: usize = 200;

/// The values to compare, one a unit of comparison.
#[derive(Debug)]
pub(crate) struct Units {
    pub(crate) level: Level,
    pub(crate) paired: bool,
    pub(crate) baseline: Vec<f64>,
    pub(crate) candidate: Vec<f64>,
    /// The sides come from different boots, which do not repeat on both.
    pub(crate) one_boot: bool,
    /// Of some of several runs nobody knows whether they are of one boot.
    pub(crate) unknown_boot: bool,
}

impl Units {
    /// Chooses them.
    pub(crate) fn of(baseline: &Cell, candidate: &Cell, index: &Index) -> Result<Self, StatsError> {
        let (ours, theirs) = (baseline.by_boot(), candidate.by_boot());
        if ours.len() >= 2 && theirs.len() >= 2 {
            return Self::boots(&medians(&ours)?, &medians(&theirs)?);
        }
        let one_boot = !ours.keys().eq(theirs.keys());
        let unknown_boot = ours.keys().chain(theirs.keys()).any(|boot| index.is_unknown_boot(*boot));
        let unknown_boot = unknown_boot && are_of_several_runs(baseline, candidate);
        let pairs = pairs(&by_block(baseline, index), &by_block(candidate, index));
        let paired = pairs.0.len() >= FEWEST_PAIRS;
        let (x, y) = if paired { pairs } else { iterations(baseline, candidate)? };
        let (baseline, candidate) = (batched(x)?, batched(y)?);
        Ok(Units { level: Level::Iteration, paired, baseline, candidate, one_boot, unknown_boot })
    }

    /// Boots that measured both sides are pairs of their own.
    fn boots(ours: &BTreeMap<u32, f64>, theirs: &BTreeMap<u32, f64>) -> Result<Self, StatsError> {
        let pairs = pairs(ours, theirs);
        let paired = pairs.0.len() >= FEWEST_PAIRS;
        let all = || (ours.values().copied().collect(), theirs.values().copied().collect());
        let (x, y) = if paired { pairs } else { all() };
        Ok(Units {
            level: Level::Boot,
            paired,
            baseline: batched(x)?,
            candidate: batched(y)?,
            one_boot: false,
            unknown_boot: false,
        })
    }

    /// Two or three boots have no interval by ranks: their means have one by t, where a side has any spread.
    pub(crate) fn by_means(&self) -> bool {
        let few = self.baseline.len().min(self.candidate.len()) < FEWEST_BY_RANKS;
        let spreads = |side: &[f64]| side.windows(2).any(|pair| pair.first() != pair.last());
        let differ = spreads(&self.baseline) || spreads(&self.candidate);
        self.level == Level::Boot && !self.paired && few && differ
    }

    pub(crate) fn method(&self) -> Method {
        let (baseline, candidate) = (self.baseline.len(), self.candidate.len());
        Method { level: self.level, paired: self.paired, by_means: self.by_means(), baseline, candidate }
    }
}

fn are_of_several_runs(baseline: &Cell, candidate: &Cell) -> bool {
    let mut runs = baseline.points.iter().chain(candidate.points.iter()).map(|point| point.run);
    let first = runs.next();
    runs.any(|run| Some(run) != first)
}

fn medians(boots: &BTreeMap<u32, Cow<'_, [Point]>>) -> Result<BTreeMap<u32, f64>, StatsError> {
    let of = |points: &[Point]| median(&points.iter().map(|point| point.value).collect::<Vec<_>>());
    boots.iter().map(|(boot, points)| Ok((*boot, of(points)?))).collect()
}

/// The values of both sides; where iterations of both hold several values each, their medians, since values of one
/// iteration share its luck.
fn iterations(baseline: &Cell, candidate: &Cell) -> Result<(Vec<f64>, Vec<f64>), StatsError> {
    let sides = [baseline, candidate].map(by_iteration);
    let groups = |points: &[Point]| points.chunk_by(together).count();
    let several = sides.iter().any(|points| groups(points) < points.len());
    if !several || sides.iter().any(|points| groups(points) < 2) {
        return Ok((baseline.values(), candidate.values()));
    }
    let middle = |group: &[Point]| median(&group.iter().map(|point| point.value).collect::<Vec<_>>());
    let [ours, theirs] = sides.map(|points| points.chunk_by(together).map(middle).collect::<Result<_, _>>());
    Ok((ours?, theirs?))
}

/// Run, boot and iteration.
fn iteration(point: &Point) -> (u32, u32, u32) {
    (point.run, point.boot, point.iteration)
}

fn together(one: &Point, next: &Point) -> bool {
    iteration(one) == iteration(next)
}

/// The values by run, boot and iteration, which is their order in time more often than not.
fn by_iteration(cell: &Cell) -> Cow<'_, [Point]> {
    let mut points = Cow::Borrowed(&cell.points[..]);
    if !points.is_sorted_by_key(iteration) {
        points.to_mut().sort_by_key(iteration);
    }
    points
}

/// The values of runs in complete blocks, by run, boot and block.
fn by_block(cell: &Cell, index: &Index) -> BTreeMap<(u32, u32, u32), f64> {
    let in_blocks = cell.points.iter().filter(|point| index.has_blocks(point.run));
    in_blocks.map(|point| ((point.run, point.boot, point.iteration), point.value)).collect()
}

/// Values that both sides have, in the order of the keys.
fn pairs<K: Ord>(ours: &BTreeMap<K, f64>, theirs: &BTreeMap<K, f64>) -> (Vec<f64>, Vec<f64>) {
    ours.iter().filter_map(|(key, value)| Some((*value, *theirs.get(key)?))).unzip()
}

fn batched(values: Vec<f64>) -> Result<Vec<f64>, StatsError> {
    if values.len() <= MOST_VALUES {
        return Ok(values);
    }
    values.chunks(values.len().div_ceil(MOST_VALUES)).map(median).collect()
}
