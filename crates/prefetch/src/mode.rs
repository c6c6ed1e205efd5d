//! When files are read: before their program starts, or beside it.

use crate::{Order, Part, Plan, Start, plan};

/// When.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    /// everything before the program starts
    Sync,
    /// everything beside it
    Async,
    /// metadata before it starts, the rest beside it
    #[default]
    Staged,
}

impl Mode {
    /// What of a start is read, and in which order: in one sweep where the program waits for all of it, else as it needs
    /// it, unless another order is wanted.
    pub fn plan(self, start: &Start, order: Option<Order>, memory: u64) -> Plan<'_> {
        let usual = if self == Mode::Sync { Order::Block } else { Order::Need };
        plan(start, order.unwrap_or(usual), memory)
    }

    /// What of a plan is read before the program starts, and what beside it.
    pub fn parts(self, plan: &Plan<'_>) -> [Part; 2] {
        let all = plan.steps.len();
        let nothing = || Part { metadata: false, steps: 0..0 };
        match self {
            Mode::Sync => [Part { metadata: true, steps: 0..all }, nothing()],
            Mode::Async => [nothing(), Part { metadata: true, steps: 0..all }],
            Mode::Staged => [Part { metadata: true, steps: 0..0 }, Part { metadata: false, steps: 0..all }],
        }
    }
}
