//! Stacks of several targets in one tree: each target's numbers become the run's, below a frame with the target's name, so
//! that a flame graph shows them beside one another. A target that refers to what it never told is not believed.

use std::collections::HashMap;

use perflab_model::StackBatch;
use perflab_model::profile::{CommId, Frame, FrameId, FrameKind, NodeId, StackSample, Weaver};

use crate::inert::inert;

/// The tree of the run, and what each target's numbers are in it.
#[derive(Debug, Default)]
pub(super) struct Weft {
    weaver: Weaver,
    threads: HashMap<usize, Thread>,
}

/// One target's names so far.
#[derive(Debug, Default)]
struct Thread {
    frames: Vec<FrameId>,
    nodes: Vec<NodeId>,
    comms: Vec<CommId>,
    /// It told nonsense: nothing more of it is taken.
    torn: bool,
}

impl Weft {
    /// The targets were started anew, and number from 0 again.
    pub(super) fn anew(&mut self) {
        self.threads.clear();
    }

    /// The batch in the run's numbers; none from a target that refers to what it never told.
    pub(super) fn join(&mut self, target: usize, name: &str, batch: StackBatch) -> Option<StackBatch> {
        let thread = self.threads.entry(target).or_default();
        if thread.torn {
            return None;
        }
        let joined = thread.join(&mut self.weaver, name, &batch);
        thread.torn = joined.is_none();
        // What was told before the nonsense has its numbers: it must be told even so.
        Some(self.weaver.batch(batch.slot, joined.unwrap_or_default()))
    }

    /// Whether a target's profile had to be cut off.
    pub(super) fn is_torn(&self, target: usize) -> bool {
        self.threads.get(&target).is_some_and(|thread| thread.torn)
    }
}

impl Thread {
    fn join(&mut self, weaver: &mut Weaver, name: &str, batch: &StackBatch) -> Option<Vec<StackSample>> {
        let root = weaver.frame(Frame::new(name, FrameKind::Unknown));
        let root = weaver.node(None, root);
        self.frames.extend(batch.frames.iter().map(|frame| weaver.frame(harmless(frame))));
        self.comms.extend(batch.comms.iter().map(|comm| weaver.comm(&inert(comm))));
        for node in &batch.nodes {
            let frame = *self.frames.get(node.frame.0 as usize)?;
            let parent = match node.parent {
                None => root,
                Some(parent) => *self.nodes.get(parent.0 as usize)?,
            };
            self.nodes.push(weaver.node(Some(parent), frame));
        }
        let ours = |sample: &StackSample| {
            let comm = *self.comms.get(sample.comm.0 as usize)?;
            let leaf = match sample.leaf {
                None => None,
                Some(leaf) => Some(*self.nodes.get(leaf.0 as usize)?),
            };
            Some(StackSample { comm, leaf, ..*sample })
        };
        batch.samples.iter().map(ours).collect()
    }
}

fn harmless(frame: &Frame) -> Frame {
    Frame {
        name: inert(&frame.name),
        raw: frame.raw.as_deref().map(inert),
        module: frame.module.as_deref().map(inert),
        ..frame.clone()
    }
}

#[cfg(test)]
mod tests {
    use perflab_model::profile::{Node, Profile};

    use super::*;

    fn batch(function: &str, leaf: u32) -> StackBatch {
        let (comm, leaf) = (CommId(0), Some(NodeId(leaf)));
        StackBatch {
            frames: vec![Frame::new(function, FrameKind::Kernel)],
            nodes: vec![Node { parent: None, frame: FrameId(0) }],
            comms: vec!["sh".into()],
            samples: vec![StackSample {
                at: None,
                cpu: None,
                pid: None,
                tid: None,
                comm,
                leaf,
                count: 1,
                weight: 1,
            }],
            ..StackBatch::default()
        }
    }

    /// The stack of each sample, outermost first.
    fn stacks(profile: &Profile) -> Vec<String> {
        let names = |sample: &StackSample| {
            let (mut names, mut at) = (Vec::new(), sample.leaf);
            while let Some(node) = at.and_then(|id| profile.node(id)) {
                names.insert(0, profile.frame(node.frame).unwrap().name.clone());
                at = node.parent;
            }
            names.join(";")
        };
        profile.pieces.iter().flat_map(|piece| piece.samples.iter().map(names)).collect()
    }

    #[test]
    fn the_same_function_in_two_guests_is_two_stacks_below_their_names() {
        let (mut weft, mut profile) = (Weft::default(), Profile::default());
        for (target, name, function) in [(0, "guest1", "work"), (1, "guest2", "work")] {
            profile.take(weft.join(target, name, batch(function, 0)).unwrap());
        }
        weft.anew();
        profile.take(weft.join(0, "guest1", batch("other\u{1b}[31m", 0)).unwrap());
        assert_eq!(stacks(&profile), ["guest1;work", "guest2;work", "guest1;other\u{fffd}[31m"]);
    }

    #[test]
    fn a_guest_that_refers_to_nothing_is_cut_off_and_the_others_stay_right() {
        let (mut weft, mut profile) = (Weft::default(), Profile::default());
        profile.take(weft.join(0, "liar", batch("work", 7)).unwrap());
        assert!(weft.is_torn(0));
        assert_eq!(weft.join(0, "liar", batch("more", 0)), None);
        profile.take(weft.join(1, "honest", batch("idle", 0)).unwrap());
        assert_eq!(stacks(&profile), ["honest;idle"]);
    }
}
