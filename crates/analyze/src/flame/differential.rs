//! Several profiles over one tree, and which boxes and functions differ by more than noise.
//!
//! A box's share is its inclusive samples by all samples that were kept, so differences are normalised and add up along
//! the tree; a function's share is that of the samples with it on their stack. The rule, for boxes and for functions
//! alike:
//!
//! 1. Each repetition (boot where a side has several, else run, else measured iteration) gives one share per box. The
//!    difference is that of the means, with Welch's interval at 95 %.
//! 2. The variance of a side is never taken smaller than what counting samples alone would give, p (1 - p) / n:
//!    two repetitions that happen to agree prove nothing.
//! 3. Boxes with fewer than [`FEWEST_COMPARED_SAMPLES`] samples on both sides together are not judged; over the
//!    others the p-values are adjusted after Benjamini and Hochberg, and q ≤ 0.05 is a change. Everything else is
//!    noise.
//! 4. Where a side has one repetition only, counting is all that is known: [`NoiseBasis::Counts`]. Such intervals
//!    are too narrow, and whoever shows them must say so.

use std::collections::{BTreeMap, HashMap};

use perflab_model::profile::{Profile, SampleCounts};
use perflab_stats::{SampleMoments, benjamini_hochberg, welch_of_moments};
use serde::Serialize;

use crate::compare::change::RepetitionLevel;
use crate::flame::call_tree::{
    CallTree, CallTreeOptions, MappedCallTree, ProfileAmount, ProfileFunction, build_call_tree,
    find_outermost_nodes,
};
use crate::flame::profiled_run::{BootKey, ProfiledRun, RepetitionCount, RepetitionUnits};

/// A box of [`JoinedProfiles`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JoinedNode {
    /// The box that it stands on, always of a lower number; `None` for node 0.
    pub parent: Option<u32>,
    /// Index into [`JoinedProfiles::functions`].
    pub function: u32,
}

/// One run of a side: its profile, and where its samples ended in the joined tree.
#[derive(Debug, Clone)]
pub struct JoinedRun<'a> {
    /// As read.
    pub profile: &'a Profile,
    /// For each piece of the profile: whether it counts.
    pub counted: Vec<bool>,
    /// The boot of each slot, where it is known.
    pub boots: BTreeMap<u32, BootKey>,
    /// For each piece of the profile, for each of its samples: its node. Empty for pieces that were left out.
    pub leaves: Vec<Vec<u32>>,
}

/// What is compared: one run, or several that repeat each other.
#[derive(Debug, Clone)]
pub struct JoinedSide<'a> {
    /// At least one.
    pub runs: Vec<JoinedRun<'a>>,
}

/// Merged stacks of all sides. Node 0 is everything; a node stands after the one that it stands on.
#[derive(Debug, Clone)]
pub struct JoinedProfiles<'a> {
    /// What the nodes stand for, each once.
    pub functions: Vec<ProfileFunction>,
    /// The boxes: those of any side.
    pub nodes: Vec<JoinedNode>,
    /// As they were given.
    pub sides: Vec<JoinedSide<'a>>,
}

/// Puts the stacks of sides into one tree; each side is a list of profiles and what of them counts.
pub fn join_profiles<'a>(sides: &[Vec<(&'a Profile, CallTreeOptions)>]) -> JoinedProfiles<'a> {
    let mut joiner = ProfileJoiner::default();
    let mut run = |(profile, options): &(&'a Profile, CallTreeOptions)| {
        let MappedCallTree { tree, leaves } = build_call_tree(profile, options);
        let places = joiner.add_tree(&tree);
        let place = |leaf: &u32| places.get(*leaf as usize).copied().unwrap_or(0);
        let leaves = leaves.iter().map(|piece| piece.iter().map(place).collect()).collect();
        let requested = |slot: u32| options.slots.as_ref().is_none_or(|slots| slots.contains(&slot));
        let counted = profile.iterations.iter().map(|piece| requested(piece.summary.slot)).collect();
        JoinedRun { profile, counted, boots: options.boots.clone(), leaves }
    };
    let sides = sides.iter().map(|runs| JoinedSide { runs: runs.iter().map(&mut run).collect() }).collect();
    JoinedProfiles { functions: joiner.functions, nodes: joiner.nodes, sides }
}

impl JoinedProfiles<'_> {
    /// The box that a box stands on.
    pub fn caller(&self, node: &JoinedNode) -> Option<&JoinedNode> {
        self.nodes.get(node.parent? as usize)
    }

    /// Totals of own numbers: callees stand after their callers, so one walk from the end does.
    pub fn totals_from_own(&self, own: &[u64]) -> Vec<u64> {
        let mut totals = own.to_vec();
        for (at, node) in self.nodes.iter().enumerate().rev() {
            let total = totals.get(at).copied().unwrap_or(0);
            if let Some(parent) = node.parent.and_then(|parent| totals.get_mut(parent as usize)) {
                *parent = parent.saturating_add(total);
            }
        }
        totals
    }
}

impl JoinedSide<'_> {
    /// What ends in each node, over all its runs.
    pub fn own_amounts(&self, nodes: usize) -> Vec<ProfileAmount> {
        let mut own = vec![ProfileAmount::default(); nodes];
        for run in &self.runs {
            for (at, piece) in run.leaves.iter().enumerate() {
                run.add_own_amounts(at, piece, &mut own);
            }
        }
        own
    }

    /// The same for each repetition of the highest level that repeats, and which that is.
    pub fn own_by_repetition(&self, nodes: usize) -> (RepetitionLevel, Vec<Vec<ProfileAmount>>) {
        let runs: Vec<ProfiledRun<'_>> = self.runs.iter().map(JoinedRun::profiled_run).collect();
        let units = RepetitionUnits::from_runs(&runs);
        let RepetitionCount { level, count } = units.count();
        let mut own = vec![vec![ProfileAmount::default(); nodes]; count];
        let pieces = self.runs.iter().flat_map(|run| {
            let pieces = run.leaves.iter().enumerate().zip(&run.counted);
            pieces.filter(|(_, counts)| **counts).map(move |(piece, _)| (run, piece))
        });
        for ((run, (at, leaves)), unit) in pieces.zip(units.of_iterations()) {
            if let Some(own) = own.get_mut(*unit) {
                run.add_own_amounts(at, leaves, own);
            }
        }
        (level, own)
    }

    /// What became of the samples of all pieces that count.
    pub fn sample_parts(&self) -> SampleCounts {
        let mut sum = SampleCounts::default();
        for run in &self.runs {
            let pieces = run.profile.iterations.iter().zip(&run.counted).filter(|(_, counts)| **counts);
            pieces.for_each(|(piece, _)| sum += piece.sample_counts());
        }
        sum
    }
}

impl<'a> JoinedRun<'a> {
    /// The profile, with what of it counts.
    fn profiled_run(&self) -> ProfiledRun<'a> {
        let slots = self.profile.iterations.iter().zip(&self.counted).filter(|(_, counts)| **counts);
        let slots = slots.map(|(piece, _)| piece.summary.slot).collect();
        ProfiledRun { profile: self.profile, slots: Some(slots), boots: self.boots.clone() }
    }

    /// Adds the samples of a piece to their nodes.
    fn add_own_amounts(&self, piece: usize, leaves: &[u32], own: &mut [ProfileAmount]) {
        let samples = self.profile.iterations.get(piece).map_or(&[][..], |piece| &piece.samples);
        for (sample, leaf) in samples.iter().zip(leaves) {
            if let Some(node) = own.get_mut(*leaf as usize) {
                *node += ProfileAmount { samples: sample.count, weight: sample.weight };
            }
        }
    }
}

/// A joined tree that is being put together.
#[derive(Default)]
struct ProfileJoiner {
    functions: Vec<ProfileFunction>,
    nodes: Vec<JoinedNode>,
    of_function: HashMap<ProfileFunction, u32>,
    of_node: HashMap<JoinedNodeKey, u32>,
}

type JoinedNodeKey = (Option<u32>, u32);

impl ProfileJoiner {
    /// The joined number of each node of a tree.
    fn add_tree(&mut self, tree: &CallTree) -> Vec<u32> {
        let functions: Vec<u32> = tree.functions.iter().map(|one| self.find_or_add_function(one)).collect();
        let mut places: Vec<u32> = Vec::with_capacity(tree.nodes.len());
        for node in &tree.nodes {
            let parent = node.parent.and_then(|parent| places.get(parent as usize).copied());
            let function = functions.get(node.function as usize).copied().unwrap_or(0);
            places.push(self.find_or_add_node(parent, function));
        }
        places
    }

    fn find_or_add_function(&mut self, function: &ProfileFunction) -> u32 {
        let next = joined_number(self.functions.len());
        let functions = &mut self.functions;
        *self.of_function.entry(function.clone()).or_insert_with(|| {
            functions.push(function.clone());
            next
        })
    }

    fn find_or_add_node(&mut self, parent: Option<u32>, function: u32) -> u32 {
        let next = joined_number(self.nodes.len());
        let nodes = &mut self.nodes;
        *self.of_node.entry((parent, function)).or_insert_with(|| {
            nodes.push(JoinedNode { parent, function });
            next
        })
    }
}

fn joined_number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

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
    /// repetitions: before and after
    Repetitions(RepetitionCount, RepetitionCount),
    /// numbers of samples only, as a side was not repeated
    Counts,
}

/// The difference of one box or function.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ShareDifference {
    /// Index into [`JoinedProfiles::nodes`] or [`JoinedProfiles::functions`].
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

/// Which share of a function is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FunctionShare {
    /// of samples that it is on the stack of
    Inclusive,
    /// of samples that end in it
    Own,
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
    let basis = noise_basis(&before, &after);
    let nodes: Vec<_> = joined.nodes.iter().map(|node| (node.parent, node.function)).collect();
    let outermost = find_outermost_nodes(&nodes);
    let [f, g] = [&before, &after].map(|side| side.grouped_by_function(joined, &outermost));
    Some(ProfileChanges {
        basis,
        nodes: share_differences(&before, &after, basis)?,
        functions: share_differences(&f, &g, basis)?,
    })
}

/// What intervals of differences rest on.
pub(crate) fn noise_basis(before: &RepetitionShares, after: &RepetitionShares) -> NoiseBasis {
    match (before.count(), after.count()) {
        (m, n) if m.count < 2 || n.count < 2 => NoiseBasis::Counts,
        (m, n) => NoiseBasis::Repetitions(m, n),
    }
}

/// The differences of one family, with p-values adjusted within it.
pub(crate) fn share_differences(
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

/// Samples of a side by node or function, all together and by repetition.
pub(crate) struct RepetitionShares {
    all: u64,
    totals: Vec<u64>,
    repetitions: Vec<(u64, Vec<u64>)>,
    level: RepetitionLevel,
}

impl RepetitionShares {
    fn from_side(joined: &JoinedProfiles<'_>, side: &JoinedSide<'_>) -> Option<Self> {
        let nodes = joined.nodes.len();
        let totals = |own: &Vec<ProfileAmount>| {
            let totals = joined.totals_from_own(&own.iter().map(|amount| amount.samples).collect::<Vec<_>>());
            (totals.first().copied().unwrap_or(0), totals)
        };
        let sampled = |(all, _): &(u64, Vec<u64>)| *all > 0;
        let (level, own) = side.own_by_repetition(nodes);
        let repetitions = own.iter().map(totals).filter(sampled).collect();
        let (all, totals) = totals(&side.own_amounts(nodes));
        (all > 0).then_some(RepetitionShares { all, totals, repetitions, level })
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
        RepetitionShares { all: self.all, totals: summed(&self.totals), repetitions, level: self.level }
    }

    /// What repeats, of what has samples.
    pub(crate) fn count(&self) -> RepetitionCount {
        RepetitionCount { level: self.level, count: self.repetitions.len() }
    }

    /// By function: the samples that it is on the stack of, or that end in it.
    pub(crate) fn of_functions(
        joined: &JoinedProfiles<'_>,
        side: &JoinedSide<'_>,
        share: FunctionShare,
    ) -> Option<Self> {
        let nodes: Vec<_> = joined.nodes.iter().map(|node| (node.parent, node.function)).collect();
        match share {
            FunctionShare::Inclusive => Some(
                Self::from_side(joined, side)?.grouped_by_function(joined, &find_outermost_nodes(&nodes)),
            ),
            FunctionShare::Own => {
                let mut shares = Self::from_side(joined, side)?;
                let (_, own) = side.own_by_repetition(nodes.len());
                let own =
                    own.into_iter().map(|own| own.iter().map(|amount| amount.samples).collect::<Vec<_>>());
                let own = own.map(|own| (own.iter().copied().fold(0, u64::saturating_add), own));
                shares.repetitions = own.filter(|(all, _)| *all > 0).collect();
                shares.totals = side.own_amounts(nodes.len()).iter().map(|amount| amount.samples).collect();
                Some(shares.grouped_by_function(joined, &vec![true; nodes.len()]))
            }
        }
    }

    /// The same without samples of some functions, which stay part of all samples.
    pub(crate) fn without(mut self, is_left_out: impl Fn(usize) -> bool) -> Self {
        let totals = self.repetitions.iter_mut().map(|(_, totals)| totals).chain([&mut self.totals]);
        for totals in totals {
            for (at, total) in totals.iter_mut().enumerate() {
                *total = if is_left_out(at) { 0 } else { *total };
            }
        }
        self
    }

    /// The share over all repetitions together.
    pub(crate) fn pooled_share(&self, of: usize) -> f64 {
        self.samples_of(of) as f64 / self.all as f64
    }

    /// The share in each repetition.
    pub(crate) fn shares_of(&self, of: usize) -> Vec<f64> {
        let share = |(all, totals): &(u64, Vec<u64>)| Some(*totals.get(of)? as f64 / *all as f64);
        self.repetitions.iter().filter_map(share).collect()
    }

    pub(crate) fn samples_of(&self, of: usize) -> u64 {
        self.totals.get(of).copied().unwrap_or(0)
    }

    /// Mean and variance of a share.
    fn share_moments(&self, of: usize, basis: NoiseBasis) -> Option<SampleMoments> {
        let all = self.all as f64;
        let pooled = self.pooled_share(of);
        let counting = pooled * (1.0 - pooled);
        if basis == NoiseBasis::Counts {
            return Some(SampleMoments {
                n: COUNTING_REPETITIONS,
                mean: pooled,
                variance: counting / all * COUNTING_REPETITIONS as f64,
            });
        }
        let shares = self.shares_of(of);
        let mut moments = SampleMoments::from_values(&shares).ok()?;
        moments.variance = moments.variance.max(counting * shares.len() as f64 / all);
        Some(moments)
    }
}
