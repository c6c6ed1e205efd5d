//! The one way of carrying out a run: this host and the study's targets, from the checks to `Ended`.
//!
//! The stream: `Phase(Check)` (and `Phase(Install)`), then `Began` — a consumer opens its run there —, phases,
//! iterations and rows, and `Ended` as the last. Whatever goes wrong after `Began`, settings are undone and `Ended`
//! is sent, unless the event consumer is gone.
//!
//! A study without targets is carried out by this host alone, one with targets by agents that begin every iteration
//! at one instant, under the settings of this host. Either way the [`crate::barrier`] says who goes on.

use std::collections::{BTreeMap, HashSet};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use perflab_guest::{NetworkSwitch, switch_address};
use perflab_model::event::RunPhase;
use perflab_model::study::{LostTargetPolicy, TargetKind, TargetSpec};
use perflab_model::{Manifest, Overhead, RunEvent, RunEventKind, RunStatus, Slot, StopRequest};
use perflab_observe::{EdgeReader, monotonic_now};
use perflab_settings::UndoJournal;

use crate::boot_round::BootRound;
use crate::error::ConductError;
use crate::executor;
use crate::host_target::HostTarget;
use crate::launcher::held_hosts::{HeldHosts, HoldError};
use crate::launcher::host_lock::HostHolder;
use crate::launcher::launch::LaunchableTarget;
use crate::launcher::machine_reboot::MachineReboots;
use crate::launcher::node_allocation::{NodeAllocation, NodeRequest};
use crate::launcher::ssh::SshDestination;
use crate::overhead_meter::add_overhead;
use crate::preflight;
use crate::run_context::{EventSender, LocalMachine, RunContext, RunPermissions};
use crate::run_state::{BegunRun, RunState, RunTally, wait_unless_stopped};
use crate::stack_merge::StackMerger;
use crate::target_role::TargetRole;

/// Runs the manifest's plan, and sends what happens to `sink`.
///
/// # Errors
/// A refused environment is an error before `Began`: nothing was changed.
pub fn conduct_run(
    machine: &LocalMachine,
    manifest: &Manifest,
    permissions: &RunPermissions,
    sink: &Sender<RunEvent>,
    stop: &StopRequest,
) -> Result<RunStatus, ConductError> {
    let stream = EventSender::new(sink.clone());
    let role = TargetRole::of_host(&manifest.study);
    stream.send_phase(RunPhase::Check)?;
    if permissions.install && role.runs_workloads() {
        stream.send_phase(RunPhase::Install)?;
        preflight::install_missing(manifest, &machine.catalogue, &stream)?;
    }
    preflight::check_environment(manifest, machine, permissions, role)?;
    let mut targets = preflight::resolve_targets(manifest)?;
    stream.send_phase(RunPhase::Prepare)?;
    let network_switch = connect_guests(&mut targets)?;
    let hosts = hold_hosts(&mut targets, machine, manifest, permissions, stop, &stream)?;
    let reboots = share_reboots(&mut targets, machine, manifest);
    let allocation = allocate_nodes(&mut targets, machine, manifest, stop, &stream)?;
    let run = RunContext { machine, manifest, stop, stream };
    let ended = std::thread::scope(|scope| {
        let run_state = RunState {
            host: HostTarget::start(scope, run.clone(), role)?,
            role,
            machine,
            targets,
            manifest,
            stream: run.stream.clone(),
            stop,
            earliest: monotonic_now(),
            early_events: Vec::new(),
            begun: None,
            tally: RunTally::default(),
            failure: None,
            cost: Overhead::default(),
            variants: Vec::new(),
            stack_merger: StackMerger::default(),
            known_documents: HashSet::new(),
            network_switch,
        };
        run_state.run()
    });
    // All else is undone by now, and nobody speaks to the machines any more.
    let mut left = reboots.and_then(Arc::into_inner).map(MachineReboots::put_back).unwrap_or_default();
    left.extend(allocation.map(NodeAllocation::give_back).unwrap_or_default());
    drop(hosts);
    executor::with_undo_failures(ended, left)
}

/// Has every machine that is booted into its kernel booted by one who sees to it that it returns to its own.
fn share_reboots(
    targets: &mut [Vec<LaunchableTarget>],
    machine: &LocalMachine,
    manifest: &Manifest,
) -> Option<Arc<MachineReboots>> {
    let rebooted: Vec<&mut LaunchableTarget> =
        targets.iter_mut().flatten().filter(|target| target.is_rebooted()).collect();
    if rebooted.is_empty() {
        return None;
    }
    let journal = UndoJournal::new(&machine.state, &format!("{}-machines", manifest.id), &manifest.boot_id);
    let reboots = Arc::new(MachineReboots::new(journal, &machine.perflab));
    rebooted.into_iter().for_each(|target| target.reboot_by(Arc::clone(&reboots)));
    Some(reboots)
}

/// Reaches all hosts of an inventory that the run has at any time, and holds them; nobody else measures there meanwhile.
fn hold_hosts(
    targets: &mut [Vec<LaunchableTarget>],
    machine: &LocalMachine,
    manifest: &Manifest,
    permissions: &RunPermissions,
    stop: &StopRequest,
    stream: &EventSender,
) -> Result<Option<Arc<HeldHosts>>, ConductError> {
    let all = targets.iter().flatten().filter_map(LaunchableTarget::inventory_host);
    let hosts: BTreeMap<String, SshDestination> =
        all.map(|(name, destination)| (name.to_owned(), destination)).collect();
    if hosts.is_empty() {
        return Ok(None);
    }
    let holder = HostHolder::of_run(&manifest.id, &manifest.study.title);
    let (held, failed) = HeldHosts::reach(holder, &machine.perflab, hosts, stop);
    if stop.is_requested() {
        return Err(ConductError::StoppedEarly);
    }
    let is_there = |target: &LaunchableTarget| {
        target.inventory_host().is_none_or(|(name, _)| !failed.contains_key(name))
    };
    let goes_on = manifest.study.run.on_lost_target == LostTargetPolicy::Continue
        && targets.iter().all(|variant| variant.iter().any(is_there));
    if !failed.is_empty() && !goes_on {
        return Err(ConductError::Refused(failed.into_values().collect()));
    }
    // Who does not listen any more is noticed by the next event.
    let tell =
        |whom: String| drop(stream.send_warning(format!("waits for hosts: {whom}"), "^C ends the wait"));
    let taken = held.take_all(permissions.wait.map(Duration::from), stop, &tell);
    taken.map_err(|error| match error {
        HoldError::Stopped => ConductError::StoppedEarly,
        HoldError::Refused(refused) => ConductError::Refused(refused),
    })?;
    let held = Arc::new(held);
    let of_inventory = targets.iter_mut().flatten().filter(|target| target.inventory_host().is_some());
    of_inventory.for_each(|target| target.hold_by(Arc::clone(&held)));
    Ok(Some(held))
}

/// Has Slurm give the run its nodes, where the study names some: each becomes a target, in every variant the same.
fn allocate_nodes(
    targets: &mut [Vec<LaunchableTarget>],
    machine: &LocalMachine,
    manifest: &Manifest,
    stop: &StopRequest,
    stream: &EventSender,
) -> Result<Option<NodeAllocation>, ConductError> {
    let variant = targets.first().map_or(&[][..], Vec::as_slice);
    let Some(spec) = variant.iter().find_map(LaunchableTarget::node_spec) else { return Ok(None) };
    let is_slurm = |(_, target): &(&String, &TargetSpec)| target.kind == TargetKind::Slurm;
    let target = manifest.study.target.iter().find(is_slurm).map_or("", |(name, _)| name);
    let request = NodeRequest {
        target,
        spec,
        count: variant.iter().filter_map(LaunchableTarget::node_spec).count(),
        run: &manifest.id,
        journal: UndoJournal::new(&machine.state, &format!("{}-nodes", manifest.id), &manifest.boot_id),
    };
    // Who does not listen any more is noticed by the next event.
    let tell = |message, advice| drop(stream.send_warning(message, advice));
    let obtained = NodeAllocation::obtain(request, stop, &tell);
    if stop.is_requested() {
        return Err(ConductError::StoppedEarly);
    }
    let fail = |reason: String| ConductError::Target { target: target.into(), reason };
    let allocation = obtained.map_err(|error| fail(error.to_string()))?;
    let others = variant.iter().filter(|target| target.node_spec().is_none());
    let others: Vec<&str> = others.map(LaunchableTarget::name).collect();
    if let Some(node) = allocation.nodes.iter().find(|node| others.contains(&node.name.as_str())) {
        return Err(fail(format!(
            "a node and another target are both called {}; rename the target",
            node.name
        )));
    }
    for variant in targets {
        let nodes = variant.iter_mut().filter(|target| target.node_spec().is_some());
        nodes.zip(&allocation.nodes).for_each(|(target, node)| target.assign_node(node.clone()));
    }
    Ok(Some(allocation))
}

/// Gives every guest that is to reach the others a place on one switch: by its number among the targets, under any variant.
fn connect_guests(targets: &mut [Vec<LaunchableTarget>]) -> Result<Option<NetworkSwitch>, ConductError> {
    if !targets.iter().flatten().any(LaunchableTarget::is_on_switch) {
        return Ok(None);
    }
    let switch = NetworkSwitch::start()?;
    for variant in targets {
        let connected = variant.iter().enumerate().filter(|(_, target)| target.is_on_switch());
        let names: Vec<(String, Ipv4Addr)> =
            connected.map(|(number, target)| (target.name().to_owned(), switch_address(number))).collect();
        for (number, target) in variant.iter_mut().enumerate().filter(|(_, target)| target.is_on_switch()) {
            target.connect_to_switch(switch.socket(), switch_address(number), names.clone());
        }
    }
    Ok(Some(switch))
}

/// The slots of each start of the targets, with their numbers.
fn split_into_rounds(manifest: &Manifest) -> Vec<Vec<(u32, Slot)>> {
    let numbered: Vec<(u32, Slot)> = (0_u32..).zip(manifest.plan.slots.iter().copied()).collect();
    let same = |a: &(u32, Slot), b: &(u32, Slot)| a.1.boot == b.1.boot;
    numbered.chunk_by(same).map(<[_]>::to_vec).collect()
}

impl RunState<'_> {
    fn run(mut self) -> Result<RunStatus, ConductError> {
        let worked = self.run_rounds();
        let worked = worked.and(self.host.await_idle());
        let Some(begun) = self.begun.take() else {
            // Nothing was reported yet; what was changed for the first start is changed back.
            if self.stop.is_requested() {
                return Err(ConductError::StoppedEarly);
            }
            return worked.and(Err(ConductError::NobodyListens));
        };
        let worked = match worked {
            Err(error) if error.is_stop() => Ok(()),
            worked => worked,
        };
        let status = match &worked {
            Ok(()) if self.tally.stopped || self.stop.is_requested() => RunStatus::Stopped,
            Ok(()) if self.tally.failed == 0 && self.tally.lost == 0 => RunStatus::Finished,
            _ => RunStatus::Failed,
        };
        let (status, left) = self.end_run(status, begun)?;
        executor::with_undo_failures(worked.map(|()| status), left)
    }

    fn run_rounds(&mut self) -> Result<(), ConductError> {
        let starts = split_into_rounds(self.manifest);
        let last = starts.len().saturating_sub(1);
        for (number, slots) in starts.into_iter().enumerate() {
            if self.manifest.study.run.boot_each_case
                && let Some((_, slot)) = slots.first()
            {
                for change in self.host.settle(slot.case)? {
                    self.report_host(change)?;
                }
            }
            BootRound::launch(self, slots, number == last)?.run()?;
            if let Some(error) = self.failure.take() {
                return Err(error);
            }
            if self.tally.stopped || self.stop.is_requested() {
                break;
            }
        }
        Ok(())
    }

    /// Undoes everything; gives how the run ended in the end, and the settings that are not back. The monitors watch the undoing
    /// too: an unmount gives back what the workload left in caches.
    fn end_run(self, status: RunStatus, begun: BegunRun) -> Result<(RunStatus, Vec<String>), ConductError> {
        let is_alone = self.role == TargetRole::Everything;
        // The error waits: undoing comes first. Where there are targets, theirs has begun it.
        let reported = if is_alone { self.stream.send_phase(RunPhase::Undo) } else { Ok(()) };
        let undone = self.host.undo_all()?;
        let status = undone.final_status(status);
        reported?;
        if is_alone {
            let time = self.machine.quiet_after.unwrap_or(self.manifest.study.run.quiet.0);
            wait_unless_stopped(time, self.stop);
        }
        let watched = begun.sampler.stop().combine(undone.edges);
        let watched = watched.combine(begun.edges.map(EdgeReader::stop).unwrap_or_default());
        if let Some(dropped) =
            self.network_switch.as_ref().map(NetworkSwitch::dropped_frames).filter(|count| *count > 0)
        {
            let message = format!(
                "{dropped} frames between guests were dropped: their receiver did not take them in time"
            );
            self.stream.send_warning(
                message,
                "what was lost had to be sent again: give guests CPUs of their own (`pin`)",
            )?;
        }
        for host in self
            .targets
            .iter()
            .flatten()
            .find_map(LaunchableTarget::held_hosts)
            .map_or_else(Vec::new, HeldHosts::lost_hosts)
        {
            let message = format!(
                "the hold on host {host} was lost before the run ended: its ssh or perflab there was ended"
            );
            self.stream.send_warning(
                message,
                "another study may have worked there meanwhile: measure again if in doubt",
            )?;
        }
        self.stream.send_phase(RunPhase::Finish)?;
        let mut overhead = begun.meter.overhead(&watched);
        add_overhead(&mut overhead, &self.cost);
        overhead.guest_stops = self.cost.guest_stops;
        self.stream.send(RunEventKind::Ended { status, overhead })?;
        Ok((status, undone.left))
    }
}
