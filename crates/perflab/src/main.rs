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

use arguments::{Cli, VerbArgs};
use context::App;
use exit::Exit;
use perflab_conduct::ConductError;

fn main() -> ExitCode {
    if perflab_conduct::is_guest_init() {
        // In a guest that perflab booted, whatever words the kernel was given.
        perflab_conduct::run_init();
    }
    if let Some(place) = perflab_conduct::guest_agent_address() {
        return verbs::agent::run_guest_agent(&place);
    }
    let arguments = match Cli::read() {
        Ok(arguments) => arguments,
        Err(mut asked) => return complain::print_usage_error(&mut asked),
    };
    if let Err(refused) = check_temporary_folder(&arguments.verb) {
        complain::print_failure(&refused);
        return exit::exit_for_error(&refused).into();
    }
    let done = match &arguments.verb {
        VerbArgs::Load(wanted) => return verbs::workload::run_builtin_load(wanted),
        VerbArgs::ExecutionGuard(wanted) => {
            perflab_workload::guard_executions(&wanted.executor);
            return Exit::Fine.into();
        }
        VerbArgs::Launch(wanted) => return verbs::vm::launch_program(wanted),
        VerbArgs::Terminal(wanted) => return verbs::vm::open_terminal(wanted),
        VerbArgs::Vm(wanted) => verbs::vm::run_vm_verb(&App::new(&arguments.global), wanted),
        VerbArgs::Prefetch(wanted) => {
            verbs::prefetch::run_prefetch_verb(&App::new(&arguments.global), wanted)
        }
        _ => dispatch_verb(&arguments).map(ExitCode::from),
    };
    match done {
        Ok(exit) => exit,
        Err(error) if complain::is_broken_pipe(&error) => Exit::Fine.into(),
        Err(error) => {
            complain::print_failure(&error);
            exit::exit_for_error(&error).into()
        }
    }
}

/// Refuses a folder for temporary files that somebody else may change, before any verb writes there: who may replace what lies in it
/// says what is unpacked where. Not for what puts things back and what perflab started, which write nothing there.
fn check_temporary_folder(verb: &VerbArgs) -> anyhow::Result<()> {
    let writes_nothing = matches!(
        verb,
        VerbArgs::Undo(_)
            | VerbArgs::Agent(_)
            | VerbArgs::DiskServer(_)
            | VerbArgs::ExecutionGuard(_)
            | VerbArgs::PrefetchGuard(_)
            | VerbArgs::StartOnce(_)
            | VerbArgs::Launch(_)
            | VerbArgs::Terminal(_)
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

fn dispatch_verb(arguments: &Cli) -> anyhow::Result<Exit> {
    let context = App::new(&arguments.global);
    signals::remember_archive(context.archive_path());
    match &arguments.verb {
        VerbArgs::Run(wanted) => verbs::run::run_study(&context, wanted),
        VerbArgs::Compare(wanted) => verbs::compare::compare_runs(&context, wanted),
        VerbArgs::Report(wanted) => verbs::report::report_runs(&context, wanted),
        VerbArgs::History(wanted) => verbs::history::show_history(&context, wanted),
        VerbArgs::Guard(wanted) => verbs::guard::guard_newest_run(&context, wanted),
        VerbArgs::Plan(wanted) => verbs::plan::plan_sample_size(&context, wanted),
        VerbArgs::Noise(wanted) => verbs::noise::measure_or_show_noise(&context, wanted),
        VerbArgs::List(wanted) => verbs::runs::list_runs(&context, wanted),
        VerbArgs::Label(wanted) => verbs::runs::label_run(&context, wanted),
        VerbArgs::Rm(wanted) => verbs::runs::remove_runs(&context, wanted),
        VerbArgs::Show(wanted) => verbs::show::show_run(&context, wanted),
        VerbArgs::Diff(wanted) => verbs::runs::diff_runs(&context, wanted),
        VerbArgs::Prune(wanted) => verbs::runs::prune_runs(&context, wanted),
        VerbArgs::Export(wanted) => verbs::export::export_stored_run(&context, wanted),
        VerbArgs::Import(wanted) => verbs::import::import_named_path(&context, wanted),
        VerbArgs::Study(wanted) => verbs::study::run_study_verb(&context, wanted),
        VerbArgs::Workload(wanted) => verbs::workload::run_workload_verb(&context, wanted),
        VerbArgs::Monitor(arguments::MonitorArgs { verb: arguments::MonitorVerb::List }) => {
            verbs::laboratory::list_monitors(&context)
        }
        VerbArgs::Trace(wanted) => verbs::trace::run_trace_verb(&context, &wanted.verb),
        VerbArgs::Slab(wanted) => verbs::slab::run_slab_verb(&context, &wanted.verb),
        VerbArgs::Flame(wanted) => verbs::flame::run_flame_verb(&context, &wanted.verb),
        VerbArgs::Io(wanted) => verbs::io::run_io_verb(&context, &wanted.verb),
        VerbArgs::Startup(wanted) => verbs::startup::measure_startups(&context, wanted),
        VerbArgs::StartOnce(wanted) => verbs::startup::measure_one_startup(&context, wanted),
        VerbArgs::Check(wanted) => verbs::laboratory::check_machine(&context, wanted),
        VerbArgs::Undo(wanted) => verbs::laboratory::undo_settings(&context, wanted),
        VerbArgs::PrefetchGuard(wanted) => verbs::prefetch::guard_execs(wanted),
        VerbArgs::DiskServer(wanted) => verbs::disk_server::run_disk_server(wanted),
        VerbArgs::Agent(wanted) => verbs::agent::run_agent(wanted),
        VerbArgs::Kernel(wanted) => verbs::kernel::run_kernel_verb(&context, wanted),
        // Taken by `main`: their exit codes are their own.
        VerbArgs::Load(_)
        | VerbArgs::ExecutionGuard(_)
        | VerbArgs::Launch(_)
        | VerbArgs::Terminal(_)
        | VerbArgs::Vm(_)
        | VerbArgs::Prefetch(_) => Ok(Exit::Fine),
    }
}
