//! Carries out slots on one machine: scratch directory, settings, one iteration, undo.
//!
//! One iteration is a fresh scratch folder, the workload's process, and its output made into samples.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use indexmap::IndexMap;
use perflab_disk::{delay_switch, scratch_disk};
use perflab_model::expression::ExpressionScope;
use perflab_model::io_trace::IO_TRACER;
use perflab_model::operation::OPERATION_TRACER;
use perflab_model::study::{BesideSpec, FactorKind};
use perflab_model::{
    Case, IterationEdge, Manifest, Metric, Nanos, Outcome, PlannedSetting, Refusal, RunEvent, RunEventKind,
    RunStatus, Sample, Scalar, SeriesSchema, Setting, Slot, StopRequest, SyscallDelay, describe_error_chain,
};
use perflab_observe::{
    CpuTopology, EdgeReader, KernelLog, NewKernelRecords, RealtimeGuard, SamplerOverhead, UncountedEvent,
};
use perflab_settings::{
    AppliedSettings, OverwritingCause, OverwrittenSetting, SettingChange, SettingError, StudyDisk, UndoEntry,
    UndoJournal, UndoneSettings, end_delays, locate_setting, remove_tree,
};
use perflab_workload::definition::UntimedPhases;
use perflab_workload::execution::{CapturedOutput, WatcherAbsence};
use perflab_workload::{
    BackgroundEnd, BesideLoop, BesideRecord, DataSetError, DataSetState, ExecutionEnd, FixedAddresses,
    HostPaths, Invocation, KnownDataSets, RunningServer, SeriesPoint, SeriesRule, UntimedPhase,
    WorkloadDefinition, WorkloadError, WorkloadExecution, execute_invocation, find_free_port,
};

use crate::error::ConductError;
use crate::execution_place::ExecutionPlace;
use crate::execution_records::ExecutionRecord;
use crate::iteration_trace::{self, IterationProfiler};
use crate::kept_files::{KeptFiles, KeptSnapshot, OverwrittenFiles};
use crate::run_context::{EventSender, LocalMachine};
use crate::run_hooks::RunHooks;
use crate::target_role::TargetRole;
use crate::{plan, preflight};

/// What was done for an iteration before it starts, and is not timed.
#[derive(Debug, Default)]
pub(crate) struct ReadyIteration {
    /// what its commands share, where something was done already
    host: Option<HostPaths>,
    /// what the workload needs while it runs
    server: Option<RunningServer>,
    /// why it is not to start
    failure: Option<String>,
}

impl ReadyIteration {
    /// One that is not to start after all.
    pub(crate) fn failed(host: HostPaths, server: Option<RunningServer>, reason: String) -> Self {
        ReadyIteration { host: Some(host), server, failure: Some(reason) }
    }
}

/// What is lacking for one reason is told at once: names, and the reason.
fn group_by_reason(lacking: Vec<UncountedEvent>) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for UncountedEvent { name, reason } in lacking {
        match found.iter_mut().find(|(_, known)| *known == reason) {
            Some((names, _)) => *names += &format!(", `{name}`"),
            None => found.push((format!("`{name}`"), reason)),
        }
    }
    found
}

/// Why a setting is not what it was set to, for people, and what to do.
fn describe_cause(setting: &str, cause: &OverwritingCause) -> (String, &'static str) {
    match cause {
        OverwritingCause::Run(run) => (
            format!("run {run} of another perflab changed {setting}"),
            "it is set again before each iteration: let runs that set the same thing run one after the other",
        ),
        OverwritingCause::Gone => (
            format!("what {setting} was of is gone"),
            "iterations since then ran without it: keep it there while the study runs, and repeat the run",
        ),
        OverwritingCause::Somebody => (
            format!("somebody else changed {setting}"),
            "it is set again before each iteration; find who does it, such as a daemon that tunes: \
             `perflab show` counts the iterations",
        ),
    }
}

/// What undoing everything came to.
#[derive(Debug, Default)]
pub(crate) struct UndoneRun {
    /// Settings that are not back, with why.
    pub(crate) left: Vec<String>,
    /// Whether a workload's `cleanup` failed.
    pub(crate) cleanup_failed: bool,
    /// What the monitors cost that were read at the edges of iterations.
    pub(crate) edges: SamplerOverhead,
}

impl UndoneRun {
    /// How a run ended that ended so before: one whose things were not put away has failed.
    pub(crate) fn final_status(&self, before: RunStatus) -> RunStatus {
        match before {
            RunStatus::Finished if self.cleanup_failed => RunStatus::Failed,
            before => before,
        }
    }
}

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
    /// Monitors that are read at the edges of iterations, where workloads run here.
    edges: Option<EdgeReader>,
    settings: AppliedSettings,
    /// Levels that were reported as rounded by the kernel.
    reported_roundings: BTreeSet<String>,
    /// Settings of which it was reported that somebody else changes them.
    reported_overwriting: BTreeSet<String>,
    /// Whose processes that were left behind were reported.
    reported_left_behind: RefCell<BTreeSet<String>>,
    /// The slot that was prepared last.
    last_slot: Option<u32>,
    /// What was done for the slot that is next, where its workload has something to do before.
    ready: Option<ReadyIteration>,
    /// Cases of which an iteration was made ready, with why what comes before them failed if it did.
    begun_cases: BTreeMap<u32, Option<String>>,
    /// Cases that were set up, with why that failed if it did.
    set_up: BTreeMap<u32, Option<String>>,
    /// What set-ups made in the folder that all cases share.
    kept_files: KeptFiles,
    /// What was made once and is restored before iterations, as far as it was looked at.
    data_sets: KnownDataSets,
    /// The study's hooks, where this machine carries them out.
    hooks: Option<RunHooks<'a>>,
    /// The kernel's log, where it is kept and can be read.
    kernel_log: RefCell<Option<KernelLog>>,
    /// What failed of all that was to come after something.
    late_failures: Vec<String>,
    /// The machine's CPUs and nodes, where workloads are placed.
    topology: Option<CpuTopology>,
    /// Whether workloads start with their addresses not randomised: where layouts are varied and this process may ask for it.
    pub(crate) fixes_addresses: bool,
    /// Tables of printed series that were opened.
    opened_series: RefCell<BTreeSet<String>>,
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
        let applied = AppliedSettings::new(journal).with_root(host.root.clone()).with_stop_flag(stop.flag());
        let scope = plan::expression_scope(&manifest.study, &manifest.facts)
            .map_err(|problem| ConductError::Refused(vec![preflight::refusal_of_value(&problem.message)]))?;
        let is_kept = manifest.study.kernel_log;
        let kernel_log = is_kept.then(|| KernelLog::open_at_end(&host.root)).transpose();
        let kernel_log = kernel_log.or_else(|error| {
            // Whoever compares must know that what is missing may have been printed.
            let text = format!("{}: {error}]\n", RunEventKind::KERNEL_LOG_UNREAD);
            stream.send(RunEventKind::Output { slot: None, name: RunEventKind::KERNEL_LOG.into(), text })?;
            Ok::<_, ConductError>(None)
        })?;
        Ok(SlotExecutor {
            host,
            manifest,
            stream,
            stop,
            scope,
            scratch: None,
            role,
            profiler: None,
            edges: None,
            settings: applied,
            reported_roundings: BTreeSet::new(),
            reported_overwriting: BTreeSet::new(),
            reported_left_behind: RefCell::default(),
            last_slot: None,
            ready: None,
            begun_cases: BTreeMap::new(),
            set_up: BTreeMap::new(),
            kept_files: KeptFiles::default(),
            data_sets: KnownDataSets::default(),
            hooks: None,
            kernel_log: RefCell::new(kernel_log),
            late_failures: Vec::new(),
            topology: None,
            fixes_addresses: false,
            opened_series: RefCell::default(),
            _executions: ExecutionRecord::write(&host.state, &manifest.boot_id).ok(),
        })
    }

    /// Lets templates use these names too.
    pub(crate) fn with_names(mut self, names: BTreeMap<String, Scalar>) -> Self {
        names.into_iter().for_each(|(name, value)| self.scope.set(&name, value));
        self
    }

    /// Carries out the study's hooks from now on: the first of them at once.
    pub(crate) fn with_hooks(mut self) -> Result<Self, ConductError> {
        let manifest = self.manifest;
        if manifest.study.hooks.is_empty() {
            return Ok(self);
        }
        let hooks = RunHooks::new(&manifest.study.hooks, self.scope.clone(), &manifest.id);
        match hooks.begin_run(self.settings.journal(), &self.stop.flag()) {
            Ok(()) => Ok(SlotExecutor { hooks: Some(hooks), ..self }),
            Err(error) => {
                self.settings.undo_all();
                Err(error)
            }
        }
    }

    /// Opens the study's counters; this is the thread that starts the workloads, where these are this machine's.
    pub(crate) fn open_counters(&self) -> Result<(), ConductError> {
        self.open_events()?;
        let Some(spec) = &self.manifest.study.counters else { return Ok(()) };
        let lacking = self.host.counters.open(spec, &self.host.root, self.role.runs_workloads());
        for (names, reason) in group_by_reason(lacking) {
            let verb = if names.contains(',') { "are" } else { "is" };
            self.stream.send_warning(
                format!("{names} {verb} not counted: {reason}"),
                "`perflab monitor show counters` says what this machine counts",
            )?;
        }
        Ok(())
    }

    /// Attaches to the tracepoints of the study's events.
    fn open_events(&self) -> Result<(), ConductError> {
        let found =
            self.host.events.open(&self.manifest.study.events, &self.host.root, self.role.runs_workloads());
        let hint = "`perflab event list` says what this machine counts";
        for (names, reason) in group_by_reason(found.uncounted) {
            self.stream.send_warning(format!("events {names} are not counted: {reason}"), hint)?;
        }
        for (names, reason) in group_by_reason(found.counted_otherwise) {
            self.stream.send_warning(format!("events {names} are counted by perf events: {reason}"), hint)?;
        }
        for name in found.cut_keys {
            self.stream.send_warning(
                format!("events `{name}` have two keys: of a text, the first 8 letters are told apart"),
                "one key alone has room for 16",
            )?;
        }
        Ok(())
    }

    /// Leaves the tracepoints alone, and says what was lost, or not told apart.
    fn close_events(&self) -> Result<(), ConductError> {
        let (lost, merged) = (self.host.events.describe_losses(), self.host.events.describe_merged_keys());
        self.host.events.close();
        let hint =
            "those of an iteration stand in the column `NAME.lost`; the others were between iterations";
        lost.into_iter().try_for_each(|message| self.stream.send_warning(message, hint))?;
        let hint = "`keys` in the event's table makes room for more";
        merged.into_iter().try_for_each(|message| self.stream.send_warning(message, hint))
    }

    /// Makes the scratch directory that the workloads need. What was begun is undone where it fails.
    pub(crate) fn prepare_run(mut self) -> Result<Self, ConductError> {
        let profiler = IterationProfiler::for_study(self.manifest)?;
        self.fixes_addresses = self.may_fix_addresses()?;
        self.open_counters()?;
        if !self.manifest.plan.placements.is_empty() {
            self.topology = Some(CpuTopology::read(&self.host.root)?);
        }
        match self.make_scratch() {
            Ok(scratch) => {
                let timings = self.host.watched_monitors(self.manifest);
                let edges = EdgeReader::start(timings, &self.host.monitored(), self.stream.sink());
                Ok(SlotExecutor { scratch, profiler, edges, ..self })
            }
            Err(error) => {
                self.settings.undo_all();
                Err(error)
            }
        }
    }

    /// What was done for the slot that is next.
    pub(crate) fn take_ready(&mut self) -> Option<ReadyIteration> {
        self.ready.take()
    }

    fn make_scratch(&mut self) -> Result<Option<PathBuf>, ConductError> {
        let manifest = self.manifest;
        self.warn_emulated()?;
        if manifest.plan.has_varying_disk() {
            return Ok(None); // each iteration makes its own
        }
        let journal = self.settings.journal();
        let make = |disk| scratch_disk::prepare_scratch_disk(disk, &manifest.id, &self.host.perflab, journal);
        let scratch = manifest.plan.disks.first().map(make).transpose()?;
        self.settings.set_study_disk(scratch.as_deref().and_then(StudyDisk::of_folder));
        Ok(scratch)
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

    /// Brings the settings to the case's levels, carries out what its workload does before an iteration, and drops caches
    /// where it asks for that.
    pub(crate) fn prepare_slot(&mut self, index: u32, slot: &Slot, case: &Case) -> Result<(), ConductError> {
        // Under the settings of the iteration that it comes after.
        self.end_iteration();
        // Where workloads run on other machines, their iterations end unseen here.
        let ended = self.last_slot.filter(|_| !self.role.runs_workloads());
        self.report_overwritten(ended, None)?;
        self.last_slot = Some(index);
        self.host.monitors.set(self.is_watched(case));
        for what in self.apply_settings(case)? {
            self.stream.send(what)?;
        }
        // Where there are targets, workloads are theirs, and what they do before.
        let is_ours = self.role.runs_workloads();
        self.ready = match self.begin_iteration(slot, case) {
            Ok(()) if is_ours && !self.manifest.plan.has_varying_disk() => {
                Some(self.make_ready(index, slot, case)?)
            }
            Ok(()) => None,
            Err(error) if is_ours && !error.is_stop() => {
                let failure = Some(describe_error_chain(&error));
                Some(ReadyIteration { failure, ..ReadyIteration::default() })
            }
            Err(error) => return Err(error),
        };
        for planned in self.manifest.plan.case_settings(case, self.role.side()) {
            match &planned.setting {
                Setting::DropCaches(which) => perflab_settings::drop_caches(&self.host.root, *which)?,
                Setting::Preset(level) if level.trigger => {
                    let done = perflab_settings::run_trigger(level, &self.host.root);
                    done.map_err(|error| level_error(planned, error))?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Reports settings that are not what they were set to: at the end of a slot's iteration, or before one.
    fn report_overwritten(&mut self, slot: Option<u32>, case: Option<&Case>) -> Result<(), ConductError> {
        for found in self.settings.find_overwritten() {
            let OverwrittenSetting { setting, path, set, found, cause } = found;
            let file = path.display().to_string();
            if self.reported_overwriting.insert(setting.clone()) {
                let during =
                    case.map_or(String::new(), |case| format!(", in an iteration of {}", case.label()));
                let (who, advice) = describe_cause(&setting, &cause);
                let message = format!("{who}{during}: {file} held `{set}` and holds `{found}`");
                self.stream.send_warning(message, advice)?;
            }
            let by = match cause {
                OverwritingCause::Run(run) => Some(run),
                OverwritingCause::Somebody | OverwritingCause::Gone => None,
            };
            self.stream.send(RunEventKind::SettingOverwritten { slot, setting, file, set, found, by })?;
        }
        Ok(())
    }

    /// Reports the processes that an iteration of a case, or what comes before or after one, left behind, once for each: they were ended.
    fn report_left_behind(&self, whose: &str, case: &Case, count: usize) -> Result<(), ConductError> {
        let whose = format!("{whose} of {}", case.label());
        if count == 0 || !self.reported_left_behind.borrow_mut().insert(whose.clone()) {
            return Ok(());
        }
        let what = match count {
            1 => "a process that still ran: it was ended".to_owned(),
            _ => format!("{count} processes that still ran: they were ended"),
        };
        self.stream.send_warning(
            format!("{whose} left {what}"),
            "let the command wait for what it starts (`wait` in a shell); a program that is to run meanwhile is a `server`, or `beside`",
        )
    }

    /// Carries out what comes before an iteration, and before its case where it is the first, and promises what comes after.
    pub(crate) fn begin_iteration(&mut self, slot: &Slot, case: &Case) -> Result<(), ConductError> {
        self.report_kernel_log(None)?;
        if !self.begun_cases.contains_key(&slot.case) {
            let failure = self.begin_case(slot.case, case).err().map(|error| describe_error_chain(&error));
            self.begun_cases.insert(slot.case, failure);
        }
        if let Some(reason) = self.begun_cases.get(&slot.case).cloned().flatten() {
            return Err(ConductError::Early { reason });
        }
        let Some(hooks) = &mut self.hooks else { return Ok(()) };
        hooks.begin_iteration(self.settings.journal(), (slot, case), &self.stop.flag())
    }

    fn begin_case(&mut self, number: u32, case: &Case) -> Result<(), ConductError> {
        if self.role.runs_workloads() {
            self.promise_cleanup(number, case)?;
        }
        let Some(hooks) = &self.hooks else { return Ok(()) };
        hooks.begin_case(self.settings.journal(), case, &self.stop.flag())
    }

    /// Reports what the kernel printed since the last look: during this iteration, or outside of any.
    fn report_kernel_log(&self, iteration: Option<(u32, &Case)>) -> Result<(), ConductError> {
        let read = self.kernel_log.borrow_mut().as_mut().map(KernelLog::read_new);
        let Some((text, read)) = read.and_then(|read| Some((read.stored_text()?, read))) else {
            return Ok(());
        };
        let NewKernelRecords { records, .. } = read;
        let slot = iteration.map(|(index, _)| index);
        self.stream.send(RunEventKind::Output { slot, name: RunEventKind::KERNEL_LOG.into(), text })?;
        let mut told = BTreeSet::new();
        let during =
            iteration.map_or(String::new(), |(_, case)| format!(", during an iteration of {}", case.label()));
        for record in &records {
            let Some(trouble) = record.trouble().filter(|trouble| told.insert(*trouble)) else { continue };
            let text = perflab_model::remove_control_characters(&record.text);
            self.stream.send_warning(
                format!("the kernel's log tells of {trouble}{during}: {text}"),
                "what was measured then may not be what you meant to measure; `perflab show --kernel-log` has the lines",
            )?;
        }
        Ok(())
    }

    /// Carries out what comes after an iteration.
    fn end_iteration(&mut self) {
        let Some(hooks) = &mut self.hooks else { return };
        let ended = hooks.end_iteration(self.settings.journal());
        let failure = ended.err().map(|error| describe_error_chain(&error));
        // One that fails each time says so once.
        self.late_failures.extend(failure.filter(|failure| !self.late_failures.contains(failure)));
    }

    /// Notes what the workload of a case does at the end, however the run ends.
    fn promise_cleanup(&mut self, number: u32, case: &Case) -> Result<(), ConductError> {
        let phase = UntimedPhase::Cleanup;
        let Some(definition) = self.host.catalogue.get(&case.uses) else { return Ok(()) };
        if definition.phases.argv(phase).is_empty() {
            return Ok(());
        }
        let host = self.host_paths(None, None, Some(number))?;
        let mut invocation =
            definition.build_phase_invocation(phase, &case.parameters, &self.scope, &host)?;
        invocation.environment.extend(self.case_environment(case));
        // Who carries it out after a kill may be anywhere.
        invocation.directory = std::env::current_dir().ok();
        let name = format!("{}: `{}`", case.label(), phase.key());
        let limit = self.manifest.study.run.time_limit.0;
        self.settings.journal().promise(UndoEntry::CleanUp { name, invocation, limit })?;
        Ok(())
    }

    /// Brings the settings to the case's levels; gives the events to send.
    pub(crate) fn apply_settings(&mut self, case: &Case) -> Result<Vec<RunEventKind>, ConductError> {
        let is_later = self.manifest.plan.has_varying_disk();
        self.apply_chosen_settings(case, |setting| !(is_later && is_of_disk(setting)))
    }

    fn apply_chosen_settings(
        &mut self,
        case: &Case,
        is_chosen: impl Fn(&Setting) -> bool,
    ) -> Result<Vec<RunEventKind>, ConductError> {
        let mut events = self.write_settings(case, &is_chosen)?;
        // One may have changed what another had set: with an I/O scheduler comes a depth of the queue.
        if !self.settings.find_overwritten().is_empty() {
            events.extend(self.write_settings(case, &is_chosen)?);
        }
        Ok(events)
    }

    fn write_settings(
        &mut self,
        case: &Case,
        is_chosen: &impl Fn(&Setting) -> bool,
    ) -> Result<Vec<RunEventKind>, ConductError> {
        let mut events = Vec::new();
        let manifest = self.manifest;
        let wanted = manifest.plan.case_settings(case, self.role.side());
        for planned in wanted.filter(|planned| is_chosen(&planned.setting)) {
            let setting = locate_setting(&planned.setting, &self.host.root);
            let changes = self.settings.apply(std::slice::from_ref(&setting));
            for change in changes.map_err(|error| level_error(planned, error))? {
                events.extend(self.rounding_warning(planned, &change));
                let SettingChange { setting, from, to, asked } = change;
                events.push(RunEventKind::SettingApplied { setting, from, to, asked });
            }
        }
        Ok(events)
    }

    /// Reported once for each level: what is compared is not what the study says.
    fn rounding_warning(&mut self, planned: &PlannedSetting, change: &SettingChange) -> Option<RunEventKind> {
        let (asked, owner) = (change.asked.as_ref()?, planned.describe_owner());
        self.reported_roundings.insert(owner.clone()).then(|| RunEventKind::Warning {
            message: format!("{owner}: the kernel made `{}` of `{asked}` in {}", change.to, change.setting),
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
        let good = match self.ready.take() {
            None if self.manifest.plan.has_varying_disk() => {
                self.carry_out_on_fresh_disk(index, slot, case, begin)
            }
            ready => run_iteration(self, (index, slot, ready.unwrap_or_default()), case, begin),
        };
        self.end_iteration();
        good
    }

    fn carry_out_on_fresh_disk(
        &mut self,
        index: u32,
        slot: &Slot,
        case: &Case,
        begin: &dyn Fn() -> Option<RealtimeGuard>,
    ) -> Result<bool, ConductError> {
        let mark = self.settings.journal().next_number();
        self.scratch = self.make_fresh_disk(case)?;
        self.settings.set_study_disk(self.scratch.as_deref().and_then(StudyDisk::of_folder));
        let good = self
            .apply_chosen_settings(case, is_of_disk)
            .and_then(|events| events.into_iter().try_for_each(|event| self.stream.send(event)))
            .and_then(|()| self.make_ready(index, slot, case))
            .and_then(|ready| run_iteration(self, (index, slot, ready), case, begin));
        self.settings.undo_since(mark)?;
        self.settings.set_study_disk(None);
        good
    }

    /// Sets the case up if this is its first iteration, and carries out what its workload does before each.
    pub(crate) fn make_ready(
        &mut self,
        index: u32,
        slot: &Slot,
        case: &Case,
    ) -> Result<ReadyIteration, ConductError> {
        let Some(definition) = self.host.catalogue.get(&case.uses) else {
            return Ok(ReadyIteration::default());
        };
        let is_plain = definition.phases == UntimedPhases::default() && definition.server.is_none();
        if is_plain && definition.data.is_none() {
            return Ok(ReadyIteration::default());
        }
        let free_port = definition.server.as_ref().and_then(|_| find_free_port());
        let mut failure = match self.set_up.get(&slot.case) {
            Some(failure) => failure.clone(),
            None => {
                let host = self.host_paths(None, free_port, Some(slot.case))?;
                let failure = self.set_case_up((index, slot.case), definition, case, &host)?;
                self.set_up.insert(slot.case, failure.clone());
                failure
            }
        };
        let host = self.host_paths(self.make_iteration_folder(index)?, free_port, Some(slot.case))?;
        let mut server = None;
        if failure.is_none() {
            failure = self.restore_data(definition, case, &host)?;
        }
        if failure.is_none() {
            match self.start_server(definition, case, &host) {
                Ok(started) => server = started,
                Err(error) => failure = Some(describe_error_chain(&error)),
            }
        }
        if failure.is_none() {
            failure = self.run_phase(UntimedPhase::Prepare, definition, case, &host, &self.stop.flag());
        }
        Ok(ReadyIteration { host: Some(host), server, failure })
    }

    /// Carries out the set-up of a case before slot `index`; gives why it failed. One that writes over what another case's set-up made,
    /// although iterations of that one are still to come, is reported.
    fn set_case_up(
        &mut self,
        (index, number): (u32, u32),
        definition: &WorkloadDefinition,
        case: &Case,
        host: &HostPaths,
    ) -> Result<Option<String>, ConductError> {
        let phase = UntimedPhase::Setup;
        let is_watched = !definition.phases.argv(phase).is_empty() && self.manifest.plan.cases.len() > 1;
        let kept = host.kept.as_deref().filter(|_| is_watched);
        let before = kept.map(KeptSnapshot::take);
        let failure = self.run_phase(phase, definition, case, host, &self.stop.flag());
        let built = definition.build_phase_invocation(phase, &case.parameters, &self.scope, host);
        if let (Some(kept), Some(before), Ok(command)) = (kept, before, built) {
            let words = command.argv.join(" ");
            let is_named = |(name, _): &(&String, &String)| {
                words.contains(&format!("${name}")) || words.contains(&format!("${{{name}"))
            };
            let own: Vec<_> = case.environment.iter().filter(is_named).collect();
            let command = format!("{words} {:?} {own:?}", command.environment);
            let lost = self.kept_files.note_setup(number, command, &before, &KeptSnapshot::take(kept));
            self.report_overwritten_files(index, case, &lost)?;
        }
        Ok(failure)
    }

    fn report_overwritten_files(
        &self,
        index: u32,
        case: &Case,
        lost: &[OverwrittenFiles],
    ) -> Result<(), ConductError> {
        let plan = &self.manifest.plan;
        let is_to_come =
            |maker: u32| plan.slots.iter().skip(index as usize + 1).any(|later| later.case == maker);
        for OverwrittenFiles { maker, files } in lost.iter().filter(|lost| is_to_come(lost.maker)) {
            let (Some(maker), Some(file)) = (plan.case(*maker), files.first()) else { continue };
            let more = if files.len() > 1 { format!(" and {} more", files.len() - 1) } else { String::new() };
            self.stream.send_warning(
                format!(
                    "`setup` of {} wrote over what that of {} had made: {{{{ kept }}}}/{}{more}",
                    case.label(),
                    maker.label(),
                    file.display()
                ),
                "all cases share {{ kept }}, and these take turns: name the file after what differs between them",
            )?;
        }
        Ok(())
    }

    /// Makes the data of the case's workload, if it has any and they are not there, and restores them; gives why that failed.
    fn restore_data(
        &mut self,
        definition: &WorkloadDefinition,
        case: &Case,
        host: &HostPaths,
    ) -> Result<Option<String>, ConductError> {
        let built = definition.build_data_set(&case.parameters, &self.scope, host);
        let environment = self.case_environment(case);
        let (limit, stop) = (self.manifest.study.run.time_limit.0, self.stop.flag());
        let ready = built.map_err(DataSetError::from).and_then(|data| {
            let Some(data) = data else { return Ok(DataSetState::Kept) };
            let state = data.ensure(&environment, limit, &stop, &mut self.data_sets)?;
            host.scratch.as_deref().map_or(Ok(()), |scratch| data.restore_to(scratch))?;
            Ok(state)
        });
        match ready {
            Ok(DataSetState::Remade { changed }) => self.stream.send_warning(
                format!("{}: its data were made anew: {changed} was not as it was made", case.label()),
                "an iteration is to write to its copy in {{ scratch }} only",
            )?,
            Ok(DataSetState::Kept | DataSetState::Made) => {}
            Err(error) => return Ok(Some(describe_error_chain(&error))),
        }
        Ok(None)
    }

    /// Starts the server of the case's workload, if it has one, and waits until it is ready.
    fn start_server(
        &self,
        definition: &WorkloadDefinition,
        case: &Case,
        host: &HostPaths,
    ) -> Result<Option<RunningServer>, ConductError> {
        let server = definition.build_server_invocation(&case.parameters, &self.scope, host)?;
        let environment = self.case_environment(case);
        Ok(server.map(|server| server.start(&environment, &self.stop.flag())).transpose()?)
    }

    /// Ends a server; gives why the iteration does not count if it had ended by itself.
    fn end_server(&self, index: u32, server: Option<RunningServer>) -> Result<Option<String>, ConductError> {
        let Some(server) = server else { return Ok(None) };
        let BackgroundEnd { stdout, stderr, early_end } = server.stop();
        send_output(self, index, [("server stdout", &stdout), ("server stderr", &stderr)])?;
        Ok(early_end.map(|end| format!("the server {end}")))
    }

    /// Carries out an untimed command of the case's workload, if it has one; gives why it failed.
    fn run_phase(
        &self,
        phase: UntimedPhase,
        definition: &WorkloadDefinition,
        case: &Case,
        host: &HostPaths,
        stop: &AtomicBool,
    ) -> Option<String> {
        if definition.phases.argv(phase).is_empty() {
            return None;
        }
        let failed = |what: String| Some(format!("`{}` {what}", phase.key()));
        let built = definition.build_phase_invocation(phase, &case.parameters, &self.scope, host);
        let limit = self.manifest.study.run.time_limit.0;
        let finished = built.and_then(|invocation| {
            execute_invocation(&invocation, &self.case_environment(case), limit, stop)
        });
        match finished {
            Ok(finished) => {
                let whose = format!("`{}`", phase.key());
                // Where nobody listens any more, the run ends for that.
                let _ = self.report_left_behind(&whose, case, finished.left_behind);
                failed(finished.failure()?)
            }
            Err(error) => failed(describe_error_chain(&error)),
        }
    }

    /// Starts what runs beside the iterations of a case.
    fn start_besides(
        &self,
        case: &Case,
        host: &HostPaths,
    ) -> Result<Vec<(String, BesideLoop)>, ConductError> {
        let mut started: Vec<(String, BesideLoop)> = Vec::new();
        for name in self.manifest.plan.case_besides(case) {
            // Two factors may name it.
            if started.iter().any(|(known, _)| known == name) {
                continue;
            }
            let definition = self.host.catalogue.get_beside(name).ok_or_else(|| {
                let what = format!("`beside.{name}`: its command is not known here");
                let hint = "target and host are different versions of perflab: give them the same";
                ConductError::Refused(vec![Refusal { what, hint: hint.into() }])
            })?;
            let invocation = definition.build_invocation(&IndexMap::new(), &self.scope, host)?;
            let environment = self.case_environment(case);
            started.push((name.to_owned(), BesideLoop::start(invocation, environment)?));
        }
        Ok(started)
    }

    /// Ends what ran beside an iteration. Its rate explains the iteration; gives why that does not count if it was not there all
    /// the while.
    fn stop_besides(
        &self,
        besides: Vec<(String, BesideLoop)>,
        (slot, case): (&Slot, &Case),
        finished: Option<&WorkloadExecution>,
    ) -> Result<Option<String>, ConductError> {
        let mut failure = None;
        for (name, running) in besides {
            let Some(BesideRecord { completed, time, failure: why }) = running.stop() else { continue };
            failure = failure.or_else(|| Some(format!("`beside.{name}` {}", why?)));
            let Some(finished) = finished.filter(|_| !slot.warmup) else { continue };
            let Metric { name, unit, direction, primary: _ } = BesideSpec::rate_metric(&name);
            let primary = self.is_primary(case, &name);
            self.stream.send(RunEventKind::Sample(Sample {
                boot: 0,
                target: None,
                case: slot.case,
                iteration: slot.iteration,
                primary,
                metric: name.into(),
                value: completed as f64 / time.as_secs_f64().max(1e-9),
                unit,
                direction,
                start: finished.start,
                end: finished.end,
            }))?;
        }
        Ok(failure)
    }

    /// Whether monitors are read in the iterations of a case.
    fn is_watched(&self, case: &Case) -> bool {
        let factors = self.manifest.study.factor.iter();
        let mut levels =
            factors.filter(|(_, factor)| factor.kind == FactorKind::Monitors).filter_map(|(name, factor)| {
                let chosen = case.levels.get(name)?;
                factor.levels.iter().find(|level| level.name == *chosen)
            });
        levels.all(|level| level.value.to_string() != "off")
    }

    /// Reads the monitors that are read at the edges of iterations.
    fn read_edge(&self, index: u32, edge: IterationEdge) {
        self.edges.iter().filter(|_| self.host.monitors.is_on()).for_each(|edges| edges.read(index, edge));
    }

    /// Where the workload of a case runs, if its levels say so.
    fn find_place(&self, case: &Case) -> Result<Option<ExecutionPlace>, ConductError> {
        let planned = self.manifest.plan.case_placement(case).zip(self.topology.as_ref());
        let place = planned.map(|(planned, topology)| ExecutionPlace::find(&planned.placement, topology));
        Ok(place.transpose()?)
    }

    /// Whether a metric of a case decides.
    fn is_primary(&self, case: &Case, name: &str) -> bool {
        let declared = self.manifest.plan.metrics.get(&case.uses);
        let found = declared.and_then(|all| all.iter().find(|metric| metric.covers(name)));
        found.is_some_and(|metric| metric.primary)
    }

    /// The folder of an iteration, where there is a scratch directory.
    fn make_iteration_folder(&self, index: u32) -> Result<Option<PathBuf>, ConductError> {
        self.scratch.as_deref().map(|base| make_fresh_folder(base, index)).transpose()
    }

    /// What commands get of this machine.
    fn host_paths(
        &self,
        scratch: Option<PathBuf>,
        free_port: Option<u16>,
        case: Option<u32>,
    ) -> Result<HostPaths, ConductError> {
        let kept = self.scratch.as_deref().map(make_kept_folder).transpose()?;
        Ok(HostPaths { perflab: self.host.perflab.clone(), scratch, kept, case, free_port })
    }

    fn case_environment(&self, case: &Case) -> Vec<(String, String)> {
        let own = case.environment.iter().map(|(name, value)| (name.clone(), value.clone()));
        [state_variable(self)].into_iter().chain(own).collect()
    }

    /// The case's own disk, made for one iteration.
    fn make_fresh_disk(&mut self, case: &Case) -> Result<Option<PathBuf>, ConductError> {
        let (id, perflab) = (&self.manifest.id, &self.host.perflab);
        let journal = self.settings.journal();
        let make = |disk| scratch_disk::prepare_scratch_disk(disk, id, perflab, journal);
        Ok(self.manifest.plan.case_disk(case).map(make).transpose()?)
    }

    /// Undoes everything where there is no run to report it to. What fails stays in the journal for the next start.
    pub(crate) fn undo_quietly(mut self) {
        self.end_iteration();
        self.host.events.close();
        let _ = self.settings.undo_all();
    }

    /// Undoes everything; gives what is not back. Done even if the event consumer is gone, which is an error.
    pub(crate) fn undo_all(mut self) -> Result<UndoneRun, ConductError> {
        self.end_iteration();
        let edges = self.edges.take().map(EdgeReader::stop).unwrap_or_default();
        let lost = self.close_events();
        let ended = self.last_slot.filter(|_| !self.role.runs_workloads());
        let reported = self.report_overwritten(ended, None).and_then(|()| self.report_kernel_log(None));
        let UndoneSettings { undone, left, failed } = self.settings.undo_all();
        reported.and(lost)?;
        let is_cleanup = |error: &SettingError| matches!(error, SettingError::CleanUp { .. });
        let (late, failed): (Vec<_>, Vec<_>) = failed.into_iter().partition(is_cleanup);
        let mut failures = self.late_failures;
        failures.extend(late.iter().map(|error| describe_error_chain(error)));
        let cleanup_failed = !failures.is_empty();
        for setting in undone {
            self.stream.send(RunEventKind::SettingUndone { setting, to: "as before".into() })?;
        }
        for setting in left {
            self.stream.send_warning(
                format!("somebody else's setting was left: before the run it was {setting}"),
                "perflab puts back only what it has set itself; set it yourself if it is not what you want",
            )?;
        }
        for failure in failures {
            self.stream.send_warning(failure, "what the command was to put away may still be there")?;
        }
        let failed: Vec<String> = failed.iter().map(|error| describe_error_chain(error)).collect();
        for error in &failed {
            self.stream.send_warning(
                format!("a setting could not be undone: {error}"),
                "perflab tries again at its next start",
            )?;
        }
        Ok(UndoneRun { left: failed, cleanup_failed, edges })
    }
}

impl SlotExecutor<'_> {
    /// Rows of series that an execution printed, which began then.
    fn send_series(
        &self,
        definition: &WorkloadDefinition,
        series: Vec<(&SeriesRule, Vec<SeriesPoint>)>,
        start: Nanos,
    ) -> Result<(), ConductError> {
        for (rule, points) in series {
            let monitor = definition.series_table(rule);
            if self.opened_series.borrow_mut().insert(monitor.clone()) {
                self.stream.send(RunEventKind::SeriesOpened(SeriesSchema {
                    stored: perflab_model::series::StoredRows::Every,
                    monitor: monitor.clone(),
                    source: format!("{} of {}", rule.from, definition.name),
                    interval: rule.interval,
                    columns: rule.columns.clone(),
                }))?;
            }
            let mut points = points.into_iter().peekable();
            while let Some(SeriesPoint { after, row }) = points.next() {
                let mut rows = vec![row];
                while let Some(same) = points.next_if(|point| point.after == after) {
                    rows.push(same.row);
                }
                let rows = RunEventKind::Rows { monitor: monitor.clone(), rows, took: Nanos(0) };
                self.stream.forward(RunEvent::new(Nanos(start.0 + after.0), rows))?;
            }
        }
        Ok(())
    }
}

/// Whether a setting is of the study's own disk.
fn is_of_disk(setting: &Setting) -> bool {
    matches!(setting, Setting::Preset(level) if level.of_disk)
}

fn level_error(planned: &PlannedSetting, error: SettingError) -> ConductError {
    ConductError::Level { owner: planned.describe_owner(), source: Box::new(error) }
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

/// An execution, and what else decides whether it counts.
pub(crate) struct WatchedExecution {
    pub(crate) finished: WorkloadExecution,
    /// when perflab itself did not run for long, and why
    absence: Option<String>,
    /// why what comes after the iteration failed, where the iteration itself went well, or its server did
    pub(crate) concluded: Option<String>,
}

/// An iteration that is about to be carried out.
#[derive(Clone, Copy)]
pub(crate) struct OpenIteration<'a> {
    index: u32,
    slot: &'a Slot,
    case: &'a Case,
    definition: &'a WorkloadDefinition,
    /// when it was begun
    begun: Nanos,
}

/// What the process of an iteration is started with, and what is needed after its end.
pub(crate) struct StagedExecution {
    invocation: Invocation,
    environment: Vec<(String, String)>,
    place: Option<ExecutionPlace>,
    pub(crate) host: HostPaths,
    pub(crate) server: Option<RunningServer>,
}

impl StagedExecution {
    /// The same in another place.
    pub(crate) fn on(self, place: ExecutionPlace) -> Self {
        StagedExecution { place: Some(place), ..self }
    }
}

/// How the process of an iteration ran.
pub(crate) struct ProcessRun {
    finished: Result<WorkloadExecution, WorkloadError>,
    /// why it was not where it was to be
    unplaced: Option<std::io::Error>,
    absence: Option<String>,
}

/// Runs one slot; its process is started when `begin` returns. `false` where it failed: recorded with its output, and the run goes on.
pub(crate) fn run_iteration(
    executor: &mut SlotExecutor<'_>,
    (index, slot, ready): (u32, &Slot, ReadyIteration),
    case: &Case,
    begin: &dyn Fn() -> Option<RealtimeGuard>,
) -> Result<bool, ConductError> {
    let host = executor.host;
    let Some(definition) = host.catalogue.get(&case.uses) else { return Ok(false) };
    let open = OpenIteration::begin(executor, (index, slot, case), definition)?;
    let watched = match open.take_failure(executor, ready)? {
        Ok(ready) => run_workload(executor, open, ready, begin),
        Err(reason) => Err(ConductError::Early { reason }),
    };
    open.end(executor, watched)
}

impl<'a> OpenIteration<'a> {
    pub(crate) fn begin(
        executor: &SlotExecutor<'_>,
        (index, slot, case): (u32, &'a Slot, &'a Case),
        definition: &'a WorkloadDefinition,
    ) -> Result<Self, ConductError> {
        // What the kernel printed while things were made ready is not the iteration's.
        executor.report_kernel_log(None)?;
        executor.stream.send(RunEventKind::IterationBegan { slot: index })?;
        Ok(OpenIteration { index, slot, case, definition, begun: perflab_observe::monotonic_now() })
    }

    /// One of which nobody hears.
    pub(crate) fn unrecorded(
        index: u32,
        slot: &'a Slot,
        case: &'a Case,
        definition: &'a WorkloadDefinition,
    ) -> Self {
        OpenIteration { index, slot, case, definition, begun: perflab_observe::monotonic_now() }
    }

    /// What was done for it, or why that failed: then its server and folder are gone.
    pub(crate) fn take_failure(
        self,
        executor: &SlotExecutor<'_>,
        ready: ReadyIteration,
    ) -> Result<Result<ReadyIteration, String>, ConductError> {
        let Some(reason) = ready.failure else { return Ok(Ok(ready)) };
        executor.end_server(self.index, ready.server)?;
        if let Some(folder) = ready.host.and_then(|host| host.scratch) {
            let _ = remove_tree(&folder);
        }
        Ok(Err(reason))
    }

    /// Reports how it went; `false` where it failed.
    pub(crate) fn end(
        self,
        executor: &mut SlotExecutor<'_>,
        watched: Result<WatchedExecution, ConductError>,
    ) -> Result<bool, ConductError> {
        let OpenIteration { index, slot, case, definition, begun } = self;
        let (outcome, start, end) = match watched {
            Ok(WatchedExecution { finished, absence, concluded }) => {
                send_output(executor, index, [("stdout", &finished.stdout), ("stderr", &finished.stderr)])?;
                if definition.traced {
                    let file = executor.tracer_path(index, OPERATION_TRACER)?;
                    iteration_trace::report_program_trace(file, (index, slot.warmup), &executor.stream)?;
                }
                executor.report_left_behind("an iteration", case, finished.left_behind)?;
                let outcome = match (absence, concluded) {
                    (_, Some(reason)) => Outcome::Failed { reason },
                    (Some(reason), _) if is_end_uncertain(&finished) => Outcome::Failed { reason },
                    (absence, _) => {
                        absence
                            .into_iter()
                            .try_for_each(|reason| warn_of_absence(executor, case, &reason))?;
                        determine_outcome(executor, slot, case, definition, &finished)?
                    }
                };
                (outcome, finished.start, finished.end)
            }
            Err(ConductError::Early { reason }) => (Outcome::Failed { reason }, begun, begun),
            Err(error) => (failed_outcome(&error), begun, perflab_observe::monotonic_now()),
        };
        let good = outcome == Outcome::Ok;
        // An iteration has nothing to say once it has ended.
        executor.report_overwritten(Some(index), Some(case))?;
        executor.report_kernel_log(Some((index, case)))?;
        executor.stream.send(RunEventKind::IterationEnded { slot: index, outcome, start, end })?;
        Ok(good)
    }

    /// What its process is to be started with.
    pub(crate) fn stage(
        self,
        executor: &SlotExecutor<'_>,
        ready: ReadyIteration,
    ) -> Result<StagedExecution, ConductError> {
        let OpenIteration { index, slot, case, definition, .. } = self;
        let ReadyIteration { host, server, failure: _ } = ready;
        let host = match host {
            Some(host) => host,
            None => executor.host_paths(executor.make_iteration_folder(index)?, None, Some(slot.case))?,
        };
        let invocation = definition.build_invocation(&case.parameters, &executor.scope, &host)?;
        let invocation = if executor.host.runs_as_typed { invocation.as_typed() } else { invocation };
        let delays = executor.manifest.plan.case_delays(case).cloned().collect();
        let groups = executor.settings.workload_groups();
        let invocation = Invocation { groups, delays, ..invocation };
        let mut environment = executor.case_environment(case);
        environment
            .extend(executor.manifest.plan.slot_layout(slot).iter().flat_map(|layout| layout.environment()));
        if definition.traced {
            environment
                .push(iteration_trace::trace_variable(&executor.tracer_path(index, OPERATION_TRACER)?));
        }
        let place = executor.find_place(case)?;
        Ok(StagedExecution { invocation, environment, place, host, server })
    }

    /// Carries out what comes after its process, and puts away what it had.
    pub(crate) fn conclude(
        self,
        executor: &SlotExecutor<'_>,
        (host, server): (HostPaths, Option<RunningServer>),
        run: ProcessRun,
        beside_end: Option<String>,
    ) -> Result<WatchedExecution, ConductError> {
        let OpenIteration { index, case, definition, .. } = self;
        let ProcessRun { finished, unplaced, absence } = run;
        // After an iteration that was stopped, too; a stop that comes while it runs ends it.
        let running = if executor.stop.is_requested() { Arc::default() } else { executor.stop.flag() };
        let concluded = executor.run_phase(UntimedPhase::Conclude, definition, case, &host, &running);
        let server_end = executor.end_server(index, server)?;
        if let Some(folder) = host.scratch {
            // What stays goes with the whole scratch directory at the end.
            let _ = remove_tree(&folder);
        }
        let finished = finished?;
        if let Some(source) = unplaced {
            return Err(ConductError::Unplaced { source });
        }
        let concluded = concluded.filter(|_| finished.failure_beyond(&definition.allow_exit).is_none());
        // Who runs without its server fails for that, whatever it says itself.
        let is_interrupted = finished.outcome == ExecutionEnd::Interrupted;
        let concluded = server_end.or(beside_end).filter(|_| !is_interrupted).or(concluded);
        Ok(WatchedExecution { finished, absence, concluded })
    }
}

/// Runs the process of an iteration on this thread; it is started when `begin` returns.
pub(crate) fn run_process<G>(
    staged: &StagedExecution,
    fixes_addresses: bool,
    (limit, stop): (Nanos, &AtomicBool),
    begin: impl FnOnce() -> G,
    ended: impl FnOnce(Option<ExecutionEnd>),
) -> ProcessRun {
    let waited = perflab_observe::thread_wait_time();
    let unplaced = Cell::new(None);
    let moment = || {
        let fixed = fixes_addresses.then(FixedAddresses::request);
        let placed = staged.place.as_ref().map(ExecutionPlace::request).transpose();
        let placed = placed.map_err(|error| unplaced.set(Some(error)));
        (fixed, placed, begin())
    };
    let StagedExecution { invocation, environment, .. } = staged;
    let finished =
        perflab_workload::execute_invocation_at(invocation, environment, limit, stop, moment, ended);
    let absence = finished.as_ref().ok().and_then(|finished| describe_absence(finished, waited));
    ProcessRun { finished, unplaced: unplaced.take(), absence }
}

fn run_workload(
    executor: &SlotExecutor<'_>,
    open: OpenIteration<'_>,
    ready: ReadyIteration,
    begin: &dyn Fn() -> Option<RealtimeGuard>,
) -> Result<WatchedExecution, ConductError> {
    let OpenIteration { index, slot, case, .. } = open;
    let staged = open.stage(executor, ready)?;
    let limit = executor.manifest.study.run.time_limit.0;
    let sampling = executor.profiler.as_ref().map(|profiler| profiler.start(executor.host)).transpose()?;
    let tracing = iteration_trace::start_io_trace(executor.manifest)?;
    let stop = executor.stop.flag();
    let besides = executor.start_besides(case, &staged.host)?;
    let ended = |stopped| {
        if stopped == Some(ExecutionEnd::Interrupted) {
            end_disk_delays(executor, case);
        }
        executor.read_edge(index, IterationEdge::End);
    };
    let start = || {
        let urgent = begin();
        executor.read_edge(index, IterationEdge::Begin);
        urgent
    };
    let run = run_process(&staged, executor.fixes_addresses, (limit, &stop), start, ended);
    let beside_end = executor.stop_besides(besides, (slot, case), run.finished.as_ref().ok())?;
    if let Some((profiler, recorder)) = executor.profiler.as_ref().zip(sampling) {
        profiler.finish(recorder, index, &executor.stream)?;
    }
    if let Some(tracer) = tracing {
        let file = executor.tracer_path(index, IO_TRACER)?;
        iteration_trace::finish_io_trace(tracer, file, (index, slot.warmup), &executor.stream)?;
    }
    open.conclude(executor, (staged.host, staged.server), run, beside_end)
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
    outputs: [(&str, &CapturedOutput); 2],
) -> Result<(), ConductError> {
    for (name, output) in outputs {
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
    if let Some(reason) = &finished.delay_failure {
        return Ok(Outcome::Failed { reason: reason.clone() });
    }
    if let Some(reason) = finished.failure_beyond(&definition.allow_exit) {
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
    if !definition.series.is_empty() {
        let (stdout, stderr) = (finished.stdout.text(), finished.stderr.text());
        match definition.read_series(&stdout, &stderr, finished.wall_time()) {
            Ok(series) => executor.send_series(definition, series, finished.start)?,
            Err(error) => return Ok(Outcome::Failed { reason: error.to_string() }),
        }
    }
    for sample in samples.into_iter().filter(|_| !slot.warmup) {
        executor.stream.send(RunEventKind::Sample(sample))?;
    }
    Ok(Outcome::Ok)
}

pub(crate) fn parse_samples(
    case: &Case,
    slot: &Slot,
    definition: &WorkloadDefinition,
    finished: &WorkloadExecution,
    executor: &SlotExecutor<'_>,
) -> Result<Vec<Sample>, perflab_workload::MetricParseError> {
    let values =
        definition.parse_metrics(&finished.stdout.text(), &finished.stderr.text(), finished.wall_time())?;
    let sample = |measured: perflab_workload::MetricValue| Sample {
        boot: 0,
        target: None,
        case: slot.case,
        iteration: slot.iteration,
        primary: executor.is_primary(case, &measured.metric.name),
        metric: measured.metric.name.into(),
        value: measured.value,
        unit: measured.metric.unit,
        direction: measured.metric.direction,
        start: finished.start,
        end: finished.end,
    };
    let used = definition.resource_metrics().filter_map(|one| {
        let value = (one.value)(&finished.resources)?;
        Some(perflab_workload::MetricValue { metric: one.declare(), value })
    });
    let delays = finished.delays.iter().flat_map(|record| {
        let count = (SyscallDelay::count_metric(&record.call), record.count as f64);
        let added = (SyscallDelay::added_metric(&record.call), record.added.seconds());
        [count, added].map(|(metric, value)| perflab_workload::MetricValue { metric, value })
    });
    Ok(values.into_iter().chain(used).chain(delays).map(sample).collect())
}
