//! `perflab trace run`: an ordinary run of one command that is told where to write its trace.

use anyhow::Context as _;
use perflab_archive::RunDir;
use perflab_model::Status;
use perflab_model::trace::Traced;
use perflab_present::table::Format;
use serde_json::json;

use super::stored::TRACER;
use crate::arguments::trace;
use crate::context::Context;
use crate::exit::{Exit, Usage};
use crate::verbs::recording;
use crate::verbs::written::{self, Written};

/// Runs the command once, keeps its trace, and says what made its slow operations slow.
pub fn record(context: &Context, wanted: &trace::Run) -> anyhow::Result<Exit> {
    let mut words = recording::words(&wanted.command)?;
    // Its own loads, whether or not it is on PATH.
    if let Some(first) = words.first_mut().filter(|first| *first == "perflab") {
        *first = std::env::current_exe().context("cannot find perflab's own binary")?.display().to_string();
    }
    recording::is_there(&words)?;
    let title = recording::quoted(&format!("Operations of `{}`", words.join(" ")));
    let written = Written {
        verb: "trace run",
        workload: "command",
        definition: written::command(&words, "traced = true\n"),
        study: format!(
            "title = {title}\n\n[run]\niterations = 1\nwarmup = 0\norder = \"sequential\"\ntime-limit = \"87600h\"\n\n[workload.command]\n"
        ),
        seed: 0,
        label: wanted.label.as_deref(),
        as_typed: true,
    };
    let (status, found) = written.carry_out(context, |_| ())?;
    let traced = !found.tracers()?.is_empty();
    if status == Status::Finished && !traced {
        return Err(not_linked(&words).into());
    }
    if traced {
        say_told(context, &found)?;
    }
    Ok(if status == Status::Finished { Exit::Fine } else { Exit::WorkloadFailed })
}

/// Says what a tracer brought, and what to do with it.
pub fn say_told(context: &Context, found: &RunDir) -> anyhow::Result<()> {
    context.say(format!("run: {} in {}", found.short(), context.archive_path().display()));
    let traced = found.traced(TRACER)?;
    if context.format == Format::Json {
        let counts =
            |told: &Traced| json!({ "slot": told.slot, "operations": told.operations, "lost": told.lost });
        context.document(
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
        context.say(format!(
            "{} operations of {} threads, {} lost{parts}{whole}",
            told.operations, told.threads, told.lost
        ));
    }
    context.say(format!("`perflab trace causes {}` says what makes the slow ones slow", found.short()));
    Ok(())
}

fn not_linked(words: &[String]) -> Usage {
    let program = words.first().map_or("", String::as_str);
    Usage::new(
        format!("`{program}` wrote no trace into the file that {} names", perflab_workload::TRACE_VARIABLE),
        "link it with optrace and begin its trace with Trace::from_environment (C: optrace_open(NULL, …))",
    )
}
