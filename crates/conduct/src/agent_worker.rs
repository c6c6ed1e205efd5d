//! The working thread of an agent: orders carried out one by one, reports sent, the wait for a start instant.
//!
//! The sending end of the stream is shared by the agent's threads, one whole frame at a time. The wait is asleep
//! for most of the time and reads the clock for the rest, so that it ends to the microsecond. Rows of monitors go
//! to the host as they come.

use std::fs::File;
use std::io::{self, Read as _, Write};
use std::num::NonZeroU64;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, spawn};

use data_encoding::BASE64;
use perflab_model::study::{FactorSide, TomlSource};
use perflab_model::{
    Bytes, Facts, Manifest, Nanos, Overhead, RunEvent, RunEventKind, RunStatus, Slot, StopRequest,
    describe_error_chain,
};
use perflab_observe::{RealtimeGuard, Root, Sampler, SamplerOverhead, monotonic_now};
use perflab_workload::Catalogue;
use rustix::thread::{ClockId, clock_nanosleep_absolute, set_current_timer_slack};
use rustix::time::Timespec;

use crate::barrier::BarrierPoint;
use crate::error::ConductError;
use crate::executor::{self, SlotExecutor};
use crate::overhead_meter::{OverheadMeter, start_monitors};
use crate::preflight;
use crate::protocol::{
    AgentOrder, AgentReport, AgentRunConfig, ProtocolError, TraceFilePart, encode_frame, greeting_line,
    largest_trace,
};
use crate::run_context::{EventSender, LocalMachine, RunPermissions};

/// Frames, stacks and samples in a message, a good hundred bytes each: far below what a frame may hold.
const BATCH: usize = 8192;

/// What the working thread has to do, and how it reports.
pub(crate) struct AgentWorker<'g> {
    pub(crate) voice: FramedReportWriter,
    pub(crate) todo: Receiver<AgentOrder>,
    pub(crate) stop: StopRequest,
    /// The host is gone: no further order is carried out.
    pub(crate) gone: &'g AtomicBool,
}

impl AgentWorker<'_> {
    /// Carries out orders until there are no more.
    pub(crate) fn run(&self, mut host: LocalMachine) -> io::Result<()> {
        while let Ok(order) = self.todo.recv() {
            match order {
                AgentOrder::Rehearse { at } => self.rehearse_start(at)?,
                AgentOrder::Configure(config) => {
                    if let Err(refused) = self.carry_out_run(&mut host, *config) {
                        self.voice.write_report(&AgentReport::Refused(error_reasons(&refused)))?;
                    }
                }
                // Without a run there is nothing to do, and all of it is done.
                _ => {}
            }
        }
        Ok(())
    }

    fn rehearse_start(&self, at: perflab_model::Nanos) -> io::Result<()> {
        match wait_until_instant(at, &self.stop.flag()) {
            Some(woken) => self.voice.write_report(&AgentReport::Woke { at: woken.at }),
            None => Ok(()),
        }
    }

    /// One run, until it is left or the host is gone. Whatever happens, everything is undone.
    fn carry_out_run(&self, host: &mut LocalMachine, config: AgentRunConfig) -> Result<(), ConductError> {
        let sources: Vec<TomlSource> =
            config.definitions.into_iter().map(|(file, text)| TomlSource::new(file, text)).collect();
        host.catalogue =
            Catalogue::from_sources(&sources).map_err(|error| refusal_error(error.to_string()))?;
        let mut manifest = config.manifest;
        // Expressions are about the machine that the workload runs on.
        manifest.facts = perflab_observe::collect_facts(&host.root, manifest.study.facts.as_deref())?;
        manifest.boot_id = perflab_observe::read_boot_id(&host.root);
        let permissions = RunPermissions::default();
        preflight::check_environment(&manifest, host, &permissions, Some(FactorSide::Guest))?;
        let (sink, reports) = channel();
        let (stream, side) = (EventSender::new(sink), Some(FactorSide::Guest));
        let executor =
            SlotExecutor::new(host, &manifest, &permissions, stream, &self.stop, side)?.prepare_run()?;
        let watch = AgentMonitors::start(&manifest, &host.root, &self.voice);
        ConfiguredRun { duty: self, manifest: &manifest, events: reports }.carry_out(executor, watch)
    }
}

/// A run that is being carried out.
struct ConfiguredRun<'a> {
    duty: &'a AgentWorker<'a>,
    manifest: &'a Manifest,
    events: Receiver<RunEvent>,
}

impl ConfiguredRun<'_> {
    fn carry_out(&self, mut executor: SlotExecutor<'_>, watch: AgentMonitors) -> Result<(), ConductError> {
        let meter = OverheadMeter::start();
        self.send_facts(&self.manifest.facts);
        self.report_reached(BarrierPoint::First);
        let worked = self.run_slots(&mut executor);
        let undone = executor.undo_all();
        if worked.as_ref().is_ok_and(|left| *left) {
            self.report_reached(BarrierPoint::Last);
            // Any other order than to leave can only be one that was meant for before.
            while self.next_order().is_some_and(|order| order != AgentOrder::Leave) {}
        }
        let cost = watch.stop();
        // The run's wall clock is the host's.
        let overhead = Overhead { wall: Nanos(0), ..meter.overhead(&cost) };
        self.send_stamped(RunEventKind::Ended { status: RunStatus::Finished, overhead });
        if worked? {
            self.report_reached(BarrierPoint::End);
        }
        executor::with_undo_failures(Ok(()), undone?)
    }

    /// Carries out slots; `true` when it is ordered to undo, `false` when the host is gone.
    fn run_slots(&self, executor: &mut SlotExecutor<'_>) -> Result<bool, ConductError> {
        let mut ready: Option<(u32, Slot)> = None;
        while let Some(order) = self.next_order() {
            match order {
                AgentOrder::Undo => return Ok(true),
                AgentOrder::Prepare { index, slot } => {
                    self.duty.stop.withdraw();
                    if let Some(case) = self.manifest.plan.case(slot.case) {
                        executor.prepare_slot(case)?;
                    }
                    ready = Some((index, slot));
                    self.report_reached(BarrierPoint::Before(index));
                }
                AgentOrder::Start { index, at } => {
                    if let Some((_, slot)) = ready.take().filter(|(ready, _)| *ready == index) {
                        self.run_iteration(executor, index, slot, at)?;
                        self.report_reached(BarrierPoint::After(index));
                    }
                }
                _ => {}
            }
        }
        Ok(false)
    }

    fn run_iteration(
        &self,
        executor: &mut SlotExecutor<'_>,
        index: u32,
        slot: Slot,
        at: perflab_model::Nanos,
    ) -> Result<(), ConductError> {
        let Some(case) = self.manifest.plan.case(slot.case) else { return Ok(()) };
        let flag = self.duty.stop.flag();
        executor
            .carry_out(index, &slot, case, &|| wait_until_instant(at, &flag).map(|woken| woken.urgent))
            .map(drop)
    }

    fn next_order(&self) -> Option<AgentOrder> {
        self.duty.todo.recv().ok().filter(|_| !self.duty.gone.load(Ordering::SeqCst))
    }

    fn send_facts(&self, facts: &Facts) {
        self.send_stamped(RunEventKind::Facts(facts.clone()));
    }

    fn send_stamped(&self, what: RunEventKind) {
        self.send_event(RunEvent::new(perflab_observe::monotonic_now(), what));
    }

    /// Whoever does not listen any more is noticed by the listening thread.
    fn send_event(&self, event: RunEvent) {
        let RunEvent { at, target, what } = event;
        let batch = match what {
            RunEventKind::Stacks(batch) => batch,
            RunEventKind::Traced { slot, tracer, file } => {
                if let Err(error) = self.duty.voice.write_trace_file(slot, &tracer, &file) {
                    let message = format!("the trace of {tracer} in iteration {slot} was left out: {error}");
                    let advice =
                        "trace less at a time, and see that the target has room for temporary files".into();
                    self.send_stamped(RunEventKind::Warning { message, advice });
                }
                return;
            }
            what => {
                let _ = self.duty.voice.write_event(RunEvent { at, target, what });
                return;
            }
        };
        for part in batch.split(BATCH) {
            let _ = self.duty.voice.write_event(RunEvent {
                at,
                target,
                what: RunEventKind::Stacks(Box::new(part)),
            });
        }
    }

    /// Reports that, after everything that happened before it.
    fn report_reached(&self, point: BarrierPoint) {
        self.events.try_iter().for_each(|event| self.send_event(event));
        let _ = self.duty.voice.write_report(&AgentReport::Reached(point));
    }
}

fn refusal_error(what: String) -> ConductError {
    ConductError::Refused(vec![perflab_model::Refusal { what, hint: String::new() }])
}

/// What went wrong, each in one line with its causes.
fn error_reasons(error: &ConductError) -> Vec<String> {
    if let ConductError::Refused(list) = error {
        return list.iter().map(ToString::to_string).collect();
    }
    vec![describe_error_chain(error)]
}

/// Output is sent in parts of this many bytes. In JSON each byte may take six.
const PART: usize = 512 << 10;

/// Says reports.
#[derive(Debug, Clone)]
pub(crate) struct FramedReportWriter(Arc<Mutex<File>>);

impl FramedReportWriter {
    pub(crate) fn new(writing: File) -> Self {
        FramedReportWriter(Arc::new(Mutex::new(writing)))
    }

    pub(crate) fn write_greeting(&self) -> io::Result<()> {
        self.write_bytes(&greeting_line())
    }

    /// An error means that the host is gone.
    pub(crate) fn write_report(&self, report: &AgentReport) -> io::Result<()> {
        self.write_bytes(&encode_frame(report).map_err(io::Error::other)?)
    }

    /// Sends a tracer's file in parts, and removes it.
    fn write_trace_file(&self, slot: u32, tracer: &str, path: &Path) -> io::Result<()> {
        let file = File::open(path)?;
        let (length, most) = (Bytes(file.metadata()?.len()), largest_trace(tracer));
        // What stays costs room and nothing else.
        let _ = std::fs::remove_file(path);
        if length > most {
            return Err(io::Error::other(format!("it holds {length}, and {most} may be sent")));
        }
        loop {
            let mut part = Vec::with_capacity(PART);
            (&file).take(PART as u64).read_to_end(&mut part)?;
            let last = part.len() < PART;
            let bytes = BASE64.encode(&part);
            let part = TraceFilePart { slot, tracer: tracer.to_owned(), bytes, last };
            self.write_report(&AgentReport::TraceFile(part))?;
            if last {
                return Ok(());
            }
        }
    }

    /// Sends an event: long output in parts, and of what fits into no frame at least that it happened.
    fn write_event(&self, event: RunEvent) -> io::Result<()> {
        if let RunEventKind::Output { slot, name, text } = &event.what {
            for part in split_text(text) {
                let what = RunEventKind::Output { slot: *slot, name: name.clone(), text: part.into() };
                self.write_report(&AgentReport::Event(RunEvent::new(event.at, what)))?;
            }
            return Ok(());
        }
        let at = event.at;
        match encode_frame(&AgentReport::Event(event)) {
            Ok(bytes) => self.write_bytes(&bytes),
            Err(ProtocolError::TooLarge { size }) => {
                let message = format!("an event of {size} bytes was left out: it fits into no frame");
                let advice = "record less at a time".into();
                self.write_report(&AgentReport::Event(RunEvent::new(
                    at,
                    RunEventKind::Warning { message, advice },
                )))
            }
            Err(error) => Err(io::Error::other(error)),
        }
    }

    fn write_bytes(&self, bytes: &[u8]) -> io::Result<()> {
        let mut writing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        writing.write_all(bytes)?;
        writing.flush()
    }
}

/// A text in parts of at most [`PART`] bytes, cut between characters.
fn split_text(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = (0..=PART.min(rest.len())).rev().find(|end| rest.is_char_boundary(*end)).unwrap_or(0);
        let (part, left) = rest.split_at_checked(end).filter(|(part, _)| !part.is_empty())?;
        rest = left;
        Some(part)
    })
}

/// What a timer may be late on a machine at rest: the rest is spent looking at the clock.
const LOOKING: Nanos = Nanos(60_000);

/// How often a wish to stop is looked at.
const TICK: Nanos = Nanos(50_000_000);

/// The moment after a wait.
#[derive(Debug)]
struct WakeUp {
    /// When it was over.
    pub(crate) at: Nanos,
    /// Held until what was waited for is done: on a busy machine, whoever wakes up waits for others.
    urgent: RealtimeGuard,
}

/// Waits until `at` and says when it was over, or `None` where a stop was asked for before.
fn wait_until_instant(at: Nanos, stop: &AtomicBool) -> Option<WakeUp> {
    let urgent = RealtimeGuard::acquire();
    // The kernel may otherwise delay a timer by 50 microseconds, to save wake-ups.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    loop {
        if stop.load(Ordering::Relaxed) {
            return None;
        }
        let now = monotonic_now();
        if at.since(now) <= LOOKING {
            break;
        }
        let next = Nanos((now.0 + TICK.0).min(at.0 - LOOKING.0));
        let (seconds, nanos) = (next.0 / 1_000_000_000, next.0 % 1_000_000_000);
        // A signal ends the sleep early, and the loop sees to it.
        let _ = clock_nanosleep_absolute(
            ClockId::Monotonic,
            &Timespec { tv_sec: seconds as i64, tv_nsec: nanos as i64 },
        );
    }
    loop {
        let now = monotonic_now();
        if now >= at {
            return Some(WakeUp { at: now, urgent });
        }
        std::hint::spin_loop();
    }
}

/// Running monitors.
struct AgentMonitors {
    sampler: Sampler,
    teller: JoinHandle<()>,
}

impl AgentMonitors {
    pub(crate) fn start(manifest: &Manifest, root: &Root, voice: &FramedReportWriter) -> Self {
        let (sink, events) = channel();
        let sampler = start_monitors(manifest, root, sink);
        let voice = voice.clone();
        // Ends with the sampler, or when nobody listens: the stream's end is noticed elsewhere.
        let tell =
            move || events.into_iter().try_for_each(|event| voice.write_event(event)).unwrap_or_default();
        AgentMonitors { sampler, teller: spawn(tell) }
    }

    /// Stops them, and waits until their last row is sent.
    pub(crate) fn stop(self) -> SamplerOverhead {
        let cost = self.sampler.stop();
        let _ = self.teller.join();
        cost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_make_the_whole_and_each_fits() {
        let text = "é".repeat(PART);
        let parts: Vec<&str> = split_text(&text).collect();
        assert!(parts.len() > 1 && parts.iter().all(|part| part.len() <= PART));
        assert_eq!(parts.concat(), text);
        assert_eq!(super::split_text("").count(), 0);
    }

    #[test]
    fn never_early_and_a_stop_ends_it() {
        let stop = AtomicBool::new(false);
        let at = Nanos(monotonic_now().0 + 3_000_000);
        assert!(wait_until_instant(at, &stop).is_some_and(|woken| woken.at >= at));
        assert!(wait_until_instant(Nanos(0), &stop).is_some(), "what is over is not waited for");
        stop.store(true, Ordering::Relaxed);
        assert!(wait_until_instant(Nanos(u64::MAX), &stop).is_none());
    }
}
