//! perflab: tells you what a change does to a Linux system.
//!
//! The one binary: arguments become plain validated specs, each verb is one call, and here alone a
//! source of events meets its consumers. Exit codes are in [`exit`].
#![warn(clippy::print_stderr, reason = "`stderr_line!` does not end what is done where nobody listens")]

#[macro_use]
mod stderr;

mod arguments;
mod complain;
mod consume;
mod context;
mod exit;
mod manifest;
mod output_path;
mod quantities;
mod shipped;
mod sides;
mod signals;
mod verbs;

use std::process::ExitCode;

use arguments::{Arguments, Verb};
use context::Context;
use exit::Exit;
use perflab_conduct::ConductError;

fn main() -> ExitCode {
    if perflab_conduct::init::is_first() {
        // In a guest that perflab booted, whatever words the kernel was given.
        perflab_conduct::init::run();
    }
    if let Some(place) = perflab_conduct::init::agents_place() {
        return verbs::agent::in_guest(&place);
    }
    let arguments = match Arguments::read() {
        Ok(arguments) => arguments,
        Err(mut asked) => return complain::print_usage(&mut asked),
    };
    if let Err(refused) = check_temporary(&arguments.verb) {
        complain::print(&refused);
        return exit::of(&refused).into();
    }
    let done = match &arguments.verb {
        Verb::Load(wanted) => return verbs::workload::load(wanted),
        Verb::ExecutionGuard(wanted) => {
            perflab_workload::run::guard_executions(&wanted.executor);
            return Exit::Fine.into();
        }
        Verb::Launch(wanted) => return verbs::vm::launched(wanted),
        Verb::Terminal(wanted) => return verbs::vm::terminal(wanted),
        Verb::Vm(wanted) => verbs::vm::run(&Context::new(&arguments.global), wanted),
        Verb::Prefetch(wanted) => verbs::prefetch::run(&Context::new(&arguments.global), wanted),
        _ => run(&arguments).map(ExitCode::from),
    };
    match done {
        Ok(exit) => exit,
        Err(error) if complain::is_broken_pipe(&error) => Exit::Fine.into(),
        Err(error) => {
            complain::print(&error);
            exit::of(&error).into()
        }
    }
}

/// Refuses a folder for temporary files that somebody else may change, before any verb writes there: who may replace what lies in it
/// says what is unpacked where. Not for what puts things back and what perflab started, which write nothing there.
fn check_temporary(verb: &Verb) -> anyhow::Result<()> {
    let writes_nothing = matches!(
        verb,
        Verb::Undo(_)
            | Verb::Agent(_)
            | Verb::DiskServer(_)
            | Verb::ExecutionGuard(_)
            | Verb::PrefetchGuard(_)
            | Verb::StartOnce(_)
            | Verb::Launch(_)
            | Verb::Terminal(_)
    );
    if writes_nothing || std::env::var_os("TMPDIR").is_none() {
        return Ok(());
    }
    match perflab_conduct::leftovers::temporary_folder() {
        // What needs it says so.
        Ok(_) | Err(ConductError::Scratch { .. }) => Ok(()),
        Err(refused) => Err(refused.into()),
    }
}

fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    let context = Context::new(&arguments.global);
    signals::remember_archive(context.archive_path());
    match &arguments.verb {
        Verb::Run(wanted) => verbs::run::run(&context, wanted),
        Verb::Compare(wanted) => verbs::compare::run(&context, wanted),
        Verb::Report(wanted) => verbs::report::run(&context, wanted),
        Verb::History(wanted) => verbs::history::run(&context, wanted),
        Verb::Guard(wanted) => verbs::guard::run(&context, wanted),
        Verb::Plan(wanted) => verbs::plan::run(&context, wanted),
        Verb::Noise(wanted) => verbs::noise::run(&context, wanted),
        Verb::List(wanted) => verbs::runs::list(&context, wanted),
        Verb::Label(wanted) => verbs::runs::label(&context, wanted),
        Verb::Rm(wanted) => verbs::runs::remove(&context, wanted),
        Verb::Show(wanted) => verbs::show::run(&context, wanted),
        Verb::Diff(wanted) => verbs::runs::diff(&context, wanted),
        Verb::Prune(wanted) => verbs::runs::prune(&context, wanted),
        Verb::Export(wanted) => verbs::export::run(&context, wanted),
        Verb::Import(wanted) => verbs::import::run(&context, wanted),
        Verb::Study(wanted) => verbs::study::run(&context, wanted),
        Verb::Workload(wanted) => verbs::workload::run(&context, wanted),
        Verb::Monitor(arguments::Monitor { verb: arguments::MonitorVerb::List }) => {
            verbs::laboratory::monitors(&context)
        }
        Verb::Trace(wanted) => verbs::trace::run(&context, &wanted.verb),
        Verb::Slab(wanted) => verbs::slab::run(&context, &wanted.verb),
        Verb::Flame(wanted) => verbs::flame::run(&context, &wanted.verb),
        Verb::Io(wanted) => verbs::io::run(&context, &wanted.verb),
        Verb::Startup(wanted) => verbs::startup::run(&context, wanted),
        Verb::StartOnce(wanted) => verbs::startup::once(&context, wanted),
        Verb::Check(wanted) => verbs::laboratory::check(&context, wanted),
        Verb::Undo(wanted) => verbs::laboratory::undo(&context, wanted),
        Verb::PrefetchGuard(wanted) => verbs::prefetch::guard(wanted),
        Verb::DiskServer(wanted) => verbs::disk_server::run(wanted),
        Verb::Agent(wanted) => verbs::agent::run(wanted),
        Verb::Kernel(wanted) => verbs::kernel::run(&context, wanted),
        // Taken by `main`: their exit codes are their own.
        Verb::Load(_)
        | Verb::ExecutionGuard(_)
        | Verb::Launch(_)
        | Verb::Terminal(_)
        | Verb::Vm(_)
        | Verb::Prefetch(_) => Ok(Exit::Fine),
    }
}
