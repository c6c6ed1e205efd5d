//! Several call trees over one numbering, so that they can be compared box by box.

use std::collections::HashMap;

use perflab_model::profile::{Profile, SampleCounts};

use super::{CallTree, CallTreeOptions, MappedCallTree, ProfileAmount, ProfileFunction, build_call_tree};

/// A box of [`JoinedProfiles`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JoinedNode {
    /// The box that it stands on, always of a lower number; `None` for node 0.
    pub parent: Option<u32>,
    /// Index into [`JoinedProfiles::function_rows`].
    pub function: u32,
}

/// One run of a side: its profile, and where its samples ended in the joined tree.
#[derive(Debug, Clone)]
pub struct JoinedRun<'a> {
    /// As read.
    pub profile: &'a Profile,
    /// For each piece of the profile: whether it counts.
    pub counted: Vec<bool>,
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
        let wanted = |slot: u32| options.slots.as_ref().is_none_or(|slots| slots.contains(&slot));
        let counted = profile.iterations.iter().map(|piece| wanted(piece.summary.slot)).collect();
        JoinedRun { profile, counted, leaves }
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

    /// The same for each repetition: each run where there are several, else each piece that counts.
    pub fn own_by_repetition(&self, nodes: usize) -> Vec<Vec<ProfileAmount>> {
        let [run] = self.runs.as_slice() else {
            return self
                .runs
                .iter()
                .map(|run| JoinedSide { runs: vec![run.clone()] }.own_amounts(nodes))
                .collect();
        };
        let own = |(at, piece): (usize, &Vec<u32>)| {
            let mut own = vec![ProfileAmount::default(); nodes];
            run.add_own_amounts(at, piece, &mut own);
            own
        };
        let counted = run.leaves.iter().enumerate().filter(|(_, piece)| !piece.is_empty());
        counted.map(own).collect()
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

impl JoinedRun<'_> {
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
