//! What of a profile is written.

use perflab_model::profile::{IterationProfile, ProfileSummary};
use perflab_model::{FrameId, NodeId, Profile, StackSample};

/// A profile, or some of its iterations.
#[derive(Debug, Clone, Copy)]
pub struct ProfileSelection<'a> {
    /// What the file calls it.
    pub name: &'a str,
    /// All of it.
    pub profile: &'a Profile,
    /// Only these slots; all where left out.
    pub slots: Option<&'a [u32]>,
}

impl<'a> ProfileSelection<'a> {
    fn selected_pieces(self) -> impl Iterator<Item = &'a IterationProfile> {
        let requested = move |slot: u32| self.slots.is_none_or(|slots| slots.contains(&slot));
        self.profile.iterations.iter().filter(move |piece| requested(piece.summary.slot))
    }

    pub(crate) fn selected_samples(self) -> impl Iterator<Item = &'a StackSample> {
        self.selected_pieces().flat_map(|piece| &piece.samples)
    }

    /// What the sampler reported of the first batch.
    pub(crate) fn first_profiled(self) -> ProfileSummary {
        self.selected_pieces().next().map(|piece| piece.summary.clone()).unwrap_or_default()
    }

    /// The frames of a stack, outermost first.
    pub(crate) fn frames_outermost_first(self, leaf: Option<NodeId>) -> Vec<FrameId> {
        let mut frames = self.frames_innermost_first(leaf);
        frames.reverse();
        frames
    }

    /// The frames of a stack, innermost first.
    pub(crate) fn frames_innermost_first(self, leaf: Option<NodeId>) -> Vec<FrameId> {
        let (mut frames, mut at) = (Vec::new(), leaf);
        while let Some(node) = at.and_then(|node| self.profile.node(node)) {
            frames.push(node.frame);
            at = node.parent;
        }
        frames
    }

    /// The command of a sample; never empty.
    pub(crate) fn comm_of(self, sample: &StackSample) -> &'a str {
        match self.profile.comm(sample.comm) {
            "" => "[unknown]",
            name => name,
        }
    }
}
