//! The messages. The host orders, the agent reports.

use perflab_model::{Manifest, Nanos, RunEvent, Slot};
use serde::{Deserialize, Serialize};

use crate::barrier::BarrierPoint;

/// What the host wants.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AgentOrder {
    /// What time is it there? Answered at once, even while a workload runs.
    Ping {
        /// comes back in the pong
        id: u64,
    },
    /// This is the run: check, prepare, start the monitors, and reach [`BarrierPoint::First`].
    Enrol(Box<AgentRunConfig>),
    /// Bring the settings to what this slot's case wants, make everything ready, and reach [`BarrierPoint::Before`].
    Ready {
        /// index into the plan's slots
        index: u32,
        /// the slot
        slot: Slot,
    },
    /// Start the workload at that instant, and reach [`BarrierPoint::After`] when it is over.
    Start {
        /// index into the plan's slots
        index: u32,
        /// CLOCK_MONOTONIC of the agent
        at: Nanos,
    },
    /// End the iteration that runs, at once; it counts as interrupted.
    Cancel,
    /// Undo every setting, and reach [`BarrierPoint::Last`].
    Undo,
    /// Stop the monitors, and reach [`BarrierPoint::End`]. The agent is as it was before it was enrolled.
    Leave,
    /// As [`AgentOrder::Start`], but nothing is started: answered with [`AgentReport::Woke`].
    Rehearse {
        /// CLOCK_MONOTONIC of the agent
        at: Nanos,
    },
}

/// What an agent has to know of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentRunConfig {
    /// The run; without its slots and the text of its study, as slots come one by one.
    pub manifest: Manifest,
    /// Files and texts of the definitions that the plan uses: the agent's own catalogue may be another.
    pub definitions: Vec<(String, String)>,
}

/// What an agent says of itself, first of all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentHello {
    /// `perflab 0.1.0`
    pub program: String,
    /// The kernel that it runs on: `6.1.0-56-cloud-amd64`.
    pub kernel: String,
    /// Tells boots apart; empty where unknown.
    pub boot_id: String,
    /// CPUs that it may use.
    pub cpus: u32,
}

/// What the agent has to say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AgentReport {
    /// Right after the greeting.
    Hello(AgentHello),
    /// The answer to a ping.
    Pong {
        /// the ping's
        id: u64,
        /// CLOCK_MONOTONIC of the agent
        at: Nanos,
    },
    /// The point is reached; whatever belongs before it was sent before.
    Reached(BarrierPoint),
    /// Something happened; times are the agent's.
    Event(RunEvent),
    /// The answer to a rehearsal: when the waiting ended.
    Woke {
        /// CLOCK_MONOTONIC of the agent
        at: Nanos,
    },
    /// The run, or what is left of it, cannot be carried out here: each reason in one line. Everything is undone.
    Refused(Vec<String>),
}
