//! Targets: where the cases of a run run, when that is not this host alone.

use serde::{Deserialize, Serialize};

use crate::{Facts, Nanos};

/// How a target's CLOCK_MONOTONIC stands to that of the machine that records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockOffset {
    /// Add it to a time of the machine that records to get the target's, in nanoseconds.
    pub offset: i64,
    /// The truth is no further from `offset` than this.
    pub bound: Nanos,
    /// How much faster the target's clock runs, in billionths; 0 until it was watched for long enough.
    pub rate_ppb: i64,
}

/// One target of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TargetRecord {
    /// `guest1`
    pub name: String,
    /// `process`, `ssh`, `vm`
    pub kind: String,
    /// The kernel that it runs.
    pub kernel: String,
    /// Tells its boots apart; empty where unknown.
    pub boot_id: String,
    /// How its clock stood at the beginning.
    pub clock: ClockOffset,
    /// What it says about itself.
    pub facts: Facts,
}
