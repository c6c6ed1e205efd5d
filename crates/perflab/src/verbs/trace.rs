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

pub use sections::{conclusions, sections};

use crate::arguments::trace::TraceVerb;
use crate::context::Context;
use crate::exit::Exit;

/// Carries out a verb of the tracing instrument.
pub fn run(context: &Context, verb: &TraceVerb) -> anyhow::Result<Exit> {
    match verb {
        TraceVerb::Run(wanted) => record::record(context, wanted),
        TraceVerb::Attach(wanted) => attach::attach(context, wanted),
        TraceVerb::Import(wanted) => import::import(context, wanted),
        TraceVerb::Show(wanted) => show::show(context, wanted),
        TraceVerb::Causes(wanted) => causes::causes(context, wanted),
        TraceVerb::Plot(wanted) => plot::plot(context, wanted),
        TraceVerb::Compare(wanted) => compare::compare(context, wanted),
    }
}
