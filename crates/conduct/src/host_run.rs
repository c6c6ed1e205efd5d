//! A run on this host, from `Began` to `Ended`: phases, progress, limits, stopping rule, overhead.
//!
//! Whatever happens between, settings are undone.
use perflab_model::event::RunPhase;
use perflab_model::run::Overhead;
use perflab_model::{Manifest, Nanos, RunEventKind, RunStatus, Slot, StopRequest};
use perflab_observe::Sampler;

use crate::error::ConductError;
use crate::executor::{self, SlotExecutor};
use crate::run_context::{EventSender, LocalMachine, RunPermissions};

/// A run being carried out.
pub struct HostSession<'a> {
    executor: SlotExecutor<'a>,
    manifest: &'a Manifest,
    stream: EventSender,
    stop: &'a StopRequest,
    begun: Nanos,
    cpu_before: Nanos,
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
        let executor =
            SlotExecutor::new(host, manifest, permissions, stream.clone(), stop, None).prepare_run()?;
        let cpu_before = perflab_observe::process_usage().cpu;
        stream.send(RunEventKind::Began(Box::new(manifest.clone())))?;
        let begun = perflab_observe::monotonic_now();
        Ok(HostSession { executor, manifest, stream, stop, begun, cpu_before })
    }

    /// Runs every slot, undoes every setting, and says `Ended`.
    pub(crate) fn run(mut self) -> Result<RunStatus, ConductError> {
        let sampler = self.start_sampler();
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

    fn start_sampler(&self) -> Sampler {
        let wanted = self.manifest.study.monitors.iter().map(|(name, span)| (name.clone(), span.0)).collect();
        Sampler::start(wanted, self.executor.host.root.clone(), self.stream.sink())
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
        Ok(is_time_over(self.manifest, self.begun, &self.stream)? || self.stop.is_requested())
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
        let usage = perflab_observe::process_usage();
        self.stream.send_phase(RunPhase::Finish)?;
        let overhead = Overhead {
            cpu: usage.cpu.since(self.cpu_before),
            monitors_cpu: cost.cpu,
            wall: perflab_observe::monotonic_now().since(self.begun),
            peak_rss: usage.peak_rss,
            bytes_written: 0, // the recorder's to say
            ticks: cost.ticks,
            late_ticks: cost.late,
            lost_ticks: cost.lost,
        };
        self.stream.send(RunEventKind::Ended { status, overhead })?;
        Ok(left)
    }
}

/// Whether the run's total time limit is over; says so where it is.
pub(crate) fn is_time_over(
    manifest: &Manifest,
    begun: Nanos,
    stream: &EventSender,
) -> Result<bool, ConductError> {
    let limit = manifest.study.run.total_time_limit.map(|span| span.0);
    let over = limit.filter(|limit| perflab_observe::monotonic_now().since(begun) > *limit);
    if let Some(limit) = over {
        stream.send_warning(
            format!("the run's total time limit of {limit} is over; the remaining iterations were left out"),
            "raise `run.total-time-limit`, or lower `run.iterations`",
        )?;
    }
    Ok(over.is_some())
}

/// Waits for the study's quiet time, unless a stop is requested.
pub(crate) fn wait_quiet_time(manifest: &Manifest, stop: &StopRequest) {
    let begun = perflab_observe::monotonic_now();
    while perflab_observe::monotonic_now().since(begun) < manifest.study.run.quiet.0 && !stop.is_requested() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// Whether the block of slot `next` need not be begun: the precision that the study asks for is reached.
pub(crate) fn is_precision_reached(
    manifest: &Manifest,
    next: u32,
    stop: &StopRequest,
    stream: &EventSender,
) -> Result<bool, ConductError> {
    let slot = |index: u32| manifest.plan.slots.get(index as usize);
    let (Some(slot), Some(before)) = (slot(next), next.checked_sub(1).and_then(slot)) else {
        return Ok(false);
    };
    if slot.block == before.block || slot.warmup || !stop.is_end_requested() {
        return Ok(false);
    }
    let (done, most) = (slot.block, manifest.study.run.max_iterations());
    let message = format!("the wanted precision was reached: {done} of at most {most} blocks were measured");
    stream.send_warning(
        message,
        "mind that intervals of a run that ends when they are narrow are a little too narrow",
    )?;
    Ok(true)
}

/// Counts slots done and the time that they took.
#[derive(Debug)]
pub(crate) struct SlotProgress {
    begun: Nanos,
    done: u32,
    total: u32,
}

impl SlotProgress {
    pub(crate) fn new(total: u32) -> Self {
        SlotProgress { begun: perflab_observe::monotonic_now(), done: 0, total }
    }

    /// One more slot is done.
    pub(crate) fn count_slot(&mut self) {
        self.done += 1;
    }

    /// The event that says so.
    pub(crate) fn progress_event(&self) -> RunEventKind {
        RunEventKind::Progress { done: self.done, total: self.total, remaining: self.remaining_time() }
    }

    /// Blocks mix all cases, so the mean of the slots so far foretells the rest.
    fn remaining_time(&self) -> Option<Nanos> {
        let spent = perflab_observe::monotonic_now().since(self.begun);
        let left = u64::from(self.total - self.done.min(self.total));
        (self.done > 0).then(|| Nanos(spent.0 / u64::from(self.done) * left))
    }
}
