//! `perflab trace import`

use perflab_archive::import::import_program_trace;

use crate::arguments::trace::TraceImportArgs;
use crate::context::App;
use crate::exit::Exit;

/// Makes a run of a trace file.
pub fn import_trace_file(context: &App, wanted: &TraceImportArgs) -> anyhow::Result<Exit> {
    crate::verbs::import::refuse_endless(&wanted.file)?;
    let run = import_program_trace(&context.archive()?, &wanted.file, wanted.label.clone())?;
    super::record::print_trace_summary(context, &run)?;
    Ok(Exit::Fine)
}
