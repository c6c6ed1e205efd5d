//! One sample.

use serde::{Deserialize, Serialize};

use super::NodeId;
use crate::Nanos;

/// Number of a command name within its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CommId(pub u32);

/// A sample, or several alike where the source gives only their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredStackSample", into = "StoredStackSample")]
pub struct StackSample {
    /// When, on the clock of the run; `None` where the source has no times.
    pub at: Option<Nanos>,
    /// On which CPU.
    pub cpu: Option<u32>,
    /// The process; -1 for a task that was just dying.
    pub pid: Option<i32>,
    /// The thread.
    pub tid: Option<i32>,
    /// What the thread called itself; empty where nobody knows.
    pub comm: CommId,
    /// The stack; `None` for a sample without one.
    pub leaf: Option<NodeId>,
    /// How many samples this stands for: 1, but in folded text.
    pub count: u64,
    /// What they weigh together, in the unit of the profile: its period (ns of CPU time, cycles).
    pub weight: u64,
}

impl StackSample {
    /// Whether its task was dying: the kernel could no longer say which it was.
    pub fn is_of_dying_task(&self) -> bool {
        self.pid == Some(-1)
    }
}

/// As it stands in a journal: a list, as there are many.
type StoredStackSample =
    (Option<Nanos>, Option<u32>, Option<i32>, Option<i32>, CommId, Option<NodeId>, u64, u64);

impl From<StoredStackSample> for StackSample {
    fn from((at, cpu, pid, tid, comm, leaf, count, weight): StoredStackSample) -> Self {
        StackSample { at, cpu, pid, tid, comm, leaf, count, weight }
    }
}

impl From<StackSample> for StoredStackSample {
    fn from(one: StackSample) -> Self {
        (one.at, one.cpu, one.pid, one.tid, one.comm, one.leaf, one.count, one.weight)
    }
}
