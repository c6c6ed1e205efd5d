//! `perflab trace show`

use perflab_present::trace::slowest_grid;

use super::stored::analyzed;
use crate::arguments::trace::Show;
use crate::context::Context;
use crate::exit::Exit;

/// The slowest operations, each with what happened in it.
pub fn show(context: &Context, wanted: &Show) -> anyhow::Result<Exit> {
    let (operations, report) = analyzed(context, &wanted.run, &wanted.which)?;
    context.print(&slowest_grid(&operations, &report, wanted.top))?;
    Ok(Exit::Fine)
}
