//! The merged call tree with own and total amounts, and one row per function.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use perflab_model::profile::Profile;
use perflab_model::{CommId, FrameKind, NodeId, StackSample};
use serde::Serialize;

use crate::flame::profiled_run::BootKey;

/// The name under which samples without a stack hang in the tree.
pub const NO_STACK: &str = "[no stack]";

/// How much: samples, and what they weigh in the profile's unit. Sums stop at the largest number there is, as archives may
/// claim any.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ProfileAmount {
    /// number of samples
    pub samples: u64,
    /// their periods' sum: ns, cycles
    pub weight: u64,
}

impl std::ops::AddAssign for ProfileAmount {
    fn add_assign(&mut self, other: ProfileAmount) {
        self.samples = self.samples.saturating_add(other.samples);
        self.weight = self.weight.saturating_add(other.weight);
    }
}

/// What a box of the tree stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FrameRole {
    /// everything: node 0
    All,
    /// a command, at the root of its stacks
    Command,
    /// a function of the kernel
    Kernel,
    /// a function of a process
    User,
    /// a function; of what is not known
    Unknown,
    /// samples without a stack
    Nothing,
}

impl From<FrameKind> for FrameRole {
    fn from(kind: FrameKind) -> Self {
        match kind {
            FrameKind::Kernel => FrameRole::Kernel,
            FrameKind::User => FrameRole::User,
            FrameKind::Unknown => FrameRole::Unknown,
        }
    }
}

/// What boxes are merged by.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct ProfileFunction {
    /// normalised name
    pub name: String,
    /// what it stands for
    pub role: FrameRole,
    /// whether its code is part of its caller's
    pub inlined: bool,
}

/// A box of the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CallTreeNode {
    /// The box that it stands on, always of a lower number; `None` for node 0.
    pub parent: Option<u32>,
    /// Index into [`CallTree::functions`].
    pub function: u32,
    /// Samples that end here.
    pub own: ProfileAmount,
    /// Samples that end here or above.
    pub total: ProfileAmount,
}

/// Merged stacks. Node 0 is everything; a node stands after the one that it stands on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CallTree {
    /// What the nodes stand for, each once.
    pub functions: Vec<ProfileFunction>,
    /// The boxes.
    pub nodes: Vec<CallTreeNode>,
}

/// What of a profile goes into a tree.
#[derive(Debug, Clone, Default)]
pub struct CallTreeOptions {
    /// Only these slots; all where left out.
    pub slots: Option<Vec<u32>>,
    /// Put a box for the command under its stacks, as flame graphs have it.
    pub commands: bool,
    /// Commands that share one box, where they are put: one program under several names.
    pub shared: Option<SharedCommands>,
    /// The boot of each slot, where it is known: boots are what repeats.
    pub boots: BTreeMap<u32, BootKey>,
}

/// Commands that share a box.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedCommands {
    /// Their names.
    pub names: BTreeSet<String>,
    /// What the box is called.
    pub label: String,
}

impl SharedCommands {
    /// Names in a box's label.
    const NAMED: usize = 3;

    /// The commands that do not occur on every side, where each side has some: `./v1` and `./v2` are the two versions of one
    /// program that are compared, more likely than two programs.
    pub fn from_sides(sides: &[Vec<&Profile>]) -> Option<Self> {
        let commands = |side: &Vec<&Profile>| -> BTreeSet<String> {
            let samples = side.iter().flat_map(|profile| {
                let samples = profile.iterations.iter().flat_map(|piece| &piece.samples);
                samples.map(|sample| profile.comm(sample.comm).to_owned())
            });
            samples.collect()
        };
        let sides: Vec<_> = sides.iter().map(commands).collect();
        let is_everywhere = |name: &String| sides.iter().all(|side| side.contains(name));
        let own = |side: &BTreeSet<String>| side.iter().any(|name| !is_everywhere(name));
        if sides.len() < 2 || !sides.iter().all(own) {
            return None;
        }
        let names: BTreeSet<String> =
            sides.iter().flatten().filter(|name| !is_everywhere(name)).cloned().collect();
        let more = names.len().saturating_sub(Self::NAMED);
        let mut label = names.iter().take(Self::NAMED).cloned().collect::<Vec<_>>().join(" | ");
        if more > 0 {
            label.push_str(&format!(" | {more} more"));
        }
        Some(SharedCommands { names, label })
    }
}

/// A tree, and where each sample ended in it.
#[derive(Debug, Clone, PartialEq)]
pub struct MappedCallTree {
    /// The tree.
    pub tree: CallTree,
    /// For each piece of the profile, for each of its samples: its node. Empty for pieces that were left out.
    pub leaves: Vec<Vec<u32>>,
}

/// Merges the stacks of a profile.
pub fn build_call_tree(profile: &Profile, options: &CallTreeOptions) -> MappedCallTree {
    let mut grower = CallTreeBuilder::new(profile, options);
    let requested = |slot: u32| options.slots.as_ref().is_none_or(|slots| slots.contains(&slot));
    let place = |samples: &[StackSample]| samples.iter().map(|sample| grower.add_sample(sample)).collect();
    let samples = |slot, samples| if requested(slot) { samples } else { &[][..] };
    let leaves = profile
        .iterations
        .iter()
        .map(|piece| samples(piece.summary.slot, &piece.samples))
        .map(place)
        .collect();
    MappedCallTree { tree: grower.tree.sum_totals(), leaves }
}

impl CallTree {
    fn new() -> Self {
        let all = ProfileFunction { name: "all".into(), role: FrameRole::All, inlined: false };
        let (own, total) = (ProfileAmount::default(), ProfileAmount::default());
        CallTree { functions: vec![all], nodes: vec![CallTreeNode { parent: None, function: 0, own, total }] }
    }

    /// All samples that were kept: the denominator of shares.
    pub fn total_amount(&self) -> ProfileAmount {
        self.nodes.first().map(|node| node.total).unwrap_or_default()
    }

    /// What a node stands for.
    pub fn function(&self, node: u32) -> Option<&ProfileFunction> {
        self.functions.get(self.nodes.get(node as usize)?.function as usize)
    }

    /// From a node to node 0.
    pub fn ancestors(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        let parent = |node: &u32| self.nodes.get(*node as usize).and_then(|node| node.parent);
        std::iter::successors(Some(node), parent)
    }

    /// Totals from own amounts: callees stand after their callers, so one walk from the end does.
    fn sum_totals(mut self) -> Self {
        for node in &mut self.nodes {
            node.total = node.own;
        }
        for at in (1..self.nodes.len()).rev() {
            let (before, after) = self.nodes.split_at_mut(at);
            if let Some(node) = after.first()
                && let Some(parent) = node.parent.and_then(|parent| before.get_mut(parent as usize))
            {
                parent.total += node.total;
            }
        }
        self
    }
}

/// By node: whether no caller of it is the same function. Callers stand before their callees; each node is gone into and left
/// once, however deep it lies.
pub(crate) fn find_outermost_nodes(nodes: &[(Option<u32>, u32)]) -> Vec<bool> {
    let mut callees = vec![Vec::new(); nodes.len()];
    let mut steps = Vec::new();
    for (at, (parent, _)) in nodes.iter().enumerate() {
        match parent.and_then(|parent| callees.get_mut(parent as usize)) {
            Some(of_parent) => of_parent.push(at),
            None => steps.push(TreeWalkStep::Into(at)),
        }
    }
    let functions = nodes.iter().map(|(_, function)| *function as usize + 1).max().unwrap_or(0);
    let (mut open, mut found) = (vec![0_u32; functions], vec![true; nodes.len()]);
    while let Some(step) = steps.pop() {
        let (TreeWalkStep::Into(at) | TreeWalkStep::OutOf(at)) = step;
        let Some(times) = nodes.get(at).and_then(|(_, function)| open.get_mut(*function as usize)) else {
            continue;
        };
        match step {
            TreeWalkStep::OutOf(_) => *times -= 1,
            TreeWalkStep::Into(_) => {
                if let Some(found) = found.get_mut(at) {
                    *found = *times == 0;
                }
                *times += 1;
                steps.push(TreeWalkStep::OutOf(at));
                steps.extend(callees.get(at).into_iter().flatten().map(|callee| TreeWalkStep::Into(*callee)));
            }
        }
    }
    found
}

/// A step of a walk through a tree.
#[derive(Clone, Copy)]
enum TreeWalkStep {
    Into(usize),
    OutOf(usize),
}

/// A tree that is being put together.
struct CallTreeBuilder<'a> {
    profile: &'a Profile,
    options: &'a CallTreeOptions,
    tree: CallTree,
    functions: HashMap<ProfileFunction, u32>,
    nodes: HashMap<(u32, u32), u32>,
    /// The function of each frame of the profile, once it was met.
    of_frame: Vec<Option<u32>>,
    /// The node of each stack of the profile, below each command where commands are requested.
    of_stack: HashMap<(CommId, Option<NodeId>), u32>,
}

impl<'a> CallTreeBuilder<'a> {
    fn new(profile: &'a Profile, options: &'a CallTreeOptions) -> Self {
        let of_frame = vec![None; profile.frames.len()];
        let (functions, nodes, of_stack) = (HashMap::new(), HashMap::new(), HashMap::new());
        CallTreeBuilder { profile, options, tree: CallTree::new(), functions, nodes, of_frame, of_stack }
    }

    fn add_sample(&mut self, sample: &StackSample) -> u32 {
        let comm = if self.options.commands { sample.comm } else { CommId::default() };
        let at = match self.of_stack.get(&(comm, sample.leaf)) {
            Some(known) => *known,
            None => self.add_stack(comm, sample.leaf),
        };
        if let Some(node) = self.tree.nodes.get_mut(at as usize) {
            node.own += ProfileAmount { samples: sample.count, weight: sample.weight };
        }
        at
    }

    /// The node of a stack; its callers' first.
    fn add_stack(&mut self, comm: CommId, leaf: Option<NodeId>) -> u32 {
        let Some(leaf) = leaf else {
            let base = self.base_node(comm);
            let nothing = ProfileFunction { name: NO_STACK.into(), role: FrameRole::Nothing, inlined: false };
            let function = self.find_or_add_function(nothing);
            return self.add_stack_node(comm, None, base, function);
        };
        let (mut missing, mut at) = (Vec::new(), Some(leaf));
        while let Some(stack) = at.filter(|stack| !self.of_stack.contains_key(&(comm, Some(*stack)))) {
            missing.push(stack);
            at = self.profile.node(stack).and_then(|node| node.parent);
        }
        let known = at.and_then(|stack| self.of_stack.get(&(comm, Some(stack))).copied());
        let base = known.unwrap_or_else(|| self.base_node(comm));
        missing.into_iter().rev().fold(base, |parent, stack| {
            let function = self.innermost_function(stack);
            self.add_stack_node(comm, Some(stack), parent, function)
        })
    }

    /// What stacks stand on: everything, or their command.
    fn base_node(&mut self, comm: CommId) -> u32 {
        if !self.options.commands {
            return 0;
        }
        let name = self.profile.comm(comm);
        let shared = self.options.shared.as_ref().filter(|shared| shared.names.contains(name));
        let name = shared.map_or(name, |shared| &shared.label).to_owned();
        let function =
            self.find_or_add_function(ProfileFunction { name, role: FrameRole::Command, inlined: false });
        self.find_or_add_node(0, function)
    }

    fn add_stack_node(&mut self, comm: CommId, stack: Option<NodeId>, parent: u32, function: u32) -> u32 {
        let node = self.find_or_add_node(parent, function);
        self.of_stack.insert((comm, stack), node);
        node
    }

    fn find_or_add_node(&mut self, parent: u32, function: u32) -> u32 {
        let next = node_number(self.tree.nodes.len());
        let nodes = &mut self.tree.nodes;
        *self.nodes.entry((parent, function)).or_insert_with(|| {
            let (own, total) = (ProfileAmount::default(), ProfileAmount::default());
            nodes.push(CallTreeNode { parent: Some(parent), function, own, total });
            next
        })
    }

    /// The function of a stack's innermost frame.
    fn innermost_function(&mut self, stack: NodeId) -> u32 {
        let Some(frame) = self.profile.node(stack).map(|node| node.frame) else { return 0 };
        if let Some(Some(known)) = self.of_frame.get(frame.0 as usize) {
            return *known;
        }
        let Some(of) = self.profile.frame(frame) else { return 0 };
        let function = ProfileFunction { name: of.name.clone(), role: of.kind.into(), inlined: of.inlined };
        let function = self.find_or_add_function(function);
        if let Some(slot) = self.of_frame.get_mut(frame.0 as usize) {
            *slot = Some(function);
        }
        function
    }

    fn find_or_add_function(&mut self, function: ProfileFunction) -> u32 {
        let next = node_number(self.tree.functions.len());
        let functions = &mut self.tree.functions;
        *self.functions.entry(function).or_insert_with_key(|function| {
            functions.push(function.clone());
            next
        })
    }
}

fn node_number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// One function over the whole tree.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FunctionRow {
    /// which
    #[serde(flatten)]
    pub function: ProfileFunction,
    /// samples that end in it
    pub own: ProfileAmount,
    /// samples that it is on the stack of, each once however often it calls itself
    pub inclusive: ProfileAmount,
}

/// All functions of a tree, those with most samples of their own first. Commands and node 0 are none.
pub fn function_rows(tree: &CallTree) -> Vec<FunctionRow> {
    let row = |function: &ProfileFunction| FunctionRow {
        function: function.clone(),
        own: ProfileAmount::default(),
        inclusive: ProfileAmount::default(),
    };
    let mut rows: Vec<FunctionRow> = tree.functions.iter().map(row).collect();
    let nodes: Vec<_> = tree.nodes.iter().map(|node| (node.parent, node.function)).collect();
    for (node, is_outermost) in tree.nodes.iter().zip(find_outermost_nodes(&nodes)) {
        let Some(row) = rows.get_mut(node.function as usize) else { continue };
        row.own += node.own;
        if is_outermost {
            row.inclusive += node.total;
        }
    }
    rows.retain(|row| !matches!(row.function.role, FrameRole::All | FrameRole::Command));
    rows.sort_by(|a, b| {
        let key = |row: &FunctionRow| std::cmp::Reverse((row.own.samples, row.inclusive.samples));
        key(a).cmp(&key(b)).then_with(|| a.function.name.cmp(&b.function.name))
    });
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_within_itself_is_not_outermost_and_one_beside_is() {
        let nodes = [(None, 0), (Some(0), 1), (Some(1), 1), (Some(0), 2), (Some(3), 1), (None, 2)];
        assert_eq!(find_outermost_nodes(&nodes), [true, true, false, true, true, true]);
    }
}
