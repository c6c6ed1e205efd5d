//! Which boxes of a call tree, and which functions, changed between two sides, and which differences are noise.
//!
//! A box's share is its inclusive samples by all samples that were kept, so differences are normalised and add up
//! along the tree; a function's share is that of the samples with it on their stack. The rule, for boxes and for
//! functions alike:
//!
//! 1. Each repetition (run, or measured iteration of the only run) gives one share a box. The difference is
//!    that of the means, with Welch's interval at 95 %.
//! 2. The variance of a side is never taken smaller than what counting samples alone would give, p (1 - p) / n:
//!    two repetitions that happen to agree prove nothing.
//! 3. Boxes with fewer than [`FEWEST_COMPARED_SAMPLES`] samples on both sides together are not judged; over the others the p-values
//!    are adjusted after Benjamini and Hochberg, and q ≤ 0.05 is a change. Everything else is noise.
//! 4. Where a side has one repetition only, counting is all that is known: [`NoiseBasis::Counts`]. Such intervals
//!    are too narrow, and whoever shows them must say so.

use perflab_stats::{SampleMoments, benjamini_hochberg, welch_of_moments};

use super::tree::find_outermost_nodes;
use super::{JoinedProfiles, JoinedSide, ProfileAmount};

/// Boxes below this many samples, both sides together, are not judged.
pub const FEWEST_COMPARED_SAMPLES: u64 = 16;
/// The rate of false discoveries among boxes that are called changed.
pub const FALSE_DISCOVERY_RATE: f64 = 0.05;
/// The confidence of each interval.
pub const CONFIDENCE: f64 = 0.95;
/// Repetitions that stand for infinitely many where only counting is known: t is then normal.
const COUNTING_REPETITIONS: usize = 1_000_000;

/// What the intervals rest on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoiseBasis {
    /// repetitions: so many before and after
    Repetitions(usize, usize),
    /// numbers of samples only, as a side was not repeated
    Counts,
}

/// The difference of one box or function.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ShareDifference {
    /// Index into [`JoinedProfiles::nodes`] or [`JoinedProfiles::function_rows`].
    pub of: u32,
    /// Share after minus share before, from -1 to 1.
    pub difference: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end of its interval.
    pub high: f64,
    /// Its adjusted p-value.
    pub q: f64,
}

impl ShareDifference {
    /// Whether it is more than noise.
    pub fn is_change(&self) -> bool {
        self.q <= FALSE_DISCOVERY_RATE
    }
}

/// Everything that could be judged, by number.
#[derive(Debug, Clone, PartialEq)]
pub struct ProfileChanges {
    /// What the intervals rest on.
    pub basis: NoiseBasis,
    /// Boxes.
    pub nodes: Vec<ShareDifference>,
    /// Functions, wherever they are called from.
    pub functions: Vec<ShareDifference>,
}

/// Compares two sides of a joined tree; `None` where one of them is not there or has no sample.
pub fn profile_changes(joined: &JoinedProfiles<'_>, before: usize, after: usize) -> Option<ProfileChanges> {
    let sides = [before, after].map(|side| RepetitionShares::from_side(joined, joined.sides.get(side)?));
    let [Some(before), Some(after)] = sides else { return None };
    let basis = match (before.repetitions.len(), after.repetitions.len()) {
        (0 | 1, _) | (_, 0 | 1) => NoiseBasis::Counts,
        (m, n) => NoiseBasis::Repetitions(m, n),
    };
    let nodes: Vec<_> = joined.nodes.iter().map(|node| (node.parent, node.function)).collect();
    let outermost = find_outermost_nodes(&nodes);
    let [f, g] = [&before, &after].map(|side| side.grouped_by_function(joined, &outermost));
    Some(ProfileChanges {
        basis,
        nodes: share_differences(&before, &after, basis)?,
        functions: share_differences(&f, &g, basis)?,
    })
}

/// The differences of one family, with p-values adjusted within it.
fn share_differences(
    before: &RepetitionShares,
    after: &RepetitionShares,
    basis: NoiseBasis,
) -> Option<Vec<ShareDifference>> {
    let enough =
        |of: &usize| before.samples_of(*of).saturating_add(after.samples_of(*of)) >= FEWEST_COMPARED_SAMPLES;
    let all = (0..before.totals.len()).filter(enough);
    let mut found: Vec<ShareDifference> =
        all.filter_map(|of| share_difference(of, before, after, basis)).collect();
    let raw: Vec<f64> = found.iter().map(|one| one.q).collect();
    for (one, q) in found.iter_mut().zip(benjamini_hochberg(&raw).ok()?) {
        one.q = q;
    }
    Some(found)
}

/// One difference, its p-value not yet adjusted; `None` where nothing varies, as for node 0.
fn share_difference(
    of: usize,
    before: &RepetitionShares,
    after: &RepetitionShares,
    basis: NoiseBasis,
) -> Option<ShareDifference> {
    let found = welch_of_moments(before.share_moments(of, basis)?, after.share_moments(of, basis)?).ok()?;
    let interval = found.interval(CONFIDENCE).ok()?;
    let (low, high) = (interval.low, interval.high);
    Some(ShareDifference { of: u32::try_from(of).ok()?, difference: found.difference, low, high, q: found.p })
}

/// Inclusive samples of a side by node or function, all together and by repetition.
struct RepetitionShares {
    all: u64,
    totals: Vec<u64>,
    repetitions: Vec<(u64, Vec<u64>)>,
}

impl RepetitionShares {
    fn from_side(joined: &JoinedProfiles<'_>, side: &JoinedSide<'_>) -> Option<Self> {
        let nodes = joined.nodes.len();
        let totals = |own: &Vec<ProfileAmount>| {
            let totals = joined.totals_from_own(&own.iter().map(|amount| amount.samples).collect::<Vec<_>>());
            (totals.first().copied().unwrap_or(0), totals)
        };
        let sampled = |(all, _): &(u64, Vec<u64>)| *all > 0;
        let repetitions = side.own_by_repetition(nodes).iter().map(totals).filter(sampled).collect();
        let (all, totals) = totals(&side.own_amounts(nodes));
        (all > 0).then_some(RepetitionShares { all, totals, repetitions })
    }

    /// The same by function, each sample once however often the function calls itself.
    fn grouped_by_function(&self, joined: &JoinedProfiles<'_>, outermost: &[bool]) -> RepetitionShares {
        let summed = |totals: &Vec<u64>| {
            let mut sums = vec![0; joined.functions.len()];
            let counted = joined.nodes.iter().zip(totals).zip(outermost).filter(|(_, outermost)| **outermost);
            for ((node, total), _) in counted {
                if let Some(sum) = sums.get_mut(node.function as usize) {
                    *sum = total.saturating_add(*sum);
                }
            }
            sums
        };
        let repetitions = self.repetitions.iter().map(|(all, totals)| (*all, summed(totals))).collect();
        RepetitionShares { all: self.all, totals: summed(&self.totals), repetitions }
    }

    fn samples_of(&self, of: usize) -> u64 {
        self.totals.get(of).copied().unwrap_or(0)
    }

    /// Mean and variance of a share.
    fn share_moments(&self, of: usize, basis: NoiseBasis) -> Option<SampleMoments> {
        let all = self.all as f64;
        let pooled = self.samples_of(of) as f64 / all;
        let counting = pooled * (1.0 - pooled);
        if basis == NoiseBasis::Counts {
            return Some(SampleMoments {
                n: COUNTING_REPETITIONS,
                mean: pooled,
                variance: counting / all * COUNTING_REPETITIONS as f64,
            });
        }
        let share = |(all, totals): &(u64, Vec<u64>)| Some(*totals.get(of)? as f64 / *all as f64);
        let shares: Vec<f64> = self.repetitions.iter().filter_map(share).collect();
        let mut moments = SampleMoments::from_values(&shares).ok()?;
        moments.variance = moments.variance.max(counting * shares.len() as f64 / all);
        Some(moments)
    }
}
