//! Why a guest does not run; why there is no first file system for it.

use std::path::PathBuf;

use perflab_model::Bytes;
use perflab_model::error_class::{Classify, ErrorClass};

use crate::distribution_root::DistributionRootError;
use crate::init_protocol::InitError;
use crate::kernel::KernelError;

/// Why a guest does not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GuestError {
    /// A program of the host is missing.
    #[error("{program} is not installed; {hint}")]
    NotInstalled {
        /// which
        program: &'static str,
        /// how to get it
        hint: &'static str,
    },
    /// KVM was demanded, and does not run code at speed.
    #[error("KVM was requested, but {reason}; choose tcg, or leave the choice to perflab")]
    NoKvm {
        /// what the probe found
        reason: String,
    },
    /// The kernel cannot mount what the host can share.
    #[error(
        "guest {name} cannot have a root of this host's: {reason}; use a kernel with 9p, or `--root bare`"
    )]
    NoShare {
        /// the guest
        name: String,
        /// what is missing
        reason: String,
    },
    /// The root is neither the host's, nor bare, nor a folder or a disk image that is there.
    #[error(
        "`{text}` is no root for a guest; write host, bare, a folder that holds a system, debootstrap:RELEASE, or a disk image, as \
         debian.qcow2:1 with its partition"
    )]
    NoRoot {
        /// as it was written
        text: String,
    },
    /// A size of the guest's is none.
    #[error("guest {name}: {key}: {source}")]
    NoSize {
        /// the guest
        name: String,
        /// which of its sizes: `memory`, `nodes[0].memory`
        key: String,
        /// what is wrong with it
        source: perflab_model::quantity::QuantityError,
    },
    /// The host cannot give the guest a vsock device.
    #[error("guest {name} cannot have vsock: {reason}; leave `channel` out for virtio-serial")]
    NoVsock {
        /// the guest
        name: String,
        /// what is missing
        reason: String,
    },
    /// The guest cannot have a network card.
    #[error("guest {name} cannot have a network: {reason}")]
    NoNetwork {
        /// the guest
        name: String,
        /// what is missing, and what to do
        reason: String,
    },
    /// The guest's memory does not suffice to begin.
    #[error(
        "guest {name} has too little memory with {memory}: {why}; give it {good} or more (`--memory`, or `memory` in the \
         study)"
    )]
    TooSmall {
        /// the guest
        name: String,
        /// what it has
        memory: Bytes,
        /// how that is known
        why: String,
        /// what suffices
        good: Bytes,
    },
    /// A process did not start.
    #[error("cannot start {program}: {source}")]
    Start {
        /// which
        program: String,
        /// the system's reason
        source: std::io::Error,
    },
    /// The guest's emulator ended before the guest was ready.
    #[error("guest {name} ended while it booted ({how}); its console's last words, from {console}:\n{words}")]
    Died {
        /// the guest
        name: String,
        /// QEMU's message
        how: String,
        /// its log
        console: PathBuf,
        /// the end of it
        words: String,
    },
    /// The guest did not get ready in time.
    #[error(
        "guest {name} was not ready within {seconds} s, twice; its console's last words, from {console}:\n{words}"
    )]
    Late {
        /// the guest
        name: String,
        /// the deadline
        seconds: u64,
        /// its log
        console: PathBuf,
        /// the end of it
        words: String,
    },
    /// The guest could not get to work.
    #[error("guest {name} could not begin: {reason}")]
    Failed {
        /// the guest
        name: String,
        /// its own words
        reason: String,
    },
    /// The user asked to stop.
    #[error("guest {name} was stopped")]
    Stopped {
        /// the guest
        name: String,
    },
    /// There is no running guest of that name.
    #[error("no guest `{name}` is running; {hint}")]
    NotRunning {
        /// as it was asked for
        name: String,
        /// near names
        hint: String,
    },
    /// QEMU's monitor did not answer, or refused.
    #[error("QEMU's monitor of guest {name}: {reason}")]
    Monitor {
        /// the guest
        name: String,
        /// why
        reason: String,
    },
    /// Its processors cannot be sampled from outside.
    #[error("guest {name} cannot be sampled from outside: {source}")]
    NotSampled {
        /// the guest
        name: String,
        /// what its kernel lacks
        source: perflab_stacks::SampledKernelError,
    },
    /// A file of the guest's cannot be written or read.
    #[error("{path}: {source}")]
    File {
        /// which
        path: PathBuf,
        /// the system's reason
        source: std::io::Error,
    },
    /// The root of a distribution.
    #[error(transparent)]
    DistributionRoot(#[from] DistributionRootError),
    /// The kernel.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// The initramfs.
    #[error(transparent)]
    Initramfs(#[from] InitramfsError),
    /// A guest's own trouble.
    #[error(transparent)]
    Init(#[from] InitError),
}

impl Classify for GuestError {
    fn class(&self) -> ErrorClass {
        match self {
            GuestError::NotInstalled { .. }
            | GuestError::NoKvm { .. }
            | GuestError::NoShare { .. }
            | GuestError::NoVsock { .. }
            | GuestError::NoNetwork { .. }
            | GuestError::TooSmall { .. } => ErrorClass::Environment,
            GuestError::NoRoot { .. } | GuestError::NoSize { .. } | GuestError::NotRunning { .. } => {
                ErrorClass::Usage
            }
            GuestError::Stopped { .. } => ErrorClass::WorkloadFailed,
            GuestError::Start { .. }
            | GuestError::Died { .. }
            | GuestError::Late { .. }
            | GuestError::Failed { .. }
            | GuestError::Monitor { .. } => ErrorClass::Unexpected,
            GuestError::NotSampled { source, .. } => source.class(),
            GuestError::File { source, .. } => source.class(),
            GuestError::DistributionRoot(error) => error.class(),
            GuestError::Kernel(error) => error.class(),
            GuestError::Initramfs(error) => error.class(),
            GuestError::Init(error) => error.class(),
        }
    }

    fn problems(&self) -> Option<&perflab_model::Problems> {
        match self {
            GuestError::Kernel(error) => error.problems(),
            _ => None,
        }
    }
}

impl GuestError {
    /// Whether it names the console's log, which has to stay then.
    pub fn names_console(&self) -> bool {
        matches!(self, GuestError::Died { .. } | GuestError::Late { .. })
    }

    /// What makes an error of this file of an error of the system.
    pub fn file_error(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> GuestError {
        let path = path.into();
        move |source| GuestError::File { path, source }
    }
}

/// Why an initramfs cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InitramfsError {
    /// A program is not there.
    #[error("there is no program `{program}` on this host's PATH")]
    NoProgram {
        /// as it was asked for
        program: String,
    },
    /// It is not a program that Linux runs.
    #[error("{path} is neither an ELF program nor a script: {reason}")]
    NotAProgram {
        /// the file
        path: PathBuf,
        /// the parser's message
        reason: String,
    },
    /// Its libraries are not all there.
    #[error("{path} cannot be packed: {reason}")]
    Libraries {
        /// the program
        path: PathBuf,
        /// its interpreter's message
        reason: String,
    },
    /// A file cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// which
        path: PathBuf,
        /// the system's reason
        source: std::io::Error,
    },
}

impl Classify for InitramfsError {
    fn class(&self) -> ErrorClass {
        match self {
            InitramfsError::NoProgram { .. } => ErrorClass::Usage,
            InitramfsError::NotAProgram { .. }
            | InitramfsError::Libraries { .. }
            | InitramfsError::File { .. } => ErrorClass::Environment,
        }
    }
}

impl InitramfsError {
    pub(crate) fn file_error(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> InitramfsError {
        let path = path.into();
        move |source| InitramfsError::File { path, source }
    }
}
