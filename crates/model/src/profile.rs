//! A profile: batches on the stream, the whole in memory, what became of every sample, and the builder of its stack
//! tree.
//!
//! A stack is a [`StackNode`]: its frame and the node of its caller, so that stacks share their outer frames and
//! the nodes of a run are the call tree already. There are no addresses: frames are named where they are recorded,
//! while the symbols are at hand. No sample is dropped on the way: one without a stack is a sample without a node,
//! and what the kernel lost, or a sampler could not see, is counted in [`ProfileSummary`].

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::metric::Unit;
use crate::quantity::Nanos;
use crate::run::GuestStops;
use crate::stack::{CommId, FrameId, NodeId, StackFrame, StackNode, StackSample};

/// Samples of one iteration, with the frames, nodes and command names that no earlier batch of the run has.
///
/// The numbers of frames, nodes and command names count through all batches of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StackBatch {
    /// Index into the plan's slots.
    pub slot: u32,
    /// New frames, in order of their numbers.
    pub frames: Vec<StackFrame>,
    /// New nodes, in order of their numbers.
    pub nodes: Vec<StackNode>,
    /// New command names, in order of their numbers.
    pub comms: Vec<String>,
    /// Samples, in order of time where they have one.
    pub samples: Vec<StackSample>,
}

impl StackBatch {
    /// The same as batches of at most `most` things each, names before what refers to them.
    pub fn split(mut self, most: usize) -> Vec<StackBatch> {
        let mut parts = Vec::new();
        loop {
            let mut part = StackBatch { slot: self.slot, ..StackBatch::default() };
            let mut room = most.max(1);
            part.frames = drain_up_to(&mut self.frames, &mut room);
            part.nodes = drain_up_to(&mut self.nodes, &mut room);
            part.comms = drain_up_to(&mut self.comms, &mut room);
            part.samples = drain_up_to(&mut self.samples, &mut room);
            parts.push(part);
            if room > 0 || (self.frames.len() + self.nodes.len() + self.comms.len() + self.samples.len()) == 0
            {
                return parts;
            }
        }
    }
}

/// Takes as many as there is room for.
fn drain_up_to<T>(from: &mut Vec<T>, room: &mut usize) -> Vec<T> {
    let count = from.len().min(*room);
    *room -= count;
    from.drain(..count).collect()
}

/// What the sampler says of itself when the profile of an iteration ends.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProfileSummary {
    /// Index into the plan's slots.
    pub slot: u32,
    /// Where the samples come from: `perf_event_open`, `perf.data`, `perf script`, `folded`, `pprof`.
    pub source: String,
    /// What was counted: `cycles:P`, `cpu-clock`; empty where the source does not say.
    pub event: String,
    /// Samples a second and CPU that were asked for.
    pub frequency: Option<u64>,
    /// The unit of weights: `ns`, `cycles`; `1` where they are numbers of samples.
    pub unit: Unit,
    /// What this event cannot see, and how that misleads.
    pub hides: Option<String>,
    /// Records that the kernel, or the recorder, had no room for. Most of them were samples.
    pub lost: u64,
    /// Samples or lines of the source that could not be read.
    pub unreadable: u64,
    /// What taking these samples cost the sampler: CPU time of its reader; 0 for imports.
    pub cost: Nanos,
    /// How a guest was stopped for these samples, where they were taken from outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest_stops: Option<GuestStops>,
    /// Kernel symbols that rule tables asked for, where they are there.
    pub anchors: Vec<SymbolAnchor>,
}

/// A symbol of the kernel, found in its symbol table whether or not a sample hit it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SymbolAnchor {
    /// Its normalised name.
    pub name: String,
    /// Where it begins, in bytes from `_stext`.
    pub start: i64,
}

/// The profile of one case: a part for each of its iterations, over the frames and nodes of its run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Profile {
    /// Frames by number.
    pub frames: Vec<StackFrame>,
    /// Nodes by number; a caller comes before its callees.
    pub nodes: Vec<StackNode>,
    /// Command names by number.
    pub comms: Vec<String>,
    /// One for each iteration that was profiled, warm-ups included, in order of slots.
    pub iterations: Vec<IterationProfile>,
}

/// The samples of one iteration.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct IterationProfile {
    /// What the sampler reported.
    pub summary: ProfileSummary,
    /// In order of time where they have one.
    pub samples: Vec<StackSample>,
}

/// What became of every sample. The parts are disjoint, and their sum is [`SampleCounts::total`]. Archives and imported files may claim
/// any numbers: sums stop at the largest there is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SampleCounts {
    /// with a stack
    pub stacks: u64,
    /// of a living task, without a stack
    pub stackless: u64,
    /// of a task that was dying
    pub dead: u64,
    /// lost for want of room
    pub lost: u64,
    /// could not be read
    pub unreadable: u64,
}

impl SampleCounts {
    /// Their sum.
    pub fn total(&self) -> u64 {
        self.in_profile().saturating_add(self.lost).saturating_add(self.unreadable)
    }

    /// Samples that are in the profile.
    pub fn in_profile(&self) -> u64 {
        self.stacks.saturating_add(self.stackless).saturating_add(self.dead)
    }
}

impl std::ops::AddAssign for SampleCounts {
    fn add_assign(&mut self, other: SampleCounts) {
        self.stacks = self.stacks.saturating_add(other.stacks);
        self.stackless = self.stackless.saturating_add(other.stackless);
        self.dead = self.dead.saturating_add(other.dead);
        self.lost = self.lost.saturating_add(other.lost);
        self.unreadable = self.unreadable.saturating_add(other.unreadable);
    }
}

impl IterationProfile {
    /// What became of its samples.
    pub fn sample_counts(&self) -> SampleCounts {
        count_samples(&self.summary, &self.samples)
    }
}

/// What became of the samples of a sampler that says `about` of them.
pub fn count_samples(about: &ProfileSummary, samples: &[StackSample]) -> SampleCounts {
    let mut parts =
        SampleCounts { lost: about.lost, unreadable: about.unreadable, ..SampleCounts::default() };
    for sample in samples {
        let part = match sample.leaf {
            _ if sample.is_of_dying_task() => &mut parts.dead,
            Some(_) => &mut parts.stacks,
            None => &mut parts.stackless,
        };
        *part = part.saturating_add(sample.count);
    }
    parts
}

/// Frames of a stack at most, whatever recorded it: every reader walks from a stack to its callers, so that a deeper one in a
/// file of another user would cost its depth for each of its frames. The kernel and perflab's own unwinder stop at 1024.
pub const DEEPEST_STACK: usize = 4096;

/// Why nodes do not form a tree of stacks; `frames` is how many frames there are.
///
/// # Errors
/// A node that refers to one that does not come before it, or a stack of more than [`DEEPEST_STACK`] frames, by the node's number.
pub fn check_stack_tree(nodes: &[StackNode], frames: usize) -> Result<(), String> {
    let mut depths: Vec<usize> = Vec::with_capacity(nodes.len());
    for (at, node) in nodes.iter().enumerate() {
        let below = node.parent.map_or(Some(0), |parent| depths.get(parent.0 as usize).copied());
        let Some(below) = below.filter(|_| (node.frame.0 as usize) < frames) else {
            return Err(format!("stack {at} points out of its table"));
        };
        if below == DEEPEST_STACK {
            return Err(format!("stack {at} is deeper than {DEEPEST_STACK} frames, which no profiler takes"));
        }
        depths.push(below + 1);
    }
    Ok(())
}

impl Profile {
    /// A frame by its number.
    pub fn frame(&self, id: FrameId) -> Option<&StackFrame> {
        self.frames.get(id.0 as usize)
    }

    /// A node by its number.
    pub fn node(&self, id: NodeId) -> Option<&StackNode> {
        self.nodes.get(id.0 as usize)
    }

    /// A command name by its number; empty where it is not known.
    pub fn comm(&self, id: CommId) -> &str {
        self.comms.get(id.0 as usize).map_or("", String::as_str)
    }

    /// What became of all samples.
    pub fn sample_counts(&self) -> SampleCounts {
        self.iterations.iter().fold(SampleCounts::default(), |mut sum, iteration| {
            sum += iteration.sample_counts();
            sum
        })
    }

    /// Takes a batch; its samples go to the iteration of its slot.
    pub fn add_batch(&mut self, mut batch: StackBatch) {
        let samples = std::mem::take(&mut batch.samples);
        self.iteration_mut(batch.slot).samples.extend(samples);
        self.add_names(batch);
    }

    /// Takes the frames, nodes and command names of a batch, and leaves its samples.
    pub fn add_names(&mut self, batch: StackBatch) {
        self.frames.extend(batch.frames);
        self.nodes.extend(batch.nodes);
        self.comms.extend(batch.comms);
    }

    /// Takes what a sampler reported of a slot. Of several, the samplers of synchronised targets, losses and costs are added up,
    /// and the first one's description of the event is taken for all.
    pub fn add_summary(&mut self, about: ProfileSummary) {
        let summary = &mut self.iteration_mut(about.slot).summary;
        if summary.source.is_empty() {
            *summary = about;
            return;
        }
        summary.lost = summary.lost.saturating_add(about.lost);
        summary.unreadable = summary.unreadable.saturating_add(about.unreadable);
        summary.cost.0 = summary.cost.0.saturating_add(about.cost.0);
    }

    /// The iteration of a slot, made where it is new.
    pub fn iteration_mut(&mut self, slot: u32) -> &mut IterationProfile {
        let at = self.iterations.partition_point(|iteration| iteration.summary.slot < slot);
        if self.iterations.get(at).is_none_or(|iteration| iteration.summary.slot != slot) {
            let about = ProfileSummary { slot, ..ProfileSummary::default() };
            self.iterations.insert(at, IterationProfile { summary: about, samples: Vec::new() });
        }
        self.iterations.get_mut(at).expect("it was inserted there if it was missing")
    }
}

/// Gives numbers to frames, nodes and command names of a run, and remembers which are new.
#[derive(Debug, Clone, Default)]
pub struct StackTreeBuilder {
    frames: HashMap<StackFrame, FrameId>,
    nodes: HashMap<StackNode, NodeId>,
    /// By node: the frames of its stack.
    depths: Vec<u16>,
    cut: u64,
    comms: HashMap<String, CommId>,
    fresh: StackBatch,
}

impl StackTreeBuilder {
    /// The number of a frame.
    pub fn intern_frame(&mut self, frame: StackFrame) -> FrameId {
        let next = FrameId(saturating_u32(self.frames.len()));
        let fresh = &mut self.fresh.frames;
        *self.frames.entry(frame).or_insert_with_key(|frame| {
            fresh.push(frame.clone());
            next
        })
    }

    /// The number of the stack that is `frame`, called from `parent`. A stack of [`DEEPEST_STACK`] frames calls nothing more: it
    /// stands for those that would stand on it.
    pub fn intern_node(&mut self, parent: Option<NodeId>, frame: FrameId) -> NodeId {
        let below = parent.and_then(|parent| self.depths.get(parent.0 as usize).copied()).unwrap_or(0);
        if let Some(parent) = parent.filter(|_| usize::from(below) >= DEEPEST_STACK) {
            self.cut += 1;
            return parent;
        }
        let node = StackNode { parent, frame };
        let next = NodeId(saturating_u32(self.nodes.len()));
        let (fresh, depths) = (&mut self.fresh.nodes, &mut self.depths);
        *self.nodes.entry(node).or_insert_with(|| {
            fresh.push(node);
            depths.push(below + 1);
            next
        })
    }

    /// How many frames were left out because they lie too deep in their stacks, counted each time they came.
    pub fn frames_cut(&self) -> u64 {
        self.cut
    }

    /// The number of a command name.
    pub fn intern_comm(&mut self, name: &str) -> CommId {
        if let Some(known) = self.comms.get(name) {
            return *known;
        }
        let next = CommId(saturating_u32(self.comms.len()));
        self.comms.insert(name.into(), next);
        self.fresh.comms.push(name.into());
        next
    }

    /// A batch of `samples` with everything that is new since the last one.
    pub fn take_batch(&mut self, slot: u32, samples: Vec<StackSample>) -> StackBatch {
        StackBatch { slot, samples, ..std::mem::take(&mut self.fresh) }
    }
}

/// More than four thousand million of anything do not fit into memory.
fn saturating_u32(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::Profile;
    use super::*;
    use crate::stack::{CommId, FrameKind};

    #[test]
    fn a_split_batch_is_the_same_profile_and_no_part_refers_to_a_later_one() {
        let mut whole = StackBatch { slot: 3, comms: vec!["a".into()], ..StackBatch::default() };
        for number in 0..10_u32 {
            whole.frames.push(StackFrame::new(&format!("f{number}"), FrameKind::User));
            whole.nodes.push(StackNode { parent: None, frame: crate::stack::FrameId(number) });
            let leaf = Some(crate::stack::NodeId(number));
            let (count, weight, comm) = (1, 1, CommId(0));
            whole.samples.push(StackSample {
                at: None,
                cpu: None,
                pid: None,
                tid: None,
                comm,
                leaf,
                count,
                weight,
            });
        }
        let mut together = Profile::default();
        together.add_batch(whole.clone());
        let (parts, mut joined) = (whole.split(4), Profile::default());
        assert_eq!(parts.len(), 8);
        for part in parts {
            assert!(part.frames.len() + part.nodes.len() + part.samples.len() <= 4);
            joined.add_batch(part);
            let known = joined.nodes.len() as u32;
            assert!(joined.iterations[0].samples.iter().all(|sample| sample.leaf.unwrap().0 < known));
        }
        assert_eq!(joined, together);
        assert_eq!(StackBatch::default().split(4).len(), 1);
    }

    fn stackless_sample(count: u64) -> StackSample {
        let (at, cpu, pid, tid, comm, leaf) = (None, None, None, None, CommId(0), None);
        StackSample { at, cpu, pid, tid, comm, leaf, count, weight: count }
    }

    #[test]
    fn numbers_that_no_machine_has_are_added_up_to_the_largest() {
        let mut profile = Profile::default();
        let batch = StackBatch {
            samples: vec![stackless_sample(u64::MAX), stackless_sample(u64::MAX)],
            ..StackBatch::default()
        };
        profile.add_batch(batch);
        let about = || ProfileSummary {
            source: "s".into(),
            lost: u64::MAX,
            unreadable: u64::MAX,
            cost: crate::quantity::Nanos(u64::MAX),
            ..ProfileSummary::default()
        };
        profile.add_summary(about());
        profile.add_summary(about());
        let parts = profile.sample_counts();
        assert_eq!(
            (parts.in_profile(), parts.lost, parts.unreadable, parts.total()),
            (u64::MAX, u64::MAX, u64::MAX, u64::MAX)
        );
    }

    #[test]
    fn only_a_tree_of_stacks_is_one() {
        let node =
            |parent: Option<u32>, frame| StackNode { parent: parent.map(NodeId), frame: FrameId(frame) };
        let chain = |depth: u32| (0..depth).map(|at| node(at.checked_sub(1), 0)).collect::<Vec<_>>();
        assert_eq!(check_stack_tree(&chain(DEEPEST_STACK as u32), 1), Ok(()));
        let too_deep = check_stack_tree(&chain(DEEPEST_STACK as u32 + 1), 1);
        assert_eq!(too_deep, Err("stack 4096 is deeper than 4096 frames, which no profiler takes".into()));
        for round in [node(Some(0), 0), node(Some(1), 0), node(None, 1)] {
            assert_eq!(check_stack_tree(&[round], 1), Err("stack 0 points out of its table".into()));
        }
    }

    #[test]
    fn what_is_known_keeps_its_number_and_is_told_once() {
        let mut weaver = StackTreeBuilder::default();
        let [main, work] =
            ["main", "work"].map(|name| weaver.intern_frame(StackFrame::new(name, FrameKind::User)));
        let outer = weaver.intern_node(None, main);
        let inner = weaver.intern_node(Some(outer), work);
        let first = weaver.take_batch(0, Vec::new());
        assert_eq!((first.frames.len(), first.nodes.len()), (2, 2));
        assert_eq!(weaver.intern_node(Some(outer), work), inner);
        assert_eq!(weaver.intern_frame(StackFrame::new("work", FrameKind::User)), work);
        assert!(weaver.intern_node(Some(inner), work) > inner);
        let second = weaver.take_batch(1, Vec::new());
        assert_eq!((second.slot, second.frames.len(), second.nodes.len()), (1, 0, 1));
    }

    #[test]
    fn a_stack_without_end_is_cut_and_what_was_cut_is_counted() {
        let mut weaver = StackTreeBuilder::default();
        let frame = weaver.intern_frame(StackFrame::new("again", FrameKind::User));
        let leaf = (0..DEEPEST_STACK + 10).fold(None, |parent, _| Some(weaver.intern_node(parent, frame)));
        let batch = weaver.take_batch(0, Vec::new());
        assert_eq!((batch.nodes.len(), weaver.frames_cut()), (DEEPEST_STACK, 10));
        assert_eq!(leaf, Some(NodeId(DEEPEST_STACK as u32 - 1)));
        assert_eq!(super::check_stack_tree(&batch.nodes, batch.frames.len()), Ok(()));
    }
}
