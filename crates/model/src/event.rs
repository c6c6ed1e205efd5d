//! The one stream: everything that happens in a run, in order, serialisable from the first day.
//!
//! This host, an agent and an importer make events; the recorder, the journal, the progress bar and the live page
//! consume them. Nothing else passes between measuring and showing.
//!
//! Ticks may come as changes; [`LatestTicks`] restores whole ones. It does not guess: a change to a tick that was
//! not seen restores nothing.

use serde::{Deserialize, Serialize};

use crate::column::CellRow;
use crate::edge_reading::EdgeReading;
use crate::profile::{ProfileSummary, StackBatch};
use crate::run::{Manifest, Outcome, Overhead, RunStatus};
use crate::series::{SeriesGap, SeriesSchema};
use crate::trigger::Trigger;
use crate::{FactDocument, Facts, Nanos, Sample};

/// One event: a line of `journal.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunEvent {
    /// When: CLOCK_MONOTONIC of the machine that records. What another target reported was put on this axis when it came.
    pub at: Nanos,
    /// Which target reported it: index into the manifest's targets. Missing for the machine that records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<u32>,
    /// What.
    pub what: RunEventKind,
}

fn is_nothing(time: &Nanos) -> bool {
    time.0 == 0
}

impl RunEventKind {
    /// How long the reading took that this is; 0 of everything else, and where nobody knows.
    pub fn reading_time(&self) -> Nanos {
        match self {
            RunEventKind::Rows { took, .. } | RunEventKind::Changed { took, .. } => *took,
            RunEventKind::Edge(reading) => reading.took,
            _ => Nanos(0),
        }
    }

    /// What the lines of the kernel's log are called among what was printed during a run.
    pub const KERNEL_LOG: &str = "kernel log";

    /// How an output of that name begins that only says that the log cannot be read.
    pub const KERNEL_LOG_UNREAD: &str = "[perflab: the kernel's log cannot be read";
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
    /// one level against itself, where two are to run at once
    CheckHalves,
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
    #[serde(alias = "doing")]
    pub state: TargetState,
    /// Since when, on the clock of the machine that records.
    pub since: Nanos,
}

/// The states of a target during a run.
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
    /// More of that, in one text.
    Document(FactDocument),
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
    /// A setting is not what it was set to: somebody else changed it.
    SettingOverwritten {
        /// index into the plan's slots: the iteration that ended so; none where it was found before one began
        slot: Option<u32>,
        /// `sysctl vm.swappiness`, `governor`
        setting: String,
        /// the file
        file: String,
        /// what it held when it was set
        set: String,
        /// what it holds
        found: String,
        /// the run of another perflab that did it, where one did
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
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
        /// how many targets were released
        targets: u32,
    },
    /// How a target's clock relates to that of the machine that records, from round trips.
    Clock(crate::run::ClockOffset),
    /// The targets were started with levels that they had not been started with before.
    VariantBegan(Box<crate::run::TargetVariantRecord>),
    /// Two levels will run at once, and this is what was measured before.
    DuetChecked(Box<crate::run::DuetCheck>),
    /// A target takes no further part.
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
        /// how long the reading took; 0 where nobody knows
        #[serde(default, skip_serializing_if = "is_nothing")]
        took: Nanos,
    },
    /// One tick of a monitor, at the event's time, sent as what differs from the tick before: as many rows, in the same
    /// positions. [`LatestTicks`] makes it whole again.
    Changed {
        /// the monitor
        monitor: String,
        /// how many of these since the tick that was sent whole, from 1; a reader that misses one cannot restore the next
        step: u32,
        /// the rows that differ, each with its index among all, from 0
        rows: Vec<(u32, CellRow)>,
        /// how long the reading took; 0 where nobody knows
        #[serde(default, skip_serializing_if = "is_nothing")]
        took: Nanos,
    },
    /// A monitor was read at an edge of an iteration, from the event's time on: no tick.
    Edge(EdgeReading),
    /// A part of a series is missing.
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
    /// What a flight recorder was waiting for has happened, at the event's time.
    Triggered(Trigger),
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

/// The last tick of each monitor of a stream.
#[derive(Debug, Default)]
pub struct LatestTicks(Vec<MonitorTick>);

#[derive(Debug)]
struct MonitorTick {
    target: Option<u32>,
    monitor: String,
    step: u32,
    rows: Vec<CellRow>,
}

impl LatestTicks {
    /// The monitor and all its rows at the event's time, where the event is a tick.
    ///
    /// Nothing for other events, and for changes that do not follow on the last tick taken.
    pub fn apply(&mut self, event: RunEvent) -> Option<(&str, &[CellRow])> {
        let target = event.target;
        let tick = match event.what {
            RunEventKind::Rows { monitor, rows, .. } => {
                self.store_whole(MonitorTick { target, monitor, step: 0, rows })
            }
            RunEventKind::Changed { monitor, step, rows, .. } => {
                self.apply_changes(target, &monitor, step, rows)
            }
            _ => None,
        }?;
        Some((&tick.monitor, &tick.rows))
    }

    /// The rows of a monitor's last tick, with how many changes led to it since the tick that came whole.
    pub fn find(&self, target: Option<u32>, monitor: &str) -> Option<(u32, &[CellRow])> {
        let tick = self.0.iter().find(|tick| (tick.target, tick.monitor.as_str()) == (target, monitor))?;
        Some((tick.step, &tick.rows))
    }

    /// Something was lost of the stream: rows are restored from the next whole tick of each monitor on.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    fn store_whole(&mut self, tick: MonitorTick) -> Option<&MonitorTick> {
        let same = |known: &MonitorTick| (known.target, &known.monitor) == (tick.target, &tick.monitor);
        match self.0.iter().position(same) {
            Some(place) => {
                let known = self.0.get_mut(place)?;
                *known = tick;
                Some(known)
            }
            None => {
                self.0.push(tick);
                self.0.last()
            }
        }
    }

    fn apply_changes(
        &mut self,
        target: Option<u32>,
        monitor: &str,
        step: u32,
        rows: Vec<(u32, CellRow)>,
    ) -> Option<&MonitorTick> {
        let follows = |tick: &&mut MonitorTick| (tick.target, tick.monitor.as_str()) == (target, monitor);
        let tick = self.0.iter_mut().find(follows).filter(|tick| tick.step.checked_add(1) == Some(step))?;
        let length = tick.rows.len();
        if rows.iter().any(|(place, _)| *place as usize >= length) {
            return None;
        }
        for (place, row) in rows {
            *tick.rows.get_mut(place as usize)? = row;
        }
        tick.step = step;
        Some(tick)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::TableCell;
    use crate::quantity::Nanos;

    fn apply_whole_tick(latest: &mut LatestTicks, numbers: &[i64]) -> Option<Vec<i64>> {
        let rows = numbers.iter().map(|number| vec![TableCell::Int(*number)]).collect();
        apply_event(latest, None, RunEventKind::Rows { monitor: "m".into(), rows, took: Nanos(0) })
    }

    fn apply_changed_rows(latest: &mut LatestTicks, step: u32, rows: &[(u32, i64)]) -> Option<Vec<i64>> {
        let rows = rows.iter().map(|(place, number)| (*place, vec![TableCell::Int(*number)])).collect();
        apply_event(latest, None, RunEventKind::Changed { monitor: "m".into(), step, rows, took: Nanos(0) })
    }

    fn apply_event(latest: &mut LatestTicks, target: Option<u32>, what: RunEventKind) -> Option<Vec<i64>> {
        let (_, rows) = latest.apply(RunEvent { at: Nanos(7), target, what })?;
        let number = |row: &CellRow| match row[0] {
            TableCell::Int(number) => number,
            _ => -1,
        };
        Some(rows.iter().map(number).collect())
    }

    /// Values go through the journal, which is JSON: shortest digits that give the number back are of use only to who reads them
    /// exactly.
    #[test]
    fn a_number_comes_back_to_the_last_bit() {
        let mut bits: u64 = 0x3fb6_2f3a_9c1d_0e57;
        for _ in 0..20_000 {
            // Knuth's multiplicative generator (MMIX).
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let number = f64::from_bits(bits >> 2);
            let text = serde_json::to_string(&number).unwrap();
            assert_eq!(serde_json::from_str::<f64>(&text).unwrap().to_bits(), number.to_bits(), "{text}");
        }
    }

    #[test]
    fn changes_restore_the_whole_tick() {
        let latest = &mut LatestTicks::default();
        assert_eq!(apply_whole_tick(latest, &[10, 20]), Some(vec![10, 20]));
        assert_eq!(apply_changed_rows(latest, 1, &[(1, 21)]), Some(vec![10, 21]));
        assert_eq!(apply_changed_rows(latest, 2, &[]), Some(vec![10, 21]));
        assert_eq!(apply_whole_tick(latest, &[5]), Some(vec![5]));
        assert_eq!(apply_changed_rows(latest, 1, &[(0, 6)]), Some(vec![6]));
    }

    #[test]
    fn a_change_that_does_not_follow_restores_nothing_until_the_next_whole_tick() {
        let latest = &mut LatestTicks::default();
        assert_eq!(apply_changed_rows(latest, 1, &[(0, 1)]), None);
        apply_whole_tick(latest, &[10, 20]);
        assert_eq!(apply_changed_rows(latest, 2, &[(0, 11)]), None, "the first step was lost");
        assert_eq!(apply_changed_rows(latest, 3, &[(0, 12)]), None);
        assert_eq!(apply_whole_tick(latest, &[1]), Some(vec![1]));
        latest.clear();
        assert_eq!(apply_changed_rows(latest, 1, &[(0, 12)]), None);
    }

    #[test]
    fn a_place_that_is_not_there_restores_nothing() {
        let latest = &mut LatestTicks::default();
        apply_whole_tick(latest, &[10]);
        assert_eq!(apply_changed_rows(latest, 1, &[(0, 11), (1, 5)]), None);
    }

    #[test]
    fn targets_have_monitors_of_their_own() {
        let latest = &mut LatestTicks::default();
        apply_whole_tick(latest, &[10]);
        let rows = vec![(0, vec![TableCell::Int(5)])];
        assert_eq!(
            apply_event(
                latest,
                Some(1),
                RunEventKind::Changed { monitor: "m".into(), step: 1, rows, took: Nanos(0) }
            ),
            None
        );
    }
}
