//! Why a file of the kernel could not be read: always with the path, the line or the name.

use std::io;

use perflab_formats::reading_parser::MalformedLine;
use perflab_model::error_class::{Classify, ErrorClass};
use perflab_model::problem::suggest_name;

/// Why something of the kernel could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ObserveError {
    /// The file is missing, or reading it failed.
    #[error("{path}: {}", format_errno(.source))]
    Read {
        /// as the kernel names it: `/proc/schedstat`
        path: String,
        /// the system's error
        source: io::Error,
    },
    /// The file is there, and we may not read it.
    #[error("{path}: {}; it needs {needs}{}", format_errno(.source), format_permission_hint(.without))]
    Refused {
        /// as the kernel names it: `/proc/slabinfo`
        path: String,
        /// what would help: `root`
        needs: &'static str,
        /// what that would add and what remains without it; may be empty
        without: &'static str,
        /// the system's error
        source: io::Error,
    },
    /// The kernel was built, or started, without it.
    #[error("{path}: {}; the kernel has it with {provided_by}", format_errno(.source))]
    Absent {
        /// as the kernel names it: `/proc/pressure/cpu`
        path: String,
        /// its option, boot parameter or sysctl: `CONFIG_PSI`
        provided_by: &'static str,
        /// the system's error
        source: io::Error,
    },
    /// The file holds something that its reader does not understand.
    #[error("{path}, line {line}: {what}")]
    Malformed {
        /// as the kernel names it
        path: String,
        /// from 1
        line: usize,
        /// what was expected, with what was there
        what: String,
    },
    /// A name that is not in a list of ours.
    #[error("`{name}` is no {noun}; {hint}")]
    Unknown {
        /// what was asked for
        name: String,
        /// what it should have been: `monitor`, `family of facts`
        noun: &'static str,
        /// the nearest name, or all of them
        hint: String,
    },
    /// CPUs or nodes that this machine does not have, or not for this process.
    #[error("{reason}")]
    Unplaceable {
        /// which, and why
        reason: String,
    },
    /// Nothing that a study wants counted can be counted, or it wants nothing.
    #[error("nothing is counted: [counters] has no `{table}` that this machine counts")]
    NothingCounted {
        /// the key of `[counters]`
        table: &'static str,
    },
    /// No event of a study's `[events]` is counted, or it has none.
    #[error("nothing is counted: [events] has none that this machine counts")]
    NoEvents,
    /// The kernel does not give what it counted.
    #[error("tracepoints: {reason}")]
    Uncounted {
        /// of which event, and why
        reason: String,
    },
    /// The columns of a monitor are not what they were when it was first opened.
    #[error("{path}: its columns changed while the run went on")]
    Reshaped {
        /// as the kernel names it
        path: String,
    },
}

impl Classify for ObserveError {
    fn class(&self) -> ErrorClass {
        match self {
            ObserveError::Read { source, .. } => source.class(),
            ObserveError::Refused { .. }
            | ObserveError::Absent { .. }
            | ObserveError::NothingCounted { .. }
            | ObserveError::NoEvents
            | ObserveError::Uncounted { .. }
            | ObserveError::Unplaceable { .. } => ErrorClass::Environment,
            ObserveError::Unknown { .. } => ErrorClass::Usage,
            ObserveError::Malformed { .. } | ObserveError::Reshaped { .. } => ErrorClass::Unexpected,
        }
    }
}

impl ObserveError {
    /// A failed system call on `path`.
    pub(crate) fn read_failed(path: &str, source: io::Error) -> Self {
        ObserveError::Read { path: path.into(), source }
    }

    /// A line of `path` that is not understood.
    pub(crate) fn malformed(path: &str, malformed: MalformedLine) -> Self {
        ObserveError::Malformed { path: path.into(), line: malformed.line, what: malformed.description }
    }

    /// An unknown name, with a hint out of `known`.
    pub(crate) fn unknown_name<'a>(
        name: &str,
        noun: &'static str,
        known: impl IntoIterator<Item = &'a str> + Clone,
    ) -> Self {
        ObserveError::Unknown { name: name.into(), noun, hint: suggest_name(name, known) }
    }

    /// The same, naming what would help where permission was all that lacked, and what the kernel lacks where the file is
    /// not there.
    pub(crate) fn with_requirement(
        self,
        needs: &'static str,
        without: &'static str,
        provided_by: &'static str,
    ) -> Self {
        let ObserveError::Read { path, source } = self else { return self };
        match source.kind() {
            io::ErrorKind::PermissionDenied if !needs.is_empty() => {
                ObserveError::Refused { path, needs, without, source }
            }
            // PSI that is off refuses to be opened (EOPNOTSUPP), a device that is not there to be read (ENODEV).
            _ if !provided_by.is_empty() && is_absence(&source) => {
                ObserveError::Absent { path, provided_by, source }
            }
            _ => ObserveError::Read { path, source },
        }
    }
}

fn is_absence(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let absences = [Errno::NOENT, Errno::OPNOTSUPP, Errno::NODEV, Errno::NXIO];
    error.kind() == io::ErrorKind::NotFound
        || absences.iter().any(|absence| error.raw_os_error() == Some(absence.raw_os_error()))
}

/// The text of an errno in our style: lower case, without its number.
fn format_errno(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    text.to_lowercase()
}

/// `; root would add …`
fn format_permission_hint(without: &str) -> String {
    if without.is_empty() { String::new() } else { format!("; {without}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_say_what_would_help_and_absences_do_not() {
        let refused = |needs| {
            let error = io::Error::from(rustix::io::Errno::ACCESS);
            ObserveError::read_failed("/proc/slabinfo", error)
                .with_requirement(needs, "", "CONFIG_A")
                .to_string()
        };
        assert_eq!(refused("root"), "/proc/slabinfo: permission denied; it needs root");
        assert_eq!(refused(""), "/proc/slabinfo: permission denied");
        let missing = |errno: rustix::io::Errno, provided_by| {
            let missing = ObserveError::read_failed("/proc/pressure/cpu", errno.into());
            missing.with_requirement("root", "it would add all", provided_by).to_string()
        };
        assert_eq!(missing(rustix::io::Errno::NOENT, ""), "/proc/pressure/cpu: no such file or directory");
        assert_eq!(
            missing(rustix::io::Errno::OPNOTSUPP, "CONFIG_PSI and psi=1"),
            "/proc/pressure/cpu: operation not supported; the kernel has it with CONFIG_PSI and psi=1"
        );
    }
}
