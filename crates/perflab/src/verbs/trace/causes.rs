//! `perflab trace causes`

use perflab_analyze::trace::{Report, sentences};
use perflab_present::table::Format;
use perflab_present::trace::causes_grid;

use super::stored::analyzed;
use crate::arguments::trace::Causes;
use crate::context::Context;
use crate::exit::Exit;
use crate::verbs::slab::output;

/// What makes the slow ones slow: a table of causes, and sentences below it.
pub fn causes(context: &Context, wanted: &Causes) -> anyhow::Result<Exit> {
    let (_, report) = analyzed(context, &wanted.run, &wanted.which)?;
    print(context, &report)?;
    Ok(Exit::Fine)
}

/// Prints the answer about one trace.
pub fn print(context: &Context, report: &Report) -> anyhow::Result<()> {
    output::print(context, report, || causes_grid(report))?;
    if context.format == Format::Table {
        context.write(&(String::from("\n") + &sentences(report).join("\n")))?;
    }
    Ok(())
}
