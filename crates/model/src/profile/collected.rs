//! A whole profile in memory, as readers give it.

use super::{CommId, FrameId, NodeId, ProfileSummary, StackBatch, StackFrame, StackNode, StackSample};

/// The profile of one case: a piece for each of its iterations, over the frames and nodes of its run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Profile {
    /// Frames by number.
    pub frames: Vec<StackFrame>,
    /// Nodes by number; a caller stands before its callees.
    pub nodes: Vec<StackNode>,
    /// Command names by number.
    pub comms: Vec<String>,
    /// One for each iteration that was profiled, warm-ups included, in order of slots.
    pub iterations: Vec<IterationProfile>,
}

/// The samples of one iteration.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct IterationProfile {
    /// What the sampler said.
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

/// Frames of a stack at most, whoever tells of it: every reader walks from a stack to its callers, so that a deeper one in a
/// file of somebody else's would cost its depth for each of its frames. The kernel and perflab's own unwinder stop at 1024.
pub const DEEPEST_STACK: usize = 4096;

/// Why nodes are no tree of stacks; `frames` is how many frames there are.
///
/// # Errors
/// A node that refers to what does not stand before it, or a stack of more than [`DEEPEST_STACK`] frames, by the node's number.
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
        self.iterations.iter().fold(SampleCounts::default(), |mut sum, piece| {
            sum += piece.sample_counts();
            sum
        })
    }

    /// Takes a batch; its samples go to the piece of its slot.
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

    /// Takes what a sampler said of a slot. Of several, the samplers of targets in step, losses and costs are added up,
    /// and the first one's words about the event stand for all.
    pub fn add_summary(&mut self, about: ProfileSummary) {
        let told = &mut self.iteration_mut(about.slot).summary;
        if told.source.is_empty() {
            *told = about;
            return;
        }
        told.lost = told.lost.saturating_add(about.lost);
        told.unreadable = told.unreadable.saturating_add(about.unreadable);
        told.cost.0 = told.cost.0.saturating_add(about.cost.0);
    }

    /// The piece of a slot, made where it is new.
    pub fn iteration_mut(&mut self, slot: u32) -> &mut IterationProfile {
        let at = self.iterations.partition_point(|piece| piece.summary.slot < slot);
        if self.iterations.get(at).is_none_or(|piece| piece.summary.slot != slot) {
            let about = ProfileSummary { slot, ..ProfileSummary::default() };
            self.iterations.insert(at, IterationProfile { summary: about, samples: Vec::new() });
        }
        self.iterations.get_mut(at).expect("it was inserted there if it was missing")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            cost: crate::Nanos(u64::MAX),
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
}
