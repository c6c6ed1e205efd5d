//! The agent of one target, started by the kind of the target.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;

use perflab_guest::{GuestMachine, HOST_ADDRESS, KernelImage, SwitchPort};
use perflab_model::study::{GuestNetworkChoice, TargetKind, TargetSpec};
use perflab_model::{FactDocument, Facts, PlannedTarget, Scalar, StopRequest, fact_table};
use perflab_observe::Root;
use perflab_settings::TemporaryFolder;

use crate::error::ConductError;
use crate::launcher::agent_handle::LaunchedAgent;
use crate::launcher::container::{container_problem, guest_root_problem, launch_in_container};
use crate::launcher::guest::{guest_machine, launch_guest_agent};
use crate::launcher::held_hosts::HeldHosts;
use crate::launcher::libvirt::launch_in_domain;
use crate::launcher::machine_reboot::MachineReboots;
use crate::launcher::node_allocation::AllocatedNode;
use crate::launcher::process::launch_process_agent;
use crate::launcher::slurm::launch_on_node;
use crate::launcher::ssh::{SshDestination, launch_over_ssh};
use crate::run_context::LocalMachine;

/// A target that can be launched, anew for every boot: what is to be found out of it was found out once.
#[derive(Debug)]
pub struct LaunchableTarget {
    planned: PlannedTarget,
    /// Of a machine that is booted into its kernel: who sees to it that it returns to its own.
    reboots: Option<Arc<MachineReboots>>,
    /// Of a host of an inventory: who holds it for the run.
    hosts: Option<Arc<HeldHosts>>,
    /// Of a guest: its machine with the kernel that it boots, or why there is none.
    guest: Option<Result<GuestMachine, String>>,
    /// Of a node of Slurm's: which it is, once there is a job.
    node: Option<AllocatedNode>,
}

impl LaunchableTarget {
    /// Finds out what this host has to know of it. Nothing is started.
    pub fn resolve(planned: PlannedTarget) -> Self {
        let PlannedTarget { name, spec } = &planned;
        let guest = (spec.kind == TargetKind::Vm)
            .then(|| guest_machine(name, spec).map_err(|error| error.to_string()));
        LaunchableTarget { planned, reboots: None, hosts: None, guest, node: None }
    }

    /// What it is called: a node by its own name.
    pub fn name(&self) -> &str {
        self.node.as_ref().map_or(&self.planned.name, |node| &node.name)
    }

    /// What the study calls it.
    pub(crate) fn planned_name(&self) -> &str {
        &self.planned.name
    }

    /// What it is asked for with, where it is a node of Slurm's.
    pub(crate) fn node_spec(&self) -> Option<&TargetSpec> {
        Some(&self.planned.spec).filter(|spec| spec.kind == TargetKind::Slurm)
    }

    /// Makes it this node.
    pub(crate) fn assign_node(&mut self, node: AllocatedNode) {
        self.node = Some(node);
    }

    /// Whether it is a machine that is booted into its kernel.
    pub(crate) fn is_rebooted(&self) -> bool {
        self.planned.spec.reboot.is_some()
    }

    /// Has it booted by these.
    pub(crate) fn reboot_by(&mut self, reboots: Arc<MachineReboots>) {
        self.reboots = Some(reboots);
    }

    /// The host of an inventory that it is, with the way to it.
    pub(crate) fn inventory_host(&self) -> Option<(&str, SshDestination)> {
        let spec = &self.planned.spec;
        Some((spec.host.as_deref()?, SshDestination::of_target(spec)))
    }

    /// Has it held by these.
    pub(crate) fn hold_by(&mut self, hosts: Arc<HeldHosts>) {
        self.hosts = Some(hosts);
    }

    /// Who holds it for the run, where it is a host of an inventory.
    pub(crate) fn held_hosts(&self) -> Option<&HeldHosts> {
        self.hosts.as_deref()
    }

    /// Where perflab lies on it for the whole run.
    fn host_folder(&self, stop: &StopRequest) -> std::io::Result<Option<String>> {
        match (&self.hosts, &self.planned.spec.host) {
            (Some(hosts), Some(name)) => hosts.folder(name, self.is_rebooted(), stop),
            _ => Ok(None),
        }
    }

    /// What templates of it may name besides.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (&String, &Scalar)> {
        self.planned.spec.variables.iter()
    }

    /// Whether it has a card on the switch of the run's guests.
    pub(crate) fn is_on_switch(&self) -> bool {
        self.guest.is_some() && self.planned.spec.network.is_some_and(GuestNetworkChoice::has_guests)
    }

    /// Connects it with the other guests of the run: at `address`, knowing their `names`.
    pub(crate) fn connect_to_switch(
        &mut self,
        socket: PathBuf,
        address: Ipv4Addr,
        names: Vec<(String, Ipv4Addr)>,
    ) {
        if let Some(Ok(machine)) = &mut self.guest {
            machine.network.switch = Some(SwitchPort { socket, address });
            machine.network.names = names;
        }
    }

    /// Where the other targets of the run reach it, as far as that is known here.
    pub(crate) fn address(&self) -> Option<String> {
        let PlannedTarget { spec, .. } = &self.planned;
        match spec.kind {
            TargetKind::Process | TargetKind::Container => Some(Ipv4Addr::LOCALHOST.to_string()),
            TargetKind::Vm => {
                let machine = self.guest.as_ref()?.as_ref().ok()?;
                machine.network.switch.as_ref().map(|port| port.address.to_string())
            }
            TargetKind::Ssh | TargetKind::Libvirt => {
                let address = spec.address.as_deref()?;
                Some(address.rsplit_once('@').map_or(address, |(_, host)| host).to_owned())
            }
            TargetKind::Slurm => self.node.as_ref().map(|node| node.address.clone()),
        }
    }

    /// Where it reaches this host, as far as that is known here.
    pub(crate) fn host_address(&self) -> Option<String> {
        match self.planned.spec.kind {
            TargetKind::Process | TargetKind::Container => Some(Ipv4Addr::LOCALHOST.to_string()),
            TargetKind::Vm => {
                let machine = self.guest.as_ref()?.as_ref().ok()?;
                machine.network.host.then(|| HOST_ADDRESS.to_string())
            }
            TargetKind::Ssh | TargetKind::Libvirt | TargetKind::Slurm => None,
        }
    }

    /// The kernel that it boots, where it is a guest of ours.
    pub(crate) fn kernel(&self) -> Option<&KernelImage> {
        Some(&self.guest.as_ref()?.as_ref().ok()?.kernel)
    }

    /// What this host knows of how its kernel was built; the target itself cannot tell.
    pub(crate) fn add_kernel_facts(&self, facts: &mut Facts) {
        let Some((kernel, build)) = self.kernel().and_then(|kernel| Some((kernel, kernel.build.as_ref()?)))
        else {
            return;
        };
        let sources = &build.sources;
        let changed = if sources.changed { "+" } else { "" };
        let commit = sources.commit.as_ref().map(|commit| format!("{commit}{changed}"));
        let pairs = |pairs: &BTreeMap<String, String>| {
            pairs.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>()
        };
        let flags = [pairs(&build.make), pairs(&build.flags)].concat();
        let known = [
            (fact_table::KERNEL_RECIPE, Some(kernel.name.clone())),
            (fact_table::KERNEL_SOURCES, Some(sources.place.clone())),
            (fact_table::KERNEL_COMMIT, commit),
            (fact_table::KERNEL_PATCHES, Some(build.patches.join(", ")).filter(|text| !text.is_empty())),
            (fact_table::KERNEL_COMPILER, Some(build.compiler.clone())),
            (fact_table::KERNEL_FLAGS, Some(flags.join(" ")).filter(|text| !text.is_empty())),
        ];
        for (key, value) in known {
            if let Some(value) = value {
                facts.add(key, value.as_str(), "perflab's record of the build");
            }
        }
    }

    /// What Slurm knows of its node.
    pub(crate) fn add_node_facts(&self, facts: &mut Facts) {
        let Some(AllocatedNode { job, name, features, .. }) = &self.node else { return };
        let known = [
            (fact_table::SLURM_JOB, job),
            (fact_table::SLURM_NODE, name),
            (fact_table::SLURM_FEATURES, features),
        ];
        for (key, value) in known.into_iter().filter(|(_, value)| !value.is_empty()) {
            facts.add(key, value.as_str(), "scontrol show node");
        }
    }

    /// The configuration of its kernel, which lies beside the image: a guest itself has it only where its kernel carries it.
    pub(crate) fn read_kernel_config(&self) -> Option<FactDocument> {
        let kernel = self.kernel()?;
        let folder = Root(kernel.image.parent()?.into());
        let files = [format!("config-{}", kernel.release), "config".to_owned()];
        files.into_iter().find_map(|file| {
            let text = folder.read_at_most(&file, FactDocument::LONGEST as u64).ok()?;
            let source = folder.path(&file).display().to_string();
            (!text.is_empty()).then(|| FactDocument {
                name: FactDocument::KERNEL_CONFIG.into(),
                source,
                text,
            })
        })
    }

    pub(crate) fn kind(&self) -> TargetKind {
        self.planned.spec.kind
    }

    /// Boots a machine into its kernel, where the study says so.
    fn boot_machine(&self, stop: &StopRequest) -> std::io::Result<()> {
        let PlannedTarget { name, spec } = &self.planned;
        self.reboots.as_ref().map_or(Ok(()), |reboots| reboots.boot(name, spec, stop))
    }

    /// Why it cannot be launched, where that is known before.
    pub(crate) fn problem(&self) -> Option<ConductError> {
        if self.planned.spec.kind == TargetKind::Container {
            return container_problem(&self.planned).map(|refusal| ConductError::Refused(vec![refusal]));
        }
        match self.guest.as_ref()? {
            Ok(machine) => {
                guest_root_problem(&self.planned, machine).map(|refusal| ConductError::Refused(vec![refusal]))
            }
            Err(reason) => Some(target_lost_error(self.name(), reason.clone())),
        }
    }
}

/// Starts the agent of one target.
///
/// # Errors
/// Names the target, and what could not be started.
pub fn launch_target(
    target: &LaunchableTarget,
    host: &LocalMachine,
    stop: &StopRequest,
) -> Result<LaunchedAgent, ConductError> {
    let (name, spec) = (target.name(), &target.planned.spec);
    if let Some(guest) = &target.guest {
        let machine = guest.as_ref().map_err(|reason| target_lost_error(name, reason.clone()))?;
        let logs = TemporaryFolder::create(&host.state, &perflab_observe::read_boot_id(&host.root))?;
        return launch_guest_agent(machine, host, stop, logs)
            .map_err(|error| target_lost_error(name, error.to_string()));
    }
    let started = match spec.kind {
        TargetKind::Libvirt => launch_in_domain(name, spec, host, stop),
        TargetKind::Ssh => target.boot_machine(stop).and_then(|()| {
            let folder = target.host_folder(stop)?;
            launch_over_ssh(name, &SshDestination::of_target(spec), folder.as_deref(), host, stop)
        }),
        TargetKind::Slurm => match &target.node {
            Some(node) => launch_on_node(name, node, host, stop),
            None => Err(std::io::Error::other("there is no job of Slurm's")),
        },
        TargetKind::Container => launch_in_container(name, spec, host),
        TargetKind::Process | TargetKind::Vm => launch_process_agent(name, spec, host),
    };
    started.map_err(|error| target_lost_error(name, error.to_string()))
}

fn target_lost_error(name: &str, reason: String) -> ConductError {
    ConductError::Target { target: name.into(), reason }
}
