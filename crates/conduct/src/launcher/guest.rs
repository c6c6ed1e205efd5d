//! An agent in a guest that QEMU runs.

use std::fs;
use std::path::Path;

use perflab_guest::{
    AcceleratorRequest, BootOptions, Guest, GuestDisk, GuestError, GuestMachine, GuestNumaNode,
    GuestRootSource, GuestWork, SampledGuest, boot_guest, read_log_end,
};
use perflab_model::study::{
    AcceleratorChoice, AgentChannel, GuestDiskSpec, GuestNetworkChoice, NumaNodeSpec, TargetSpec,
};
use perflab_model::{Bytes, StopRequest};
use perflab_settings::TemporaryFolder;

use crate::connection::Connection;
use crate::launcher::agent_handle::{AgentHandle, LaunchedAgent};
use crate::run_context::LocalMachine;

/// What is kept of a console, in bytes of its end.
const MOST: usize = 256 << 10;

/// A guest, until it is ended.
#[derive(Debug)]
struct GuestAgent {
    guest: Option<Guest>,
    /// What it boots, and how its code is run: the first line of what is kept of it.
    how: String,
    _logs: TemporaryFolder,
}

impl AgentHandle for GuestAgent {
    fn end(&mut self) -> String {
        let Some(guest) = self.guest.take() else { return String::new() };
        let console = guest.console_log().to_owned();
        drop(guest);
        let text = read_log_end(&console, MOST);
        format!("{}\n{}", self.how, String::from_utf8_lossy(&text))
    }

    fn sampled_guest(&self) -> Option<SampledGuest> {
        self.guest.as_ref().map(Guest::sampled)
    }
}

/// Boots a guest whose work is to take orders. The console's log of one that did not come is kept in `logs`, as its error says.
pub(crate) fn launch_guest_agent(
    machine: &GuestMachine,
    host: &LocalMachine,
    stop: &StopRequest,
    logs: TemporaryFolder,
) -> Result<LaunchedAgent, GuestError> {
    let around =
        BootOptions { perflab: &host.perflab, logs: logs.path(), work: GuestWork::Agent, stays: false, stop };
    let guest = match boot_guest(machine, &around) {
        Ok(guest) => guest,
        Err(error) => {
            if error.names_console() {
                logs.keep();
            }
            return Err(error);
        }
    };
    let stream = guest.connect_agent().map_err(GuestError::file_error("the agent's socket"))?;
    let chosen = guest.accelerator();
    let how =
        format!("perflab: {}, run by {} ({})", guest.record().kernel, chosen.accelerator, chosen.because);
    Ok(LaunchedAgent {
        connection: Connection::duplex(guest.name(), stream)
            .map_err(GuestError::file_error("the agent's socket"))?,
        handle: Box::new(GuestAgent { guest: Some(guest), how, _logs: logs }),
    })
}

/// The machine that a study describes. What the study's own check has seen to be right is not doubted again.
pub(crate) fn guest_machine(name: &str, target: &TargetSpec) -> Result<GuestMachine, GuestError> {
    let modules = target.modules.as_deref().map(Path::new);
    let kernel = perflab_guest::find_kernel(target.kernel.as_deref().unwrap_or_default(), modules)?;
    let mut machine = GuestMachine::new(name, kernel);
    machine.load = target.load.clone();
    machine.append = target.append.clone();
    machine.root = guest_root_source(target)?;
    machine.nodes = guest_numa_nodes(name, &target.nodes)?;
    let (cpus, memory) = match machine.nodes.as_slice() {
        [] => (target.cpus, parse_byte_size(name, "memory", target.memory.as_deref())?),
        nodes => (Some(nodes.iter().map(|node| node.cpus).sum()), Some(total_memory(nodes))),
    };
    machine.cpus = cpus.unwrap_or(machine.cpus);
    machine.memory = memory.unwrap_or(machine.memory);
    machine.huge_pages = parse_byte_size(name, "huge_pages", target.huge_pages.as_deref())?;
    machine.model = target.cpu_model.clone();
    machine.accelerator = match target.accelerator {
        None => AcceleratorRequest::Best,
        Some(AcceleratorChoice::Kvm) => AcceleratorRequest::Kvm,
        Some(AcceleratorChoice::Tcg) => AcceleratorRequest::Tcg,
    };
    machine.pin = target.pin.clone();
    machine.vsock = target.channel == Some(AgentChannel::Vsock);
    machine.boot_within = target.boot_within.map(|span| span.0);
    machine.qemu_options = target.qemu_options.clone();
    machine.disks = target.disks.iter().map(guest_disk).collect::<Result<_, _>>()?;
    machine.disk_queues = target.disk_queues;
    machine.iothreads = target.iothreads.unwrap_or_default();
    machine.network.host = target.network.is_some_and(GuestNetworkChoice::has_host);
    machine.network.forward = target.forward.clone();
    Ok(machine)
}

fn guest_root_source(target: &TargetSpec) -> Result<GuestRootSource, GuestError> {
    let text = target.root.as_deref().unwrap_or("host");
    let mut root = GuestRootSource::parse(text, &target.programs)?;
    if let (GuestRootSource::Image { disk, .. }, Some(cache)) = (&mut root, target.cache) {
        disk.cache = cache.to_string();
    }
    Ok(root)
}

fn parse_byte_size(name: &str, key: &str, text: Option<&str>) -> Result<Option<Bytes>, GuestError> {
    let size = text.map(Bytes::parse).transpose();
    size.map_err(|source| GuestError::NoSize { name: name.into(), key: key.into(), source })
}

fn guest_numa_nodes(name: &str, nodes: &[NumaNodeSpec]) -> Result<Vec<GuestNumaNode>, GuestError> {
    let node = |(index, node): (usize, &NumaNodeSpec)| {
        let memory = parse_byte_size(name, &format!("nodes[{index}].memory"), Some(&node.memory))?;
        Ok(GuestNumaNode { cpus: node.cpus, memory: memory.unwrap_or_default(), host: node.host })
    };
    nodes.iter().enumerate().map(node).collect()
}

fn total_memory(nodes: &[GuestNumaNode]) -> Bytes {
    Bytes(nodes.iter().map(|node| node.memory.0).sum())
}

fn guest_disk(disk: &GuestDiskSpec) -> Result<GuestDisk, GuestError> {
    // QEMU would say it too, but only after the guest's folder is made.
    fs::metadata(&disk.path).map_err(GuestError::file_error(&disk.path))?;
    Ok(GuestDisk {
        cache: disk.cache.to_string(),
        snapshot: !disk.keep,
        ..GuestDisk::discarding_changes(&disk.path)
    })
}

#[cfg(test)]
mod tests {
    use perflab_model::study::{PortForward, TomlSource};

    use super::*;

    /// A study's table of one guest, as the machine that would be started.
    fn study_machine(words: &str) -> Result<GuestMachine, GuestError> {
        let folder = tempfile::tempdir().unwrap();
        let image = folder.path().join("root.qcow2");
        fs::write(&image, "").unwrap();
        // An image of a kernel that says its release, as boot protocol 2.00 and later do.
        let mut kernel = vec![0; 0x800];
        kernel[0x1fe..0x200].copy_from_slice(&[0x55, 0xaa]);
        kernel[0x202..0x206].copy_from_slice(b"HdrS");
        kernel[0x206..0x208].copy_from_slice(&[0x0f, 0x02]);
        kernel[0x20e..0x210].copy_from_slice(&0x300_u16.to_le_bytes());
        kernel[0x500..0x508].copy_from_slice(b"6.1.0-x\0");
        fs::write(folder.path().join("vmlinuz"), kernel).unwrap();
        let words = words.replace("DIR", &folder.path().display().to_string());
        let text = format!(
            "title = \"t\"\n[workload.memory-sweep]\n[target.guest]\nkind = \"vm\"\n\
             kernel = \"{}/vmlinuz\"\n{words}",
            folder.path().display()
        );
        let study = TomlSource::new("s.toml", text).parse_study().unwrap();
        guest_machine("guest", &study.target["guest"])
    }

    #[test]
    fn a_size_that_is_none_is_named() {
        let node = NumaNodeSpec { cpus: 1, memory: "much".into(), host: None };
        let error = guest_numa_nodes("guest", &[node]).unwrap_err();
        assert!(matches!(&error, GuestError::NoSize { key, .. } if key == "nodes[0].memory"), "{error}");
        insta::assert_snapshot!(error, @"guest guest: nodes[0].memory: `much` is not a size: write a number with B, KiB, MiB, GiB, kB, MB or GB, such as `64MiB`");
    }

    #[test]
    fn every_key_of_a_guest_comes_to_be_in_its_machine() {
        let words = "load = [\"xfs\"]\nappend = [\"mitigations=off\"]\nroot = \"DIR/root.qcow2:1\"\ncache = \"none\"\n\
                     pin = [1, 0]\nhuge-pages = \"2MiB\"\ncpu-model = \"EPYC\"\naccelerator = \"tcg\"\nchannel = \"vsock\"\n\
                     nodes = [{ cpus = 2, memory = \"1GiB\", host = 0 }, { cpus = 1, memory = \"512MiB\" }]\n\
                     disks = [{ path = \"DIR/root.qcow2\", cache = \"directsync\", keep = true }]\n\
                     disk-queues = 4\niothreads = 2\nnetwork = \"all\"\nforward = [\"2222:22\"]\n";
        let machine = study_machine(words).unwrap();
        assert_eq!((machine.cpus, machine.memory), (3, Bytes((1 << 30) + (512 << 20))));
        assert_eq!((machine.nodes[0].host, machine.nodes[1].host), (Some(0), None));
        assert_eq!((machine.pin, machine.append), (vec![1, 0], vec!["mitigations=off".to_owned()]));
        assert_eq!(machine.load, ["xfs"]);
        assert_eq!(
            (machine.huge_pages, machine.accelerator),
            (Some(Bytes(2 << 20)), AcceleratorRequest::Tcg)
        );
        assert!(machine.vsock);
        assert_eq!((machine.disk_queues, machine.iothreads), (Some(4), 2));
        assert!(machine.network.host && machine.network.switch.is_none(), "the switch is the run's");
        assert_eq!(machine.network.forward, [PortForward { host: 2222, guest: 22 }]);
        assert_eq!(machine.model.as_deref(), Some("EPYC"));
        let GuestRootSource::Image { disk, partition } = machine.root else { panic!("{:?}", machine.root) };
        assert_eq!(
            (disk.cache.as_str(), disk.format.as_str(), disk.snapshot, partition),
            ("none", "qcow2", true, 1)
        );
        assert_eq!((machine.disks[0].cache.as_str(), machine.disks[0].snapshot), ("directsync", false));
    }

    #[test]
    fn programs_of_a_bare_root_and_roots_that_are_none() {
        let bare = study_machine("root = \"bare\"\nprograms = [\"sh\", \"dd\"]\n").unwrap();
        assert_eq!(bare.root, GuestRootSource::Bare { programs: vec!["sh".into(), "dd".into()] });
        let wrong = study_machine("root = \"DIR/none.qcow2\"\n").unwrap_err();
        let missing = study_machine("disks = [{ path = \"DIR/none.img\" }]\n").unwrap_err();
        assert!(matches!(&wrong, GuestError::NoRoot { text } if text.ends_with("/none.qcow2")), "{wrong}");
        assert!(matches!(&missing, GuestError::File { path, .. } if path.ends_with("none.img")), "{missing}");
    }
}
