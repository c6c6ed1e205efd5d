//! A run that is written of what a ring held when something happened, and of what came after.
//!
//! Its one iteration is the time that it covers. Until its end it is a run like any other that is being recorded: who dies
//! meanwhile leaves what was written.

use std::collections::HashMap;

use perflab_model::event::RunPhase;
use perflab_model::{Manifest, Nanos, Outcome, Overhead, RunEvent, RunEventKind, RunStatus, Trigger};

use crate::archive_dir::Archive;
use crate::error::ArchiveError;
use crate::event_ring::{EventRing, RingReplay};
use crate::recorder::RunRecorder;
use crate::run_dir::RunDir;

/// A recording that is being written.
#[derive(Debug)]
pub struct FlightRecording {
    recorder: RunRecorder,
    replay: RingReplay,
    begin: Nanos,
    /// When it happened.
    triggered: Nanos,
    ticks: TickCounts,
}

/// What CPU time was used over a recording, of the process and of its monitors' threads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FlightCost {
    /// of the whole process
    pub cpu: Nanos,
    /// of the monitors' threads
    pub monitors_cpu: Nanos,
    /// largest resident set so far, in bytes
    pub peak_rss: u64,
}

impl FlightRecording {
    /// Begins the run of that manifest with all that a ring holds, for what happened at `at`.
    ///
    /// # Errors
    /// Mostly a full disk, or an archive that cannot be written.
    pub fn begin(
        archive: &Archive,
        manifest: &Manifest,
        ring: &EventRing,
        at: Nanos,
    ) -> Result<Self, ArchiveError> {
        let begin = ring.begin().min(at);
        let mut recorder = archive.begin_run(manifest)?;
        let began = RunEventKind::Began(Box::new(manifest.clone()));
        for what in [began, RunEventKind::Phase(RunPhase::Iterate), RunEventKind::IterationBegan { slot: 0 }]
        {
            recorder.hold(&RunEvent::new(begin, what))?;
        }
        let (mut ticks, mut replay) = (TickCounts::default(), RingReplay::default());
        replay.replay(ring, |event| {
            ticks.count(event);
            hold_of_stream(&mut recorder, event)
        })?;
        recorder.write_held()?;
        Ok(FlightRecording { recorder, replay, begin, triggered: at, ticks })
    }

    /// Records an event of the stream, before the ring gets it.
    ///
    /// # Errors
    /// Mostly a full disk.
    pub fn record(&mut self, ring: &EventRing, event: &RunEvent) -> Result<(), ArchiveError> {
        let (recorder, ticks) = (&mut self.recorder, &mut self.ticks);
        self.replay.pass(ring, event, |event| {
            ticks.count(event);
            hold_of_stream(recorder, event)
        })?;
        self.recorder.write_held()
    }

    /// Records what happened.
    ///
    /// # Errors
    /// Mostly a full disk.
    pub fn record_trigger(&mut self, at: Nanos, trigger: &Trigger) -> Result<(), ArchiveError> {
        self.recorder.record(&RunEvent::new(at, RunEventKind::Triggered(trigger.clone())))
    }

    /// The time of its first event.
    #[must_use]
    pub fn begin_time(&self) -> Nanos {
        self.begin
    }

    /// When it happened.
    #[must_use]
    pub fn trigger_time(&self) -> Nanos {
        self.triggered
    }

    /// Ends it at `end`: the run is closed, and its tables written.
    ///
    /// # Errors
    /// As [`RunRecorder::finish`].
    pub fn finish(mut self, end: Nanos, cost: FlightCost) -> Result<RunDir, ArchiveError> {
        let (start, end) = (self.begin, end.max(self.begin));
        let ended = RunEventKind::IterationEnded { slot: 0, outcome: Outcome::Ok, start, end };
        self.recorder.record(&RunEvent::new(end, ended))?;
        let FlightCost { cpu, monitors_cpu, peak_rss } = cost;
        let overhead = Overhead {
            cpu,
            monitors_cpu,
            wall: end.since(start),
            peak_rss,
            bytes_written: self.recorder.bytes_written(),
            ticks: self.ticks.taken,
            late_ticks: self.ticks.late,
            lost_ticks: self.ticks.lost,
            guest_stops: None,
        };
        let status = RunStatus::Finished;
        self.recorder.record(&RunEvent::new(end, RunEventKind::Ended { status, overhead }))?;
        self.recorder.finish()
    }
}

/// What a recording takes of the stream: its own beginning, iteration and end stand for those of the stream.
fn hold_of_stream(recorder: &mut RunRecorder, event: &RunEvent) -> Result<(), ArchiveError> {
    match event.what {
        RunEventKind::Began(_)
        | RunEventKind::Phase(_)
        | RunEventKind::IterationBegan { .. }
        | RunEventKind::IterationEnded { .. }
        | RunEventKind::Edge(_)
        | RunEventKind::Progress { .. }
        | RunEventKind::Standing(_)
        | RunEventKind::Triggered(_)
        | RunEventKind::Ended { .. } => Ok(()),
        // The iteration is the time that is recorded: what the kernel printed then is part of it.
        RunEventKind::Output { slot: None, ref name, ref text } if name == RunEventKind::KERNEL_LOG => {
            let what = RunEventKind::Output { slot: Some(0), name: name.clone(), text: text.clone() };
            recorder.hold(&RunEvent { what, ..*event })
        }
        _ => recorder.hold(event),
    }
}

/// How punctual the ticks of a stream were, by their times.
#[derive(Debug, Default)]
struct TickCounts {
    taken: u64,
    late: u64,
    lost: u64,
    intervals: HashMap<String, Nanos>,
    /// Of each monitor the time of its first tick, and the number of its latest on the grid that begins there.
    grids: HashMap<String, (Nanos, u64)>,
}

impl TickCounts {
    fn count(&mut self, event: &RunEvent) {
        match &event.what {
            RunEventKind::SeriesOpened(schema) => {
                self.intervals.insert(schema.monitor.clone(), schema.interval);
            }
            RunEventKind::Rows { monitor, .. } | RunEventKind::Changed { monitor, .. } => {
                self.taken += 1;
                let interval = self.intervals.get(monitor).map_or(0, |interval| interval.0);
                if interval > 0 {
                    self.place_on_grid(monitor, event.at, interval);
                }
            }
            // Ticks that a failing monitor could not take are its gap, and not lost.
            RunEventKind::Gap(gap) if gap.to.is_none() => {
                self.grids.remove(&gap.monitor);
            }
            _ => {}
        }
    }

    /// No tick is early; the first may have been a little late, which is no reason to take the next for one before its time.
    fn place_on_grid(&mut self, monitor: &str, at: Nanos, interval: u64) {
        let Some((first, latest)) = self.grids.get_mut(monitor) else {
            self.grids.insert(monitor.to_owned(), (at, 0));
            return;
        };
        let since = (at.0 + interval / 4).saturating_sub(first.0);
        let number = since / interval;
        self.lost += number.saturating_sub(*latest + 1);
        self.late += u64::from(since % interval > interval / 4 * 3);
        *latest = number.max(*latest);
    }
}

#[cfg(test)]
mod tests {
    use perflab_model::{SeriesSchema, series::StoredRows};

    use super::*;

    #[test]
    fn late_and_lost_ticks_are_counted_by_their_times() {
        let mut counts = TickCounts::default();
        let mut count = |at: u64, what| counts.count(&RunEvent::new(Nanos(at), what));
        let schema = SeriesSchema {
            monitor: "vmstat".into(),
            source: "/proc/vmstat".into(),
            interval: Nanos(100),
            columns: Vec::new(),
            stored: StoredRows::Every,
        };
        count(0, RunEventKind::SeriesOpened(schema));
        for at in [1005, 1100, 1201, 1360, 1400, 1702, 1800] {
            let (monitor, rows) = ("vmstat".to_owned(), Vec::new());
            count(at, RunEventKind::Rows { monitor, rows, took: Nanos(0) });
        }
        assert_eq!((counts.taken, counts.late, counts.lost), (7, 1, 2));
    }
}
