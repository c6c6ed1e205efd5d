//! `perflab list|label|rm|diff|prune`: runs as things.

use std::collections::BTreeSet;
use std::time::Duration;

use perflab_analyze::run_differences;
use perflab_archive::{Archive, Policy, Summary};
use perflab_model::{Bytes, Nanos};
use perflab_present::table::{Cell, Column, Grid};

use crate::arguments;
use crate::context::Context;
use crate::exit::{Exit, Usage};
use crate::sides;

/// `perflab list`
pub fn list(context: &Context, wanted: &arguments::List) -> anyhow::Result<Exit> {
    let left = ["run", "label", "study", "begun", "status"].map(Column::left);
    let mut grid = Grid::new(left.into_iter().chain(["iterations", "size"].map(Column::right)));
    let archive = context.archive()?;
    let mut entries = archive.list()?;
    if let Some(label) = &wanted.label {
        entries.retain(|entry| {
            entry.summary.as_ref().is_ok_and(|summary| summary.label.as_ref() == Some(label))
        });
    }
    let skipped = wanted.last.map_or(0, |last| entries.len().saturating_sub(last));
    for entry in entries.into_iter().skip(skipped) {
        let [label, title, begun, status, iterations] = match &entry.summary {
            Ok(summary) => told(summary),
            Err(problem) => {
                [Cell::missing(), problem.as_str().into(), Cell::missing(), "damaged".into(), Cell::missing()]
            }
        };
        let size = Cell::shown(Bytes(entry.bytes).to_string(), entry.bytes);
        let run = Cell::shown(entry.short.as_str(), entry.id.as_str());
        grid.add([run, label, title, begun, status, iterations, size]);
    }
    context.print(&grid)?;
    if !archive.exists() {
        let path = context.archive_path().display();
        context.say(format!(
            "there is no archive {path}: `perflab run quickstart` makes one; --archive DIR names another"
        ));
    }
    Ok(Exit::Fine)
}

fn told(summary: &Summary) -> [Cell; 5] {
    let done = format!("{}/{}", summary.iterations, summary.planned);
    [
        summary.label.as_deref().map_or_else(Cell::missing, Cell::from),
        summary.title.as_str().into(),
        Cell::shown(date(summary.begun), summary.begun.to_string()),
        summary.status.to_string().as_str().into(),
        Cell::shown(done, summary.iterations),
    ]
}

/// A wall-clock time as people read it, in this machine's time zone.
pub fn date(time: jiff::Timestamp) -> String {
    time.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string()
}

/// `perflab diff A B`
pub fn diff(context: &Context, wanted: &arguments::Diff) -> anyhow::Result<Exit> {
    let archive = context.archive()?;
    let first = sides::one(&archive, &wanted.first)?;
    let second = sides::one(&archive, &wanted.second)?;
    let mut grid = Grid::new(["what", first.short(), second.short()].map(Column::left));
    for one in run_differences(&first.record()?, &second.record()?) {
        let text = |value: Option<String>| value.unwrap_or_else(|| "-".into());
        grid.add([one.key, text(one.baseline), text(one.candidate)].map(|text| Cell::from(text.as_str())));
    }
    context.print(&grid)?;
    Ok(Exit::Fine)
}

/// `perflab label RUN NAME`
pub fn label(context: &Context, wanted: &arguments::Label) -> anyhow::Result<Exit> {
    let archive = context.archive()?;
    let id = find_run_id(&archive, &wanted.run)?;
    archive.set_label(&id, wanted.name.as_deref())?;
    match &wanted.name {
        Some(name) => context.say_line(&format!("run {id} is labelled {name}")),
        None => context.say(format!("run {id} has no label")),
    }
    Ok(Exit::Fine)
}

/// `perflab rm RUN ...`: all are looked for before any goes.
pub fn remove(context: &Context, wanted: &arguments::Rm) -> anyhow::Result<Exit> {
    let archive = context.archive()?;
    let found =
        wanted.runs.iter().map(|run| find_run_id(&archive, run)).collect::<anyhow::Result<Vec<_>>>()?;
    for id in found.into_iter().collect::<BTreeSet<_>>() {
        archive.remove(&id)?;
        context.say(format!("removed run {id}"));
    }
    Ok(Exit::Fine)
}

/// The full id of a run of this archive, whether or not it can be read.
fn find_run_id(archive: &Archive, selector: &str) -> anyhow::Result<String> {
    let run = sides::one(archive, selector)?;
    // A path may name a run of another archive, or a portable file.
    if run.path().parent() == Some(&archive.path().join("runs")) {
        return Ok(run.id().to_owned());
    }
    let message = format!("`{selector}` is no run of {}", archive.path().display());
    Err(Usage::new(message, "name it by its id: see `perflab list`").into())
}

/// `perflab prune`
pub fn prune(context: &Context, wanted: &arguments::Prune) -> anyhow::Result<Exit> {
    if wanted.keep.is_none() && wanted.older_than.is_none() {
        return Err(
            Usage::new("prune does not know which runs may go", "say --keep N or --older-than 30d").into()
        );
    }
    let older_than = wanted.older_than.as_deref().map(age).transpose()?;
    let policy =
        Policy { keep: wanted.keep, older_than, keep_labelled: !wanted.labelled, dry_run: !wanted.apply };
    let gone = context.archive()?.prune(&policy)?;
    let mut grid = Grid::new([Column::left("run"), Column::right("size")]);
    for run in &gone.runs {
        grid.add([run.id.as_str().into(), Cell::shown(Bytes(run.bytes).to_string(), run.bytes)]);
    }
    context.print(&grid)?;
    match wanted.apply {
        true => context.say(format!("{} runs removed", gone.runs.len())),
        false => context.say(format!("{} runs would go; --apply removes them", gone.runs.len())),
    }
    Ok(Exit::Fine)
}

fn age(text: &str) -> Result<Duration, Usage> {
    let days = text.strip_suffix('d').and_then(|days| days.parse::<u64>().ok());
    let parsed = days.map(|days| Nanos(days * 86_400_000_000_000)).or_else(|| Nanos::parse(text).ok());
    parsed
        .map(Duration::from)
        .ok_or_else(|| Usage::new(format!("`{text}` is not an age"), "write 30d or 12h"))
}
