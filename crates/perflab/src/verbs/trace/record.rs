//! `perflab trace run`: an ordinary run of one command that is told where to write its trace.

use anyhow::Context as _;
use perflab_archive::RunDir;
use perflab_conduct::Choices;
use perflab_model::Status;
use perflab_model::study::Source;

use super::stored::TRACER;
use crate::arguments::trace;
use crate::context::Context;
use crate::exit::{Exit, Usage};
use crate::verbs::{recording, run};

/// Runs the command once, keeps its trace, and says what made its slow operations slow.
pub fn record(context: &Context, wanted: &trace::Run) -> anyhow::Result<Exit> {
    run::undo_leftovers(context);
    let mut words = recording::words(&wanted.command)?;
    // Its own loads, whether or not it is on PATH.
    if let Some(first) = words.first_mut().filter(|first| *first == "perflab") {
        *first = std::env::current_exe().context("cannot find perflab's own binary")?.display().to_string();
    }
    let mut catalogue = context.catalogue()?;
    let folder = tempfile::tempdir().context("cannot make a folder for the command's definition")?;
    recording::define(&folder.path().join("command.toml"), &words, "traced = true\n")?;
    catalogue.extend(folder.path())?;
    let title = format!("Operations of `{}`", words.join(" "));
    let text = format!(
        "title = {}\n\n[run]\niterations = 1\nwarmup = 0\norder = \"sequential\"\ntime-limit = \"87600h\"\n\n[workload.command]\n",
        recording::quoted(&title)
    );
    let source = Source::new("trace run", text);
    let study = source.read()?;
    let facts = perflab_observe::facts(&context.root, None)?;
    let choices = Choices { set: Vec::new(), only: None, seed: 0 };
    let plan = perflab_conduct::plan(&study, &catalogue, &facts, &choices)
        .map_err(|found| source.problems(found))?;
    let manifest =
        crate::manifest::manifest(&source, study, plan, facts, wanted.label.clone(), &context.root);
    let stop = run::stop_on_interrupt()?;
    let host = run::host(context, catalogue)?;
    let (status, found) = run::carry_out(context, &host, &manifest, &Default::default(), &stop)?;
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
    for told in found.traced(TRACER)? {
        let whole = told.cut.map_or(String::new(), |reason| format!("; not whole: {reason}"));
        context.say(format!(
            "{} operations of {} threads, {} lost{whole}",
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
