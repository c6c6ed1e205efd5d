//! What is compared with what: the highest level that repeats on both sides: machines, else boots, else runs, else layouts, else
//! iterations.
//!
//! Whatever an import repeats around its executions counts as runs where its files do not tell boots apart.
//!
//! Levels are never pooled: iterations of one boot share its luck, and those of one run that of the run. Only levels of a factor
//! that were measured within one run, in turn, share that luck on both sides, and are compared by iteration. A side that has one
//! boot, or one run of that boot, borrows the spread of the other side's.
//!
//! Layouts are drawn by the study's seed, and may be the same in all boots and runs: where there are fewer of them than of those,
//! they are compared.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use perflab_stats::{StatsError, has_coarse_scale, median, trimmed_mean};

use crate::compare::alignment::{MetricSamples, SampleIndex};
use crate::compare::change::{ChangeScale, EstimationMethod, RepetitionLevel};
use crate::compare::comparison::SamplePoint;

/// Fewest pairs for an interval at 95 % by ranks; below, the sides are compared unpaired, but where they are of machines, which may
/// differ by any factor: those by the means of their differences.
const FEWEST_PAIRS: usize = 6;

/// Fewest boots or runs a side for an interval at 95 % by ranks.
pub(crate) const FEWEST_BY_RANKS: usize = 4;

/// Most values a side: all pairs of them are looked at. More are compared as medians of equal batches of neighbours, which
/// also keeps values that follow one another from counting as independent.
const MOST_VALUES: usize = 200;

/// What stands for the values of a unit: their median, or their mean.
pub(crate) type UnitSummary = fn(&[f64]) -> Result<f64, StatsError>;

/// What is cut off each end of the values of a unit before their mean is taken, so that a far one in ten does not move it.
const TRIMMED_SHARE: f64 = 0.1;

/// What stands for the values of a unit where middles are compared: their median; on a coarse scale, where medians move by whole
/// steps, their trimmed mean.
pub(crate) fn middle_summary(baseline: &MetricSamples, candidate: &MetricSamples) -> UnitSummary {
    let all = [baseline.values(), candidate.values()].concat();
    if has_coarse_scale(&all) { |values| trimmed_mean(values, TRIMMED_SHARE) } else { median }
}

/// The values to compare, one a unit of comparison.
#[derive(Debug)]
pub(crate) struct ComparisonUnits {
    pub(crate) level: RepetitionLevel,
    pub(crate) paired: bool,
    pub(crate) baseline: Vec<f64>,
    pub(crate) candidate: Vec<f64>,
    /// Of pairs, the values of each side whose partner failed.
    pub(crate) rest: [Vec<f64>; 2],
    /// Of paired units, those of either side that have no partner.
    pub(crate) left_out: usize,
    pub(crate) relation: SideRelation,
    /// They are the values as they are, each of which is a unit.
    pub(crate) plain: bool,
    /// Whether they are compared by differences, whatever they are.
    pub(crate) differences: bool,
}

/// What both sides share, and what they do not: how much a difference between them may say.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SideRelation {
    /// The sides come from different boots, which do not repeat on both.
    pub(crate) one_boot: bool,
    /// Of some of several runs nobody knows whether they are of one boot.
    pub(crate) unknown_boot: bool,
    /// Nothing above the iteration repeats, and the sides are of different runs (or of different boots, of several runs each), or
    /// were measured in turn: whatever differs between these two may be their luck.
    pub(crate) between_runs: bool,
    /// The sides are levels of one run that were measured one after the other.
    pub(crate) in_turn: bool,
    /// The sides are levels of a run that was looked at after every block, to end once they were decided.
    pub(crate) looked_at: bool,
}

/// What a side's values come from.
struct SideLevels<'a> {
    /// None where that of any run is unknown.
    machines: BTreeSet<u32>,
    boots: BTreeMap<u32, Cow<'a, [SamplePoint]>>,
    runs: BTreeSet<(u32, u32)>,
}

impl<'a> SideLevels<'a> {
    fn from_samples(samples: &'a MetricSamples, index: &SampleIndex) -> Self {
        let boots = samples.by_boot();
        let ranges = samples.points.chunk_by(|one, next| (one.boot, one.run) == (next.boot, next.run));
        let runs: BTreeSet<(u32, u32)> =
            ranges.filter_map(|points| points.first()).map(|point| (point.boot, point.run)).collect();
        SideLevels { machines: samples.machines(index).into_values().collect(), boots, runs }
    }

    fn repeats(&self, level: RepetitionLevel) -> bool {
        match level {
            RepetitionLevel::Machine => self.machines.len() >= 2,
            RepetitionLevel::Boot => self.boots.len() >= 2,
            RepetitionLevel::Run => self.runs.len() >= 2,
            RepetitionLevel::Layout | RepetitionLevel::Iteration => true,
        }
    }
}

impl ComparisonUnits {
    /// Chooses them.
    pub(crate) fn choose(
        baseline: &MetricSamples,
        candidate: &MetricSamples,
        index: &SampleIndex,
        summary: UnitSummary,
    ) -> Result<Self, StatsError> {
        let [ours, theirs] = [baseline, candidate].map(|side| SideLevels::from_samples(side, index));
        let both = |level| ours.repeats(level) && theirs.repeats(level);
        let either = |level| ours.repeats(level) || theirs.repeats(level);
        if both(RepetitionLevel::Machine) {
            let sides = summarise_alike(baseline.by_machine(index), candidate.by_machine(index), summary)?;
            return Self::from_repeated(RepetitionLevel::Machine, sides, summary);
        }
        let layouts = [baseline, candidate].map(|side| side.by_layout(index));
        let fewest_layouts = layouts.iter().map(BTreeMap::len).min().filter(|layouts| *layouts >= 2);
        let are_fewer = |units: [usize; 2]| {
            fewest_layouts.is_some_and(|fewest| units.iter().all(|units| fewest < *units))
        };
        let is_by_layout = are_fewer([ours.boots.len(), theirs.boots.len()])
            || are_fewer([ours.runs.len(), theirs.runs.len()]);
        let boots_unknown =
            ours.boots.keys().chain(theirs.boots.keys()).any(|boot| index.is_unknown_boot(*boot));
        if both(RepetitionLevel::Boot) && !boots_unknown && is_by_layout {
            return Self::from_layouts(&layouts, SideRelation::default(), summary);
        }
        if both(RepetitionLevel::Boot) && !boots_unknown {
            let sides = summarise_alike(values_by_boot(&ours.boots), values_by_boot(&theirs.boots), summary)?;
            return Self::from_repeated(RepetitionLevel::Boot, sides, summary);
        }
        let one_boot = !ours.boots.keys().eq(theirs.boots.keys());
        let runs: BTreeSet<u32> = ours.runs.iter().chain(&theirs.runs).map(|(_, run)| *run).collect();
        let unknown_boot = boots_unknown && runs.len() > 1;
        let in_both =
            |run: u32| [&ours, &theirs].iter().all(|side| side.runs.iter().any(|(_, own)| *own == run));
        if runs.iter().any(|run| in_both(*run)) {
            // Levels that were measured one after the other are as far apart as two runs.
            let in_turn = !ours.runs.iter().chain(&theirs.runs).any(|(_, run)| index.has_blocks(*run));
            let looked_at = !in_turn && runs.iter().any(|run| in_both(*run) && index.is_looked_at(*run));
            let of_one_run =
                SideRelation { one_boot, unknown_boot, between_runs: in_turn, in_turn, looked_at };
            return match fewest_layouts {
                Some(_) => Self::from_layouts(&layouts, of_one_run, summary),
                None => Self::from_iterations(baseline, candidate, index, of_one_run, summary),
            };
        }
        if either(RepetitionLevel::Boot) && !boots_unknown {
            let sides = summarise_alike(values_by_boot(&ours.boots), values_by_boot(&theirs.boots), summary)?;
            return Ok(Self::from_medians(RepetitionLevel::Boot, sides, SideRelation::default()));
        }
        let same_boot = !one_boot || boots_unknown;
        let of_runs = SideRelation {
            one_boot: !same_boot,
            unknown_boot,
            between_runs: !same_boot,
            ..SideRelation::default()
        };
        if both(RepetitionLevel::Run) && is_by_layout {
            return Self::from_layouts(&layouts, of_runs, summary);
        }
        if both(RepetitionLevel::Run) || (either(RepetitionLevel::Run) && same_boot) {
            let sides = summarise_alike(baseline.by_run(), candidate.by_run(), summary)?;
            return Ok(Self::from_medians(RepetitionLevel::Run, sides, of_runs));
        }
        let of_two_runs =
            SideRelation { one_boot, unknown_boot, between_runs: true, ..SideRelation::default() };
        match fewest_layouts {
            Some(_) => Self::from_layouts(&layouts, of_two_runs, summary),
            None => Self::from_iterations(baseline, candidate, index, of_two_runs, summary),
        }
    }

    /// Layouts that both sides ran under are pairs where there are enough of them, else all layouts are draws.
    fn from_layouts(
        [ours, theirs]: &[BTreeMap<usize, Vec<f64>>; 2],
        relation: SideRelation,
        summary: UnitSummary,
    ) -> Result<Self, StatsError> {
        let units = |side: &BTreeMap<usize, Vec<f64>>| -> Result<BTreeMap<usize, f64>, StatsError> {
            side.iter().map(|(layout, values)| Ok((*layout, summary(values)?))).collect()
        };
        let (ours, theirs) = (units(ours)?, units(theirs)?);
        let pairs = pair_by_key(&ours, &theirs);
        let paired = pairs.0.len() >= FEWEST_PAIRS;
        let all = || (ours.values().copied().collect(), theirs.values().copied().collect());
        let left_out = if paired { ours.len() + theirs.len() - 2 * pairs.0.len() } else { 0 };
        let (x, y) = if paired { pairs } else { all() };
        Ok(ComparisonUnits {
            level: RepetitionLevel::Layout,
            paired,
            baseline: by_batch(x, summary)?,
            candidate: by_batch(y, summary)?,
            rest: Default::default(),
            left_out,
            relation,
            plain: false,
            differences: false,
        })
    }

    /// Iterations of a block as pairs where there are enough of them, else all iterations.
    fn from_iterations(
        baseline: &MetricSamples,
        candidate: &MetricSamples,
        index: &SampleIndex,
        relation: SideRelation,
        summary: UnitSummary,
    ) -> Result<Self, StatsError> {
        // Sides of different runs share no block.
        let (pairs, mut rest) = match relation.between_runs {
            true => Default::default(),
            false => {
                let blocks = |side| by_block(side, index, summary);
                let (ours, theirs) = (blocks(baseline)?, blocks(candidate)?);
                (
                    pair_by_key(&ours, &theirs),
                    [without_partner(&ours, &theirs), without_partner(&theirs, &ours)],
                )
            }
        };
        // Whoever looks after every block sees pairs from the first on, and each of them.
        let always_valid = relation.looked_at && !pairs.0.is_empty();
        let paired = always_valid || pairs.0.len() >= FEWEST_PAIRS;
        if !paired || always_valid || pairs.0.len() > MOST_VALUES {
            rest = Default::default();
        }
        let (x, y) = if paired { pairs } else { by_iteration(baseline, candidate, summary)? };
        let plain = (always_valid || x.len().max(y.len()) <= MOST_VALUES)
            && (x.len(), y.len()) == (baseline.points.len(), candidate.points.len());
        let (baseline, candidate) = match always_valid {
            true => (x, y),
            false => by_equal_batches(x, y, summary)?,
        };
        let level = RepetitionLevel::Iteration;
        let left_out = 0;
        Ok(ComparisonUnits {
            level,
            paired,
            baseline,
            candidate,
            rest,
            left_out,
            relation,
            plain,
            differences: false,
        })
    }

    /// One value each of boots or runs of which nothing makes pairs.
    fn from_medians<K>(
        level: RepetitionLevel,
        (ours, theirs): (UnitSummaries<K>, UnitSummaries<K>),
        relation: SideRelation,
    ) -> Self {
        ComparisonUnits {
            level,
            paired: false,
            baseline: ours.into_values().collect(),
            candidate: theirs.into_values().collect(),
            rest: Default::default(),
            left_out: 0,
            relation,
            plain: false,
            differences: false,
        }
    }

    /// Boots that measured both sides are pairs of their own where there are enough of them; so are machines, as soon as there are two.
    fn from_repeated(
        level: RepetitionLevel,
        (ours, theirs): (UnitSummaries<u32>, UnitSummaries<u32>),
        summary: UnitSummary,
    ) -> Result<Self, StatsError> {
        let pairs = pair_by_key(&ours, &theirs);
        let fewest = if level == RepetitionLevel::Machine { 2 } else { FEWEST_PAIRS };
        let paired = pairs.0.len() >= fewest;
        let all = || (ours.values().copied().collect(), theirs.values().copied().collect());
        let left_out = if paired { ours.len() + theirs.len() - 2 * pairs.0.len() } else { 0 };
        let (x, y) = if paired { pairs } else { all() };
        Ok(ComparisonUnits {
            level,
            paired,
            baseline: by_batch(x, summary)?,
            candidate: by_batch(y, summary)?,
            rest: Default::default(),
            left_out,
            relation: SideRelation::default(),
            plain: false,
            differences: false,
        })
    }

    /// Two or three boots or runs have no interval by ranks: their means have one by t, where a side has any spread. So have the
    /// differences of fewer than six pairs.
    pub(crate) fn uses_means(&self) -> bool {
        if self.level == RepetitionLevel::Iteration {
            return false;
        }
        let spreads = |side: &[f64]| side.windows(2).any(|pair| pair.first() != pair.last());
        if self.paired {
            let scale = self.scale();
            let pairs = self.baseline.iter().zip(&self.candidate);
            let differences: Vec<f64> = pairs.map(|(x, y)| scale.on_scale(*y) - scale.on_scale(*x)).collect();
            return differences.len() < FEWEST_PAIRS && spreads(&differences);
        }
        self.fewest() < FEWEST_BY_RANKS && (spreads(&self.baseline) || spreads(&self.candidate))
    }

    /// The scale on which they are compared.
    pub(crate) fn scale(&self) -> ChangeScale {
        let rest = self.rest.iter().flatten();
        ChangeScale::of_values(self.baseline.iter().chain(&self.candidate).chain(rest), self.differences)
    }

    fn fewest(&self) -> usize {
        self.baseline.len().min(self.candidate.len())
    }

    pub(crate) fn estimation_method(&self) -> EstimationMethod {
        let (baseline, candidate) = (self.baseline.len(), self.candidate.len());
        EstimationMethod {
            level: self.level,
            paired: self.paired,
            estimator: None,
            by_means: self.uses_means(),
            pooled: self.uses_means() && !self.paired && self.fewest() == 1,
            always_valid: self.relation.looked_at && self.paired,
            random_effects: false,
            baseline,
            candidate,
            left_out: self.left_out,
        }
    }
}

fn values_by_boot(boots: &BTreeMap<u32, Cow<'_, [SamplePoint]>>) -> BTreeMap<u32, Vec<f64>> {
    let values = |points: &Cow<'_, [SamplePoint]>| points.iter().map(|point| point.value).collect();
    boots.iter().map(|(boot, points)| (*boot, values(points))).collect()
}

/// One value of each boot or run.
type UnitSummaries<K> = BTreeMap<K, f64>;

/// One value each of the boots or runs of both sides. A side that has a single one borrows the spread of the other's, which is that of
/// units as large as its own: of larger ones no more values count than it has.
fn summarise_alike<K: Ord + Copy>(
    ours: BTreeMap<K, Vec<f64>>,
    theirs: BTreeMap<K, Vec<f64>>,
    summary: UnitSummary,
) -> Result<(UnitSummaries<K>, UnitSummaries<K>), StatsError> {
    let only = |side: &BTreeMap<K, Vec<f64>>| match side.len() {
        1 => side.values().next().map(Vec::len),
        _ => None,
    };
    let most = [only(&ours), only(&theirs)].into_iter().flatten().min().unwrap_or(usize::MAX);
    let summarise = |side: BTreeMap<K, Vec<f64>>| -> Result<UnitSummaries<K>, StatsError> {
        side.into_iter().map(|(unit, values)| Ok((unit, summary(&thin_out(values, most))?))).collect()
    };
    Ok((summarise(ours)?, summarise(theirs)?))
}

/// The values of both sides; where iterations of both hold several values each, one of each iteration, since values of one
/// iteration share its luck.
fn by_iteration(
    baseline: &MetricSamples,
    candidate: &MetricSamples,
    summary: UnitSummary,
) -> Result<(Vec<f64>, Vec<f64>), StatsError> {
    let sides = [baseline, candidate].map(sorted_by_iteration);
    let groups = |points: &[SamplePoint]| points.chunk_by(is_same_iteration).count();
    let several = sides.iter().any(|points| groups(points) < points.len());
    if !several || sides.iter().any(|points| groups(points) < 2) {
        return Ok((baseline.values(), candidate.values()));
    }
    let [ours, theirs] = sides.map(|points| {
        points
            .chunk_by(is_same_iteration)
            .map(|group| summarise_points(group, summary))
            .collect::<Result<_, _>>()
    });
    Ok((ours?, theirs?))
}

fn summarise_points(points: &[SamplePoint], summary: UnitSummary) -> Result<f64, StatsError> {
    match points {
        [only] => Ok(only.value),
        _ => summary(&points.iter().map(|point| point.value).collect::<Vec<_>>()),
    }
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

/// One value of each iteration of runs in complete blocks, by run, boot and block.
fn by_block(
    cell: &MetricSamples,
    index: &SampleIndex,
    summary: UnitSummary,
) -> Result<BTreeMap<(u32, u32, u32), f64>, StatsError> {
    let points = sorted_by_iteration(cell);
    let groups = points.chunk_by(is_same_iteration).filter_map(|group| Some((group.first()?, group)));
    let in_blocks = groups.filter(|(first, _)| index.has_blocks(first.run));
    in_blocks.map(|(first, group)| Ok((first.iteration_key(), summarise_points(group, summary)?))).collect()
}

/// Values that both sides have, in the order of the keys.
fn pair_by_key<K: Ord>(ours: &BTreeMap<K, f64>, theirs: &BTreeMap<K, f64>) -> (Vec<f64>, Vec<f64>) {
    ours.iter().filter_map(|(key, value)| Some((*value, *theirs.get(key)?))).unzip()
}

/// Values that the other side has no partner of.
fn without_partner<K: Ord>(ours: &BTreeMap<K, f64>, theirs: &BTreeMap<K, f64>) -> Vec<f64> {
    ours.iter().filter(|(key, _)| !theirs.contains_key(*key)).map(|(_, value)| *value).collect()
}

/// Values of both sides by batches of one length, since the spread of one side's stands for the other's where that has few; at most
/// [`MOST_VALUES`] of them.
fn by_equal_batches(
    x: Vec<f64>,
    y: Vec<f64>,
    summary: UnitSummary,
) -> Result<(Vec<f64>, Vec<f64>), StatsError> {
    let length = x.len().min(y.len()).div_ceil(MOST_VALUES).max(1);
    let batches = |values: Vec<f64>| -> Result<Vec<f64>, StatsError> {
        let batches = match length {
            1 => values,
            _ => values.chunks(length).map(summary).collect::<Result<_, _>>()?,
        };
        Ok(thin_out(batches, MOST_VALUES))
    };
    Ok((batches(x)?, batches(y)?))
}

/// At most so many of the values, evenly spaced.
fn thin_out(values: Vec<f64>, most: usize) -> Vec<f64> {
    let length = values.len();
    if length <= most {
        return values;
    }
    (0..most).filter_map(|number| values.get(number * length / most).copied()).collect()
}

fn by_batch(values: Vec<f64>, summary: UnitSummary) -> Result<Vec<f64>, StatsError> {
    if values.len() <= MOST_VALUES {
        return Ok(values);
    }
    values.chunks(values.len().div_ceil(MOST_VALUES)).map(summary).collect()
}
