//! What a guest is made of, and which accelerator it gets.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use perflab_model::named::Named;
use perflab_model::{Bytes, Nanos};
use perflab_observe::{KvmSpeed, probe_kvm_speed};
use serde::{Deserialize, Serialize};

use crate::distribution_root::DistributionRoot;
use crate::error::GuestError;
use crate::guest_network::GuestNetwork;
use crate::kernel::KernelImage;

/// A guest to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestMachine {
    /// Its name: in messages, in the run, as its host name.
    pub name: String,
    /// What it boots.
    pub kernel: KernelImage,
    /// Modules to be loaded besides those that perflab needs.
    pub load: Vec<String>,
    /// Options added to the kernel's command line, after perflab's own.
    pub append: Vec<String>,
    /// What its `/` is.
    pub root: GuestRootSource,
    /// Virtual processors.
    pub cpus: u32,
    /// Memory; with [`GuestMachine::nodes`], their sum.
    pub memory: Bytes,
    /// KVM, TCG, or whichever is right.
    pub accelerator: AcceleratorRequest,
    /// QEMU's name of the processor; none for the host's own (KVM) or all that can be emulated (TCG).
    pub model: Option<String>,
    /// QEMU's name of the board.
    pub board: String,
    /// Host CPUs of the virtual processors, in order; empty for wherever the scheduler puts them.
    pub pin: Vec<u32>,
    /// NUMA nodes; empty for a machine without.
    pub nodes: Vec<GuestNumaNode>,
    /// Size of the huge pages that back its memory; none for ordinary pages.
    pub huge_pages: Option<Bytes>,
    /// Disks besides the root.
    pub disks: Vec<GuestDisk>,
    /// Request queues of each disk; none for as many as there are processors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_queues: Option<u32>,
    /// Threads that serve the disks, each disk by one of them in turn; 0 for QEMU's main thread.
    #[serde(default)]
    pub iothreads: u32,
    /// Its network cards.
    #[serde(default)]
    pub network: GuestNetwork,
    /// Where a debugger finds it, and what becomes of it when its kernel panics; none for a guest that nobody debugs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub debug: Option<GuestDebug>,
    /// Whether its agent is spoken to over vsock, and not over a port of virtio-serial.
    pub vsock: bool,
    /// How long each of two attempts to boot may take; none for what the accelerator and the host's load suggest.
    pub boot_within: Option<Nanos>,
    /// Further arguments for QEMU, after all others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub qemu_options: Vec<String>,
}

/// A guest that is debugged: its addresses are not randomised.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestDebug {
    /// The socket of QEMU's gdb stub.
    pub stub: PathBuf,
    /// Where the guest's memory is written to if its kernel panics, as an ELF core.
    pub dump: PathBuf,
}

/// What `/` is in the guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GuestRootSource {
    /// The host's, read-only, under an overlay in the guest's memory: every program of the host's is there.
    Host,
    /// A folder of the host's that holds a system, shared and kept as the host's root is.
    Folder {
        /// where it is
        path: PathBuf,
    },
    /// Nothing but perflab and these programs of the host's.
    Bare {
        /// names or paths
        programs: Vec<String>,
    },
    /// A partition of a disk image, whose changes are thrown away.
    Image {
        /// the image
        disk: GuestDisk,
        /// which partition; 0 for an image without a table of partitions
        partition: u32,
    },
}

/// A disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestDisk {
    /// The image.
    pub path: PathBuf,
    /// `raw`, `qcow2`.
    pub format: String,
    /// QEMU's cache mode: `none`, `writeback`, `writethrough`, `directsync`, `unsafe`.
    pub cache: String,
    /// Whether changes are thrown away at the end.
    pub snapshot: bool,
}

impl GuestRootSource {
    /// As it is written: `host`, `bare` (with these programs), a folder, `debootstrap:RELEASE`, or a disk image as IMAGE or
    /// IMAGE:PARTITION.
    ///
    /// # Errors
    /// It is none of these, or is not there.
    pub fn parse(text: &str, programs: &[String]) -> Result<GuestRootSource, GuestError> {
        let at = |path: &str| std::path::absolute(path).map_err(GuestError::file_error(path));
        match text {
            "host" => return Ok(GuestRootSource::Host),
            "bare" => return Ok(GuestRootSource::Bare { programs: programs.to_vec() }),
            folder if Path::new(folder).is_dir() => return Ok(GuestRootSource::Folder { path: at(folder)? }),
            _ => {}
        }
        if let Some(made) = DistributionRoot::parse(text) {
            return Ok(GuestRootSource::Folder { path: made?.require()? });
        }
        let (path, partition) = text.rsplit_once(':').unwrap_or((text, "0"));
        let partition = partition.parse().ok().filter(|_| Path::new(path).is_file());
        let partition = partition.ok_or_else(|| GuestError::NoRoot { text: text.to_owned() })?;
        Ok(GuestRootSource::Image { disk: GuestDisk::discarding_changes(path), partition })
    }

    /// The folder of this host's that the guest sees as its root, with an overlay of its own above.
    pub fn shared_folder(&self) -> Option<&Path> {
        match self {
            GuestRootSource::Host => Some(Path::new("/")),
            GuestRootSource::Folder { path } => Some(path),
            GuestRootSource::Bare { .. } | GuestRootSource::Image { .. } => None,
        }
    }
}

impl GuestDisk {
    /// An image whose changes are thrown away; its format is known by its ending.
    pub fn discarding_changes(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let qcow2 = path.extension().is_some_and(|ending| ending == "qcow2");
        GuestDisk {
            path,
            format: if qcow2 { "qcow2" } else { "raw" }.into(),
            cache: "writeback".into(),
            snapshot: true,
        }
    }
}

/// A NUMA node of the guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestNumaNode {
    /// How many of the virtual processors, in order.
    pub cpus: u32,
    /// How much of the memory.
    pub memory: Bytes,
    /// The host's node that the memory comes from; none for any.
    pub host: Option<u32>,
}

impl GuestMachine {
    /// One processor, 512 MiB, the host's root, and perflab's choice of everything else.
    pub fn new(name: impl Into<String>, kernel: KernelImage) -> Self {
        GuestMachine {
            name: name.into(),
            kernel,
            load: Vec::new(),
            append: Vec::new(),
            root: GuestRootSource::Host,
            cpus: 1,
            memory: Bytes(512 << 20),
            accelerator: AcceleratorRequest::Best,
            model: None,
            board: "q35".into(),
            pin: Vec::new(),
            nodes: Vec::new(),
            huge_pages: None,
            disks: Vec::new(),
            disk_queues: None,
            iothreads: 0,
            network: GuestNetwork::default(),
            debug: None,
            vsock: false,
            boot_within: None,
            qemu_options: Vec::new(),
        }
    }
}

/// How a guest's code is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Accelerator {
    /// By the processor.
    Kvm,
    /// By QEMU's translator: everything takes several times as long, and only compares with itself.
    Tcg,
}

impl fmt::Display for Accelerator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Accelerator::Kvm => "kvm",
            Accelerator::Tcg => "tcg",
        })
    }
}

/// What the user wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AcceleratorRequest {
    /// KVM where it runs code at speed, else TCG.
    #[default]
    Best,
    /// KVM or nothing.
    Kvm,
    /// TCG, for a comparison that must run everywhere.
    Tcg,
}

impl Named for AcceleratorRequest {
    const NAMES: &'static [(Self, &'static str, &'static str)] = &[
        (AcceleratorRequest::Best, "best", "KVM where it really runs code at speed, else TCG"),
        (AcceleratorRequest::Kvm, "kvm", "KVM or nothing"),
        (AcceleratorRequest::Tcg, "tcg", "QEMU's translator: slow everywhere alike"),
    ];
}

/// What it became.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChosenAccelerator {
    /// The accelerator.
    pub accelerator: Accelerator,
    /// Why, for people and for the run.
    pub because: String,
}

impl AcceleratorRequest {
    /// Chooses. The first call may time a loop in a guest of one page, which takes less than a second.
    ///
    /// # Errors
    /// KVM is demanded, and is not what it should be.
    pub fn choose(self) -> Result<ChosenAccelerator, GuestError> {
        static SPEED: OnceLock<KvmSpeed> = OnceLock::new();
        match self {
            AcceleratorRequest::Tcg => {
                Ok(ChosenAccelerator { accelerator: Accelerator::Tcg, because: "it was requested".into() })
            }
            wish => wish.choose_by_speed(SPEED.get_or_init(probe_kvm_speed)),
        }
    }

    pub(crate) fn choose_by_speed(self, speed: &KvmSpeed) -> Result<ChosenAccelerator, GuestError> {
        let because = speed.to_string();
        match (speed.is_fast(), self) {
            (true, _) => Ok(ChosenAccelerator { accelerator: Accelerator::Kvm, because }),
            (false, AcceleratorRequest::Kvm) => Err(GuestError::NoKvm { reason: because }),
            (false, _) => Ok(ChosenAccelerator { accelerator: Accelerator::Tcg, because }),
        }
    }
}
