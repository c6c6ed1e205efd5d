//! `perflab trace`: every operation of a program, and what makes the slow ones slow.

mod attach;
mod binaries;
mod causes;
mod compare;
mod import;
mod places;
mod plot;
mod record;
mod sections;
mod show;
mod slowdown;
mod stored;
mod watched_process;

pub use sections::{conclude_operations, operation_sections};

use crate::arguments::trace::TraceVerb;
use crate::context::App;
use crate::exit::Exit;

/// Carries out a verb of the tracing instrument.
pub fn run_trace_verb(context: &App, verb: &TraceVerb) -> anyhow::Result<Exit> {
    match verb {
        TraceVerb::Run(wanted) => record::record_trace(context, wanted),
        TraceVerb::Attach(wanted) => attach::attach_to_program(context, wanted),
        TraceVerb::Import(wanted) => import::import_trace_file(context, wanted),
        TraceVerb::Show(wanted) => show::show_slowest_operations(context, wanted),
        TraceVerb::Causes(wanted) => causes::show_causes(context, wanted),
        TraceVerb::Plot(wanted) => plot::plot_operations(context, wanted),
        TraceVerb::Compare(wanted) => compare::compare_traces(context, wanted),
    }
}
