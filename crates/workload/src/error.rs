//! Why a workload cannot be run, and what to do about it.

use perflab_model::error_class::{Classify, ErrorClass};
use perflab_model::expression::ExpressionError;

/// Why a workload cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// Programs are missing from PATH.
    #[error("workload `{workload}`: {} not installed; {hint}", programs.join(", "))]
    NotInstalled {
        /// the workload
        workload: String,
        /// what is missing
        programs: Vec<String>,
        /// the command that installs it
        hint: String,
    },
    /// It needs root and we are not.
    #[error("workload `{workload}` needs root; run perflab as root (sudo)")]
    NeedsRoot {
        /// the workload
        workload: String,
    },
    /// The machine is not one that it can run on.
    #[error("workload `{workload}` needs {lacks}")]
    UnfitMachine {
        /// the workload
        workload: String,
        /// what it needs, and what there is
        lacks: String,
    },
    /// It writes files and was given no directory.
    #[error("workload `{workload}` needs a scratch directory, and none was given")]
    NeedsScratch {
        /// the workload
        workload: String,
    },
    /// The scratch directory's file system is too full.
    #[error("workload `{workload}` needs {needed} in {directory}, and {free} are free")]
    DiskFull {
        /// the workload
        workload: String,
        /// the directory
        directory: String,
        /// what the definition asks for
        needed: perflab_model::Bytes,
        /// what there is
        free: perflab_model::Bytes,
    },
    /// A template of the definition has no value.
    #[error("workload `{workload}`: `{key}`: {cause}")]
    Template {
        /// the workload
        workload: String,
        /// which key of the definition
        key: String,
        /// why
        cause: ExpressionError,
    },
    /// Somebody else listens where the server is to.
    #[error("port {port} of 127.0.0.1 is taken: something listens on it already; choose another, or end it")]
    PortTaken {
        /// the port
        port: u16,
    },
    /// The server ended by itself, took too long to become ready, or was interrupted before it was.
    #[error("the server `{program}` {what}")]
    NoServer {
        /// the program
        program: String,
        /// what it did, with the end of its output
        what: String,
    },
    /// Nothing to execute.
    #[error("nothing to run: argv is empty")]
    Empty,
    /// The program is not on PATH, or may not be executed.
    #[error("cannot start `{program}`: {cause}; is it installed and on PATH?")]
    Start {
        /// the program
        program: String,
        /// the system's reason
        cause: std::io::Error,
    },
    /// A control group that it is to be in cannot be opened.
    #[error("cannot open the control group {}: {cause}", path.display())]
    ControlGroup {
        /// the group's `cgroup.procs`
        path: std::path::PathBuf,
        /// the system's reason
        cause: std::io::Error,
    },
    /// The system refused something while it ran.
    #[error("while running `{program}`: cannot {action}: {cause}")]
    Running {
        /// the program
        program: String,
        /// what was tried
        action: &'static str,
        /// the system's reason
        cause: std::io::Error,
    },
}

impl Classify for WorkloadError {
    fn class(&self) -> ErrorClass {
        match self {
            WorkloadError::NotInstalled { .. }
            | WorkloadError::NeedsRoot { .. }
            | WorkloadError::UnfitMachine { .. }
            | WorkloadError::NeedsScratch { .. }
            | WorkloadError::DiskFull { .. }
            | WorkloadError::Empty
            | WorkloadError::PortTaken { .. }
            | WorkloadError::NoServer { .. }
            | WorkloadError::Start { .. }
            | WorkloadError::ControlGroup { .. }
            | WorkloadError::Running { .. } => ErrorClass::Environment,
            WorkloadError::Template { cause, .. } => cause.class(),
        }
    }
}
