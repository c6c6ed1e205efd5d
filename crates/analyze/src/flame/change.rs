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
//! 3. Boxes with fewer than [`JUDGED`] samples on both sides together are not judged; over the others the p-values
//!    are adjusted after Benjamini and Hochberg, and q ≤ 0.05 is a change. Everything else is noise.
//! 4. Where a side has one repetition only, counting is all that is known: [`Basis::Counts`]. Such intervals
//!    are too narrow, and whoever shows them must say so.

use perflab_stats::{Moments, benjamini_hochberg, welch_of};

use super::tree::find_outermost_nodes;
use super::{Amount, Joined, JoinedSide};

/// Boxes below this many samples, both sides together, are not judged.
pub const JUDGED: u64 = 16;
/// The rate of false discoveries among boxes that are called changed.
pub const RATE: f64 = 0.05;
/// The confidence of each interval.
pub const CONFIDENCE: f64 = 0.95;
/// Repetitions that stand for infinitely many where only counting is known: t is then normal.
const MANY: usize = 1_000_000;

/// What the intervals rest on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// repetitions: so many before and after
    Repetitions(usize, usize),
    /// numbers of samples only, as a side was not repeated
    Counts,
}

/// The difference of one box or function.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    /// Index into [`Joined::nodes`] or [`Joined::functions`].
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

impl Difference {
    /// Whether it is more than noise.
    pub fn is_change(&self) -> bool {
        self.q <= RATE
    }
}

/// Everything that could be judged, by number.
#[derive(Debug, Clone, PartialEq)]
pub struct Changes {
    /// What the intervals rest on.
    pub basis: Basis,
    /// Boxes.
    pub nodes: Vec<Difference>,
    /// Functions, wherever they are called from.
    pub functions: Vec<Difference>,
}

/// Compares two sides of a joined tree; `None` where one of them is not there or has no sample.
pub fn changes(joined: &Joined<'_>, before: usize, after: usize) -> Option<Changes> {
    let sides = [before, after].map(|side| Shares::of(joined, joined.sides.get(side)?));
    let [Some(before), Some(after)] = sides else { return None };
    let basis = match (before.repetitions.len(), after.repetitions.len()) {
        (0 | 1, _) | (_, 0 | 1) => Basis::Counts,
        (m, n) => Basis::Repetitions(m, n),
    };
    let nodes: Vec<_> = joined.nodes.iter().map(|node| (node.parent, node.function)).collect();
    let outermost = find_outermost_nodes(&nodes);
    let [f, g] = [&before, &after].map(|side| side.by_function(joined, &outermost));
    Some(Changes { basis, nodes: judged(&before, &after, basis)?, functions: judged(&f, &g, basis)? })
}

/// The differences of one family, with p-values adjusted within it.
fn judged(before: &Shares, after: &Shares, basis: Basis) -> Option<Vec<Difference>> {
    let enough = |of: &usize| before.samples(*of).saturating_add(after.samples(*of)) >= JUDGED;
    let all = (0..before.totals.len()).filter(enough);
    let mut found: Vec<Difference> = all.filter_map(|of| difference(of, before, after, basis)).collect();
    let raw: Vec<f64> = found.iter().map(|one| one.q).collect();
    for (one, q) in found.iter_mut().zip(benjamini_hochberg(&raw).ok()?) {
        one.q = q;
    }
    Some(found)
}

/// One difference, its p-value not yet adjusted; `None` where nothing varies, as for node 0.
fn difference(of: usize, before: &Shares, after: &Shares, basis: Basis) -> Option<Difference> {
    let found = welch_of(before.moments(of, basis)?, after.moments(of, basis)?).ok()?;
    let interval = found.interval(CONFIDENCE).ok()?;
    let (low, high) = (interval.low, interval.high);
    Some(Difference { of: u32::try_from(of).ok()?, difference: found.difference, low, high, q: found.p })
}

/// Inclusive samples of a side by node or function, all together and by repetition.
struct Shares {
    all: u64,
    totals: Vec<u64>,
    repetitions: Vec<(u64, Vec<u64>)>,
}

impl Shares {
    fn of(joined: &Joined<'_>, side: &JoinedSide<'_>) -> Option<Self> {
        let nodes = joined.nodes.len();
        let totals = |own: &Vec<Amount>| {
            let totals = joined.totals(&own.iter().map(|amount| amount.samples).collect::<Vec<_>>());
            (totals.first().copied().unwrap_or(0), totals)
        };
        let sampled = |(all, _): &(u64, Vec<u64>)| *all > 0;
        let repetitions = side.repetitions(nodes).iter().map(totals).filter(sampled).collect();
        let (all, totals) = totals(&side.own(nodes));
        (all > 0).then_some(Shares { all, totals, repetitions })
    }

    /// The same by function, each sample once however often the function calls itself.
    fn by_function(&self, joined: &Joined<'_>, outermost: &[bool]) -> Shares {
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
        Shares { all: self.all, totals: summed(&self.totals), repetitions }
    }

    fn samples(&self, of: usize) -> u64 {
        self.totals.get(of).copied().unwrap_or(0)
    }

    /// Mean and variance of a share.
    fn moments(&self, of: usize, basis: Basis) -> Option<Moments> {
        let all = self.all as f64;
        let pooled = self.samples(of) as f64 / all;
        let counting = pooled * (1.0 - pooled);
        if basis == Basis::Counts {
            return Some(Moments { n: MANY, mean: pooled, variance: counting / all * MANY as f64 });
        }
        let share = |(all, totals): &(u64, Vec<u64>)| Some(*totals.get(of)? as f64 / *all as f64);
        let shares: Vec<f64> = self.repetitions.iter().filter_map(share).collect();
        let mut moments = Moments::of(&shares).ok()?;
        moments.variance = moments.variance.max(counting * shares.len() as f64 / all);
        Some(moments)
    }
}
