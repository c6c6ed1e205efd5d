//! The one stream: everything that happens in a run, in order, serialisable from the first day.
//!
//! This host, a guest over a wire and an importer make events; the recorder, the journal, the
//! progress bar and the live page consume them. Nothing else passes between measuring and showing.

use serde::{Deserialize, Serialize};

use crate::manifest::{Manifest, Overhead, RunStatus};
use crate::profile::{ProfileSummary, StackBatch};
use crate::series::{CellRow, SeriesGap, SeriesSchema};
use crate::{Facts, Nanos, Sample};

/// One event: a line of `journal.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunEvent {
    /// When: CLOCK_MONOTONIC of the machine that records. What another target told was put on this axis when it came.
    pub at: Nanos,
    /// Which target told it: index into the manifest's targets. Missing for the machine that records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<u32>,
    /// What.
    pub what: RunEventKind,
}

impl RunEvent {
    /// An event of the machine that records.
    pub fn new(at: Nanos, what: RunEventKind) -> Self {
        RunEvent { at, target: None, what }
    }
}

/// A phase of a run, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunPhase {
    /// is everything here that the study needs?
    Check,
    /// install what is missing, where that was asked for
    Install,
    /// scratch directory, disk
    Prepare,
    /// settings of the first case
    Apply,
    /// iterations that are not measured
    Warmup,
    /// measured iterations
    Iterate,
    /// settings back, in reverse
    Undo,
    /// tables written, run closed
    Finish,
}

/// What one target is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetStatus {
    /// Its name.
    pub name: String,
    /// What.
    pub doing: TargetState,
    /// Since when, on the clock of the machine that records.
    pub since: Nanos,
}

/// The ways of a target through a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TargetState {
    /// a guest's kernel, a login, a process
    Starts,
    /// it looks at what it has, and makes its scratch directory
    Prepares,
    /// it brings the settings of the next iteration about
    Sets,
    /// it waits for the others to be ready
    Ready,
    /// an iteration
    Works,
    /// it waits for the others to end theirs
    Done,
    /// settings back, monitors stopped
    Leaves,
    /// it is over with it
    Gone,
    /// it is not waited for any more
    Lost,
}

impl TargetState {
    /// Whether the others wait for it.
    pub fn is_awaited(self) -> bool {
        matches!(
            self,
            TargetState::Starts
                | TargetState::Prepares
                | TargetState::Sets
                | TargetState::Works
                | TargetState::Leaves
        )
    }
}

/// How an iteration ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "outcome")]
pub enum Outcome {
    /// It ended well and its output was understood.
    Ok,
    /// It did not; the reason names exit code, signal or what its output lacks.
    Failed {
        /// one line
        reason: String,
    },
    /// It was stopped at its time limit, with all its children.
    TimedOut {
        /// the limit
        limit: Nanos,
    },
    /// The user stopped the run.
    Interrupted,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunEventKind {
    /// The run begins: the whole plan. A consumer opens its run here; only phases may come before.
    Began(Box<Manifest>),
    /// A phase began.
    Phase(RunPhase),
    /// What the target says about itself.
    Facts(Facts),
    /// A setting was changed; undone later.
    SettingApplied {
        /// `sysctl vm.swappiness`
        setting: String,
        /// what it was
        from: String,
        /// what it is, as it was read back
        to: String,
        /// what was asked for, where the kernel made another value of it
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asked: Option<String>,
    },
    /// A setting was put back.
    SettingUndone {
        /// `sysctl vm.swappiness`
        setting: String,
        /// what it is again
        to: String,
    },
    /// An iteration begins.
    IterationBegan {
        /// index into the plan's slots
        slot: u32,
    },
    /// All targets of the iteration are to begin at this instant.
    Released {
        /// index into the plan's slots
        slot: u32,
        /// the instant, on the clock of the machine that records
        start: Nanos,
        /// how many targets were told
        targets: u32,
    },
    /// How a target's clock stands to that of the machine that records, from round trips.
    Clock(crate::target::ClockOffset),
    /// A target is out for good.
    TargetLost {
        /// why, in one line
        reason: String,
    },
    /// An iteration ended.
    IterationEnded {
        /// index into the plan's slots
        slot: u32,
        /// how
        outcome: Outcome,
        /// when the workload's process was started
        start: Nanos,
        /// when it ended
        end: Nanos,
    },
    /// One measured value.
    Sample(Sample),
    /// A monitor was opened; its rows follow.
    SeriesOpened(SeriesSchema),
    /// One tick of a monitor, at the event's time.
    Rows {
        /// the monitor
        monitor: String,
        /// all its rows of this tick
        rows: Vec<CellRow>,
    },
    /// One tick of a monitor, at the event's time, told as what differs from its tick before: as many rows, in the same
    /// places. [`Latest`](crate::name_number_series::LatestTicks) makes it whole again.
    Changed {
        /// the monitor
        monitor: String,
        /// how many of these since the tick that was told whole, from 1; who misses one cannot restore the next
        step: u32,
        /// the rows that differ, each behind its place among all, from 0
        rows: Vec<(u32, CellRow)>,
    },
    /// A stretch of a series is missing.
    Gap(SeriesGap),
    /// Sampled call stacks of an iteration; several follow one another.
    Stacks(Box<StackBatch>),
    /// The profile of an iteration ended: what its samples are, and what was lost.
    Profiled(Box<ProfileSummary>),
    /// A tracer has written down every operation of an iteration. The file becomes the recorder's: it takes it away.
    Traced {
        /// index into the plan's slots
        slot: u32,
        /// who wrote it: `optrace`
        tracer: String,
        /// where it lies on the target
        file: std::path::PathBuf,
    },
    /// Something that a command printed.
    Output {
        /// index into the plan's slots, where it belongs to one
        slot: Option<u32>,
        /// `stdout`, `stderr`, or the name of the step: `mkfs`
        name: String,
        /// the text; bytes that are not UTF-8 are replaced
        text: String,
    },
    /// Something a person should know, with what to do about it.
    Warning {
        /// what
        message: String,
        /// what to do
        advice: String,
    },
    /// How far the run is.
    Progress {
        /// slots done
        done: u32,
        /// slots in all
        total: u32,
        /// time left, from the mean of the slots so far; none before the first
        remaining: Option<Nanos>,
    },
    /// Where the targets are right now, for whoever watches; it is in no journal.
    Standing(Vec<TargetStatus>),
    /// Always the last, unless the run died.
    Ended {
        /// how
        status: RunStatus,
        /// what perflab itself cost
        overhead: Overhead,
    },
}
