//! From the command line to a machine's description.

use std::path::Path;

use perflab_conduct::guest::{AcceleratorRequest, GuestDisk, GuestMachine, GuestNumaNode, GuestRootSource};
use perflab_model::Bytes;

use crate::arguments::vm::{AcceleratorName, BootArgs};
use crate::exit::UsageError;
use crate::quantities;

/// The machine that the user describes.
pub fn machine_from_args(wanted: &BootArgs) -> anyhow::Result<GuestMachine> {
    if let Some(modules) = wanted.modules.as_deref().filter(|modules| !modules.is_dir()) {
        let message = format!("there is no folder {} for --modules", modules.display());
        return Err(UsageError::new(message, "write the one that holds `kernel/` and `modules.dep`").into());
    }
    let kernel = perflab_conduct::find_kernel(&wanted.kernel, wanted.modules.as_deref())?;
    let name = match &wanted.name {
        Some(name) => check_guest_name(name)?,
        None => guest_name_of_kernel(&wanted.kernel),
    };
    let nodes = wanted.node.iter().map(|text| parse_node(text)).collect::<Result<Vec<_>, _>>()?;
    let mut machine = GuestMachine::new(name, kernel);
    machine.cpus = if nodes.is_empty() { wanted.cpus } else { nodes.iter().map(|node| node.cpus).sum() };
    machine.memory = if nodes.is_empty() {
        parse_memory_size(&wanted.memory)?
    } else {
        Bytes(nodes.iter().map(|node| node.memory.0).sum())
    };
    machine.nodes = nodes;
    machine.load = wanted.load.clone();
    machine.append = wanted.append.clone();
    machine.root = parse_root(wanted)?;
    machine.accelerator = match wanted.accelerator {
        AcceleratorName::Best => AcceleratorRequest::Best,
        AcceleratorName::Kvm => AcceleratorRequest::Kvm,
        AcceleratorName::Tcg => AcceleratorRequest::Tcg,
    };
    machine.model = wanted.cpu_model.clone();
    let boot_within = wanted.boot_within.as_deref();
    machine.boot_within =
        boot_within.map(|text| quantities::parse_time_option("--boot-within", text)).transpose()?;
    machine.pin = wanted.pin.clone();
    machine.huge_pages = wanted.huge_pages.as_deref().map(parse_memory_size).transpose()?;
    machine.disks = wanted.disk.iter().map(|text| parse_disk(text)).collect::<Result<Vec<_>, _>>()?;
    Ok(machine)
}

/// A recipe's name, or the file's: `bzImage`. It becomes a host name and part of sockets' names.
fn guest_name_of_kernel(kernel: &str) -> String {
    let base =
        Path::new(kernel).file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    base.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '-' }).take(24).collect()
}

/// The longest name: it is part of sockets' paths, which have to be short.
const LONGEST_NAME: usize = 40;

/// A guest's name as the user gave it: a word of QEMU's lists, a host name, and part of paths.
fn check_guest_name(name: &str) -> Result<String, UsageError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || name.starts_with('-') || name.len() > LONGEST_NAME || !name.chars().all(plain) {
        return Err(UsageError::new(
            format!("`{name}` cannot be a guest's name"),
            format!("write letters, digits, `-` and `_`, at most {LONGEST_NAME}"),
        ));
    }
    Ok(name.to_owned())
}

fn parse_memory_size(text: &str) -> Result<Bytes, UsageError> {
    Bytes::parse(text).map_err(|error| UsageError::new(error.to_string(), "write, for example, 512MiB"))
}

fn parse_root(wanted: &BootArgs) -> Result<GuestRootSource, UsageError> {
    let command = wanted.command.first().cloned().unwrap_or_else(|| "sh".into());
    let programs: Vec<String> = [command].into_iter().chain(wanted.with.iter().cloned()).collect();
    GuestRootSource::parse(&wanted.root, &programs).ok_or_else(|| {
        UsageError::new(
            format!("`{}` is no root for a guest", wanted.root),
            "write host, bare, or a disk image, as debian.qcow2:1 with its partition",
        )
    })
}

/// `2:1GiB:0`
fn parse_node(text: &str) -> Result<GuestNumaNode, UsageError> {
    let wrong = || {
        UsageError::new(
            format!("`{text}` is no NUMA node"),
            "write CPUS:MEMORY or CPUS:MEMORY:HOST-NODE, as 2:1GiB:0",
        )
    };
    let mut parts = text.split(':');
    let cpus = parts.next().and_then(|cpus| cpus.parse().ok()).ok_or_else(wrong)?;
    let memory = parts.next().and_then(|size| Bytes::parse(size).ok()).ok_or_else(wrong)?;
    let host = parts.next().map(|host| host.parse().map_err(|_| wrong())).transpose()?;
    Ok(GuestNumaNode { cpus, memory, host })
}

const CACHES: &[&str] = &["none", "writeback", "writethrough", "directsync", "unsafe"];

/// `scratch.qcow2:none`
fn parse_disk(text: &str) -> Result<GuestDisk, UsageError> {
    let (path, cache) = match text.rsplit_once(':') {
        Some((path, cache)) if CACHES.contains(&cache) => (path, cache),
        _ => (text, "writeback"),
    };
    if !Path::new(path).is_file() {
        let hint = format!("write IMAGE or IMAGE:CACHE, with one of {}", CACHES.join(", "));
        return Err(UsageError::new(format!("there is no disk image {path}"), hint));
    }
    Ok(GuestDisk { cache: cache.into(), ..GuestDisk::discarding_changes(path) })
}
