//! A run whose iterations begin at one instant on all targets.
//!
//! It starts the targets, watches their clocks and lives, does what the [`crate::barrier`] says, puts reports on
//! this host's time axis, and ends the targets whatever happens. No target is believed: reports are checked against
//! the plan first (`report_validation`). How an agent is started is in [`crate::launcher`].

use std::sync::mpsc::Sender;

use perflab_model::event::RunPhase;
use perflab_model::{Manifest, Overhead, RunEvent, RunEventKind, RunStatus, Slot, StopRequest};
use perflab_observe::monotonic_now;

use crate::boot_round::BootRound;
use crate::error::ConductError;
use crate::executor::{self, SlotExecutor};
use crate::overhead_meter::add_overhead;
use crate::preflight;
use crate::run_context::{EventSender, LocalMachine, RunPermissions, RunTarget};
use crate::run_state::{BegunRun, RunState, RunTally};
use crate::stack_merge::StackMerger;
use crate::target_role::TargetRole;

/// The targets of a study, in a synchronised run.
#[derive(Debug)]
pub struct SynchronisedRun {
    /// The machine that conducts.
    pub host: LocalMachine,
}

impl RunTarget for SynchronisedRun {
    fn run(
        &self,
        manifest: &Manifest,
        permissions: &RunPermissions,
        sink: &Sender<RunEvent>,
        stop: &StopRequest,
    ) -> Result<RunStatus, ConductError> {
        let stream = EventSender::new(sink.clone());
        stream.send_phase(RunPhase::Check)?;
        let role = TargetRole::HostSettings;
        preflight::check_environment(manifest, &self.host, permissions, role)?;
        stream.send_phase(RunPhase::Prepare)?;
        let executor = SlotExecutor::new(&self.host, manifest, permissions, stream.clone(), stop, role)?;
        let run_state = RunState {
            host: &self.host,
            manifest,
            stream,
            stop,
            executor,
            earliest: monotonic_now(),
            early_events: Vec::new(),
            begun: None,
            tally: RunTally::default(),
            cost: Overhead::default(),
            stack_merger: StackMerger::default(),
        };
        run_state.run()
    }
}

/// The slots of each start of the targets, with their numbers: those of a boot, or of a case in it.
fn split_into_rounds(manifest: &Manifest) -> Vec<Vec<(u32, Slot)>> {
    let each = manifest.study.run.boot_each_case;
    let numbered: Vec<(u32, Slot)> = (0_u32..).zip(manifest.plan.slots.iter().copied()).collect();
    let same = |a: &(u32, Slot), b: &(u32, Slot)| a.1.boot == b.1.boot && (!each || a.1.case == b.1.case);
    numbered.chunk_by(same).map(<[_]>::to_vec).collect()
}

impl RunState<'_> {
    fn run(mut self) -> Result<RunStatus, ConductError> {
        let worked = self.run_rounds();
        let Some(begun) = self.begun.take() else {
            // Nothing was reported yet; what was changed for the first start is changed back.
            self.executor.undo_quietly();
            return worked.and(Err(ConductError::NobodyListens));
        };
        let worked = match worked {
            Err(error) if error.is_stop() => Ok(()),
            worked => worked,
        };
        let status = match &worked {
            Ok(()) if self.stop.is_requested() => RunStatus::Stopped,
            Ok(()) if self.tally.failed == 0 && self.tally.lost == 0 => RunStatus::Finished,
            _ => RunStatus::Failed,
        };
        let left = self.end_run(status, begun)?;
        executor::with_undo_failures(worked.map(|()| status), left)
    }

    fn run_rounds(&mut self) -> Result<(), ConductError> {
        let starts = split_into_rounds(self.manifest);
        let last = starts.len().saturating_sub(1);
        for (number, slots) in starts.into_iter().enumerate() {
            if self.manifest.study.run.boot_each_case
                && let Some((_, slot)) = slots.first()
            {
                self.apply_host_settings(slot.case)?;
            }
            BootRound::launch(self, slots, number == last)?.run()?;
            if self.stop.is_requested() {
                break;
            }
        }
        Ok(())
    }

    /// Brings the host's settings to the case's levels.
    fn apply_host_settings(&mut self, case: u32) -> Result<(), ConductError> {
        let Some(case) = self.manifest.plan.case(case) else { return Ok(()) };
        for change in self.executor.apply_settings(case)? {
            self.report_host(change)?;
        }
        Ok(())
    }

    fn end_run(self, status: RunStatus, begun: BegunRun) -> Result<Vec<String>, ConductError> {
        let left = self.executor.undo_all()?;
        let watched = begun.sampler.stop();
        self.stream.send_phase(RunPhase::Finish)?;
        let mut overhead = begun.meter.overhead(&watched);
        add_overhead(&mut overhead, &self.cost);
        self.stream.send(RunEventKind::Ended { status, overhead })?;
        Ok(left)
    }
}
