//! Several call trees over one numbering, so that they can be compared box by box.

use std::collections::HashMap;

use perflab_model::profile::{Parts, Profile};

use super::{Amount, Function, GrowOptions, Grown, Tree, grow};

/// A box of [`Joined`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JoinedNode {
    /// The box that it stands on, always of a lower number; `None` for node 0.
    pub parent: Option<u32>,
    /// Index into [`Joined::functions`].
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
pub struct Joined<'a> {
    /// What the nodes stand for, each once.
    pub functions: Vec<Function>,
    /// The boxes: those of any side.
    pub nodes: Vec<JoinedNode>,
    /// As they were given.
    pub sides: Vec<JoinedSide<'a>>,
}

/// Puts the stacks of sides into one tree; each side is a list of profiles and what of them counts.
pub fn join<'a>(sides: &[Vec<(&'a Profile, GrowOptions)>]) -> Joined<'a> {
    let mut joiner = Joiner::default();
    let mut run = |(profile, options): &(&'a Profile, GrowOptions)| {
        let Grown { tree, leaves } = grow(profile, options);
        let places = joiner.add(&tree);
        let place = |leaf: &u32| places.get(*leaf as usize).copied().unwrap_or(0);
        let leaves = leaves.iter().map(|piece| piece.iter().map(place).collect()).collect();
        let wanted = |slot: u32| options.slots.as_ref().is_none_or(|slots| slots.contains(&slot));
        let counted = profile.pieces.iter().map(|piece| wanted(piece.about.slot)).collect();
        JoinedRun { profile, counted, leaves }
    };
    let sides = sides.iter().map(|runs| JoinedSide { runs: runs.iter().map(&mut run).collect() }).collect();
    Joined { functions: joiner.functions, nodes: joiner.nodes, sides }
}

impl Joined<'_> {
    /// The box that a box stands on.
    pub fn caller(&self, node: &JoinedNode) -> Option<&JoinedNode> {
        self.nodes.get(node.parent? as usize)
    }

    /// Totals of own numbers: callees stand after their callers, so one walk from the end does.
    pub fn totals(&self, own: &[u64]) -> Vec<u64> {
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
    pub fn own(&self, nodes: usize) -> Vec<Amount> {
        let mut own = vec![Amount::default(); nodes];
        for run in &self.runs {
            for (at, piece) in run.leaves.iter().enumerate() {
                run.add(at, piece, &mut own);
            }
        }
        own
    }

    /// The same for each repetition: each run where there are several, else each piece that counts.
    pub fn repetitions(&self, nodes: usize) -> Vec<Vec<Amount>> {
        let [run] = self.runs.as_slice() else {
            return self.runs.iter().map(|run| JoinedSide { runs: vec![run.clone()] }.own(nodes)).collect();
        };
        let own = |(at, piece): (usize, &Vec<u32>)| {
            let mut own = vec![Amount::default(); nodes];
            run.add(at, piece, &mut own);
            own
        };
        let counted = run.leaves.iter().enumerate().filter(|(_, piece)| !piece.is_empty());
        counted.map(own).collect()
    }

    /// What became of the samples of all pieces that count.
    pub fn parts(&self) -> Parts {
        let mut sum = Parts::default();
        for run in &self.runs {
            let pieces = run.profile.pieces.iter().zip(&run.counted).filter(|(_, counts)| **counts);
            pieces.for_each(|(piece, _)| sum += piece.parts());
        }
        sum
    }
}

impl JoinedRun<'_> {
    /// Adds the samples of a piece to their nodes.
    fn add(&self, piece: usize, leaves: &[u32], own: &mut [Amount]) {
        let samples = self.profile.pieces.get(piece).map_or(&[][..], |piece| &piece.samples);
        for (sample, leaf) in samples.iter().zip(leaves) {
            if let Some(node) = own.get_mut(*leaf as usize) {
                *node += Amount { samples: sample.count, weight: sample.weight };
            }
        }
    }
}

/// A joined tree that is being put together.
#[derive(Default)]
struct Joiner {
    functions: Vec<Function>,
    nodes: Vec<JoinedNode>,
    of_function: HashMap<Function, u32>,
    of_node: HashMap<JoinedKey, u32>,
}

type JoinedKey = (Option<u32>, u32);

impl Joiner {
    /// The joined number of each node of a tree.
    fn add(&mut self, tree: &Tree) -> Vec<u32> {
        let functions: Vec<u32> = tree.functions.iter().map(|one| self.function(one)).collect();
        let mut places: Vec<u32> = Vec::with_capacity(tree.nodes.len());
        for node in &tree.nodes {
            let parent = node.parent.and_then(|parent| places.get(parent as usize).copied());
            let function = functions.get(node.function as usize).copied().unwrap_or(0);
            places.push(self.node(parent, function));
        }
        places
    }

    fn function(&mut self, function: &Function) -> u32 {
        let next = number(self.functions.len());
        let functions = &mut self.functions;
        *self.of_function.entry(function.clone()).or_insert_with(|| {
            functions.push(function.clone());
            next
        })
    }

    fn node(&mut self, parent: Option<u32>, function: u32) -> u32 {
        let next = number(self.nodes.len());
        let nodes = &mut self.nodes;
        *self.of_node.entry((parent, function)).or_insert_with(|| {
            nodes.push(JoinedNode { parent, function });
            next
        })
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
