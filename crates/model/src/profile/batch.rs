//! Stacks on their way through the stream of events, and what is said when a profile ends.

use serde::{Deserialize, Serialize};

use super::{Frame, Node, StackSample};
use crate::{Nanos, Unit};

/// Samples of one iteration, with the frames, nodes and command names that no earlier batch of the run has.
///
/// The numbers of frames, nodes and command names count through all batches of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StackBatch {
    /// Index into the plan's slots.
    pub slot: u32,
    /// New frames, in order of their numbers.
    pub frames: Vec<Frame>,
    /// New nodes, in order of their numbers.
    pub nodes: Vec<Node>,
    /// New command names, in order of their numbers.
    pub comms: Vec<String>,
    /// Samples, in order of time where they have one.
    pub samples: Vec<StackSample>,
}

/// What the sampler says of itself when the profile of an iteration ends.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Profiled {
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
    /// Records that the kernel had no room for. Most of them were samples.
    pub lost: u64,
    /// Samples or lines of the source that could not be read.
    pub unreadable: u64,
    /// What taking these samples cost the sampler: CPU time of its reader; 0 for imports.
    pub cost: Nanos,
    /// Kernel symbols that rule tables asked for, where they are there.
    pub anchors: Vec<Anchor>,
}

/// A symbol of the kernel, found in its symbol table whether or not a sample hit it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Anchor {
    /// Its normalised name.
    pub name: String,
    /// Where it begins, in bytes from `_stext`.
    pub start: i64,
}
