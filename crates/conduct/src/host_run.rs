//! A run on this host, from `Began` to `Ended`: phases, progress, limits, stopping rule, overhead.
//!
//! Whatever happens between, settings are undone.

use std::sync::mpsc::Sender;

use perflab_model::event::RunPhase;
use perflab_model::{Manifest, RunEvent, RunEventKind, RunStatus, Slot, StopRequest};
use perflab_observe::Sampler;

use crate::error::ConductError;
use crate::executor::{self, SlotExecutor};
use crate::overhead_meter::{OverheadMeter, start_monitors};
use crate::preflight;
use crate::run_context::{EventSender, LocalMachine, RunPermissions, RunTarget};
use crate::run_state::{SlotProgress, is_precision_reached, is_time_over, wait_quiet_time};
use crate::target_role::TargetRole;

impl RunTarget for LocalMachine {
    fn run(
        &self,
        manifest: &Manifest,
        permissions: &RunPermissions,
        sink: &Sender<RunEvent>,
        stop: &StopRequest,
    ) -> Result<RunStatus, ConductError> {
        let stream = EventSender::new(sink.clone());
        stream.send_phase(RunPhase::Check)?;
        if permissions.install {
            stream.send_phase(RunPhase::Install)?;
            preflight::install_missing(manifest, &self.catalogue, &stream)?;
        }
        preflight::check_environment(manifest, self, permissions, TargetRole::Everything)?;
        let session = HostSession::begin(self, manifest, permissions, stream, stop)?;
        session.run()
    }
}

/// A run being carried out.
pub struct HostSession<'a> {
    executor: SlotExecutor<'a>,
    manifest: &'a Manifest,
    stream: EventSender,
    stop: &'a StopRequest,
    meter: OverheadMeter,
}

/// How the slots went.
#[derive(Debug, Default)]
struct HostRunTally {
    failed: u32,
    stopped: bool,
}

impl<'a> HostSession<'a> {
    /// Prepares the scratch directory, and says `Began`.
    pub(crate) fn begin(
        host: &'a LocalMachine,
        manifest: &'a Manifest,
        permissions: &'a RunPermissions,
        stream: EventSender,
        stop: &'a StopRequest,
    ) -> Result<Self, ConductError> {
        stream.send_phase(RunPhase::Prepare)?;
        let role = TargetRole::Everything;
        let executor =
            SlotExecutor::new(host, manifest, permissions, stream.clone(), stop, role)?.prepare_run()?;
        stream.send(RunEventKind::Began(Box::new(manifest.clone())))?;
        Ok(HostSession { executor, manifest, stream, stop, meter: OverheadMeter::start() })
    }

    /// Runs every slot, undoes every setting, and says `Ended`.
    pub(crate) fn run(mut self) -> Result<RunStatus, ConductError> {
        let sampler = start_monitors(self.manifest, &self.executor.host.root, self.stream.sink());
        wait_quiet_time(self.manifest, self.stop);
        let outcome = self.run_slots();
        let status = match &outcome {
            Ok(tally) if tally.stopped => RunStatus::Stopped,
            Ok(tally) if tally.failed > 0 => RunStatus::Failed,
            Ok(_) => RunStatus::Finished,
            Err(_) => RunStatus::Failed,
        };
        let left = self.end_run(status, sampler)?;
        executor::with_undo_failures(outcome.map(|_| status), left)
    }

    fn run_slots(&mut self) -> Result<HostRunTally, ConductError> {
        let slots = &self.manifest.plan.slots;
        let mut tally = HostRunTally::default();
        let mut progress = SlotProgress::new(slots.len() as u32);
        self.stream.send_phase(RunPhase::Apply)?;
        let mut phase = None;
        for (index, slot) in (0_u32..).zip(slots) {
            if self.must_stop()? {
                tally.stopped = true;
                break;
            }
            if is_precision_reached(self.manifest, index, self.stop, &self.stream)? {
                break;
            }
            self.enter_phase(&mut phase, slot)?;
            let good = match self.run_slot(index, slot) {
                Err(error) if error.is_stop() => break,
                worked => worked?,
            };
            tally.failed += u32::from(!good);
            progress.count_slot();
            self.stream.send(progress.progress_event())?;
        }
        tally.stopped |= self.stop.is_requested();
        Ok(tally)
    }

    fn must_stop(&self) -> Result<bool, ConductError> {
        Ok(is_time_over(self.manifest, self.meter.started(), &self.stream)? || self.stop.is_requested())
    }

    fn enter_phase(&self, phase: &mut Option<RunPhase>, slot: &Slot) -> Result<(), ConductError> {
        let wanted = if slot.warmup { RunPhase::Warmup } else { RunPhase::Iterate };
        if phase.replace(wanted) != Some(wanted) {
            self.stream.send_phase(wanted)?;
        }
        Ok(())
    }

    /// One slot: its settings, its caches, its iteration. `false` where the iteration failed.
    fn run_slot(&mut self, index: u32, slot: &Slot) -> Result<bool, ConductError> {
        let Some(case) = self.manifest.plan.case(slot.case) else { return Ok(false) };
        self.executor.prepare_slot(case)?;
        self.executor.carry_out(index, slot, case, &|| None)
    }

    /// The monitors watch the undoing too: an unmount gives back what the workload left in caches.
    fn end_run(self, status: RunStatus, sampler: Sampler) -> Result<Vec<String>, ConductError> {
        // The error waits: undoing comes first.
        let reported = self.stream.send_phase(RunPhase::Undo);
        let left = self.executor.undo_all()?;
        reported?;
        wait_quiet_time(self.manifest, self.stop);
        let cost = sampler.stop();
        self.stream.send_phase(RunPhase::Finish)?;
        let overhead = self.meter.overhead(&cost);
        self.stream.send(RunEventKind::Ended { status, overhead })?;
        Ok(left)
    }
}
