//! A run whose iterations begin at one instant on all targets.
//!
//! It starts the targets, watches their clocks and lives, does what the [`crate::barrier`] says, puts reports on
//! this host's time axis, and ends the targets whatever happens. No target is believed: reports are checked against
//! the plan first (`report_validation`). How an agent is started is in [`crate::launcher`].

use std::sync::mpsc::Sender;

use perflab_model::event::{RunPhase, TargetStatus};
use perflab_model::study::{FactorKind, FactorSide};
use perflab_model::{
    Manifest, Nanos, Overhead, RunEvent, RunEventKind, RunStatus, Slot, StopRequest, TargetRecord,
};
use perflab_observe::{Sampler, monotonic_now};

use crate::boot_round::BootRound;
use crate::error::ConductError;
use crate::executor::{self, SlotExecutor};
use crate::host_run::{SlotProgress, wait_quiet_time};
use crate::preflight;
use crate::protocol::AgentRunConfig;
use crate::run_context::{EventSender, LocalMachine, RunPermissions, RunTarget};
use crate::stack_merge::StackMerger;

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
        preflight::check_environment(manifest, &self.host, permissions, Some(FactorSide::Host))?;
        stream.send_phase(RunPhase::Prepare)?;
        let side = Some(FactorSide::Host);
        let executor = SlotExecutor::new(&self.host, manifest, permissions, stream.clone(), stop, side);
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

/// How the slots went.
#[derive(Debug, Default)]
struct RunTally {
    failed: u32,
    lost: u32,
}

/// What there is from the run's beginning on.
struct BegunRun {
    at: Nanos,
    cpu: Nanos,
    sampler: Sampler,
    progress: SlotProgress,
    phase: Option<RunPhase>,
}

/// The run.
pub(crate) struct RunState<'a> {
    pub(crate) host: &'a LocalMachine,
    pub(crate) manifest: &'a Manifest,
    stream: EventSender,
    pub(crate) stop: &'a StopRequest,
    executor: SlotExecutor<'a>,
    /// Nothing that is reported happened before.
    pub(crate) earliest: Nanos,
    /// What was reported before the run began.
    early_events: Vec<RunEvent>,
    begun: Option<BegunRun>,
    tally: RunTally,
    cost: Overhead,
    pub(crate) stack_merger: StackMerger,
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
        let usage = perflab_observe::process_usage();
        self.stream.send_phase(RunPhase::Finish)?;
        let overhead = Overhead {
            cpu: Nanos(usage.cpu.since(begun.cpu).0.saturating_add(self.cost.cpu.0)),
            monitors_cpu: Nanos(watched.cpu.0.saturating_add(self.cost.monitors_cpu.0)),
            wall: monotonic_now().since(begun.at),
            peak_rss: usage.peak_rss.max(self.cost.peak_rss),
            bytes_written: 0, // the recorder's to say
            ticks: watched.ticks.saturating_add(self.cost.ticks),
            late_ticks: watched.late.saturating_add(self.cost.late_ticks),
            lost_ticks: watched.lost.saturating_add(self.cost.lost_ticks),
        };
        self.stream.send(RunEventKind::Ended { status, overhead })?;
        Ok(left)
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.begun.is_some()
    }

    /// Says `Began`, with the targets as they are, and what was reported before.
    pub(crate) fn begin(&mut self, targets: Vec<TargetRecord>) -> Result<(), ConductError> {
        let cpu = perflab_observe::process_usage().cpu;
        self.stream.send(RunEventKind::Began(Box::new(Manifest { targets, ..self.manifest.clone() })))?;
        for event in std::mem::take(&mut self.early_events) {
            self.stream.forward(event)?;
        }
        let wanted = self.manifest.study.monitors.iter().map(|(name, span)| (name.clone(), span.0)).collect();
        self.begun = Some(BegunRun {
            at: monotonic_now(),
            cpu,
            sampler: Sampler::start(wanted, self.host.root.clone(), self.stream.sink()),
            progress: SlotProgress::new(self.manifest.plan.slots.len() as u32),
            phase: None,
        });
        self.wait_quiet_time();
        self.report_phase(RunPhase::Apply)
    }

    /// The factor over targets and its level in a slot, if the study has one.
    pub(crate) fn target_level(&self, slot: &Slot) -> Option<(&str, &str)> {
        let levels = &self.manifest.plan.case(slot.case)?.levels;
        let counts = |name: &str| {
            let factor = self.manifest.study.factor.get(name);
            factor.is_some_and(|factor| factor.kind == FactorKind::Targets)
        };
        levels.iter().map(|(name, level)| (name.as_str(), level.as_str())).find(|(name, _)| counts(name))
    }

    /// Which of `count` targets take part in a slot: as many as its level of a factor over targets says.
    pub(crate) fn participants(&self, slot: &Slot, count: usize) -> Vec<usize> {
        let number: Option<usize> = self.target_level(slot).and_then(|(_, level)| level.parse().ok());
        (0..number.unwrap_or(count).min(count)).collect()
    }

    /// What an agent has to know. Its id is its own, as its scratch directory is; one that shares our kernel need not
    /// watch what we watch.
    pub(crate) fn agent_run_config(&self, name: &str, kind: &str) -> AgentRunConfig {
        let mut manifest = self.manifest.clone();
        manifest.id = format!("{}-{name}", manifest.id);
        manifest.study_text = String::new();
        manifest.plan.slots = Vec::new();
        if kind == "process" {
            manifest.study.monitors.clear();
        }
        let used = |name: &String| self.host.catalogue.source(name);
        let sources = self.manifest.plan.metrics.keys().filter_map(used);
        let definitions = sources.map(|source| (source.file.clone(), source.text.clone())).collect();
        AgentRunConfig { manifest, definitions }
    }

    pub(crate) fn slot(&self, index: u32) -> Option<Slot> {
        self.manifest.plan.slots.get(index as usize).copied()
    }

    /// Whether the run's time is over.
    pub(crate) fn must_stop(&self) -> Result<bool, ConductError> {
        let begun = self.begun.as_ref().map_or(Nanos(u64::MAX), |begun| begun.at);
        crate::host_run::is_time_over(self.manifest, begun, &self.stream)
    }

    /// Whether the block of this slot need not be begun.
    pub(crate) fn is_precision_reached(&self, next: u32) -> Result<bool, ConductError> {
        crate::host_run::is_precision_reached(self.manifest, next, self.stop, &self.stream)
    }

    /// A slot is about to be made ready: its phase, and the host's settings for it.
    pub(crate) fn enter_slot(&mut self, slot: &Slot) -> Result<(), ConductError> {
        let wanted = if slot.warmup { RunPhase::Warmup } else { RunPhase::Iterate };
        if self.begun.as_mut().is_some_and(|begun| begun.phase.replace(wanted) != Some(wanted)) {
            self.report_phase(wanted)?;
        }
        let case = self.manifest.plan.case(slot.case);
        case.map_or(Ok(()), |case| self.executor.prepare_slot(case))
    }

    /// A slot is over.
    pub(crate) fn close_slot(
        &mut self,
        events: Vec<RunEvent>,
        good: bool,
        names: &[String],
    ) -> Result<(), ConductError> {
        self.tally.failed += u32::from(!good);
        events.into_iter().try_for_each(|event| self.merge_stacks(event, names))?;
        let Some(begun) = &mut self.begun else { return Ok(()) };
        begun.progress.count_slot();
        let event = begun.progress.progress_event();
        self.stream.send(event)
    }

    /// Sends an event of a target, its stacks with the ids of the run.
    fn merge_stacks(&mut self, event: RunEvent, names: &[String]) -> Result<(), ConductError> {
        let RunEvent { at, target: Some(target), what: RunEventKind::Stacks(batch) } = event else {
            return self.send_or_hold(event);
        };
        let (index, before) = (target as usize, self.stack_merger.is_cut_off(target as usize));
        let name = names.get(index).map_or("", String::as_str);
        if let Some(batch) = self.stack_merger.merge(index, name, *batch) {
            self.send_or_hold(RunEvent {
                at,
                target: Some(target),
                what: RunEventKind::Stacks(Box::new(batch)),
            })?;
        }
        if self.stack_merger.is_cut_off(index) && !before {
            let message =
                format!("the profile of {name} refers to stacks that it never told, and is cut off");
            return self.report_target(
                index,
                RunEventKind::Warning { message, advice: "the other targets' are whole".into() },
            );
        }
        Ok(())
    }

    /// Shows where the targets are; whether anybody looks does not matter.
    pub(crate) fn report_activity(&self, all: Vec<TargetStatus>) -> Result<(), ConductError> {
        self.stream.send(RunEventKind::Standing(all))
    }

    /// A target takes no further part.
    pub(crate) fn report_lost(
        &mut self,
        target: usize,
        name: &str,
        reason: &str,
    ) -> Result<(), ConductError> {
        self.tally.lost += 1;
        let reason = perflab_model::remove_control_characters(reason);
        let (message, advice) = (format!("target {name} was lost: {reason}"), "see what it said".into());
        self.report_target(target, RunEventKind::TargetLost { reason })?;
        self.report_target(target, RunEventKind::Warning { message, advice })
    }

    /// What a target printed beside its stream.
    pub(crate) fn report_stderr(&mut self, target: usize, stderr: String) -> Result<(), ConductError> {
        if stderr.is_empty() {
            return Ok(());
        }
        let text = perflab_model::remove_control_characters(&stderr);
        self.report_target(target, RunEventKind::Output { slot: None, name: "agent".into(), text })
    }

    pub(crate) fn add_overhead(&mut self, cost: Overhead) {
        self.cost.cpu.0 = self.cost.cpu.0.saturating_add(cost.cpu.0);
        self.cost.monitors_cpu.0 = self.cost.monitors_cpu.0.saturating_add(cost.monitors_cpu.0);
        self.cost.peak_rss = self.cost.peak_rss.max(cost.peak_rss);
        self.cost.ticks = self.cost.ticks.saturating_add(cost.ticks);
        self.cost.late_ticks = self.cost.late_ticks.saturating_add(cost.late_ticks);
        self.cost.lost_ticks = self.cost.lost_ticks.saturating_add(cost.lost_ticks);
    }

    pub(crate) fn wait_quiet_time(&self) {
        wait_quiet_time(self.manifest, self.stop);
    }

    pub(crate) fn report_phase(&mut self, phase: RunPhase) -> Result<(), ConductError> {
        self.report_host(RunEventKind::Phase(phase))
    }

    /// Says something of this machine.
    pub(crate) fn report_host(&mut self, what: RunEventKind) -> Result<(), ConductError> {
        self.send_or_hold(RunEvent::new(monotonic_now(), what))
    }

    /// Says something of a target.
    pub(crate) fn report_target(&mut self, target: usize, what: RunEventKind) -> Result<(), ConductError> {
        self.send_or_hold(RunEvent { at: monotonic_now(), target: u32::try_from(target).ok(), what })
    }

    /// Passes an event on, or keeps it until the run has begun.
    pub(crate) fn send_or_hold(&mut self, event: RunEvent) -> Result<(), ConductError> {
        if self.begun.is_none() {
            self.early_events.push(event);
            return Ok(());
        }
        self.stream.forward(event)
    }
}
