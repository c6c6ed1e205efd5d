//! Stacks of several targets in one tree.
//!
//! Each target's ids become the run's, below a frame with the target's name, so that a flame graph shows them
//! beside one another. A target that refers to an id it never sent is not believed.

use std::collections::HashMap;

use perflab_model::profile::StackTreeBuilder;
use perflab_model::{
    CommId, FrameId, FrameKind, NodeId, StackBatch, StackFrame, StackSample, remove_control_characters,
};

/// The tree of the run, and what each target's numbers are in it.
#[derive(Debug, Default)]
pub(crate) struct StackMerger {
    weaver: StackTreeBuilder,
    threads: HashMap<usize, TargetIds>,
}

/// One target's names so far.
#[derive(Debug, Default)]
struct TargetIds {
    frames: Vec<FrameId>,
    nodes: Vec<NodeId>,
    comms: Vec<CommId>,
    /// It sent nonsense: nothing more of it is taken.
    torn: bool,
}

impl StackMerger {
    /// The targets were started anew, and number from 0 again.
    pub(crate) fn restart(&mut self) {
        self.threads.clear();
    }

    /// The batch in the run's numbers; none from a target that refers to what it never sent.
    pub(crate) fn merge(&mut self, target: usize, name: &str, batch: StackBatch) -> Option<StackBatch> {
        let thread = self.threads.entry(target).or_default();
        if thread.torn {
            return None;
        }
        let joined = thread.merge_batch(&mut self.weaver, name, &batch);
        thread.torn = joined.is_none();
        // What was sent before the nonsense has its ids: it must be passed on even so.
        Some(self.weaver.take_batch(batch.slot, joined.unwrap_or_default()))
    }

    /// Whether a target's profile had to be cut off.
    pub(crate) fn is_cut_off(&self, target: usize) -> bool {
        self.threads.get(&target).is_some_and(|thread| thread.torn)
    }
}

impl TargetIds {
    fn merge_batch(
        &mut self,
        weaver: &mut StackTreeBuilder,
        name: &str,
        batch: &StackBatch,
    ) -> Option<Vec<StackSample>> {
        let root = weaver.intern_frame(StackFrame::new(name, FrameKind::Unknown));
        let root = weaver.intern_node(None, root);
        self.frames.extend(batch.frames.iter().map(|frame| weaver.intern_frame(clean_frame(frame))));
        self.comms
            .extend(batch.comms.iter().map(|comm| weaver.intern_comm(&remove_control_characters(comm))));
        for node in &batch.nodes {
            let frame = *self.frames.get(node.frame.0 as usize)?;
            let parent = match node.parent {
                None => root,
                Some(parent) => *self.nodes.get(parent.0 as usize)?,
            };
            self.nodes.push(weaver.intern_node(Some(parent), frame));
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

fn clean_frame(frame: &StackFrame) -> StackFrame {
    StackFrame {
        name: remove_control_characters(&frame.name),
        raw: frame.raw.as_deref().map(remove_control_characters),
        module: frame.module.as_deref().map(remove_control_characters),
        ..frame.clone()
    }
}

#[cfg(test)]
mod tests {
    use perflab_model::StackNode;
    use perflab_model::profile::Profile;

    use super::*;

    fn one_sample_batch(function: &str, leaf: u32) -> StackBatch {
        let (comm, leaf) = (CommId(0), Some(NodeId(leaf)));
        StackBatch {
            frames: vec![StackFrame::new(function, FrameKind::Kernel)],
            nodes: vec![StackNode { parent: None, frame: FrameId(0) }],
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
    fn profile_stacks(profile: &Profile) -> Vec<String> {
        let names = |sample: &StackSample| {
            let (mut names, mut at) = (Vec::new(), sample.leaf);
            while let Some(node) = at.and_then(|id| profile.node(id)) {
                names.insert(0, profile.frame(node.frame).unwrap().name.clone());
                at = node.parent;
            }
            names.join(";")
        };
        profile.iterations.iter().flat_map(|piece| piece.samples.iter().map(names)).collect()
    }

    #[test]
    fn the_same_function_in_two_guests_is_two_stacks_below_their_names() {
        let (mut weft, mut profile) = (StackMerger::default(), Profile::default());
        for (target, name, function) in [(0, "guest1", "work"), (1, "guest2", "work")] {
            profile.add_batch(weft.merge(target, name, one_sample_batch(function, 0)).unwrap());
        }
        weft.restart();
        profile.add_batch(weft.merge(0, "guest1", one_sample_batch("other\u{1b}[31m", 0)).unwrap());
        assert_eq!(profile_stacks(&profile), ["guest1;work", "guest2;work", "guest1;other\u{fffd}[31m"]);
    }

    #[test]
    fn a_guest_that_refers_to_nothing_is_cut_off_and_the_others_stay_right() {
        let (mut weft, mut profile) = (StackMerger::default(), Profile::default());
        profile.add_batch(weft.merge(0, "liar", one_sample_batch("work", 7)).unwrap());
        assert!(weft.is_cut_off(0));
        assert_eq!(weft.merge(0, "liar", one_sample_batch("more", 0)), None);
        profile.add_batch(weft.merge(1, "honest", one_sample_batch("idle", 0)).unwrap());
        assert_eq!(profile_stacks(&profile), ["honest;idle"]);
    }
}
