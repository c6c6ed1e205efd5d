//! An error with its class, how it is printed, and exit codes.
//!
//! An error is printed once, on stderr, with its position in the file where there is one. Exit codes are part of the
//! interface: documented in `--help` and the book.

use std::io::{self, ErrorKind, IsTerminal};
use std::process::ExitCode;

use miette::{GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteDiagnostic, NamedSource, Report};
use perflab_archive::ArchiveError;
use perflab_conduct::ConductError;
use perflab_guest::GuestError;
use perflab_guest::InitramfsError;
use perflab_guest::KernelError;
use perflab_import::ImportError;
use perflab_model::{Problem, Problems};
use perflab_observe::probes::ProbeError;
use perflab_prefetch::daemon::DaemonError;
use perflab_settings::SettingError;
use perflab_startup::{PackageRootError, StartupError};
use perflab_workload::WorkloadError;
use perflab_workload::install::InstallError;

/// What the process tells its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// all is well
    Fine,
    /// something unexpected
    Unexpected,
    /// the command line or a file that the user wrote is wrong
    Usage,
    /// the environment refuses: root, a package, room
    Refused,
    /// a workload failed, or the run was stopped
    WorkloadFailed,
    /// `--fail-if` found what it looks for, `guard` something worse
    Regression,
    /// settings are not what they were; what they hold now was said
    LeftChanged,
    /// `guard`, `noise` or `--fail-if` had nothing that it could judge: no pass
    NothingJudged,
    /// the code of a program that perflab ran in its own place
    Program(u8),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(match exit {
            Exit::Fine => 0,
            Exit::Unexpected => 1,
            Exit::Usage => 2,
            Exit::Refused => 3,
            Exit::WorkloadFailed => 4,
            Exit::Regression => 5,
            Exit::LeftChanged => 6,
            Exit::NothingJudged => 7,
            Exit::Program(code) => code,
        })
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
        Some(ConductError::Level { .. }) => Exit::Refused,
        Some(ConductError::Setting(error)) if is_setting_refused(error) => Exit::Refused,
        _ if error.downcast_ref().is_some_and(is_setting_refused) => Exit::Refused,
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

/// Whether the kernel or this user's rights refuse a setting.
fn is_setting_refused(error: &SettingError) -> bool {
    match error {
        SettingError::Refused(_) | SettingError::ValueRefused { .. } | SettingError::ValueIgnored { .. } => {
            true
        }
        SettingError::File { source, .. } => source.kind() == ErrorKind::PermissionDenied,
        _ => false,
    }
}

/// Whether there is no room, or no right to write, where something is kept.
fn is_refused_by_storage(error: &anyhow::Error) -> bool {
    let archive = |cause: &(dyn std::error::Error + 'static)| {
        cause.downcast_ref::<ArchiveError>().is_some_and(ArchiveError::is_environment_refusal)
            || cause.downcast_ref::<ImportError>().is_some_and(ImportError::is_environment_refusal)
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
        Ambiguous, Exists, Live, NoDirectory, NoIo, NoSeries, NoStacks, NoTrace, NotFound, Refused, Trace,
    };
    matches!(
        error,
        NotFound { .. }
            | Ambiguous { .. }
            | Live { .. }
            | Exists { .. }
            | NoDirectory { .. }
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
        || matches!(error.downcast_ref(), Some(ImportError::Foreign { .. } | ImportError::Trace(_)))
}

/// Whether the error is only that nobody reads our output any more (`perflab list | head`).
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = |cause: &(dyn std::error::Error + 'static)| {
        cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    };
    error.chain().any(io)
}

/// Prints an error and its causes.
pub fn print_failure(error: &anyhow::Error) {
    match error.downcast_ref::<Problems>() {
        Some(problems) => print_problems(problems),
        None => print_causes(error),
    }
}

fn print_causes(error: &anyhow::Error) {
    stderr_line!("error: {}", causes_text(error));
}

/// The error with its causes, each of which is printed once.
fn causes_text(error: &anyhow::Error) -> String {
    let mut message = String::new();
    for cause in error.chain() {
        let text = cause.to_string();
        // A transparent error repeats its source, and others name it amid their words.
        if !message.contains(&text) {
            message = if message.is_empty() { text } else { format!("{message}: {text}") };
        }
    }
    message
}

/// For a person, the line of the file with a mark; for a pipe, one line a problem that editors can jump to.
fn print_problems(problems: &Problems) {
    if !io::stderr().is_terminal() {
        for line in problems.to_string().lines() {
            stderr_line!("error: {line}");
        }
        return;
    }
    let theme = match std::env::var_os("NO_COLOR") {
        Some(_) => GraphicalTheme::unicode_nocolor(),
        None => GraphicalTheme::unicode(),
    };
    let handler = GraphicalReportHandler::new_themed(theme);
    for problem in &problems.list {
        let report = problem_report(problems, problem);
        let mut text = String::new();
        if handler.render_report(&mut text, report.as_ref()).is_ok() {
            crate::stderr::write_stderr_coloured(&text);
        }
    }
}

fn problem_report(problems: &Problems, problem: &Problem) -> Report {
    let key = if problem.key.is_empty() { String::new() } else { format!("`{}`: ", problem.key) };
    let mut diagnostic = MietteDiagnostic::new(format!("{key}{}", problem.message));
    diagnostic.help = problem.hint.clone();
    if let Some(span) = &problem.span {
        diagnostic.labels = Some(vec![LabeledSpan::underline(span.clone())]);
    }
    Report::new(diagnostic).with_source_code(NamedSource::new(&problems.file, problems.text.clone()))
}

/// Prints help or a version where that was asked for, else what is wrong with the command line.
pub fn print_usage_error(asked: &clap::Error) -> std::process::ExitCode {
    let code = u8::try_from(asked.exit_code()).unwrap_or(2);
    match asked.print() {
        Err(error) if !asked.use_stderr() && error.kind() != io::ErrorKind::BrokenPipe => {
            stderr_line!("error: cannot write to stdout: {error}");
            Exit::Unexpected.into()
        }
        // Said to nobody: stderr is broken, or its reader has enough.
        _ => code.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::causes_text;

    #[test]
    fn a_cause_is_said_once_wherever_the_words_before_name_it() {
        let error =
            anyhow::anyhow!("no room").context("cannot write /a: no room; free some").context("saving");
        assert_eq!(causes_text(&error), "saving: cannot write /a: no room; free some");
        assert_eq!(causes_text(&anyhow::anyhow!("no room").context("no room")), "no room");
    }
}
