//! The flight recorder: a consumer of a run's stream that holds the last moments of it in memory, and writes them as a run of the
//! archive when something happens.

use std::collections::{HashSet, VecDeque};
use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use perflab_analyze::trigger::TriggerWatch;
use perflab_archive::flight_recording::FlightCost;
use perflab_archive::{Archive, EventRing, FlightRecording, RunDir, new_run_id};
use perflab_model::quantity::format_quantity;
use perflab_model::run::ClockAnchor;
use perflab_model::untrusted_text::escape_controls_in_line;
use perflab_model::{
    Bytes, Manifest, Nanos, Outcome, Overhead, RunEvent, RunEventKind, StopRequest, Trigger, TriggerFinding,
    TriggerRecord,
};
use perflab_observe::{monitors_cpu_time, monotonic_now, process_usage, read_clock_anchor};

use crate::failure::Failure;

/// When and how much is recorded.
#[derive(Debug, Clone, Copy)]
pub struct FlightLimits {
    /// how long before
    pub keep: Nanos,
    /// how long after
    pub after: Nanos,
    /// how many recordings at most
    pub times: u32,
    /// whether a command is watched, which is let go on when all recordings are made
    pub has_command: bool,
    /// the least time from the end of one to the beginning of the next
    pub pause: Nanos,
    /// memory for what is held
    pub memory: Bytes,
}

/// A recording that is done.
#[derive(Debug)]
pub struct FlightRecord {
    /// the run
    pub run: RunDir,
    /// what was met, the first of which began the recording
    pub triggers: Vec<TriggerRecord>,
    /// its first moment,
    pub begin: Nanos,
    /// and its last one
    pub end: Nanos,
    /// the calendar at its beginning: nanoseconds since 1970
    pub began: Nanos,
    /// where memory shortened what was held before: how long it was to be
    pub wanted: Option<Nanos>,
}

/// Takes a run's stream, and records what is waited for.
pub struct FlightRecorder<'a> {
    archive: Archive,
    limits: FlightLimits,
    watch: TriggerWatch,
    ring: EventRing,
    stop: &'a StopRequest,
    line: LiveLine,
    /// As the stream's beginning has it.
    manifest: Option<Box<Manifest>>,
    begun: Nanos,
    current: Option<OpenFlight>,
    made: u32,
    /// Recordings that could not be written.
    /// Gaps that were told, by monitor and reason: one that comes and goes for days is told once.
    told_gaps: HashSet<(String, String)>,
    /// When the last recording ended.
    last_end: Option<Nanos>,
    costs: CostHistory,
    /// What was said to be held where memory is short.
    said_held: Option<Nanos>,
    most_bytes: Bytes,
    outcome: Option<Outcome>,
    overhead: Option<Overhead>,
    failure: Option<Failure>,
}

/// What was read until a recording is to end may be on its way for so long.
const GRACE: Nanos = Nanos(500_000_000);

struct OpenFlight {
    recording: FlightRecording,
    /// When it is to end.
    due: Nanos,
    triggers: Vec<TriggerRecord>,
    began: Nanos,
    wanted: Option<Nanos>,
}

/// What is known when the stream has ended.
pub struct FlightSummary {
    /// how the command ended, if it did by itself
    pub outcome: Option<Outcome>,
    /// what perflab cost all the while
    pub overhead: Option<Overhead>,
    /// memory that was held at most
    pub most_bytes: Bytes,
    /// recordings that were made
    pub made: u32,
    /// why one could not be written
    pub failure: Option<Failure>,
}

impl<'a> FlightRecorder<'a> {
    /// Waits for what `watch` knows.
    pub fn new(
        archive: Archive,
        limits: FlightLimits,
        watch: TriggerWatch,
        stop: &'a StopRequest,
        quiet: bool,
    ) -> Self {
        FlightRecorder {
            archive,
            limits,
            watch,
            ring: EventRing::new(limits.keep, limits.memory),
            stop,
            line: LiveLine::new(quiet),
            manifest: None,
            begun: monotonic_now(),
            current: None,
            made: 0,
            told_gaps: HashSet::new(),
            last_end: None,
            costs: CostHistory::new(limits.keep),
            said_held: None,
            most_bytes: Bytes(0),
            outcome: None,
            overhead: None,
            failure: None,
        }
    }

    /// Takes the next event. Gives the recording that was open when the stream ended.
    pub fn consume(&mut self, event: RunEvent) -> Option<FlightRecord> {
        self.show_event(&event);
        match &event.what {
            RunEventKind::Began(manifest) => {
                self.manifest = Some(manifest.clone());
                self.begun = event.at;
                return None;
            }
            RunEventKind::Ended { overhead, .. } => {
                self.overhead = Some(*overhead);
                return self.finish_current(event.at);
            }
            RunEventKind::IterationEnded { outcome, .. } => self.outcome = Some(outcome.clone()),
            _ => {}
        }
        let (at, met) = (event.at, self.watch.find_triggers(&event));
        let is_end = matches!(event.what, RunEventKind::IterationEnded { .. });
        if let Some(open) = self.current.as_mut().filter(|open| at <= open.due) {
            let written = open.recording.record(&self.ring, &event);
            self.note_failure(written.map_err(Failure::from));
        }
        self.ring.push(event);
        self.most_bytes = self.most_bytes.max(self.ring.bytes());
        self.note_shortage();
        self.take_triggers(at, met);
        // Nobody waits for what comes after the command where nothing is recorded.
        if is_end && self.current.is_none() {
            self.stop.request_stop();
        }
        None
    }

    /// Time has passed, with events or without. Gives a recording that has ended.
    pub fn pass_time(&mut self) -> Option<FlightRecord> {
        let now = monotonic_now();
        self.costs.note(now);
        self.show_state(now);
        let due = self.current.as_ref()?.due;
        // What was read until then may be on its way.
        if now > Nanos(due.0.saturating_add(GRACE.0)) { self.finish_current(due) } else { None }
    }

    /// The stream is over.
    pub fn finish(mut self) -> (Option<FlightRecord>, FlightSummary) {
        let last = self.finish_current(monotonic_now());
        self.line.clear();
        let summary = FlightSummary {
            outcome: self.outcome,
            overhead: self.overhead,
            most_bytes: self.most_bytes,
            made: self.made,
            failure: self.failure,
        };
        (last, summary)
    }

    /// Prints something without the live line in between.
    pub fn suspend_line<T>(&self, print: impl FnOnce() -> T) -> T {
        self.line.bar.suspend(print)
    }

    fn take_triggers(&mut self, at: Nanos, met: Vec<Trigger>) {
        if met.is_empty() || self.stop.is_requested() || self.is_complete() {
            return;
        }
        let is_pause = self.last_end.is_some_and(|end| at.since(end) < self.limits.pause);
        let is_lasting = |trigger: &Trigger| matches!(trigger.found, TriggerFinding::Value { .. });
        if self.current.is_none() && is_pause && met.iter().all(is_lasting) {
            return; // it counts once the pause is over, if it still holds
        }
        if self.current.is_none() {
            match self.open_recording(at) {
                Ok(open) => self.current = Some(open),
                Err(error) => {
                    // It has been met all the same, and is met again once it has come and gone.
                    self.watch.note_recorded();
                    return self.note_failure(Err(error));
                }
            }
        }
        self.watch.note_recorded();
        for trigger in met {
            // One that comes and goes is told once a recording; the run has every time.
            let mut known = self.current.iter().flat_map(|open| &open.triggers);
            if known.all(|one| one.trigger.condition != trigger.condition) {
                self.line.print(&format!("triggered: {}", escape_controls_in_line(&trigger.describe())));
            }
            let Some(open) = &mut self.current else { return };
            let written = open.recording.record_trigger(at, &trigger);
            open.triggers.push(TriggerRecord { at, trigger });
            self.note_failure(written.map_err(Failure::from));
        }
    }

    fn open_recording(&mut self, at: Nanos) -> Result<OpenFlight, Failure> {
        let Some(manifest) = &self.manifest else {
            return Err(
                crate::failure::UnexpectedError("something happened before the run began".into()).into()
            );
        };
        let begin = self.ring.begin().min(at);
        let now = read_clock_anchor();
        let began = Nanos(now.realtime.0.saturating_sub(now.monotonic.since(begin).0));
        let anchor = ClockAnchor { monotonic: begin, realtime: began };
        let manifest = Manifest { id: new_run_id(), anchor, ..(**manifest).clone() };
        let mut recording = FlightRecording::begin(&self.archive, &manifest, &self.ring, at)?;
        let wanted = self.ring.is_cut_short().then_some(self.limits.keep);
        if wanted.is_some() {
            let (message, advice) = self.describe_shortage();
            recording.record(&self.ring, &RunEvent::new(at, RunEventKind::Warning { message, advice }))?;
        }
        let due = Nanos(at.0.saturating_add(self.limits.after.0));
        Ok(OpenFlight { recording, due, triggers: Vec::new(), began, wanted })
    }

    fn finish_current(&mut self, end: Nanos) -> Option<FlightRecord> {
        let OpenFlight { recording, due, triggers, began, wanted } = self.current.take()?;
        let (begin, end) = (recording.begin_time(), end.min(due));
        self.costs.note(monotonic_now());
        let finished = recording.finish(end, self.costs.since(begin));
        self.last_end = Some(end);
        let run = match finished {
            Ok(run) => run,
            Err(error) => {
                self.note_failure(Err(error.into()));
                return None;
            }
        };
        self.made += 1;
        self.end_if_complete();
        Some(FlightRecord { run, triggers, begin, end, began, wanted })
    }

    /// Whether all recordings are made.
    fn is_complete(&self) -> bool {
        self.made >= self.limits.times
    }

    /// Ends the run where there is nothing to wait for any more: the command has ended, or there is none and all recordings are made.
    fn end_if_complete(&self) {
        if self.outcome.is_some() || self.is_complete() && !self.limits.has_command {
            self.stop.request_stop();
        }
    }

    fn note_failure(&mut self, outcome: Result<(), Failure>) {
        let Err(failure) = outcome else { return };
        // What was written of it stays, as of a run that was interrupted.
        self.current = None;
        self.last_end = Some(monotonic_now());
        self.line.warn(&format!("warning: a recording could not be written: {failure}"));
        self.failure.get_or_insert(failure);
        self.end_if_complete();
    }

    /// Says that memory is short, and again where it has become much shorter.
    fn note_shortage(&mut self) {
        let held = self.ring.span();
        let is_news = self.said_held.is_none_or(|said| held.0 < said.0 / 2);
        if !self.ring.is_cut_short() || !is_news {
            return;
        }
        self.said_held = Some(held);
        let (message, advice) = self.describe_shortage();
        self.line.warn(&format!("warning: {message}; {advice}"));
    }

    fn describe_shortage(&self) -> (String, String) {
        let FlightLimits { keep, memory, .. } = self.limits;
        let held = round_time(self.ring.span());
        let message = if held == Nanos(0) {
            format!("{memory} of memory hold less than one reading of every monitor, not {keep}")
        } else {
            format!("{memory} of memory hold {held} of what is read, not {keep}")
        };
        (message, "give --memory more, or read less often with --every".into())
    }

    fn show_event(&mut self, event: &RunEvent) {
        match &event.what {
            RunEventKind::Warning { message, advice } => {
                self.line.warn(&format!("warning: {message}; {advice}"))
            }
            // A gap that ends by itself is in the record.
            RunEventKind::Gap(gap) if gap.to.is_none() => {
                let (monitor, reason) = (&gap.monitor, &gap.reason);
                if self.told_gaps.len() < MOST_TOLD
                    && self.told_gaps.insert((monitor.clone(), reason.clone()))
                {
                    let unmet = if self.watch.needs_monitor(monitor) { ", which is waited for" } else { "" };
                    self.line.warn(&format!("warning: monitor {monitor}{unmet} records nothing: {reason}"));
                }
            }
            _ => {}
        }
    }

    fn show_state(&self, now: Nanos) {
        if self.line.bar.is_hidden() {
            return;
        }
        let mut parts = vec![match &self.current {
            None => format!("waiting for {}", round_time(now.since(self.begun))),
            Some(open) => format!("recording for another {}", round_time(open.due.since(now))),
        }];
        parts.push(format!("held: {}, {}", round_time(self.ring.span()), self.ring.bytes()));
        parts.extend(self.watch.last_values().map(|seen| match seen.value {
            Some((value, unit)) => format!("{}: {}", seen.condition, format_quantity(value, &unit.0)),
            None => seen.condition.to_owned(),
        }));
        self.line.bar.set_message(escape_controls_in_line(&parts.join("; ")).into_owned());
        self.line.bar.tick();
    }
}

/// Gaps that are told at most.
const MOST_TOLD: usize = 200;

/// Whole seconds, for what changes all the while.
fn round_time(time: Nanos) -> Nanos {
    const SECOND: u64 = 1_000_000_000;
    if time.0 < 10 * SECOND {
        Nanos(time.0 / (SECOND / 10) * (SECOND / 10))
    } else {
        Nanos(time.0 / SECOND * SECOND)
    }
}

/// The line at the bottom of a terminal; elsewhere there is none.
struct LiveLine {
    bar: ProgressBar,
    quiet: bool,
}

impl LiveLine {
    fn new(quiet: bool) -> Self {
        let shown = std::io::stderr().is_terminal() && !quiet;
        let target = if shown { ProgressDrawTarget::stderr_with_hz(4) } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
        if let Ok(style) = ProgressStyle::with_template("{spinner:.dim} {wide_msg}") {
            bar.set_style(style);
        }
        LiveLine { bar, quiet }
    }

    fn print(&self, text: &str) {
        if !self.quiet {
            self.warn(text);
        }
    }

    fn warn(&self, text: &str) {
        self.bar.suspend(|| stderr_line!("{text}"));
    }

    fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// What perflab had used each second, as far back as a recording may reach.
struct CostHistory {
    reach: Nanos,
    seen: VecDeque<(Nanos, FlightCost)>,
}

/// How often it is looked at.
const COST_STEP: Nanos = Nanos(1_000_000_000);

impl CostHistory {
    fn new(keep: Nanos) -> Self {
        let reach = Nanos(keep.0.saturating_add(2 * COST_STEP.0));
        let mut history = CostHistory { reach, seen: VecDeque::new() };
        history.note(monotonic_now());
        history
    }

    fn note(&mut self, now: Nanos) {
        if self.seen.back().is_some_and(|(at, _)| now.since(*at) < COST_STEP) {
            return;
        }
        self.seen.push_back((now, read_cost()));
        while self.seen.get(1).is_some_and(|(at, _)| now.since(*at) > self.reach) {
            self.seen.pop_front();
        }
    }

    /// What was used from `begin` on, to the second.
    fn since(&self, begin: Nanos) -> FlightCost {
        let now = read_cost();
        let before = self.seen.iter().rev().find(|(at, _)| *at <= begin).or(self.seen.front());
        let before = before.map_or(FlightCost::default(), |(_, cost)| *cost);
        FlightCost {
            cpu: now.cpu.since(before.cpu),
            monitors_cpu: now.monitors_cpu.since(before.monitors_cpu),
            peak_rss: now.peak_rss,
        }
    }
}

fn read_cost() -> FlightCost {
    let usage = process_usage();
    let monitors_cpu = monitors_cpu_time().unwrap_or_default();
    FlightCost { cpu: usage.cpu, monitors_cpu, peak_rss: usage.peak_rss }
}

#[cfg(test)]
mod tests {
    use fixtures::run_events::make_manifest;
    use perflab_analyze::trigger::TriggerError;
    use perflab_model::series::StoredRows;
    use perflab_model::{ColumnSpec, SeriesSchema, TableCell};

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn schema() -> SeriesSchema {
        SeriesSchema {
            monitor: "meminfo".into(),
            source: "/proc/meminfo".into(),
            interval: Nanos(SECOND),
            columns: vec![ColumnSpec::gauge("Dirty", "bytes")],
            stored: StoredRows::Every,
        }
    }

    fn recorder<'a>(
        folder: &std::path::Path,
        limits: FlightLimits,
        stop: &'a StopRequest,
    ) -> FlightRecorder<'a> {
        let condition = "meminfo.Dirty >= 1KiB".parse().unwrap();
        let watch = TriggerWatch::new(&[condition], |_: &str| Ok::<_, TriggerError>(schema())).unwrap();
        let archive = Archive::open(&folder.join("archive")).unwrap();
        let mut recorder = FlightRecorder::new(archive, limits, watch, stop, true);
        let what = RunEventKind::Began(Box::new(make_manifest(1, 1)));
        recorder.consume(RunEvent::new(Nanos(0), what));
        recorder.consume(RunEvent::new(Nanos(0), RunEventKind::SeriesOpened(schema())));
        recorder
    }

    /// Feeds a tick a second until a stop is requested; gives the seconds from which and to which recordings reach.
    fn feed(
        recorder: &mut FlightRecorder<'_>,
        stop: &StopRequest,
        seconds: std::ops::Range<u64>,
        dirty: impl Fn(u64) -> bool,
    ) -> Vec<(u64, u64, u64)> {
        let mut records = Vec::new();
        for second in seconds.take_while(|_| !stop.is_requested()) {
            let rows = vec![vec![TableCell::Int(if dirty(second) { 2048 } else { 0 })]];
            let tick = RunEventKind::Rows { monitor: "meminfo".into(), rows, took: Nanos(1) };
            records.extend(recorder.consume(RunEvent::new(Nanos(second * SECOND), tick)));
            // The clock is long past what is fed; a recording ends once its last tick has come.
            if recorder.current.as_ref().is_some_and(|open| open.due <= Nanos(second * SECOND)) {
                records.extend(recorder.pass_time());
            }
        }
        let spans = records
            .iter()
            .map(|record| (record.begin.0 / SECOND, record.triggers[0].at.0 / SECOND, record.end.0 / SECOND));
        spans.collect()
    }

    #[test]
    fn recordings_are_apart_and_as_many_as_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let (keep, after, pause) = (Nanos(20 * SECOND), Nanos(5 * SECOND), Nanos(60 * SECOND));
        let limits =
            FlightLimits { keep, after, times: 4, has_command: false, pause, memory: Bytes(1 << 20) };
        let stop = StopRequest::new();
        let mut recorder = recorder(folder.path(), limits, &stop);
        // Beyond once; again within the pause, for long; and then each 200 s.
        let dirty = |second: u64| match second {
            100..103 | 130..190 => true,
            300.. => second.is_multiple_of(200),
            _ => false,
        };
        let spans = feed(&mut recorder, &stop, 0..100_000, dirty);
        assert_eq!(spans, [(80, 100, 105), (145, 165, 170), (380, 400, 405), (580, 600, 605)]);
        let (last, summary) = recorder.finish();
        assert!(last.is_none() && summary.made == 4 && stop.is_requested());
    }

    #[test]
    fn a_recording_that_cannot_be_written_is_none_of_those_that_are_made() {
        let folder = tempfile::tempdir().unwrap();
        let (keep, after, pause) = (Nanos(20 * SECOND), Nanos(5 * SECOND), Nanos(0));
        let limits =
            FlightLimits { keep, after, times: 1, has_command: false, pause, memory: Bytes(1 << 20) };
        let stop = StopRequest::new();
        let mut recorder = recorder(folder.path(), limits, &stop);
        let runs = folder.path().join("archive/runs");
        std::fs::create_dir_all(runs.parent().unwrap()).unwrap();
        std::fs::write(&runs, "no folder").unwrap();
        assert_eq!(feed(&mut recorder, &stop, 0..150, |second| (100..103).contains(&second)), []);
        assert!(!stop.is_requested());
        std::fs::remove_file(&runs).unwrap();
        assert_eq!(feed(&mut recorder, &stop, 150..300, |second| second == 200), [(180, 200, 205)]);
        let (_, summary) = recorder.finish();
        assert!(summary.made == 1 && summary.failure.is_some() && stop.is_requested());
    }

    /// A day at 1 Hz in which nothing happens.
    #[test]
    fn waiting_for_a_day_takes_the_memory_of_what_is_kept_and_no_disk() {
        let folder = tempfile::tempdir().unwrap();
        let (keep, after, pause) = (Nanos(60 * SECOND), Nanos(5 * SECOND), Nanos(0));
        let limits =
            FlightLimits { keep, after, times: 4, has_command: false, pause, memory: Bytes(1 << 20) };
        let stop = StopRequest::new();
        let mut recorder = recorder(folder.path(), limits, &stop);
        assert_eq!(feed(&mut recorder, &stop, 0..200, |_| false), []);
        let held = recorder.most_bytes;
        assert_eq!(feed(&mut recorder, &stop, 200..86_400, |_| false), []);
        assert!(recorder.most_bytes.0 <= held.0 + 4096, "{held:?} {:?}", recorder.most_bytes);
        assert!(!folder.path().join("archive/runs").exists());
    }
}
