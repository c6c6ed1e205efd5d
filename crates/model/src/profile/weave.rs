//! Putting stacks together: each frame, node and command name gets its number once.

use std::collections::HashMap;

use super::{CommId, DEEPEST_STACK, FrameId, NodeId, StackBatch, StackFrame, StackNode, StackSample};

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
    use super::*;
    use crate::profile::FrameKind;

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
        assert_eq!(crate::profile::check_stack_tree(&batch.nodes, batch.frames.len()), Ok(()));
    }
}
