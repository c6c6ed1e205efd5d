//! What of a profile is written.

use perflab_model::Profile;
use perflab_model::profile::{FrameId, NodeId, Piece, Profiled, StackSample};

/// A profile, or some of its iterations.
#[derive(Debug, Clone, Copy)]
pub struct Chosen<'a> {
    /// What the file calls it.
    pub name: &'a str,
    /// All of it.
    pub profile: &'a Profile,
    /// Only these slots; all where left out.
    pub slots: Option<&'a [u32]>,
}

impl<'a> Chosen<'a> {
    pub(super) fn pieces(self) -> impl Iterator<Item = &'a Piece> {
        let wanted = move |slot: u32| self.slots.is_none_or(|slots| slots.contains(&slot));
        self.profile.pieces.iter().filter(move |piece| wanted(piece.about.slot))
    }

    pub(super) fn samples(self) -> impl Iterator<Item = &'a StackSample> {
        self.pieces().flat_map(|piece| &piece.samples)
    }

    /// What the sampler said of the first piece.
    pub(super) fn about(self) -> Profiled {
        self.pieces().next().map(|piece| piece.about.clone()).unwrap_or_default()
    }

    /// The frames of a stack, outermost first.
    pub(super) fn frames(self, leaf: Option<NodeId>) -> Vec<FrameId> {
        let mut frames = self.inwards(leaf);
        frames.reverse();
        frames
    }

    /// The frames of a stack, innermost first.
    pub(super) fn inwards(self, leaf: Option<NodeId>) -> Vec<FrameId> {
        let (mut frames, mut at) = (Vec::new(), leaf);
        while let Some(node) = at.and_then(|node| self.profile.node(node)) {
            frames.push(node.frame);
            at = node.parent;
        }
        frames
    }

    /// The command of a sample; never empty.
    pub(super) fn comm(self, sample: &StackSample) -> &'a str {
        match self.profile.comm(sample.comm) {
            "" => "[unknown]",
            name => name,
        }
    }
}
