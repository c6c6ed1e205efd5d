//! Why a profile cannot be taken, with the setting to change.

use std::io;

/// Why a profile cannot be taken.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// The kernel does not allow it.
    #[error("the kernel refuses to sample {what}: {source}; {advice}")]
    Refused {
        /// `the whole system, kernel included`
        what: &'static str,
        /// what the system call said
        source: io::Error,
        /// what to change
        advice: String,
    },
    /// The kernel's functions would have no names.
    #[error("kernel functions would have no names: /proc/kallsyms: {0}")]
    Names(#[from] perflab_stacks::KernelSymbolsError),
    /// No event could be opened, for other reasons.
    #[error("no event can be sampled: {tried}")]
    NoEvent {
        /// each event with its error
        tried: String,
    },
    /// There is no such process.
    #[error("there is no process {pid}")]
    NoProcess {
        /// its number
        pid: i32,
    },
    /// A buffer could not be had.
    #[error("no ring buffer of {bytes} bytes for CPU {cpu}: {source}; raise kernel.perf_event_mlock_kb")]
    Ring {
        /// the CPU
        cpu: u32,
        /// the size that was wanted last
        bytes: usize,
        /// what the system call said
        source: io::Error,
    },
    /// The reader's thread died.
    #[error("the thread that reads samples ended before its time")]
    Reader,
}
