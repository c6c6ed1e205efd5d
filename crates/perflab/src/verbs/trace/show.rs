//! `perflab trace show`

use perflab_analyze::operations::probe_conclusions;
use perflab_present::operations::slowest_grid;

use super::stored::analyze_iteration;
use crate::arguments::trace::{OperationSelection, TraceShowArgs};
use crate::context::App;
use crate::exit::{Exit, UsageError};

/// The slowest operations, each with what happened in it.
pub fn show_slowest_operations(context: &App, wanted: &TraceShowArgs) -> anyhow::Result<Exit> {
    if (wanted.which.above - OperationSelection::ABOVE).abs() > f64::EPSILON {
        let what =
            "--above says which operations are outliers, and `trace show` lists the slowest, outliers or not";
        return Err(UsageError::new(
            what,
            "`perflab trace causes --above` counts outliers; --top lists more here",
        )
        .into());
    }
    let (operations, report) = analyze_iteration(context, &wanted.run, &wanted.which)?;
    probe_conclusions(&report).into_iter().for_each(|sentence| context.note(sentence));
    context.print_grid(&slowest_grid(&operations, &report, wanted.top))?;
    Ok(Exit::Fine)
}
