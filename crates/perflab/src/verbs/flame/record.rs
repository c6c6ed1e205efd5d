//! `perflab flame record`: an ordinary run of a study that is written here.

use anyhow::Context as _;
use perflab_conduct::Choices;
use perflab_model::study::Source;
use perflab_model::{Manifest, Profiled, Status};

use crate::arguments::flame::Record;
use crate::context::Context;
use crate::exit::{Exit, Usage};
use crate::verbs::recording::{quoted, subject, time, write_definition};
use crate::verbs::run;

/// Functions that are shown at the end.
const SHOWN: usize = 15;

/// Records, and says what to look at.
pub fn record(context: &Context, wanted: &Record) -> anyhow::Result<Exit> {
    run::undo_leftovers(context);
    let folder = tempfile::tempdir().context("cannot make a folder for the command's definition")?;
    write_definition(&folder.path().join("command.toml"), &wanted.command, wanted.duration.as_deref())?;
    let mut catalogue = context.catalogue()?;
    catalogue.extend(folder.path())?;
    let manifest = manifest(context, &catalogue, wanted)?;
    let stop = run::stop_on_interrupt()?;
    let host = run::host(context, catalogue)?;
    if wanted.command.is_empty() && wanted.duration.is_none() {
        context.say("recording until ^C");
    }
    let (status, found) = run::carry_out(context, &host, &manifest, &Default::default(), &stop)?;
    context.say(format!("run: {} in {}", found.short(), context.archive_path().display()));
    let manifest = found.manifest()?;
    context.say(crate::verbs::show::own_cost(&manifest));
    if let Ok(profile) = super::stored::first(&found) {
        super::show::print(context, &profile, SHOWN)?;
        profile.pieces.iter().for_each(|piece| say_cost(context, &piece.about, piece.samples.len()));
    }
    Ok(exit(context, status, wanted, found.short()))
}

/// What sampling cost this program; the interrupts are the kernel's, and in the workload's time.
fn say_cost(context: &Context, about: &Profiled, samples: usize) {
    let each = about.cost.0 as f64 / 1000.0 / samples.max(1) as f64;
    context.say(format!("reading samples took {} of CPU, {each:.2} us a sample", about.cost));
}

/// Stopping a recording that waits for ^C is how it ends, not a failure.
fn exit(context: &Context, status: Status, wanted: &Record, run: &str) -> Exit {
    match status {
        Status::Finished => Exit::Fine,
        Status::Stopped if wanted.command.is_empty() => Exit::Fine,
        _ => {
            let look = format!("`perflab show {run} --output 0` prints what it said");
            context.say(format!("the command failed or was stopped; {look}"));
            Exit::WorkloadFailed
        }
    }
}

fn manifest(
    context: &Context,
    catalogue: &perflab_workload::Catalogue,
    wanted: &Record,
) -> anyhow::Result<Manifest> {
    let source = Source::new("flame record", study(wanted)?);
    let mut study = source.read()?;
    if let Some(profile) = &mut study.profile {
        profile.symbols = perflab_analyze::flame::rules::anchors();
    }
    let facts = perflab_observe::facts(&context.root, None)?;
    let choices = Choices { set: Vec::new(), only: None, seed: 0 };
    let plan =
        perflab_conduct::plan(&study, catalogue, &facts, &choices).map_err(|found| source.problems(found))?;
    Ok(crate::manifest::manifest(&source, study, plan, facts, wanted.label.clone(), &context.root))
}

/// The study, as text: what a person could have written.
fn study(wanted: &Record) -> Result<String, Usage> {
    let limit = match &wanted.duration {
        Some(text) if !wanted.command.is_empty() => time("--for", text)?,
        _ => "87600h".into(),
    };
    let scope = match (wanted.pid, wanted.system || wanted.command.is_empty()) {
        (Some(pid), _) => format!("pid = {pid}"),
        (None, true) => "scope = \"system\"".into(),
        (None, false) => "scope = \"workload\"".into(),
    };
    let title = quoted(&format!("Call stacks, {}", subject(&wanted.command)));
    let frequency = wanted.frequency;
    Ok(format!(
        "title = {title}\n\n[run]\niterations = 1\nwarmup = 0\norder = \"sequential\"\n\
         time-limit = \"{limit}\"\n\n[workload.command]\n\n[profile]\nfrequency = {frequency}\n{scope}\n"
    ))
}
