//! Exit codes, for scripts. They are part of the interface: documented in `--help` and the book.

use std::io::ErrorKind;
use std::process::ExitCode;

use perflab_archive::ArchiveError;
use perflab_conduct::ConductError;
use perflab_conduct::guest::GuestError;
use perflab_conduct::guest::initramfs::InitramfsError;
use perflab_conduct::guest::kernel::KernelError;
use perflab_conduct::startup::{PackageRootError, StartupError};
use perflab_model::Problems;
use perflab_observe::probes::ProbeError;
use perflab_prefetch::daemon::DaemonError;
use perflab_workload::WorkloadError;
use perflab_workload::install::InstallError;

/// What the process tells its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// all is well
    Fine = 0,
    /// something unexpected
    Unexpected = 1,
    /// the command line or a file that the user wrote is wrong
    Usage = 2,
    /// the environment refuses: root, a package, room
    Refused = 3,
    /// a workload failed, or the run was stopped
    WorkloadFailed = 4,
    /// `--fail-if` found what it looks for, `guard` something worse
    Regression = 5,
    /// settings are not what they were; what they hold now was said
    LeftChanged = 6,
    /// `guard`, `noise` or `--fail-if` had nothing that it could judge: no pass
    NothingJudged = 7,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}

/// A mistake of the user's that has no type of its own below.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}; {hint}")]
pub struct UsageError {
    /// what is wrong
    pub message: String,
    /// what to do
    pub hint: String,
}

impl UsageError {
    /// A usage error.
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        UsageError { message: message.into(), hint: hint.into() }
    }
}

/// A program that was to be measured and never came so far; what it printed has been shown.
#[derive(Debug, thiserror::Error)]
#[error("the program never started: {0}; nothing was learnt, nothing measured")]
pub struct ProgramNeverStartedError(pub String);

/// The code of an error that ended a verb.
pub fn exit_for_error(error: &anyhow::Error) -> Exit {
    if error.is::<Problems>() || error.is::<UsageError>() || is_library_usage(error) {
        return Exit::Usage;
    }
    let is_stopped = matches!(error.downcast_ref(), Some(GuestError::Stopped { .. }));
    if is_stopped || error.is::<ProgramNeverStartedError>() {
        return Exit::WorkloadFailed;
    }
    match error.downcast_ref::<ConductError>() {
        Some(ConductError::Refused(_) | ConductError::Install(_)) => Exit::Refused,
        Some(ConductError::LeftChanged(_)) => Exit::LeftChanged,
        Some(
            ConductError::Level { .. }
            | ConductError::SettingRefused { .. }
            | ConductError::SettingIgnored { .. },
        ) => Exit::Refused,
        Some(ConductError::Setting { source, .. }) if source.kind() == ErrorKind::PermissionDenied => {
            Exit::Refused
        }
        _ if is_refused_by_machine(error) || is_refused_by_kernel(error) => Exit::Refused,
        _ if error.is::<DaemonError>() || error.is::<PackageRootError>() => Exit::Refused,
        _ if error.is::<perflab_observe::io::IoTraceError>() => Exit::Refused,
        _ if matches!(
            error.downcast_ref(),
            Some(StartupError::Display { .. } | StartupError::Watch { .. })
        ) =>
        {
            Exit::Refused
        }
        _ if is_refused_by_storage(error) => Exit::Refused,
        _ if error.is::<WorkloadError>() || error.is::<InstallError>() => Exit::Refused,
        _ => Exit::Unexpected,
    }
}

/// Whether there is no room, or no right to write, where something is kept.
fn is_refused_by_storage(error: &anyhow::Error) -> bool {
    let archive = |cause: &(dyn std::error::Error + 'static)| {
        cause.downcast_ref::<ArchiveError>().is_some_and(ArchiveError::is_environment_refusal)
    };
    let read_only = |cause: &(dyn std::error::Error + 'static)| {
        cause.downcast_ref::<std::io::Error>().is_some_and(|one| one.kind() == ErrorKind::ReadOnlyFilesystem)
    };
    error.chain().any(|cause| archive(cause) || read_only(cause))
}

/// Whether uprobes are not there, or not allowed.
fn is_refused_by_kernel(error: &anyhow::Error) -> bool {
    use ProbeError::{NoUprobes, Refused, Ring};
    matches!(error.downcast_ref(), Some(NoUprobes | Refused { .. } | Ring { .. }))
}

/// Whether something that a guest or a kernel needs is missing here.
fn is_refused_by_machine(error: &anyhow::Error) -> bool {
    use GuestError::{Initramfs, Kernel, NoKvm, NoShare, NoVsock, NotInstalled, TooSmall};
    let parts = matches!(error.downcast_ref(), Some(Initramfs(_) | Kernel(_)));
    error.is::<KernelError>()
        || parts
        || matches!(
            error.downcast_ref(),
            Some(NoKvm { .. } | NoShare { .. } | NoVsock { .. } | NotInstalled { .. } | TooSmall { .. })
        )
}

/// Whether the archive only says that the user named the wrong thing.
fn is_archive_usage(error: &ArchiveError) -> bool {
    use ArchiveError::{
        Ambiguous, Exists, Foreign, Live, NoDirectory, NoIo, NoSeries, NoStacks, NoTrace, NotFound, Refused,
        Trace,
    };
    matches!(
        error,
        NotFound { .. }
            | Ambiguous { .. }
            | Live { .. }
            | Exists { .. }
            | NoDirectory { .. }
            | Foreign { .. }
            | Refused { .. }
            | NoSeries { .. }
            | NoStacks { .. }
            | NoTrace { .. }
            | NoIo { .. }
            | Trace(_)
    )
}

fn is_library_usage(error: &anyhow::Error) -> bool {
    error.is::<perflab_analyze::AnalyzeError>()
        || error.is::<perflab_workload::CatalogueError>()
        || error.is::<perflab_analyze::compare::gate::GateParseError>()
        || error.is::<perflab_analyze::slab::SlabError>()
        || matches!(error.downcast_ref(), Some(KernelError::Unknown { .. }))
        || matches!(error.downcast_ref(), Some(GuestError::Initramfs(InitramfsError::NoProgram { .. })))
        || matches!(error.downcast_ref(), Some(GuestError::NotRunning { .. }))
        || error.is::<perflab_analyze::operations::OperationError>()
        || matches!(
            error.downcast_ref(),
            Some(
                ProbeError::NoPlace { .. }
                    | ProbeError::Unsafe { .. }
                    | ProbeError::NotElf { .. }
                    | ProbeError::Read { .. }
                    | ProbeError::NoProcess { .. }
                    | ProbeError::NoConditions { .. }
            )
        )
        || error.is::<perflab_stacks::StacksError>()
        || error.is::<perflab_prefetch::PrefetchError>()
        || matches!(error.downcast_ref(), Some(StartupError::Command { .. }))
        || error.is::<perflab_observe::io::FileScanError>()
        || matches!(error.downcast_ref(), Some(DaemonError::NoMount(_) | DaemonError::List(_)))
        || error.is::<perflab_analyze::flame::CategoryRulesError>()
        || error.downcast_ref::<ArchiveError>().is_some_and(is_archive_usage)
}
