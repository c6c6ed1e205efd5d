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

use perflab_settings::SettingError;

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
        VerbArgs::Load(args) => return crate::laboratory::workload::run_builtin_load(args),
        VerbArgs::ExecutionGuard(args) => {
            perflab_workload::guard_executions(&args.executor);
            return Exit::Fine.into();
        }
        VerbArgs::Launch(args) => return crate::laboratory::vm::launch_program(args),
        VerbArgs::Terminal(args) => return crate::laboratory::vm::open_terminal(args),
        VerbArgs::Vm(args) => crate::laboratory::vm::run_vm_verb(&App::new(&arguments.global), args),
        VerbArgs::Prefetch(args) => {
            crate::instruments::prefetch::run_prefetch_verb(&App::new(&arguments.global), args)
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
    match perflab_settings::temporary_folder() {
        // What needs it says so.
        Ok(_) | Err(SettingError::Folder { .. }) => Ok(()),
        Err(refused) => Err(refused.into()),
    }
}

fn dispatch_verb(arguments: &Cli) -> anyhow::Result<Exit> {
    let context = App::new(&arguments.global);
    signals::remember_archive(context.archive_path());
    match &arguments.verb {
        VerbArgs::Run(args) => crate::measure::run::run_study(&context, args),
        VerbArgs::Compare(args) => crate::see::compare::compare_runs(&context, args),
        VerbArgs::Report(args) => crate::see::report::report_runs(&context, args),
        VerbArgs::History(args) => crate::see::history::show_history(&context, args),
        VerbArgs::Guard(args) => crate::see::history::guard_newest_run(&context, args),
        VerbArgs::Plan(args) => crate::laboratory::noise::plan_sample_size(&context, args),
        VerbArgs::Noise(args) => crate::laboratory::noise::measure_or_show_noise(&context, args),
        VerbArgs::List(args) => crate::keep::runs::list_runs(&context, args),
        VerbArgs::Label(args) => crate::keep::runs::label_run(&context, args),
        VerbArgs::Rm(args) => crate::keep::runs::remove_runs(&context, args),
        VerbArgs::Show(args) => crate::see::show::show_run(&context, args),
        VerbArgs::Diff(args) => crate::keep::runs::diff_runs(&context, args),
        VerbArgs::Prune(args) => crate::keep::runs::prune_runs(&context, args),
        VerbArgs::Export(args) => crate::keep::exchange::export_stored_run(&context, args),
        VerbArgs::Import(args) => crate::keep::exchange::import_named_path(&context, args),
        VerbArgs::Study(args) => crate::laboratory::study::run_study_verb(&context, args),
        VerbArgs::Workload(args) => crate::laboratory::workload::run_workload_verb(&context, args),
        VerbArgs::Monitor(crate::laboratory::machine::MonitorArgs {
            verb: crate::laboratory::machine::MonitorVerb::List,
        }) => crate::laboratory::machine::list_monitors(&context),
        VerbArgs::Trace(args) => crate::instruments::trace::run_trace_verb(&context, &args.verb),
        VerbArgs::Slab(args) => crate::instruments::slab::run_slab_verb(&context, &args.verb),
        VerbArgs::Flame(args) => crate::instruments::flame::run_flame_verb(&context, &args.verb),
        VerbArgs::Io(args) => crate::instruments::io::run_io_verb(&context, &args.verb),
        VerbArgs::Startup(args) => crate::instruments::startup::measure_startups(&context, args),
        VerbArgs::StartOnce(args) => crate::instruments::startup_once::measure_one_startup(&context, args),
        VerbArgs::Check(args) => crate::laboratory::machine::check_machine(&context, args),
        VerbArgs::Undo(args) => crate::laboratory::machine::undo_settings(&context, args),
        VerbArgs::PrefetchGuard(args) => crate::instruments::prefetch::guard_execs(args),
        VerbArgs::DiskServer(args) => crate::internal::run_disk_server(args),
        VerbArgs::Agent(args) => crate::internal::run_agent(args),
        VerbArgs::Kernel(args) => crate::laboratory::kernel::run_kernel_verb(&context, args),
        // Taken by `main`: their exit codes are their own.
        VerbArgs::Load(_)
        | VerbArgs::ExecutionGuard(_)
        | VerbArgs::Launch(_)
        | VerbArgs::Terminal(_)
        | VerbArgs::Vm(_)
        | VerbArgs::Prefetch(_) => Ok(Exit::Fine),
    }
}
