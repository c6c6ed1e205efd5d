//! A step in a history that somebody has looked at and accepts, and from which a new baseline begins.

use serde::{Deserialize, Serialize};

use crate::metric::Unit;
use crate::quantity::Nanos;

/// An accepted step of one series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AcceptedStep {
    /// The case.
    pub subject: String,
    /// The metric.
    pub metric: String,
    /// Unit of its values.
    pub unit: Unit,
    /// The first run of the new baseline.
    pub run: String,
    /// When that run began. It holds where the run itself is gone.
    pub began: Nanos,
    /// Why the step is accepted.
    pub note: String,
    /// When it was accepted.
    pub accepted: Nanos,
}

impl AcceptedStep {
    /// Whether both are of the same series and run: the later note holds.
    #[must_use]
    pub fn replaces(&self, other: &AcceptedStep) -> bool {
        (&self.subject, &self.metric, &self.unit, &self.run)
            == (&other.subject, &other.metric, &other.unit, &other.run)
    }
}
