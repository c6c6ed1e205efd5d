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
use perflab_prefetch::{Policy, Store, store};
use perflab_present::table::Format;

use crate::arguments::prefetch::{PolicyName, Prefetch, PrefetchVerb};
use crate::context::Context;
use crate::exit::Usage;

pub use daemon::guard;
pub use fine::finely;
pub use known::known;
pub use relayout::bring_together;
pub use replay::{Reading, Rules, half_of_free, prepare};

/// Carries out a verb. A program that was started gives the exit code.
pub fn run(context: &Context, wanted: &Prefetch) -> anyhow::Result<ExitCode> {
    let store = Store::locate(wanted.store.as_deref());
    match &wanted.verb {
        PrefetchVerb::Learn(wanted) => learn::learn(context, &store, wanted),
        PrefetchVerb::Replay(wanted) => replay::replay(context, &store, wanted),
        PrefetchVerb::Show(wanted) => show::show(context, &store, wanted).map(ExitCode::from),
        PrefetchVerb::Relayout(wanted) => relayout::relayout(context, &store, wanted).map(ExitCode::from),
        PrefetchVerb::Forget(wanted) => show::forget(context, &store, wanted).map(ExitCode::from),
        PrefetchVerb::Daemon(wanted) => daemon::daemon(context, store, wanted).map(ExitCode::from),
        PrefetchVerb::Status(wanted) => status::status(context, &store, wanted).map(ExitCode::from),
    }
}

/// Under which name a command is remembered.
fn name(wanted: Option<&Path>, command: &[OsString]) -> anyhow::Result<PathBuf> {
    match wanted {
        Some(name) if name.as_os_str().is_empty() => {
            Err(Usage::new("--name: it is empty", "for example `--name report`").into())
        }
        Some(name) => Ok(name.into()),
        None => Ok(store::name_trace(command)?),
    }
}

fn policy(name: PolicyName) -> Policy {
    match name {
        PolicyName::Last => Policy::Last,
        PolicyName::Intersection => Policy::Intersection,
        PolicyName::Union => Policy::Union,
    }
}

/// The exit code of a program that was started here, as a shell would give it.
fn code(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt as _;
    let signal = status.signal().map(|signal| 128 + signal);
    status.code().or(signal).and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// Starts a program. Where standard output is one JSON document, the program's goes to standard error.
fn spawn(context: &Context, command: &[OsString]) -> anyhow::Result<Child> {
    let (word, rest) = command.split_first().context("no command")?;
    let mut program = Command::new(word);
    program.args(rest);
    if context.format == Format::Json {
        program.stdout(std::io::stderr());
    }
    program.spawn().with_context(|| format!("cannot start {}", word.display()))
}
