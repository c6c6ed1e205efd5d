//! `perflab list|diff|prune|export|import`: runs as things.

use std::time::Duration;

use perflab_analyze::run_differences;
use perflab_archive::{Policy, Summary};
use perflab_model::{Bytes, Nanos};
use perflab_present::table::{Cell, Column, Grid};

use crate::arguments;
use crate::context::Context;
use crate::exit::{Exit, Usage};
use crate::sides;

/// `perflab list`
pub fn list(context: &Context) -> anyhow::Result<Exit> {
    let left = ["run", "label", "study", "begun", "status"].map(Column::left);
    let mut grid = Grid::new(left.into_iter().chain(["iterations", "size"].map(Column::right)));
    let archive = context.archive()?;
    for entry in archive.list()? {
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
