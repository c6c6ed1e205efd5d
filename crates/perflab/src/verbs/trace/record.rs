//! `perflab trace run`: an ordinary run of one command that is told where to write its trace.

use anyhow::Context as _;
use perflab_archive::RunDir;
use perflab_model::RunStatus;
use perflab_model::operation::OperationTraceSummary;
use perflab_present::comparison::OutputFormat;
use serde_json::json;

use super::stored::TRACER;
use crate::arguments::trace;
use crate::context::App;
use crate::exit::{Exit, UsageError};
use crate::verbs::recording;
use crate::verbs::written::{self, CommandStudy};

/// Runs the command once, keeps its trace, and says what made its slow operations slow.
pub fn record_trace(context: &App, wanted: &trace::TraceRecordArgs) -> anyhow::Result<Exit> {
    let mut words = recording::command_words(&wanted.command)?;
    // Its own loads, whether or not it is on PATH.
    if let Some(first) = words.first_mut().filter(|first| *first == "perflab") {
        *first = std::env::current_exe().context("cannot find perflab's own binary")?.display().to_string();
    }
    recording::check_command_exists(&words)?;
    let title = recording::quote_toml(&format!("Operations of `{}`", words.join(" ")));
    let written = CommandStudy {
        verb: "trace run",
        workload: "command",
        definition: written::command_definition(&words, "traced = true\n"),
        study: format!(
            "title = {title}\n\n[run]\niterations = 1\nwarmup = 0\norder = \"sequential\"\ntime-limit = \"87600h\"\n\n[workload.command]\n"
        ),
        seed: 0,
        label: wanted.label.as_deref(),
        as_typed: true,
    };
    let (status, found) = written.execute(context, |_| ())?;
    let traced = !found.list_tracers()?.is_empty();
    if status == RunStatus::Finished && !traced {
        return Err(not_linked_error(&words).into());
    }
    if traced {
        print_trace_summary(context, &found)?;
    }
    Ok(if status == RunStatus::Finished { Exit::Fine } else { Exit::WorkloadFailed })
}

/// Says what a tracer brought, and what to do with it.
pub fn print_trace_summary(context: &App, found: &RunDir) -> anyhow::Result<()> {
    context.note(format!("run: {} in {}", found.short_id(), context.archive_path().display()));
    let traced = found.read_trace_summaries(TRACER)?;
    if context.format == OutputFormat::Json {
        let counts = |told: &OperationTraceSummary| json!({ "slot": told.slot, "operations": told.operations, "lost": told.lost });
        context.print_json(
            &json!({ "run": found.id(), "traced": traced.iter().map(counts).collect::<Vec<_>>() }),
        )?;
    }
    for told in traced {
        let whole = told.cut.map_or(String::new(), |reason| format!("; not whole: {reason}"));
        let parts = [
            (told.abandoned, "left without an end"),
            (told.nested, "inside another"),
            (told.open, "open at the end"),
            (told.rescued, "of them found in the memory of a program that did not close its trace"),
        ];
        let parts: String = parts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!(", {count} {what}"))
            .collect();
        context.note(format!(
            "{} operations of {} threads, {} lost{parts}{whole}",
            told.operations, told.threads, told.lost
        ));
    }
    context.note(format!("`perflab trace causes {}` says what makes the slow ones slow", found.short_id()));
    Ok(())
}

fn not_linked_error(words: &[String]) -> UsageError {
    let program = words.first().map_or("", String::as_str);
    UsageError::new(
        format!("`{program}` wrote no trace into the file that {} names", perflab_workload::TRACE_VARIABLE),
        "link it with optrace and begin its trace with Trace::from_environment (C: optrace_open(NULL, …))",
    )
}
