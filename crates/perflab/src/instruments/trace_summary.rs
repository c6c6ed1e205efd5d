//! What a tracer brought, in a few lines, and what to look at next.

use perflab_archive::RunDir;
use perflab_model::operation::{OPERATION_TRACER, OperationTraceSummary};
use perflab_present::comparison::OutputFormat;
use serde_json::json;

use crate::app::App;
use crate::failure::Failure;

/// Says what a tracer brought, and what to do with it.
pub fn print_trace_summary(context: &App, found: &RunDir) -> Result<(), Failure> {
    context.note(format!("run: {} in {}", found.short_id(), context.archive_path().display()));
    let traced = found.read_trace_summaries(OPERATION_TRACER)?;
    if context.format == OutputFormat::Json {
        let counts = |summary: &OperationTraceSummary| json!({ "slot": summary.slot, "operations": summary.operations, "lost": summary.lost });
        context.print_json(
            &json!({ "run": found.id(), "traced": traced.iter().map(counts).collect::<Vec<_>>() }),
        )?;
    }
    note_operation_counts(context, found, &traced);
    Ok(())
}

/// Says what was traced.
pub fn note_trace_summaries(context: &App, found: &RunDir) -> Result<(), Failure> {
    note_operation_counts(context, found, &found.read_trace_summaries(OPERATION_TRACER)?);
    Ok(())
}

fn note_operation_counts(context: &App, found: &RunDir, traced: &[OperationTraceSummary]) {
    for summary in traced {
        let whole = summary.cut.as_ref().map_or(String::new(), |reason| format!("; not whole: {reason}"));
        let parts = [
            (summary.abandoned, "without an end"),
            (summary.nested, "inside another"),
            (summary.open, "open at the end"),
            (summary.rescued, "of them recovered from the memory of a program that did not close its trace"),
        ];
        let parts: String = parts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!(", {count} {what}"))
            .collect();
        context.note(format!(
            "{} operations of {} threads, {} lost{parts}{whole}",
            summary.operations, summary.threads, summary.lost
        ));
    }
    context.note(format!("`perflab trace causes {}` explains the slow ones", found.short_id()));
}
