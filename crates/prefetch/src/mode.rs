//! When files are read: before their program starts, or beside it.

use crate::{ReadOrder, ReplayPart, ReplayPlan, StartupTrace, plan_replay};

/// When.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ReplayMode {
    /// everything before the program starts
    Sync,
    /// everything beside it
    Async,
    /// metadata before it starts, the rest beside it
    #[default]
    Staged,
}

impl ReplayMode {
    /// What of a start is read, and in which order: in one sweep where the program waits for all of it, else as it needs
    /// it, unless another order is wanted.
    pub fn plan_replay(self, start: &StartupTrace, order: Option<ReadOrder>, memory: u64) -> ReplayPlan<'_> {
        let usual = if self == ReplayMode::Sync { ReadOrder::Block } else { ReadOrder::Need };
        plan_replay(start, order.unwrap_or(usual), memory)
    }

    /// What of a plan is read before the program starts, and what beside it.
    pub fn split_plan(self, plan: &ReplayPlan<'_>) -> [ReplayPart; 2] {
        let all = plan.steps.len();
        let nothing = || ReplayPart { metadata: false, steps: 0..0 };
        match self {
            ReplayMode::Sync => [ReplayPart { metadata: true, steps: 0..all }, nothing()],
            ReplayMode::Async => [nothing(), ReplayPart { metadata: true, steps: 0..all }],
            ReplayMode::Staged => {
                [ReplayPart { metadata: true, steps: 0..0 }, ReplayPart { metadata: false, steps: 0..all }]
            }
        }
    }
}
