//! perflab: tells you what a change does to a Linux system.
//!
//! The one binary: arguments become plain validated specs, each verb is one call, and here alone a source of events
//! meets its consumers. Exit codes are in [`failure`].

#![warn(clippy::print_stderr, reason = "`stderr_line!` does not end what is done where nobody listens")]

#[macro_use]
mod stderr;
pub mod app;
mod cli;
mod failure;
mod instruments;
pub mod internal;
mod keep;
mod laboratory;
mod measure;
mod output_path;
mod quantities;
mod see;
mod selection;
mod signals;
mod study_source;

use std::process::ExitCode;

use perflab_conduct::ConductError;

use crate::app::App;
use crate::cli::{Cli, VerbArgs};
use crate::failure::Exit;

fn main() -> ExitCode {
    if perflab_guest::is_guest_init() {
        // In a guest that perflab booted, whatever words the kernel was given.
        perflab_guest::run_init();
    }
    if let Some(place) = perflab_guest::guest_agent_address() {
        return crate::internal::run_guest_agent(&place);
    }
    let arguments = match Cli::read() {
        Ok(arguments) => arguments,
        Err(mut asked) => return crate::failure::print_usage_error(&mut asked),
    };
    if let Err(refused) = check_temporary_folder(&arguments.verb) {
        crate::failure::print_failure(&refused);
        return crate::failure::exit_for_error(&refused).into();
    }
    let done = match &arguments.verb {
        VerbArgs::Load(wanted) => return crate::laboratory::workload::run_builtin_load(wanted),
        VerbArgs::ExecutionGuard(wanted) => {
            perflab_workload::guard_executions(&wanted.executor);
            return Exit::Fine.into();
        }
        VerbArgs::Launch(wanted) => return crate::laboratory::vm::launch_program(wanted),
        VerbArgs::Terminal(wanted) => return crate::laboratory::vm::open_terminal(wanted),
        VerbArgs::Vm(wanted) => crate::laboratory::vm::run_vm_verb(&App::new(&arguments.global), wanted),
        VerbArgs::Prefetch(wanted) => {
            crate::instruments::prefetch::run_prefetch_verb(&App::new(&arguments.global), wanted)
        }
        _ => dispatch_verb(&arguments).map(ExitCode::from),
    };
    match done {
        Ok(exit) => exit,
        Err(error) if crate::failure::is_broken_pipe(&error) => Exit::Fine.into(),
        Err(error) => {
            crate::failure::print_failure(&error);
            crate::failure::exit_for_error(&error).into()
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
        VerbArgs::Run(wanted) => crate::measure::run::run_study(&context, wanted),
        VerbArgs::Compare(wanted) => crate::see::compare::compare_runs(&context, wanted),
        VerbArgs::Report(wanted) => crate::see::report::report_runs(&context, wanted),
        VerbArgs::History(wanted) => crate::see::history::show_history(&context, wanted),
        VerbArgs::Guard(wanted) => crate::see::history::guard_newest_run(&context, wanted),
        VerbArgs::Plan(wanted) => crate::laboratory::noise::plan_sample_size(&context, wanted),
        VerbArgs::Noise(wanted) => crate::laboratory::noise::measure_or_show_noise(&context, wanted),
        VerbArgs::List(wanted) => crate::keep::runs::list_runs(&context, wanted),
        VerbArgs::Label(wanted) => crate::keep::runs::label_run(&context, wanted),
        VerbArgs::Rm(wanted) => crate::keep::runs::remove_runs(&context, wanted),
        VerbArgs::Show(wanted) => crate::see::show::show_run(&context, wanted),
        VerbArgs::Diff(wanted) => crate::keep::runs::diff_runs(&context, wanted),
        VerbArgs::Prune(wanted) => crate::keep::runs::prune_runs(&context, wanted),
        VerbArgs::Export(wanted) => crate::keep::exchange::export_stored_run(&context, wanted),
        VerbArgs::Import(wanted) => crate::keep::exchange::import_named_path(&context, wanted),
        VerbArgs::Study(wanted) => crate::laboratory::study::run_study_verb(&context, wanted),
        VerbArgs::Workload(wanted) => crate::laboratory::workload::run_workload_verb(&context, wanted),
        VerbArgs::Monitor(crate::laboratory::machine::MonitorArgs {
            verb: crate::laboratory::machine::MonitorVerb::List,
        }) => crate::laboratory::machine::list_monitors(&context),
        VerbArgs::Trace(wanted) => crate::instruments::trace::run_trace_verb(&context, &wanted.verb),
        VerbArgs::Slab(wanted) => crate::instruments::slab::run_slab_verb(&context, &wanted.verb),
        VerbArgs::Flame(wanted) => crate::instruments::flame::run_flame_verb(&context, &wanted.verb),
        VerbArgs::Io(wanted) => crate::instruments::io::run_io_verb(&context, &wanted.verb),
        VerbArgs::Startup(wanted) => crate::instruments::startup::measure_startups(&context, wanted),
        VerbArgs::StartOnce(wanted) => {
            crate::instruments::startup_once::measure_one_startup(&context, wanted)
        }
        VerbArgs::Check(wanted) => crate::laboratory::machine::check_machine(&context, wanted),
        VerbArgs::Undo(wanted) => crate::laboratory::machine::undo_settings(&context, wanted),
        VerbArgs::PrefetchGuard(wanted) => crate::instruments::prefetch::guard_execs(wanted),
        VerbArgs::DiskServer(wanted) => crate::internal::run_disk_server(wanted),
        VerbArgs::Agent(wanted) => crate::internal::run_agent(wanted),
        VerbArgs::Kernel(wanted) => crate::laboratory::kernel::run_kernel_verb(&context, wanted),
        // Taken by `main`: their exit codes are their own.
        VerbArgs::Load(_)
        | VerbArgs::ExecutionGuard(_)
        | VerbArgs::Launch(_)
        | VerbArgs::Terminal(_)
        | VerbArgs::Vm(_)
        | VerbArgs::Prefetch(_) => Ok(Exit::Fine),
    }
}
