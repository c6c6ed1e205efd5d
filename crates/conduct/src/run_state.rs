//! What a run has reported and counted so far: phases, progress, limits, stopping rule, overhead.

use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::PathBuf;

use indexmap::IndexMap;
use perflab_guest::NetworkSwitch;
use perflab_model::event::{RunPhase, TargetStatus};
use perflab_model::study::{
    CounterGroups, CountersSpec, EVENTS_MONITOR, EventOwner, StoppingRule, TargetKey,
};
use perflab_model::{
    EndReason, IterationEdge, Manifest, Nanos, Overhead, PlannedParticipation, PlannedTargetVariant,
    RunEvent, RunEventKind, RunStatus, Scalar, Slot, StopRequest, TargetRecord, TargetVariantRecord,
};
use perflab_observe::{EdgeReader, Sampler, monotonic_now};

use crate::agent_worker::WorkerOrder;
use crate::error::ConductError;
use crate::host_target::HostTarget;
use crate::launcher::launch::LaunchableTarget;
use crate::overhead_meter::{OverheadMeter, add_overhead, start_monitors};
use crate::protocol::AgentRunConfig;
use crate::run_context::{EventSender, LocalMachine};
use crate::stack_merge::StackMerger;
use crate::target_role::TargetRole;

/// How many options that were not meant to differ a warning names.
const SHOWN_OPTIONS: usize = 8;

/// How the slots went.
#[derive(Debug, Default)]
pub(crate) struct RunTally {
    pub(crate) failed: u32,
    pub(crate) lost: u32,
    /// Whether the run's time was over before its slots were.
    pub(crate) stopped: bool,
    /// When the first slot that counts was entered.
    measures_since: Option<Nanos>,
}

/// What there is from the run's beginning on.
pub(crate) struct BegunRun {
    pub(crate) meter: OverheadMeter,
    pub(crate) sampler: Sampler,
    /// This host's monitors at the edges of its targets' iterations; where it runs the iterations itself, its worker reads them.
    pub(crate) edges: Option<EdgeReader>,
    progress: SlotProgress,
    phase: Option<RunPhase>,
}

/// The run.
pub(crate) struct RunState<'a> {
    pub(crate) host: HostTarget<'a>,
    /// What this host does in the run.
    pub(crate) role: TargetRole,
    pub(crate) machine: &'a LocalMachine,
    /// The targets, by variants of the plan, under each layout of their kernels in turn; launched anew in every round.
    pub(crate) targets: Vec<Vec<LaunchableTarget>>,
    pub(crate) manifest: &'a Manifest,
    pub(crate) stream: EventSender,
    pub(crate) stop: &'a StopRequest,
    /// Nothing that is reported happened before.
    pub(crate) earliest: Nanos,
    /// What was reported before the run began.
    pub(crate) early_events: Vec<RunEvent>,
    pub(crate) begun: Option<BegunRun>,
    pub(crate) tally: RunTally,
    /// Why this host cannot go on, if it cannot.
    pub(crate) failure: Option<ConductError>,
    pub(crate) cost: Overhead,
    /// The targets under each combination of levels that they were started with so far.
    pub(crate) variants: Vec<TargetVariantRecord>,
    pub(crate) stack_merger: StackMerger,
    /// Hashes of the documents that targets sent: a target that boots once more sends the same again.
    pub(crate) known_documents: HashSet<u64>,
    /// What guests reach each other by, as long as the run goes on; none where they do not.
    pub(crate) network_switch: Option<NetworkSwitch>,
}

impl<'a> RunState<'a> {
    pub(crate) fn has_begun(&self) -> bool {
        self.begun.is_some()
    }

    /// Says `Began`, with the targets as they are, and what was reported before.
    pub(crate) fn begin(&mut self, targets: Vec<TargetRecord>) -> Result<(), ConductError> {
        let meter = OverheadMeter::start();
        self.stream.send(RunEventKind::Began(Box::new(Manifest { targets, ..self.manifest.clone() })))?;
        let families = self.manifest.study.facts.as_deref();
        for document in perflab_observe::collect_fact_documents(&self.machine.root, families)? {
            self.stream.send(RunEventKind::Document(document))?;
        }
        for event in std::mem::take(&mut self.early_events) {
            self.stream.forward(event)?;
        }
        let sampler = start_monitors(self.manifest, self.machine, self.stream.sink());
        self.wait_quiet_time();
        let progress = SlotProgress::new(self.manifest.plan.slots.len() as u32);
        let timings = self.machine.watched_monitors(self.manifest);
        let watches = self.role != TargetRole::Everything;
        let edges =
            watches.then(|| EdgeReader::start(timings, &self.machine.monitored(), self.stream.sink()));
        let edges = edges.flatten();
        self.begun = Some(BegunRun { meter, sampler, edges, progress, phase: None });
        self.report_phase(RunPhase::Apply)
    }

    /// The targets of the round that holds a slot.
    pub(crate) fn targets_of_slot(&self, slot: Option<&Slot>) -> &[LaunchableTarget] {
        let plan = &self.manifest.plan;
        let case = slot.and_then(|slot| plan.case(slot.case));
        let variant = case.and_then(|case| plan.case_target_variant(case)).unwrap_or_default();
        let layout = slot.map_or(0, |slot| plan.slot_kernel_layout(slot, &self.manifest.study.run));
        let variants = plan.target_variants.len().max(1);
        self.targets.get(layout as usize * variants + variant).map_or(&[], Vec::as_slice)
    }

    /// The levels of the targets' keys in a slot, where the targets were not started with them before.
    pub(crate) fn new_variant(&self, slot: &Slot) -> Option<&'a PlannedTargetVariant> {
        let plan = &self.manifest.plan;
        let planned = plan.target_variants.get(plan.case_target_variant(plan.case(slot.case)?)?)?;
        self.variants.iter().all(|known| known.levels != planned.levels).then_some(planned)
    }

    /// Reports the targets as they were started with levels for the first time; warns where these make no other kernel.
    pub(crate) fn report_variant(
        &mut self,
        planned: &PlannedTargetVariant,
        targets: Vec<TargetRecord>,
    ) -> Result<(), ConductError> {
        let variant = TargetVariantRecord { levels: planned.levels.clone(), targets };
        for known in &self.variants {
            let differing: Vec<&String> = known
                .levels
                .iter()
                .filter(|(factor, level)| variant.levels.get(*factor) != Some(level))
                .map(|(factor, _)| factor)
                .collect();
            let [factor] = differing.as_slice() else { continue };
            let is_about_kernel = self.manifest.study.factor.get(*factor).is_some_and(|factor| {
                let key = factor.key.as_deref().map(|key| TargetKey::new(key).key);
                key.is_some_and(|key| ["kernel", "append"].contains(&key))
            });
            let level = |of: &TargetVariantRecord| of.levels.get(*factor).cloned().unwrap_or_default();
            if is_about_kernel
                && let Some((said, hint)) = self.describe_other_options(&known.levels, &variant.levels)
            {
                let message =
                    format!("factor `{factor}`: `{}` and `{}` {said}", level(known), level(&variant));
                self.stream.send_warning(message, hint)?;
            }
            if is_about_kernel && known.kernels() == variant.kernels() {
                let message = format!(
                    "factor `{factor}`: `{}` and `{}` run the same kernel, as far as release, build, configuration and command line tell",
                    level(known),
                    level(&variant)
                );
                self.stream.send_warning(message, "look at the kernels that the two levels name")?;
            }
        }
        self.variants.push(variant.clone());
        self.report_host(RunEventKind::VariantBegan(Box::new(variant)))
    }

    /// In which options the kernels of two variants differ beside those that their recipes name, which was not meant; and where to look.
    fn describe_other_options(
        &self,
        a: &IndexMap<String, String>,
        b: &IndexMap<String, String>,
    ) -> Option<(String, String)> {
        let variants = &self.manifest.plan.target_variants;
        let kernel = |levels: &IndexMap<String, String>| {
            let variant = variants.iter().position(|variant| variant.levels == *levels)?;
            self.targets.get(variant)?.iter().find_map(LaunchableTarget::kernel)
        };
        let kernels = [kernel(a)?, kernel(b)?];
        let meant: Vec<&str> = kernels
            .iter()
            .flat_map(|kernel| kernel.build.iter().flat_map(|build| &build.options))
            .filter_map(|option| option.split('=').next())
            .collect();
        let hint = format!("`perflab kernel diff {} {}` has all", kernels[0].name, kernels[1].name);
        let [a, b] = kernels.map(perflab_guest::read_kernel_config_file);
        let differing: Vec<String> = perflab_guest::compare_configs(&a?, &b?)
            .into_iter()
            .filter(|(option, ..)| !meant.contains(&option.as_str()))
            .map(|(option, a, b)| format!("{} ({a}, {b})", option.trim_start_matches("CONFIG_")))
            .collect();
        let more = differing.len().saturating_sub(SHOWN_OPTIONS);
        let shown = differing.iter().take(SHOWN_OPTIONS).cloned().collect::<Vec<_>>().join(", ");
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        let besides = match differing.len() {
            0 => return None,
            1 => "1 option".into(),
            many => format!("{many} options"),
        };
        Some((format!("differ in {besides} that no recipe names: {shown}{more}"), hint))
    }

    /// How many targets take part in a slot, if a factor says so.
    pub(crate) fn participation(&self, slot: &Slot) -> Option<&PlannedParticipation> {
        let plan = &self.manifest.plan;
        plan.case_participation(plan.case(slot.case)?)
    }

    /// Which of `count` targets take part in a slot.
    pub(crate) fn participants(&self, slot: &Slot, count: usize) -> Vec<usize> {
        let number = self.participation(slot).map_or(count, |one| one.targets as usize);
        (0..number.min(count)).collect()
    }

    /// What an agent has to know. Its id is its own, as its scratch directory is; one that shares our kernel need not
    /// watch what we watch.
    pub(crate) fn agent_run_config(&self, name: &str, kind: &str, slot: Option<&Slot>) -> AgentRunConfig {
        let mut manifest = self.manifest.clone();
        manifest.id = format!("{}-{name}", manifest.id);
        manifest.study_text = String::new();
        manifest.plan.slots = Vec::new();
        manifest.plan.targets = Vec::new();
        manifest.plan.target_variants = Vec::new();
        if kind == "process" {
            let of_workload = [CountersSpec::WORKLOAD_MONITOR, EVENTS_MONITOR];
            manifest.study.monitors.retain(|name, _| of_workload.contains(&name.as_str()));
            manifest.study.events.retain(|_, event| event.resolve().of == Some(EventOwner::Workload));
            manifest.study.counters.iter_mut().for_each(|counters| counters.cpus = CounterGroups::default());
            manifest.study.kernel_log = false;
        }
        let catalogue = &self.machine.catalogue;
        let used = manifest.plan.metrics.keys().filter_map(|name| catalogue.source(name));
        let beside = manifest.plan.besides.iter().filter_map(|one| catalogue.beside_source(&one.name));
        let definitions =
            used.chain(beside).map(|source| (source.file.clone(), source.text.clone())).collect();
        let names = self.target_names(name, slot);
        AgentRunConfig { manifest, definitions, names }
    }

    /// What templates of a target may name of the targets: itself, the others, this host.
    fn target_names(&self, name: &str, slot: Option<&Slot>) -> BTreeMap<String, Scalar> {
        let targets = self.targets_of_slot(slot);
        let text = |text: &str| Scalar::Text(text.to_owned());
        let mut names = BTreeMap::from([("target.name".to_owned(), text(name))]);
        for target in targets {
            for (variable, value) in target.variables() {
                if target.name() == name {
                    names.insert(format!("target.variables.{variable}"), value.clone());
                }
                names.insert(format!("targets.{}.variables.{variable}", target.name()), value.clone());
            }
            let Some(address) = target.address() else { continue };
            if target.name() == name {
                names.insert("target.address".into(), text(&address));
            }
            for name in [target.name(), target.planned_name()] {
                names.insert(format!("targets.{name}.address"), text(&address));
            }
        }
        let host =
            targets.iter().find(|target| target.name() == name).and_then(LaunchableTarget::host_address);
        names.extend(host.map(|address| ("targets.host.address".to_owned(), text(&address))));
        names
    }

    /// Whether this workload writes a trace of its operations.
    pub(crate) fn is_traced(&self, uses: &str) -> bool {
        self.machine.catalogue.get(uses).is_some_and(|definition| definition.traced)
    }

    /// Where traces lie until the recorder takes them.
    pub(crate) fn traces_folder(&self) -> Result<PathBuf, ConductError> {
        Ok(self.machine.traces.path(&self.machine.state, &self.manifest.boot_id)?)
    }

    pub(crate) fn slot(&self, index: u32) -> Option<Slot> {
        self.manifest.plan.slots.get(index as usize).copied()
    }

    /// Whether the run's time is over.
    pub(crate) fn is_time_over(&mut self) -> Result<bool, ConductError> {
        let begun = self.begun.as_ref().map_or(Nanos(u64::MAX), |begun| begun.meter.started());
        self.tally.stopped = is_time_over(self.manifest, begun, &self.stream)?;
        Ok(self.tally.stopped)
    }

    /// Whether this slot need not be begun.
    pub(crate) fn is_goal_reached(&self, next: u32) -> Result<bool, ConductError> {
        let since = self.tally.measures_since.map(|begun| perflab_observe::monotonic_now().since(begun));
        is_goal_reached(self.manifest, (next, since), self.stop, &self.stream)
    }

    /// A slot is about to be made ready on this host, and carried out where this host is alone: its phase is reported where it is another.
    pub(crate) fn enter_slot(&mut self, index: u32, slot: Slot) -> Result<(), ConductError> {
        if !slot.warmup {
            self.tally.measures_since.get_or_insert_with(perflab_observe::monotonic_now);
        }
        let wanted = if slot.warmup { RunPhase::Warmup } else { RunPhase::Iterate };
        if self.begun.as_mut().is_some_and(|begun| begun.phase.replace(wanted) != Some(wanted)) {
            self.report_phase(wanted)?;
        }
        self.host.send(match self.role {
            TargetRole::Everything => WorkerOrder::Iterate { index, slot },
            _ => WorkerOrder::Prepare { index, slot },
        });
        Ok(())
    }

    /// Reads this host's monitors at an edge of the targets' iteration.
    pub(crate) fn read_edge(&self, index: u32, edge: IterationEdge) {
        let edges = self.begun.as_ref().and_then(|begun| begun.edges.as_ref());
        let edges = edges.filter(|_| self.machine.monitors.is_on());
        edges.into_iter().for_each(|edges| edges.read(index, edge));
    }

    /// A slot of the targets is over.
    pub(crate) fn close_slot(
        &mut self,
        events: Vec<RunEvent>,
        good: bool,
        names: &[String],
    ) -> Result<(), ConductError> {
        events.into_iter().try_for_each(|event| self.merge_stacks(event, names))?;
        self.count_slot(good)
    }

    /// A slot is over, and all of it reported.
    pub(crate) fn count_slot(&mut self, good: bool) -> Result<(), ConductError> {
        self.tally.failed += u32::from(!good);
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
                format!("the profile of {name} refers to stacks that it never reported, and is cut off");
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
        let (message, advice) =
            (format!("target {name} was lost: {reason}"), "see its output in the run's logs".into());
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

    /// A target is done.
    pub(crate) fn end_target(&mut self, status: RunStatus, cost: &Overhead) {
        self.tally.failed += u32::from(status == RunStatus::Failed);
        add_overhead(&mut self.cost, cost);
    }

    pub(crate) fn wait_quiet_time(&self) {
        wait_unless_stopped(self.manifest.study.run.quiet.0, self.stop);
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
        if let RunEventKind::Document(document) = &event.what {
            let mut hasher = DefaultHasher::new();
            (event.target, &document.name, &document.text).hash(&mut hasher);
            if !self.known_documents.insert(hasher.finish()) {
                return Ok(());
            }
        }
        if self.begun.is_none() {
            self.early_events.push(event);
            return Ok(());
        }
        self.stream.forward(event)
    }
}

/// Whether the run's total time limit is over; says so where it is.
fn is_time_over(manifest: &Manifest, begun: Nanos, stream: &EventSender) -> Result<bool, ConductError> {
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

/// Waits for that long, unless a stop is requested.
pub(crate) fn wait_unless_stopped(time: Nanos, stop: &StopRequest) {
    let begun = perflab_observe::monotonic_now();
    while perflab_observe::monotonic_now().since(begun) < time && !stop.is_requested() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// Whether slot `next` need not be begun: what the study measures until is reached, its time is over, or nothing but failures
/// would come. It has measured for `since`.
fn is_goal_reached(
    manifest: &Manifest,
    (next, since): (u32, Option<Nanos>),
    stop: &StopRequest,
    stream: &EventSender,
) -> Result<bool, ConductError> {
    if stop.end_reason() == Some(EndReason::AlwaysFails) {
        let message = format!("the first {next} iterations all failed, so the run ends");
        stream.send_warning(message, "see what the command printed, and fix it")?;
        return Ok(true);
    }
    let slot = |index: u32| manifest.plan.slots.get(index as usize);
    let (Some(slot), Some(before)) = (slot(next), next.checked_sub(1).and_then(slot)) else {
        return Ok(false);
    };
    if slot.block == before.block || slot.warmup {
        return Ok(false);
    }
    let within = manifest.study.run.until.and_then(|until| until.within);
    if stop.end_reason().is_none() && since.zip(within).is_some_and(|(since, within)| since >= within) {
        stop.request_end(EndReason::TimeOver);
    }
    let Some(reason) = stop.end_reason() else { return Ok(false) };
    let (done, most) = (slot.block, manifest.study.run.max_iterations());
    // A run whose time is over says what it did not reach; one that was decided is judged by intervals that hold at every look.
    let is_decided = manifest.study.run.until.is_some_and(StoppingRule::is_decided);
    if reason == EndReason::TimeOver || is_decided {
        return Ok(true);
    }
    let message =
        format!("the requested precision was reached: {done} of at most {most} blocks were measured");
    stream.send_warning(
        message,
        "intervals of a run that stops once they are narrow are slightly too narrow",
    )?;
    Ok(true)
}

/// Counts slots done and the time that they took.
#[derive(Debug)]
struct SlotProgress {
    begun: Nanos,
    done: u32,
    total: u32,
}

impl SlotProgress {
    fn new(total: u32) -> Self {
        SlotProgress { begun: perflab_observe::monotonic_now(), done: 0, total }
    }

    /// One more slot is done.
    fn count_slot(&mut self) {
        self.done += 1;
    }

    /// The event that says so.
    fn progress_event(&self) -> RunEventKind {
        RunEventKind::Progress { done: self.done, total: self.total, remaining: self.remaining_time() }
    }

    /// Blocks mix all cases, so the mean of the slots so far foretells the rest.
    fn remaining_time(&self) -> Option<Nanos> {
        let spent = perflab_observe::monotonic_now().since(self.begun);
        let left = u64::from(self.total - self.done.min(self.total));
        (self.done > 0).then(|| Nanos(spent.0 / u64::from(self.done) * left))
    }
}
