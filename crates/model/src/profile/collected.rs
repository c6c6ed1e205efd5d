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

/// What became of every sample. The parts are disjoint, and their sum is [`Parts::all`].
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
        self.kept() + self.lost + self.unreadable
    }

    /// Samples that are in the profile.
    pub fn kept(&self) -> u64 {
        self.stacks + self.stackless + self.dead
    }
}

impl std::ops::AddAssign for Parts {
    fn add_assign(&mut self, other: Parts) {
        self.stacks += other.stacks;
        self.stackless += other.stackless;
        self.dead += other.dead;
        self.lost += other.lost;
        self.unreadable += other.unreadable;
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
        *part += sample.count;
    }
    parts
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
        told.lost += about.lost;
        told.unreadable += about.unreadable;
        told.cost.0 += about.cost.0;
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
