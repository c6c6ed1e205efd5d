//! When files are read: before their program starts, or beside it.

use crate::{Order, Part, Plan, Start, plan};

/// When.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    /// everything before the program starts
    Sync,
    /// everything beside it
    Async,
    /// metadata and what is needed first before it starts, the rest beside it
    #[default]
    Staged,
}

impl Mode {
    /// What of a start is read, and in which order: in one sweep, unless what is needed first is to come first.
    pub fn plan(self, start: &Start, order: Order, memory: u64) -> Plan<'_> {
        let staged = plan(start, order, memory);
        if self == Mode::Staged { staged } else { staged.swept(order) }
    }

    /// What of a plan is read before the program starts, and what beside it.
    pub fn parts(self, plan: &Plan<'_>) -> [Part; 2] {
        let (all, early) = (plan.steps.len(), plan.early);
        let nothing = || Part { metadata: false, steps: 0..0 };
        match self {
            Mode::Sync => [Part { metadata: true, steps: 0..all }, nothing()],
            Mode::Async => [nothing(), Part { metadata: true, steps: 0..all }],
            Mode::Staged => {
                [Part { metadata: true, steps: 0..early }, Part { metadata: false, steps: early..all }]
            }
        }
    }
}
