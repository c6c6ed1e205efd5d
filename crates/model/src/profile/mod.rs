//! Profiles: sampled call stacks, merged at their common beginnings.
//!
//! Owns what a frame, a stack and a sample are, and what every sampler must say of itself: what it could
//! not see, and what was lost. A stack is a [`StackNode`]: its frame and the node of its caller, so that stacks
//! share their outer frames and the nodes of a run are the call tree already. Refuses addresses: frames
//! are named where they are recorded, while the symbols are at hand. No sample is dropped on the way: one
//! without a stack is a sample without a node, and what the kernel lost is counted in [`ProfileSummary`].

mod batch;
mod collected;
mod frame;
mod name;
mod sample;
mod weave;

pub use batch::{ProfileSummary, StackBatch, SymbolAnchor};
pub use collected::{
    DEEPEST_STACK, IterationProfile, Profile, SampleCounts, check_stack_tree, count_samples,
};
pub use frame::{FrameId, FrameKind, NodeId, StackFrame, StackNode};
pub use name::strip_compiler_suffixes;
pub use sample::{CommId, StackSample};
pub use weave::StackTreeBuilder;
