//! `perflab vm` and `perflab kernel`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// `perflab vm`
#[derive(Debug, Args)]
pub struct VmArgs {
    #[command(subcommand)]
    pub verb: VmVerb,
}

/// The verbs of guests.
#[derive(Debug, Subcommand)]
pub enum VmVerb {
    /// Boot a kernel and run a command in it, a shell, or nothing yet
    #[command(after_long_help = BOOT)]
    Boot(Box<BootArgs>),
    /// List the guests that run
    List,
    /// Open a shell in a guest that runs
    Shell {
        /// the guest: its id or the beginning of it
        guest: String,
    },
    /// End a guest, whatever it does; what it wrote is gone
    Stop {
        /// the guest: its id or the beginning of it
        guest: String,
    },
}

const BOOT: &str = "\
The command's output, input and exit code are passed through. By default the guest's root is this
host's, read-only, with an overlay in the guest's memory: every program of this host runs there,
and nothing that it writes stays.

  perflab kernel fetch debian-cloud                      a kernel, once
  perflab vm boot -- uname -r                            what it says of itself
  perflab vm boot --kernel arch/x86/boot/bzImage -- dmesg    the kernel that you just built
  perflab vm boot --cpus 4 --memory 2GiB --append mitigations=off -- hackbench -g 8
  perflab vm boot --root bare --with sh -- echo hi       no root: the program and its libraries
  perflab vm boot --root debian.qcow2:1 -- /bin/true     the first partition of an image
  perflab vm boot                                        a shell
  perflab vm boot --stay; perflab vm shell debian-cloud  a guest that stays until `perflab vm stop`

Exit code: the command's, 128 + N where signal N killed it; perflab's own trouble is said on stderr
and exits with 3 (something is missing) or 1.";

/// `perflab vm boot`
#[derive(Debug, Args)]
pub struct BootArgs {
    /// A kernel image (bzImage, vmlinuz), or a recipe's name (`perflab kernel list`)
    #[arg(long, default_value = "debian-cloud")]
    pub kernel: String,
    /// The folder of the kernel's modules, where it is not found beside the image
    #[arg(long, value_name = "DIR")]
    pub modules: Option<PathBuf>,
    /// A module to load besides those that perflab needs, with what it needs (may be repeated)
    #[arg(long, value_name = "MODULE")]
    pub load: Vec<String>,
    /// Words for the kernel's command line (may be repeated)
    #[arg(long, value_name = "WORDS", allow_hyphen_values = true)]
    pub append: Vec<String>,
    /// What the guest's root is: `host`, `bare`, or a disk image (IMAGE or IMAGE:PARTITION)
    #[arg(long, default_value = "host")]
    pub root: String,
    /// With `--root bare`: further programs of this host to pack (may be repeated)
    #[arg(long, value_name = "PROGRAM")]
    pub with: Vec<String>,
    /// The guest's name
    #[arg(long)]
    pub name: Option<String>,
    /// Virtual processors
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=512))]
    pub cpus: u32,
    /// Memory
    #[arg(long, default_value = "512MiB", value_name = "SIZE")]
    pub memory: String,
    /// KVM where it really runs code, else TCG; or one of them
    #[arg(long, value_enum, default_value_t = AcceleratorName::Best)]
    pub accelerator: AcceleratorName,
    /// The processor, in QEMU's words (default: the host's with KVM, all that is emulated with TCG)
    #[arg(long, value_name = "MODEL")]
    pub cpu_model: Option<String>,
    /// How long each of two attempts to boot may take (default: by the accelerator and the host's load)
    #[arg(long, value_name = "TIME")]
    pub boot_within: Option<String>,
    /// Host CPUs for the virtual processors, in order: 0,1,4
    #[arg(long, value_name = "CPUS", value_delimiter = ',')]
    pub pin: Vec<u32>,
    /// A NUMA node as CPUS:MEMORY[:HOST-NODE] (may be repeated; replaces --cpus and --memory)
    #[arg(long, value_name = "NODE")]
    pub node: Vec<String>,
    /// Back the memory with huge pages of this size: 2MiB, 1GiB
    #[arg(long, value_name = "SIZE")]
    pub huge_pages: Option<String>,
    /// A further disk as IMAGE[:CACHE-MODE]; its changes are thrown away (may be repeated)
    #[arg(long, value_name = "DISK")]
    pub disk: Vec<String>,
    /// Where the console's log is kept (default: a temporary folder, kept if something goes wrong)
    #[arg(long, value_name = "DIR")]
    pub logs: Option<PathBuf>,
    /// Leave the guest running, with a shell on its console
    #[arg(long, conflicts_with = "command")]
    pub stay: bool,
    /// The command; without one, a shell
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

/// The choices of `--accelerator`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AcceleratorName {
    /// KVM where it really runs code at speed, else TCG
    Best,
    /// KVM or nothing
    Kvm,
    /// QEMU's translator: slow everywhere alike
    Tcg,
}

/// `perflab kernel`
#[derive(Debug, Args)]
pub struct KernelArgs {
    #[command(subcommand)]
    pub verb: KernelVerb,
}

/// The verbs of kernels.
#[derive(Debug, Subcommand)]
pub enum KernelVerb {
    /// List the kernels that perflab knows how to get, and which are here
    List,
    /// Show one: what it is good for, where it lies
    Show {
        /// its name, or an image's path
        name: String,
    },
    /// Fetch a distribution's kernel: its package is unpacked in the cache, never installed
    Fetch {
        /// its name
        name: String,
    },
    /// Build a kernel from its recipe: minutes of work for all CPUs
    Build {
        /// its name
        name: String,
    },
}

/// `perflab launch`
#[derive(Debug, Args)]
pub struct LaunchArgs {
    /// The process with which the launched one ends
    #[arg(long)]
    pub parent: u32,
    /// See all file systems read-only
    #[arg(long)]
    pub read_only: bool,
    /// Stay when the parent ends
    #[arg(long)]
    pub stays: bool,
    /// The program and its arguments
    #[arg(last = true, required = true)]
    pub argv: Vec<OsString>,
}

/// `perflab terminal`
#[derive(Debug, Args)]
pub struct TerminalArgs {
    /// The terminal
    pub device: PathBuf,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    pub argv: Vec<OsString>,
}
