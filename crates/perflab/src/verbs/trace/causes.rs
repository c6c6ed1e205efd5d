//! `perflab trace causes`

use perflab_analyze::operations::{OperationReport, operation_conclusions};
use perflab_present::comparison::OutputFormat;
use perflab_present::operations::causes_grid;

use super::stored::analyze_iteration;
use crate::arguments::trace::CausesArgs;
use crate::context::App;
use crate::exit::Exit;
use crate::verbs::slab::output;

/// What makes the slow ones slow: a table of causes, and sentences below it.
pub fn show_causes(context: &App, wanted: &CausesArgs) -> anyhow::Result<Exit> {
    let (_, report) = analyze_iteration(context, &wanted.run, &wanted.which)?;
    print_causes_report(context, &report)?;
    Ok(Exit::Fine)
}

/// Prints the answer about one trace.
pub fn print_causes_report(context: &App, report: &OperationReport) -> anyhow::Result<()> {
    output::print_result(context, report, || causes_grid(report))?;
    if context.format == OutputFormat::Table {
        context.print_text(&(String::from("\n") + &operation_conclusions(report).join("\n")))?;
    }
    Ok(())
}
