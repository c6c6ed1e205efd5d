//! A whole profile in memory, as readers give it.

use super::{CommId, Frame, FrameId, Node, NodeId, Profiled, StackBatch, StackSample};

/// The profile of one case: a piece for each of its iterations, over the frames and nodes of its run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Profile {
    /// Frames by number.
    pub frames: Vec<Frame>,
    /// Nodes by number; a caller stands before its callees.
    pub nodes: Vec<Node>,
    /// Command names by number.
    pub comms: Vec<String>,
    /// One for each iteration that was profiled, warm-ups included, in order of slots.
    pub pieces: Vec<Piece>,
}

/// The samples of one iteration.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Piece {
    /// What the sampler said.
    pub about: Profiled,
    /// In order of time where they have one.
    pub samples: Vec<StackSample>,
}

/// What became of every sample. The parts are disjoint, and their sum is [`Parts::all`]. Archives and imported files may claim
/// any numbers: sums stop at the largest there is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Parts {
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

impl Parts {
    /// Their sum.
    pub fn all(&self) -> u64 {
        self.kept().saturating_add(self.lost).saturating_add(self.unreadable)
    }

    /// Samples that are in the profile.
    pub fn kept(&self) -> u64 {
        self.stacks.saturating_add(self.stackless).saturating_add(self.dead)
    }
}

impl std::ops::AddAssign for Parts {
    fn add_assign(&mut self, other: Parts) {
        self.stacks = self.stacks.saturating_add(other.stacks);
        self.stackless = self.stackless.saturating_add(other.stackless);
        self.dead = self.dead.saturating_add(other.dead);
        self.lost = self.lost.saturating_add(other.lost);
        self.unreadable = self.unreadable.saturating_add(other.unreadable);
    }
}

impl Piece {
    /// What became of its samples.
    pub fn parts(&self) -> Parts {
        parts(&self.about, &self.samples)
    }
}

/// What became of the samples of a sampler that says `about` of them.
pub fn parts(about: &Profiled, samples: &[StackSample]) -> Parts {
    let mut parts = Parts { lost: about.lost, unreadable: about.unreadable, ..Parts::default() };
    for sample in samples {
        let part = match sample.leaf {
            _ if sample.is_dead() => &mut parts.dead,
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
pub fn check_tree(nodes: &[Node], frames: usize) -> Result<(), String> {
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
    pub fn frame(&self, id: FrameId) -> Option<&Frame> {
        self.frames.get(id.0 as usize)
    }

    /// A node by its number.
    pub fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(id.0 as usize)
    }

    /// A command name by its number; empty where it is not known.
    pub fn comm(&self, id: CommId) -> &str {
        self.comms.get(id.0 as usize).map_or("", String::as_str)
    }

    /// What became of all samples.
    pub fn parts(&self) -> Parts {
        self.pieces.iter().fold(Parts::default(), |mut sum, piece| {
            sum += piece.parts();
            sum
        })
    }

    /// Takes a batch; its samples go to the piece of its slot.
    pub fn take(&mut self, mut batch: StackBatch) {
        let samples = std::mem::take(&mut batch.samples);
        self.piece(batch.slot).samples.extend(samples);
        self.take_names(batch);
    }

    /// Takes the frames, nodes and command names of a batch, and leaves its samples.
    pub fn take_names(&mut self, batch: StackBatch) {
        self.frames.extend(batch.frames);
        self.nodes.extend(batch.nodes);
        self.comms.extend(batch.comms);
    }

    /// Takes what a sampler said of a slot. Of several, the samplers of targets in step, losses and costs are added up,
    /// and the first one's words about the event stand for all.
    pub fn tell(&mut self, about: Profiled) {
        let told = &mut self.piece(about.slot).about;
        if told.source.is_empty() {
            *told = about;
            return;
        }
        told.lost = told.lost.saturating_add(about.lost);
        told.unreadable = told.unreadable.saturating_add(about.unreadable);
        told.cost.0 = told.cost.0.saturating_add(about.cost.0);
    }

    /// The piece of a slot, made where it is new.
    pub fn piece(&mut self, slot: u32) -> &mut Piece {
        let at = self.pieces.partition_point(|piece| piece.about.slot < slot);
        if self.pieces.get(at).is_none_or(|piece| piece.about.slot != slot) {
            let about = Profiled { slot, ..Profiled::default() };
            self.pieces.insert(at, Piece { about, samples: Vec::new() });
        }
        self.pieces.get_mut(at).expect("it was inserted there if it was missing")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(count: u64) -> StackSample {
        let (at, cpu, pid, tid, comm, leaf) = (None, None, None, None, CommId(0), None);
        StackSample { at, cpu, pid, tid, comm, leaf, count, weight: count }
    }

    #[test]
    fn numbers_that_no_machine_has_are_added_up_to_the_largest() {
        let mut profile = Profile::default();
        let batch = StackBatch { samples: vec![sample(u64::MAX), sample(u64::MAX)], ..StackBatch::default() };
        profile.take(batch);
        let about = || Profiled {
            source: "s".into(),
            lost: u64::MAX,
            unreadable: u64::MAX,
            cost: crate::Nanos(u64::MAX),
            ..Profiled::default()
        };
        profile.tell(about());
        profile.tell(about());
        let parts = profile.parts();
        assert_eq!(
            (parts.kept(), parts.lost, parts.unreadable, parts.all()),
            (u64::MAX, u64::MAX, u64::MAX, u64::MAX)
        );
    }

    #[test]
    fn only_a_tree_of_stacks_is_one() {
        let node = |parent: Option<u32>, frame| Node { parent: parent.map(NodeId), frame: FrameId(frame) };
        let chain = |depth: u32| (0..depth).map(|at| node(at.checked_sub(1), 0)).collect::<Vec<_>>();
        assert_eq!(check_tree(&chain(DEEPEST_STACK as u32), 1), Ok(()));
        let too_deep = check_tree(&chain(DEEPEST_STACK as u32 + 1), 1);
        assert_eq!(too_deep, Err("stack 4096 is deeper than 4096 frames, which no profiler takes".into()));
        for round in [node(Some(0), 0), node(Some(1), 0), node(None, 1)] {
            assert_eq!(check_tree(&[round], 1), Err("stack 0 points out of its table".into()));
        }
    }
}
