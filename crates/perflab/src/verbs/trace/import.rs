//! `perflab trace import`

use perflab_archive::import::import_trace;

use crate::arguments::trace::Import;
use crate::context::Context;
use crate::exit::Exit;

/// Makes a run of a trace file.
pub fn import(context: &Context, wanted: &Import) -> anyhow::Result<Exit> {
    crate::verbs::import::refuse_endless(&wanted.file)?;
    let run = import_trace(&context.archive()?, &wanted.file, wanted.label.clone())?;
    super::record::say_told(context, &run)?;
    Ok(Exit::Fine)
}
