//! Why a program cannot be probed, with what to change.

use std::io;
use std::path::PathBuf;

use perflab_model::error_class::{Classify, ErrorClass};

/// Why a program cannot be probed.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The program's file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// the file
        path: PathBuf,
        /// the system's reason
        source: io::Error,
    },
    /// It is not a program.
    #[error("{path}: not an ELF program or library: {reason}")]
    NotElf {
        /// the file
        path: PathBuf,
        /// what is wrong
        reason: String,
    },
    /// It has no such probe point.
    #[error("{path} has no {what} `{name}`; {hint}")]
    NoPlace {
        /// the file
        path: PathBuf,
        /// `function`, `USDT probe`
        what: &'static str,
        /// what was asked for
        name: String,
        /// what there is
        hint: String,
    },
    /// It is unknown where the function begins or ends.
    #[error("`{name}` of {path} cannot be watched safely: {reason}; give an end, or another function")]
    Unsafe {
        /// the file
        path: PathBuf,
        /// the function
        name: String,
        /// what is in the way
        reason: String,
    },
    /// The kernel has no uprobes.
    #[error(
        "this kernel has no uprobes: /sys/bus/event_source/devices/uprobe is not there; it needs CONFIG_UPROBES and \
         CONFIG_UPROBE_EVENTS"
    )]
    NoUprobes,
    /// The kernel does not allow it.
    #[error("the kernel refuses a uprobe at {place}: {source}; {advice}")]
    Refused {
        /// file and offset
        place: String,
        /// the system's error
        source: io::Error,
        /// what to change
        advice: String,
    },
    /// A condition on arguments is not to be had.
    #[error("a probe cannot have a condition here: {reason}")]
    NoConditions {
        /// what is in the way, and what to change
        reason: String,
    },
    /// There is no such process.
    #[error("there is no process {pid}")]
    NoProcess {
        /// its number
        pid: i32,
    },
    /// No ring buffer.
    #[error("no ring buffer for CPU {cpu}: {source}; raise kernel.perf_event_mlock_kb")]
    Ring {
        /// the CPU
        cpu: u32,
        /// the system's error
        source: io::Error,
    },
}

impl Classify for ProbeError {
    fn class(&self) -> ErrorClass {
        match self {
            ProbeError::Read { .. }
            | ProbeError::NotElf { .. }
            | ProbeError::NoPlace { .. }
            | ProbeError::Unsafe { .. }
            | ProbeError::NoConditions { .. }
            | ProbeError::NoProcess { .. } => ErrorClass::Usage,
            ProbeError::NoUprobes | ProbeError::Refused { .. } | ProbeError::Ring { .. } => {
                ErrorClass::Environment
            }
        }
    }
}
