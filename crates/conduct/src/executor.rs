//! Carries out slots on one machine: scratch directory, settings, one iteration, undo.
//!
//! One iteration is a fresh scratch folder, the workload's process, and its output made into samples.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use perflab_disk::{delay_switch, scratch_disk};
use perflab_model::expression::ExpressionScope;
use perflab_model::io_trace::IO_TRACER;
use perflab_model::operation::OPERATION_TRACER;
use perflab_model::{
    Case, Manifest, Nanos, Outcome, RunEventKind, Sample, Setting, Slot, StopRequest, describe_error_chain,
};
use perflab_observe::RealtimeGuard;
use perflab_settings::{
    AppliedSettings, SettingChange, UndoJournal, end_delays, locate_setting, remove_tree,
};
use perflab_workload::execution::WatcherAbsence;
use perflab_workload::{ExecutionEnd, FixedAddresses, HostPaths, WorkloadDefinition, WorkloadExecution};

use crate::error::ConductError;
use crate::execution_records::ExecutionRecord;
use crate::iteration_trace::{self, IterationProfiler};
use crate::run_context::{EventSender, LocalMachine};
use crate::target_role::TargetRole;
use crate::{plan, preflight};

/// A machine that carries out the slots of a run.
pub(crate) struct SlotExecutor<'a> {
    pub(crate) host: &'a LocalMachine,
    pub(crate) manifest: &'a Manifest,
    pub(crate) stream: EventSender,
    pub(crate) stop: &'a StopRequest,
    pub(crate) scope: ExpressionScope,
    pub(crate) scratch: Option<PathBuf>,
    /// Whose settings are changed here.
    role: TargetRole,
    pub(crate) profiler: Option<IterationProfiler>,
    settings: AppliedSettings,
    /// Factors and levels that were reported as rounded by the kernel.
    reported_roundings: BTreeSet<(String, String)>,
    /// Whether workloads start with their addresses not randomised: where layouts are varied and this process may ask for it.
    fixes_addresses: bool,
    /// None where it cannot be written: then only the guard ends what a killed perflab was running.
    _executions: Option<ExecutionRecord>,
}

impl<'a> SlotExecutor<'a> {
    /// A machine on which nothing is changed yet.
    pub(crate) fn new(
        host: &'a LocalMachine,
        manifest: &'a Manifest,
        stream: EventSender,
        stop: &'a StopRequest,
        role: TargetRole,
    ) -> Result<Self, ConductError> {
        let journal = UndoJournal::new(&host.state, &manifest.id, &manifest.boot_id);
        let applied = AppliedSettings::new(journal).with_stop_flag(stop.flag());
        let scope = plan::expression_scope(&manifest.study, &manifest.facts)
            .map_err(|problem| ConductError::Refused(vec![preflight::refusal_of_value(&problem.message)]))?;
        Ok(SlotExecutor {
            host,
            manifest,
            stream,
            stop,
            scope,
            scratch: None,
            role,
            profiler: None,
            settings: applied,
            reported_roundings: BTreeSet::new(),
            fixes_addresses: false,
            _executions: ExecutionRecord::write(&host.state, &manifest.boot_id).ok(),
        })
    }

    /// Makes the scratch directory that the workloads need. What was begun is undone where it fails.
    pub(crate) fn prepare_run(mut self) -> Result<Self, ConductError> {
        let profiler = IterationProfiler::for_study(self.manifest)?;
        self.fixes_addresses = self.may_fix_addresses()?;
        match self.make_scratch() {
            Ok(scratch) => Ok(SlotExecutor { scratch, profiler, ..self }),
            Err(error) => {
                self.settings.undo_all();
                Err(error)
            }
        }
    }

    fn make_scratch(&mut self) -> Result<Option<PathBuf>, ConductError> {
        let manifest = self.manifest;
        self.warn_emulated()?;
        if manifest.plan.has_varying_disk() {
            return Ok(None); // each iteration makes its own
        }
        let journal = self.settings.journal();
        let make = |disk| scratch_disk::prepare_scratch_disk(disk, &manifest.id, &self.host.perflab, journal);
        Ok(manifest.plan.disks.first().map(make).transpose()?)
    }

    /// A layout is one only where addresses are not drawn anew by every process.
    fn may_fix_addresses(&self) -> Result<bool, ConductError> {
        if self.manifest.plan.layouts.is_empty() {
            return Ok(false);
        }
        let Err(error) = FixedAddresses::request() else { return Ok(true) };
        self.stream.send_warning(
            format!("addresses stay randomised under every layout: {error}"),
            "allow personality(2) (containers refuse it by their seccomp profile): as it is, a layout's padding means little",
        )?;
        Ok(false)
    }

    /// Figures of a disk that is not there are never shown as those of one that is.
    fn warn_emulated(&self) -> Result<(), ConductError> {
        let models = scratch_disk::emulated_models(&self.manifest.plan.disks);
        models.into_iter().try_for_each(|model| {
            self.stream.send_warning(
                format!(
                    "the disk {} is emulated: an image, served with the delays of its data sheet",
                    model.name()
                ),
                "figures say what such a disk would do, not what one of this machine's does",
            )
        })
    }

    /// Brings the settings to the case's levels, and drops caches where it asks for that.
    pub(crate) fn prepare_slot(&mut self, case: &Case) -> Result<(), ConductError> {
        for what in self.apply_settings(case)? {
            self.stream.send(what)?;
        }
        for planned in self.manifest.plan.case_settings(case, self.role.side()) {
            if let Setting::DropCaches(which) = &planned.setting {
                perflab_settings::drop_caches(&self.host.root, *which)?;
            }
        }
        Ok(())
    }

    /// Brings the settings to the case's levels; gives the events to send.
    pub(crate) fn apply_settings(&mut self, case: &Case) -> Result<Vec<RunEventKind>, ConductError> {
        let mut events = Vec::new();
        let manifest = self.manifest;
        for planned in manifest.plan.case_settings(case, self.role.side()) {
            let (factor, level) = (&planned.factor, &planned.level);
            let setting = locate_setting(&planned.setting, &self.host.root);
            let changes = self.settings.apply(std::slice::from_ref(&setting));
            let changes = changes.map_err(|error| ConductError::Level {
                factor: factor.clone(),
                level: level.clone(),
                source: Box::new(error),
            })?;
            for change in changes {
                events.extend(self.rounding_warning(factor, level, &change));
                let SettingChange { setting, from, to, asked } = change;
                events.push(RunEventKind::SettingApplied { setting, from, to, asked });
            }
        }
        Ok(events)
    }

    /// Reported once for each level: what is compared is not what the study says.
    fn rounding_warning(
        &mut self,
        factor: &str,
        level: &str,
        change: &SettingChange,
    ) -> Option<RunEventKind> {
        let asked = change.asked.as_ref()?;
        self.reported_roundings.insert((factor.into(), level.into())).then(|| RunEventKind::Warning {
            message: format!(
                "factor `{factor}`, level `{level}`: the kernel made `{}` of `{asked}` in {}",
                change.to, change.setting
            ),
            advice: "give the value that is in force, or take it as another level's name".into(),
        })
    }

    /// Where a tracer writes what it saw of an iteration, until the recorder takes it.
    pub(crate) fn tracer_path(&self, index: u32, tracer: &str) -> Result<PathBuf, ConductError> {
        let folder = self.host.traces.path(&self.host.state, &self.manifest.boot_id)?;
        Ok(folder.join(format!("{index}.{tracer}")))
    }

    /// Carries out the slot's iteration; `begin` returns when its process is to be started. `false` where it failed.
    pub(crate) fn carry_out(
        &mut self,
        index: u32,
        slot: &Slot,
        case: &Case,
        begin: &dyn Fn() -> Option<RealtimeGuard>,
    ) -> Result<bool, ConductError> {
        if !self.manifest.plan.has_varying_disk() {
            return run_iteration(self, index, slot, case, begin);
        }
        let mark = self.settings.journal().next_number();
        self.scratch = self.make_fresh_disk(case)?;
        let good = run_iteration(self, index, slot, case, begin);
        self.settings.journal().undo_since(mark)?;
        good
    }

    /// The case's own disk, made for one iteration.
    fn make_fresh_disk(&mut self, case: &Case) -> Result<Option<PathBuf>, ConductError> {
        let (id, perflab) = (&self.manifest.id, &self.host.perflab);
        let journal = self.settings.journal();
        let make = |disk| scratch_disk::prepare_scratch_disk(disk, id, perflab, journal);
        Ok(self.manifest.plan.case_disk(case).map(make).transpose()?)
    }

    /// Undoes everything where there is no run to report it to. What fails stays in the journal for the next start.
    pub(crate) fn undo_quietly(self) {
        let _ = self.settings.undo_all();
    }

    /// Undoes everything; gives what is not back. Done even if the event consumer is gone, which is an error.
    pub(crate) fn undo_all(self) -> Result<Vec<String>, ConductError> {
        let (undone, failed) = self.settings.undo_all();
        for setting in undone {
            self.stream.send(RunEventKind::SettingUndone { setting, to: "as before".into() })?;
        }
        let failed: Vec<String> = failed.iter().map(|error| describe_error_chain(error)).collect();
        for error in &failed {
            self.stream.send_warning(
                format!("a setting could not be undone: {error}"),
                "perflab tries again at its next start",
            )?;
        }
        Ok(failed)
    }
}

/// What a run ended with, given what is not back after it.
pub(crate) fn with_undo_failures<T>(
    outcome: Result<T, ConductError>,
    mut left: Vec<String>,
) -> Result<T, ConductError> {
    if left.is_empty() {
        return outcome;
    }
    left.extend(outcome.err().map(|error| format!("the run ended with: {}", describe_error_chain(&error))));
    Err(ConductError::LeftChanged(left))
}

/// Runs one slot; its process is started when `begin` returns. `false` where it failed: recorded with its output, and the run goes on.
pub(crate) fn run_iteration(
    executor: &SlotExecutor<'_>,
    index: u32,
    slot: &Slot,
    case: &Case,
    begin: &dyn Fn() -> Option<RealtimeGuard>,
) -> Result<bool, ConductError> {
    let Some(definition) = executor.host.catalogue.get(&case.uses) else { return Ok(false) };
    executor.stream.send(RunEventKind::IterationBegan { slot: index })?;
    let begun = perflab_observe::monotonic_now();
    let (outcome, start, end) = match run_workload(executor, (index, slot), case, definition, begin) {
        Ok((finished, absence)) => {
            send_output(executor, index, &finished)?;
            if definition.traced {
                let file = executor.tracer_path(index, OPERATION_TRACER)?;
                iteration_trace::report_program_trace(file, (index, slot.warmup), &executor.stream)?;
            }
            let outcome = match absence {
                Some(reason) if is_end_uncertain(&finished) => Outcome::Failed { reason },
                absence => {
                    absence.into_iter().try_for_each(|reason| warn_of_absence(executor, case, &reason))?;
                    determine_outcome(executor, slot, case, definition, &finished)?
                }
            };
            (outcome, finished.start, finished.end)
        }
        Err(error) => (failed_outcome(&error), begun, perflab_observe::monotonic_now()),
    };
    let good = outcome == Outcome::Ok;
    executor.stream.send(RunEventKind::IterationEnded { slot: index, outcome, start, end })?;
    Ok(good)
}

fn run_workload(
    executor: &SlotExecutor<'_>,
    (index, slot): (u32, &Slot),
    case: &Case,
    definition: &WorkloadDefinition,
    begin: &dyn Fn() -> Option<RealtimeGuard>,
) -> Result<(WorkloadExecution, Option<String>), ConductError> {
    let scratch = executor.scratch.as_deref().map(|base| make_fresh_folder(base, index)).transpose()?;
    let kept = executor.scratch.as_deref().map(make_kept_folder).transpose()?;
    let host = HostPaths { perflab: executor.host.perflab.clone(), scratch: scratch.clone(), kept };
    let invocation = definition.build_invocation(&case.parameters, &executor.scope, &host)?;
    let invocation = if executor.host.runs_as_typed { invocation.as_typed() } else { invocation };
    let mut environment = vec![state_variable(executor)];
    environment.extend(case.environment.iter().map(|(name, value)| (name.clone(), value.clone())));
    environment
        .extend(executor.manifest.plan.slot_layout(slot).iter().flat_map(|layout| layout.environment()));
    if definition.traced {
        environment.push(iteration_trace::trace_variable(&executor.tracer_path(index, OPERATION_TRACER)?));
    }
    let limit = executor.manifest.study.run.time_limit.0;
    let sampling = executor.profiler.as_ref().map(|profiler| profiler.start(executor.host)).transpose()?;
    let tracing = iteration_trace::start_io_trace(executor.manifest)?;
    let stop = executor.stop.flag();
    let hurry = || end_disk_delays(executor, case);
    let waited = perflab_observe::thread_wait_time();
    let moment = || {
        let fixed = executor.fixes_addresses.then(FixedAddresses::request);
        (fixed, begin())
    };
    let finished =
        perflab_workload::execute_invocation_at(&invocation, &environment, limit, &stop, moment, hurry);
    let absence = finished.as_ref().ok().and_then(|finished| describe_absence(finished, waited));
    if let Some((profiler, recorder)) = executor.profiler.as_ref().zip(sampling) {
        profiler.finish(recorder, index, &executor.stream)?;
    }
    if let Some(tracer) = tracing {
        let file = executor.tracer_path(index, IO_TRACER)?;
        iteration_trace::finish_io_trace(tracer, file, (index, slot.warmup), &executor.stream)?;
    }
    if let Some(folder) = scratch {
        // What stays goes with the whole scratch directory at the end.
        let _ = remove_tree(&folder);
    }
    Ok((finished?, absence))
}

/// What happened while perflab itself did not run for more than a second; `waited` is what this thread had waited for a processor
/// before the execution.
fn describe_absence(finished: &WorkloadExecution, waited: Option<Nanos>) -> Option<String> {
    let WatcherAbsence { length, hid_the_end } = finished.absence?;
    let waited = perflab_observe::thread_wait_time().zip(waited).map(|(now, before)| now.since(before));
    let cause = perflab_observe::explain_absence(length, waited);
    let reason = format!("{cause} for {length}");
    Some(if hid_the_end { format!("{reason}, so the time it took is unknown") } else { reason })
}

/// Whether the times of an execution that ended by itself cannot be believed.
fn is_end_uncertain(finished: &WorkloadExecution) -> bool {
    finished.failure().is_none() && finished.absence.is_some_and(|absence| absence.hid_the_end)
}

/// An iteration whose end was seen in time counts: only its monitors and its output were not looked at.
fn warn_of_absence(executor: &SlotExecutor<'_>, case: &Case, reason: &str) -> Result<(), ConductError> {
    executor.stream.send_warning(
        format!("an iteration of {}: {reason}", case.label()),
        "its monitors have a gap, and what prints much was held up: leave it out where that matters",
    )
}

/// What is still to be written to an emulated disk must not hold up what is to end.
fn end_disk_delays(executor: &SlotExecutor<'_>, case: &Case) {
    let is_emulated =
        executor.manifest.plan.case_disk(case).is_some_and(|planned| planned.disk.model.is_some());
    if let Some(scratch) = executor.scratch.as_deref().filter(|_| is_emulated) {
        end_delays(&delay_switch(scratch));
    }
}

/// A perflab that the workload starts keeps its undo journal where it is found again, whatever its HOME and its folder are.
fn state_variable(executor: &SlotExecutor<'_>) -> (String, String) {
    let place = &executor.host.state;
    let place = std::path::absolute(place).unwrap_or_else(|_| place.clone());
    ("PERFLAB_STATE".into(), place.display().to_string())
}

fn make_fresh_folder(base: &Path, index: u32) -> Result<PathBuf, ConductError> {
    let path = base.join(format!("iteration-{index}"));
    fs::create_dir(&path).map_err(|source| ConductError::Scratch { path: path.clone(), source })?;
    Ok(path)
}

fn make_kept_folder(base: &Path) -> Result<PathBuf, ConductError> {
    let path = base.join("kept");
    fs::create_dir_all(&path).map_err(|source| ConductError::Scratch { path: path.clone(), source })?;
    Ok(path)
}

fn failed_outcome(error: &ConductError) -> Outcome {
    let cause = std::error::Error::source(error).map_or(String::new(), |cause| format!(": {cause}"));
    Outcome::Failed { reason: format!("{error}{cause}") }
}

fn send_output(
    executor: &SlotExecutor<'_>,
    index: u32,
    finished: &WorkloadExecution,
) -> Result<(), ConductError> {
    for (name, output) in [("stdout", &finished.stdout), ("stderr", &finished.stderr)] {
        if !output.is_empty() {
            executor.stream.send(RunEventKind::Output {
                slot: Some(index),
                name: name.into(),
                text: output.text(),
            })?;
        }
    }
    Ok(())
}

/// How the iteration went; a good one's samples are sent on the way, a warm-up's are not.
fn determine_outcome(
    executor: &SlotExecutor<'_>,
    slot: &Slot,
    case: &Case,
    definition: &WorkloadDefinition,
    finished: &WorkloadExecution,
) -> Result<Outcome, ConductError> {
    if let Some(reason) = finished.failure() {
        return Ok(match finished.outcome {
            ExecutionEnd::TimedOut => Outcome::TimedOut { limit: executor.manifest.study.run.time_limit.0 },
            ExecutionEnd::Interrupted => Outcome::Interrupted,
            ExecutionEnd::Exit { .. } | ExecutionEnd::Signal { .. } => Outcome::Failed { reason },
        });
    }
    let samples = match parse_samples(case, slot, definition, finished, executor) {
        Ok(samples) => samples,
        Err(error) => return Ok(Outcome::Failed { reason: error.to_string() }),
    };
    for sample in samples.into_iter().filter(|_| !slot.warmup) {
        executor.stream.send(RunEventKind::Sample(sample))?;
    }
    Ok(Outcome::Ok)
}

fn parse_samples(
    case: &Case,
    slot: &Slot,
    definition: &WorkloadDefinition,
    finished: &WorkloadExecution,
    executor: &SlotExecutor<'_>,
) -> Result<Vec<Sample>, perflab_workload::MetricParseError> {
    let values =
        definition.parse_metrics(&finished.stdout.text(), &finished.stderr.text(), finished.wall_time())?;
    let declared = executor.manifest.plan.metrics.get(&case.uses);
    let primary = |name: &str| {
        declared
            .and_then(|all| all.iter().find(|metric| metric.covers(name)))
            .is_some_and(|metric| metric.primary)
    };
    let sample = |measured: perflab_workload::MetricValue| Sample {
        boot: 0,
        target: None,
        case: slot.case,
        iteration: slot.iteration,
        primary: primary(&measured.metric.name),
        metric: measured.metric.name.into(),
        value: measured.value,
        unit: measured.metric.unit,
        direction: measured.metric.direction,
        start: finished.start,
        end: finished.end,
    };
    Ok(values.into_iter().map(sample).collect())
}
