//! Stacks on their way through the stream of events, and what is said when a profile ends.

use serde::{Deserialize, Serialize};

use super::{StackFrame, StackNode, StackSample};
use crate::{Nanos, Unit};

/// Samples of one iteration, with the frames, nodes and command names that no earlier batch of the run has.
///
/// The numbers of frames, nodes and command names count through all batches of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StackBatch {
    /// Index into the plan's slots.
    pub slot: u32,
    /// New frames, in order of their numbers.
    pub frames: Vec<StackFrame>,
    /// New nodes, in order of their numbers.
    pub nodes: Vec<StackNode>,
    /// New command names, in order of their numbers.
    pub comms: Vec<String>,
    /// Samples, in order of time where they have one.
    pub samples: Vec<StackSample>,
}

impl StackBatch {
    /// The same as batches of at most `most` things each, names before what refers to them.
    pub fn split(mut self, most: usize) -> Vec<StackBatch> {
        let mut parts = Vec::new();
        loop {
            let mut part = StackBatch { slot: self.slot, ..StackBatch::default() };
            let mut room = most.max(1);
            part.frames = drain_up_to(&mut self.frames, &mut room);
            part.nodes = drain_up_to(&mut self.nodes, &mut room);
            part.comms = drain_up_to(&mut self.comms, &mut room);
            part.samples = drain_up_to(&mut self.samples, &mut room);
            parts.push(part);
            if room > 0 || (self.frames.len() + self.nodes.len() + self.comms.len() + self.samples.len()) == 0
            {
                return parts;
            }
        }
    }
}

/// Takes as many as there is room for.
fn drain_up_to<T>(from: &mut Vec<T>, room: &mut usize) -> Vec<T> {
    let count = from.len().min(*room);
    *room -= count;
    from.drain(..count).collect()
}

/// What the sampler says of itself when the profile of an iteration ends.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProfileSummary {
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
    /// Records that the kernel, or the recorder, had no room for. Most of them were samples.
    pub lost: u64,
    /// Samples or lines of the source that could not be read.
    pub unreadable: u64,
    /// What taking these samples cost the sampler: CPU time of its reader; 0 for imports.
    pub cost: Nanos,
    /// Kernel symbols that rule tables asked for, where they are there.
    pub anchors: Vec<SymbolAnchor>,
}

/// A symbol of the kernel, found in its symbol table whether or not a sample hit it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SymbolAnchor {
    /// Its normalised name.
    pub name: String,
    /// Where it begins, in bytes from `_stext`.
    pub start: i64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{CommId, FrameKind, Profile};

    #[test]
    fn a_split_batch_is_the_same_profile_and_no_part_refers_to_a_later_one() {
        let mut whole = StackBatch { slot: 3, comms: vec!["a".into()], ..StackBatch::default() };
        for number in 0..10_u32 {
            whole.frames.push(StackFrame::new(&format!("f{number}"), FrameKind::User));
            whole.nodes.push(StackNode { parent: None, frame: crate::profile::FrameId(number) });
            let leaf = Some(crate::profile::NodeId(number));
            let (count, weight, comm) = (1, 1, CommId(0));
            whole.samples.push(StackSample {
                at: None,
                cpu: None,
                pid: None,
                tid: None,
                comm,
                leaf,
                count,
                weight,
            });
        }
        let mut together = Profile::default();
        together.add_batch(whole.clone());
        let (parts, mut joined) = (whole.split(4), Profile::default());
        assert_eq!(parts.len(), 8);
        for part in parts {
            assert!(part.frames.len() + part.nodes.len() + part.samples.len() <= 4);
            joined.add_batch(part);
            let known = joined.nodes.len() as u32;
            assert!(joined.iterations[0].samples.iter().all(|sample| sample.leaf.unwrap().0 < known));
        }
        assert_eq!(joined, together);
        assert_eq!(StackBatch::default().split(4).len(), 1);
    }
}
