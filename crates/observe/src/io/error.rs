//! Why I/O cannot be traced, with the setting to change.

use std::io;

use perflab_model::error_class::{Classify, ErrorClass};

/// Why I/O cannot be traced.
#[derive(Debug, thiserror::Error)]
pub enum IoTraceError {
    /// The kernel's tracing is not to be had.
    #[error("the kernel's tracing cannot be used: {path}: {source}; {advice}")]
    Tracing {
        /// the file that was tried
        path: String,
        /// the system's error
        source: io::Error,
        /// what to do
        advice: &'static str,
    },
    /// The event without which nothing is seen.
    #[error("this kernel has no event {event}; it came with Linux {since}")]
    NoEvent {
        /// `filemap:mm_filemap_add_to_page_cache`
        event: &'static str,
        /// the version
        since: &'static str,
    },
    /// The kernel describes an event in a way that is not understood.
    #[error("{path}: {what}")]
    Format {
        /// the file
        path: String,
        /// what is wrong with it
        what: String,
    },
    /// The thread that reads the buffers died.
    #[error("the thread that reads the trace ended before its time")]
    Reader,
    /// A file could not be asked.
    #[error("{path}: {source}")]
    File {
        /// the file
        path: String,
        /// the system's error
        source: io::Error,
    },
}

impl Classify for IoTraceError {
    fn class(&self) -> ErrorClass {
        match self {
            IoTraceError::Tracing { .. }
            | IoTraceError::NoEvent { .. }
            | IoTraceError::Format { .. }
            | IoTraceError::Reader
            | IoTraceError::File { .. } => ErrorClass::Environment,
        }
    }
}

impl IoTraceError {
    /// What to do about a refusal of tracefs.
    pub(crate) fn from_tracefs(path: &std::path::Path, source: io::Error) -> Self {
        let advice = match source.kind() {
            io::ErrorKind::PermissionDenied if rustix::process::geteuid().is_root() => {
                "the kernel refuses even root: a container needs CAP_SYS_ADMIN for it, and lockdown=confidentiality \
                 forbids it (/sys/kernel/security/lockdown says which is on; boot with lockdown=integrity or none)"
            }
            io::ErrorKind::PermissionDenied => {
                "it needs root; without, `perflab prefetch learn` still works for your own files, by what is in memory \
                 before and after"
            }
            io::ErrorKind::NotFound => {
                "mount it (`mount -t tracefs nodev /sys/kernel/tracing`); a kernel without CONFIG_FTRACE has none, and \
                 lockdown=confidentiality hides it"
            }
            _ => "`dmesg` may say why: lockdown refuses tracing in some modes",
        };
        IoTraceError::Tracing { path: path.display().to_string(), source, advice }
    }
}
