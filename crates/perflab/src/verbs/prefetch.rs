//! `perflab prefetch`

mod daemon;
mod fine;
mod known;
mod learn;
mod relayout;
mod replay;
mod show;
mod status;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus};

use anyhow::Context as _;
use perflab_prefetch::{CombinePolicy, TraceStore, trace_store};
use perflab_present::comparison::OutputFormat;

use crate::arguments::prefetch::{PrefetchArgs, PrefetchVerb, TracePolicyName};
use crate::context::App;
use crate::exit::UsageError;

pub use daemon::guard_execs;
pub use fine::lower_read_ahead;
pub use known::read_known_pages;
pub use relayout::relayout_program;
pub use replay::{ReplayRules, ReplaySession, default_memory_budget, prepare_replay};

/// Carries out a verb. A program that was started gives the exit code.
pub fn run_prefetch_verb(context: &App, wanted: &PrefetchArgs) -> anyhow::Result<ExitCode> {
    let store = TraceStore::locate(wanted.store.as_deref());
    match &wanted.verb {
        PrefetchVerb::Learn(wanted) => learn::learn_program(context, &store, wanted),
        PrefetchVerb::Replay(wanted) => replay::replay_program(context, &store, wanted),
        PrefetchVerb::Show(wanted) => show::show_traces(context, &store, wanted).map(ExitCode::from),
        PrefetchVerb::Relayout(wanted) => {
            relayout::show_or_relayout(context, &store, wanted).map(ExitCode::from)
        }
        PrefetchVerb::Forget(wanted) => show::forget_programs(context, &store, wanted).map(ExitCode::from),
        PrefetchVerb::Daemon(wanted) => {
            daemon::run_prefetch_daemon(context, store, wanted).map(ExitCode::from)
        }
        PrefetchVerb::Status(wanted) => {
            status::show_daemon_status(context, &store, wanted).map(ExitCode::from)
        }
    }
}

/// Under which name a command is remembered.
fn remembered_name(wanted: Option<&Path>, command: &[OsString]) -> anyhow::Result<PathBuf> {
    match wanted {
        Some(name) if name.as_os_str().is_empty() => {
            Err(UsageError::new("--name: it is empty", "for example `--name report`").into())
        }
        Some(name) => Ok(name.into()),
        None => Ok(trace_store::trace_name(command)?),
    }
}

fn trace_policy(name: TracePolicyName) -> CombinePolicy {
    match name {
        TracePolicyName::Last => CombinePolicy::Last,
        TracePolicyName::Intersection => CombinePolicy::Intersection,
        TracePolicyName::Union => CombinePolicy::Union,
    }
}

/// The exit code of a program that was started here, as a shell would give it.
fn shell_exit_code(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt as _;
    let signal = status.signal().map(|signal| 128 + signal);
    status.code().or(signal).and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// Starts a program. Where standard output is one JSON document, the program's goes to standard error.
fn spawn_program(context: &App, command: &[OsString]) -> anyhow::Result<Child> {
    let (word, rest) = command.split_first().context("no command")?;
    let mut program = Command::new(word);
    program.args(rest);
    if context.format == OutputFormat::Json {
        program.stdout(std::io::stderr());
    }
    program.spawn().with_context(|| format!("cannot start {}", word.display()))
}
