//! The working thread: one run after the other, one order after the other.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};

use perflab_model::study::{FactorSide, TomlSource};
use perflab_model::{Facts, Manifest, Overhead, RunEvent, RunEventKind, RunStatus, Slot};
use perflab_workload::Catalogue;

use super::voice::FramedReportWriter;
use super::wait;
use super::watch::AgentMonitors;
use crate::barrier::BarrierPoint;
use crate::host::check;
use crate::host::station::{self, SlotExecutor};
use crate::host::stream::EventSender;
use crate::protocol::{AgentOrder, AgentReport, AgentRunConfig};
use crate::{ConductError, LocalMachine, RunPermissions, StopRequest};

/// Frames, stacks and samples in a message, a good hundred bytes each: far below what a frame may hold.
const BATCH: usize = 8192;

/// What the working thread has to do, and how it tells.
pub(super) struct AgentWorker<'g> {
    pub(super) voice: FramedReportWriter,
    pub(super) todo: Receiver<AgentOrder>,
    pub(super) stop: StopRequest,
    /// Nobody is there any more: no further order is carried out.
    pub(super) gone: &'g AtomicBool,
}

impl AgentWorker<'_> {
    /// Carries out orders until there are no more.
    pub(super) fn run(&self, mut host: LocalMachine) -> io::Result<()> {
        while let Ok(order) = self.todo.recv() {
            match order {
                AgentOrder::Rehearse { at } => self.rehearse_start(at)?,
                AgentOrder::Enrol(enrolment) => {
                    if let Err(refused) = self.carry_out_run(&mut host, *enrolment) {
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
        match wait::wait_until_instant(at, &self.stop.flag()) {
            Some(woken) => self.voice.write_report(&AgentReport::Woke { at: woken.at }),
            None => Ok(()),
        }
    }

    /// One run, until it is left or nobody is there any more. Whatever happens, everything is undone.
    fn carry_out_run(&self, host: &mut LocalMachine, enrolment: AgentRunConfig) -> Result<(), ConductError> {
        let sources: Vec<TomlSource> =
            enrolment.definitions.into_iter().map(|(file, text)| TomlSource::new(file, text)).collect();
        host.catalogue =
            Catalogue::from_sources(&sources).map_err(|error| refusal_error(error.to_string()))?;
        let mut manifest = enrolment.manifest;
        // Expressions are about the machine that the workload runs on.
        manifest.facts = perflab_observe::collect_facts(&host.root, manifest.study.facts.as_deref())?;
        manifest.boot_id = perflab_observe::read_boot_id(&host.root);
        let permissions = RunPermissions::default();
        check::check_environment(&manifest, host, &permissions, Some(FactorSide::Guest))?;
        let (sink, told) = channel();
        let (stream, side) = (EventSender::new(sink), Some(FactorSide::Guest));
        let station =
            SlotExecutor::new(host, &manifest, &permissions, stream, &self.stop, side).prepare_run()?;
        let watch = AgentMonitors::start(&manifest, &host.root, &self.voice);
        ConfiguredRun { duty: self, manifest: &manifest, events: told }.carry_out(station, watch)
    }
}

/// A run that is being carried out.
struct ConfiguredRun<'a> {
    duty: &'a AgentWorker<'a>,
    manifest: &'a Manifest,
    events: Receiver<RunEvent>,
}

impl ConfiguredRun<'_> {
    fn carry_out(&self, mut station: SlotExecutor<'_>, watch: AgentMonitors) -> Result<(), ConductError> {
        let before = perflab_observe::process_usage().cpu;
        self.send_facts(&self.manifest.facts);
        self.report_reached(BarrierPoint::First);
        let worked = self.run_slots(&mut station);
        let undone = station.undo_all();
        if worked.as_ref().is_ok_and(|left| *left) {
            self.report_reached(BarrierPoint::Last);
            // Any other order than to leave can only be one that was meant for before.
            while self.next_order().is_some_and(|order| order != AgentOrder::Leave) {}
        }
        let cost = watch.stop();
        let usage = perflab_observe::process_usage();
        let overhead = Overhead {
            cpu: usage.cpu.since(before),
            monitors_cpu: cost.cpu,
            peak_rss: usage.peak_rss,
            ticks: cost.ticks,
            late_ticks: cost.late,
            lost_ticks: cost.lost,
            ..Overhead::default()
        };
        self.send_stamped(RunEventKind::Ended { status: RunStatus::Finished, overhead });
        if worked? {
            self.report_reached(BarrierPoint::End);
        }
        station::with_undo_failures(Ok(()), undone?)
    }

    /// Carries out slots; `true` when it is told to undo, `false` when nobody is there any more.
    fn run_slots(&self, station: &mut SlotExecutor<'_>) -> Result<bool, ConductError> {
        let mut ready: Option<(u32, Slot)> = None;
        while let Some(order) = self.next_order() {
            match order {
                AgentOrder::Undo => return Ok(true),
                AgentOrder::Ready { index, slot } => {
                    self.duty.stop.withdraw();
                    if let Some(case) = self.manifest.plan.case(slot.case) {
                        station.prepare_slot(case)?;
                    }
                    ready = Some((index, slot));
                    self.report_reached(BarrierPoint::Before(index));
                }
                AgentOrder::Start { index, at } => {
                    if let Some((_, slot)) = ready.take().filter(|(ready, _)| *ready == index) {
                        self.run_iteration(station, index, slot, at)?;
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
        station: &mut SlotExecutor<'_>,
        index: u32,
        slot: Slot,
        at: perflab_model::Nanos,
    ) -> Result<(), ConductError> {
        let Some(case) = self.manifest.plan.case(slot.case) else { return Ok(()) };
        let flag = self.duty.stop.flag();
        station
            .carry_out(index, &slot, case, &|| wait::wait_until_instant(at, &flag).map(|woken| woken.urgent))
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
        let RunEventKind::Stacks(batch) = what else {
            let _ = self.duty.voice.write_event(RunEvent { at, target, what });
            return;
        };
        for part in batch.split(BATCH) {
            let _ = self.duty.voice.write_event(RunEvent {
                at,
                target,
                what: RunEventKind::Stacks(Box::new(part)),
            });
        }
    }

    /// Says so, after everything that happened on the way.
    fn report_reached(&self, point: BarrierPoint) {
        self.events.try_iter().for_each(|event| self.send_event(event));
        let _ = self.duty.voice.write_report(&AgentReport::Reached(point));
    }
}

fn refusal_error(what: String) -> ConductError {
    ConductError::Refused(vec![crate::Refusal { what, hint: String::new() }])
}

/// What went wrong, each in one line with its causes.
fn error_reasons(error: &ConductError) -> Vec<String> {
    if let ConductError::Refused(list) = error {
        return list.iter().map(ToString::to_string).collect();
    }
    vec![error.with_causes()]
}
