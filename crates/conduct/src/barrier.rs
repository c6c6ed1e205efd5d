//! The points that all targets must reach before any goes on.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A point that all must reach before any goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Point {
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

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Point::First => f.write_str("the beginning"),
            Point::Before(slot) => write!(f, "the start of iteration {slot}"),
            Point::After(slot) => write!(f, "the end of iteration {slot}"),
            Point::Last => f.write_str("the undoing of settings"),
            Point::End => f.write_str("the end"),
        }
    }
}
