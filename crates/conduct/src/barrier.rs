//! The points that all targets must reach before any goes on, as a state machine without I/O.
//!
//! Owns who is on the way to which point, until when, and what follows from that. It refuses clocks, streams and
//! threads: whoever drives it passes the time in, hands it what was heard, and does what it says. `docs/barrier.md`
//! writes it down for people; its test walks through every state that three targets can bring it into.
//!
//! A run is a list of [`BarrierStage`]s. Each has a deadline, so that every state but the last is left after a bounded time:
//! who has not come by then is lost, and the others go on or stop, as the study says.

mod stages;
mod state;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use stages::{StageLimits, round_stages};
pub use state::{Barrier, BarrierAction, BarrierInput, TargetLoss};

/// A point that all must reach before any goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BarrierPoint {
    /// Before the first workload: everything is prepared, the monitors run.
    First,
    /// Before the iteration of that slot: settings are in force, nothing is left but to start.
    Before(u32),
    /// After the iteration of that slot, with everything that it gave.
    After(u32),
    /// After the last iteration: settings are undone, the monitors still run.
    Last,
    /// At the end: the monitors have stopped, nothing is left behind.
    End,
}

impl fmt::Display for BarrierPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BarrierPoint::First => f.write_str("the beginning"),
            BarrierPoint::Before(slot) => write!(f, "the start of iteration {slot}"),
            BarrierPoint::After(slot) => write!(f, "the end of iteration {slot}"),
            BarrierPoint::Last => f.write_str("the undoing of settings"),
            BarrierPoint::End => f.write_str("the end"),
        }
    }
}

/// A point, who has to come to it, and how long they may take.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BarrierStage {
    /// Where to.
    pub point: BarrierPoint,
    /// Indices of the targets that take part.
    pub who: Vec<usize>,
    /// The longest that they may take, from the moment when they are told.
    pub allowed: perflab_model::Nanos,
}

#[cfg(test)]
mod tests;
