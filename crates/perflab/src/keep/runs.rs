//! Runs as things: `perflab list`, `label`, `rm`, `prune`.

use std::collections::BTreeSet;
use std::time::Duration;

use clap::Args;
use compact_str::{CompactString, ToCompactString as _};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use perflab_archive::run_id::shortest_prefixes;
use perflab_archive::{Archive, ArchiveEntry, RUNS, RetentionPolicy, RunDir, RunSummary};
use perflab_model::{Bytes, Nanos, RunStatus};
use perflab_present::comparison::{Grid, GridCell, GridColumn};
use perflab_present::count_text;
use perflab_remote::{RemoteArchive, RemoteUrl};
use rayon::prelude::*;
use serde_json::Value;

use crate::app::App;
use crate::failure::{Exit, Failure, UsageError};
use crate::keep::remote_choice::{choose_remote_runs, parse_remote, warn_of_damage};
use crate::selection::{self, ChosenRuns, RunChoice};
use crate::verb::Verb;

/// `perflab list`
pub fn list_runs(context: &App, args: &ListArgs) -> Result<Exit, Failure> {
    let archive = context.archive()?;
    let ChosenRuns { runs, unknown_label } = args.choice.list_runs(&archive)?;
    // The process ends with its list: to free ten thousand rows takes as long as to make them.
    let entries = runs.leak();
    let (zone, for_programs) = (TimeZone::system(), context.format.is_for_programs());
    let continues = |entry: &ArchiveEntry| entry.summary.as_ref().is_ok_and(|run| run.continues.is_some());
    let has_parts = for_programs || entries.iter().any(continues);
    let cells = |entry: &ArchiveEntry| {
        let mut cells = list_cells(entry, &zone, for_programs);
        if has_parts {
            cells.push(continues_cell(entry, entries));
        }
        cells
    };
    let rows = entries.par_iter().map(cells).collect();
    let columns = list_columns().chain(has_parts.then(|| GridColumn::left("continues")));
    context.print_grid(Box::leak(Box::new(Grid::with_rows(columns, rows))))?;
    let path = context.archive_path().display();
    if !archive.exists() {
        context.note(format!(
            "there is no archive {path}; `perflab run quickstart` creates it, --archive DIR names another"
        ));
    } else if !context.archive_path().join(RUNS).is_dir() {
        context.note(format!(
            "{path} is a folder without runs; `perflab run quickstart` records one there, --archive DIR names another archive"
        ));
    }
    // As of every verb that takes a label; the list is printed all the same, for whoever counts its rows.
    unknown_label.map_or(Ok(Exit::Fine), |error| Err(error.into()))
}

/// `perflab list --remote URL`: what its lists say, without bringing a run.
fn list_remote_runs(app: &App, url: &RemoteUrl, choice: &RunChoice) -> Result<Exit, Failure> {
    let remote = RemoteArchive::open(url)?;
    warn_of_damage(&remote);
    let runs = choose_remote_runs(&remote, &[], choice)?;
    let ids: Vec<String> = runs.iter().map(|entry| entry.id.clone()).collect();
    let mut grid = Grid::new(list_columns());
    for (entry, short) in runs.iter().zip(shortest_prefixes(&ids)) {
        let begun = Timestamp::from_nanosecond(i128::from(entry.begun_ns)).unwrap_or_default();
        let bytes = entry.bytes.unsigned_abs();
        grid.add_row([
            GridCell::with_text(short, entry.id.as_str()),
            entry.label.as_deref().map_or_else(GridCell::missing, GridCell::from),
            entry.title.as_str().into(),
            GridCell::with_text(format_local_time(begun), begun.to_string()),
            entry.status.as_str().into(),
            GridCell::with_text(entry.iterations.to_string(), entry.iterations),
            GridCell::with_text(Bytes(bytes).to_string(), bytes),
        ]);
    }
    app.print_grid(&grid)?;
    Ok(Exit::Fine)
}

/// What a list of runs has of each.
fn list_columns() -> impl Iterator<Item = GridColumn> {
    let left = ["run", "label", "study", "begun", "status"].map(GridColumn::left);
    left.into_iter().chain(["iterations", "size"].map(GridColumn::right))
}

/// The cells of a run's row; what only programs read, where it is `for_programs`.
fn list_cells(entry: &ArchiveEntry, zone: &TimeZone, for_programs: bool) -> Vec<GridCell> {
    let cell = |text: CompactString, value: &dyn Fn() -> Value| match for_programs {
        true => GridCell::with_text(text, value()),
        false => text.into(),
    };
    let [label, title, begun, status, iterations] = match &entry.summary {
        Ok(summary) => summary_cells(summary, zone, &cell),
        Err(problem) => [
            GridCell::missing(),
            problem.as_str().into(),
            GridCell::missing(),
            "damaged".into(),
            GridCell::missing(),
        ],
    };
    let size = cell(Bytes(entry.bytes).to_compact_string(), &|| entry.bytes.into());
    let run = cell(entry.short.as_str().into(), &|| entry.id.as_str().into());
    vec![run, label, title, begun, status, iterations, size]
}

/// The run that one goes on with, as the list calls it.
fn continues_cell(entry: &ArchiveEntry, entries: &[ArchiveEntry]) -> GridCell {
    let Some(before) = entry.summary.as_ref().ok().and_then(|run| run.continues.as_deref()) else {
        return GridCell::missing();
    };
    let listed = entries.binary_search_by(|one| one.id.as_str().cmp(before)).ok();
    let short = listed.and_then(|at| entries.get(at)).map_or(before, |one| one.short.as_str());
    GridCell::with_text(short, before)
}

fn summary_cells(
    summary: &RunSummary,
    zone: &TimeZone,
    cell: &dyn Fn(CompactString, &dyn Fn() -> Value) -> GridCell,
) -> [GridCell; 5] {
    let mut done = summary.iterations.to_compact_string();
    // A run that ended once it was decided lacks nothing.
    if summary.status != RunStatus::Finished || summary.iterations >= summary.planned {
        done.push('/');
        done.push_str(&summary.planned.to_compact_string());
    }
    let title =
        shorten_title(&summary.title).map_or_else(|| summary.title.as_str().into(), CompactString::from);
    [
        summary.label.as_deref().map_or_else(GridCell::missing, GridCell::from),
        cell(title, &|| summary.title.as_str().into()),
        cell(format_time_in(summary.begun, zone), &|| summary.begun.to_string().into()),
        summary.status.as_str().into(),
        cell(done, &|| summary.iterations.into()),
    ]
}

/// Letters of a title in the list; the rest is in `show`.
const TITLE_WIDTH: usize = 60;

/// A title that leaves room for the other columns: that of a command is as long as the command.
fn shorten_title(title: &str) -> Option<String> {
    if title.len() <= TITLE_WIDTH || title.chars().count() <= TITLE_WIDTH {
        return None;
    }
    let kept: String = title.chars().take(TITLE_WIDTH - 1).collect();
    Some(format!("{}…", kept.trim_end()))
}

/// A wall-clock time as people read it, in this machine's time zone.
pub fn format_local_time(time: Timestamp) -> String {
    format_time_in(time, &TimeZone::system()).into()
}

fn format_time_in(time: Timestamp, zone: &TimeZone) -> CompactString {
    let time = zone.to_datetime(time);
    // Formatting by `{:02}` is half of what a long list takes on top of its files.
    let mut text = time.year().to_compact_string();
    for (sign, number) in [('-', time.month()), ('-', time.day()), (' ', time.hour()), (':', time.minute())] {
        text.push(sign);
        if number < 10 {
            text.push('0');
        }
        text.push_str(&number.to_compact_string());
    }
    text
}

/// `perflab label RUN NAME`
pub fn label_run(context: &App, args: &LabelArgs) -> Result<Exit, Failure> {
    let archive = context.archive()?;
    let parts = selection::select_parts(&archive, &args.run)?;
    parts.iter().try_for_each(|run| check_is_of(&archive, run, &args.run))?;
    // The newest first: it is the only one that may be being recorded.
    for run in parts.iter().rev() {
        archive.set_label(run.id(), args.name.as_deref())?;
    }
    for run in &parts {
        match &args.name {
            Some(name) => context.note_line(&format!("run {} is labelled {name}", run.id())),
            None => context.note(format!("run {} has no label", run.id())),
        }
    }
    Ok(Exit::Fine)
}

/// `perflab rm RUN ...`: all are looked for before any goes.
pub fn remove_runs(context: &App, args: &RmArgs) -> Result<Exit, Failure> {
    let archive = context.archive()?;
    let found =
        args.runs.iter().map(|run| find_run_id(&archive, run)).collect::<Result<Vec<_>, Failure>>()?;
    let going: BTreeSet<String> = found.into_iter().collect();
    for id in &going {
        let rest = selection::find_continuations(&archive, id)?;
        archive.remove_run(id)?;
        context.note(format!("removed run {id}"));
        for rest in rest.into_iter().filter(|rest| !going.contains(rest.id())) {
            context.note(format!(
                "run {} went on with it, and is no whole measurement any more",
                rest.short_id()
            ));
        }
    }
    Ok(Exit::Fine)
}

/// The full id of a run of this archive, whether or not it can be read.
fn find_run_id(archive: &Archive, selector: &str) -> Result<String, Failure> {
    let run = selection::select_run(archive, selector)?;
    check_is_of(archive, &run, selector)?;
    Ok(run.id().to_owned())
}

/// Refuses a run of another archive, or of a portable file, which a path may name.
fn check_is_of(archive: &Archive, run: &RunDir, selector: &str) -> Result<(), Failure> {
    if run.path().parent() == Some(&archive.path().join("runs")) {
        return Ok(());
    }
    let message = format!("`{selector}` is no run of {}", archive.path().display());
    Err(UsageError::new(message, "name the run by its id: see `perflab list`").into())
}

/// `perflab prune`
pub fn prune_runs(context: &App, args: &PruneArgs) -> Result<Exit, Failure> {
    if args.keep.is_none() && args.older_than.is_none() {
        return Err(
            UsageError::new("nothing says which runs may go", "give --keep N or --older-than 30d").into()
        );
    }
    let older_than = args.older_than.map(Duration::from);
    let policy =
        RetentionPolicy { keep: args.keep, older_than, keep_labelled: !args.labelled, dry_run: !args.apply };
    let gone = context.archive()?.prune(&policy)?;
    let (zone, for_programs) = (TimeZone::system(), context.format.is_for_programs());
    let rows = gone.runs.iter().map(|run| list_cells(run, &zone, for_programs)).collect();
    context.print_grid(&Grid::with_rows(list_columns(), rows))?;
    let count = count_text(gone.runs.len(), "run");
    match args.apply {
        true => context.note(format!("{count} removed")),
        false => context.note(format!("{count} would go; --apply removes them")),
    }
    if gone.labelled > 0 {
        context.note(format!(
            "{} runs stay because they have a label; --labelled lets them go, too",
            gone.labelled
        ));
    }
    Ok(Exit::Fine)
}

/// List the runs of the archive
#[derive(Debug, Args)]
pub struct ListArgs {
    #[command(flatten)]
    choice: RunChoice,
    /// The runs of an archive in object storage, of which none is brought here: s3://BUCKET/PREFIX or file:///FOLDER
    #[arg(long, value_name = "URL", value_parser = parse_remote)]
    remote: Option<RemoteUrl>,
}

impl Verb for ListArgs {
    fn run(&self, app: &App) -> Result<Exit, Failure> {
        match &self.remote {
            Some(url) => list_remote_runs(app, url, &self.choice),
            None => list_runs(app, self),
        }
    }
}

/// Give a run another label, or none
#[derive(Debug, Args)]
pub struct LabelArgs {
    /// The run
    #[arg(value_name = "RUN")]
    pub run: String,
    /// The new label; runs that share a label are repetitions of one another
    #[arg(value_name = "NAME", required_unless_present = "remove", value_parser = selection::parse_label)]
    pub name: Option<String>,
    /// Remove the label
    #[arg(long, conflicts_with = "name")]
    pub remove: bool,
}

impl Verb for LabelArgs {
    fn run(&self, app: &App) -> Result<Exit, Failure> {
        label_run(app, self)
    }
}

/// Remove runs
#[derive(Debug, Args)]
pub struct RmArgs {
    /// The runs, each by its id or the beginning of it (also damaged ones), or by a label that names one run
    #[arg(required = true, value_name = "RUN")]
    pub runs: Vec<String>,
}

impl Verb for RmArgs {
    fn run(&self, app: &App) -> Result<Exit, Failure> {
        remove_runs(app, self)
    }
}

/// Remove old runs (shows which; --apply removes them)
#[derive(Debug, Args)]
pub struct PruneArgs {
    /// Keep this many of the latest runs
    #[arg(long, value_name = "N")]
    pub keep: Option<usize>,
    /// Remove runs older than this: 30d, 12h
    #[arg(long, value_name = "AGE")]
    pub older_than: Option<Nanos>,
    /// Remove labelled runs too
    #[arg(long)]
    pub labelled: bool,
    /// Remove them
    #[arg(long)]
    pub apply: bool,
}

impl Verb for PruneArgs {
    fn run(&self, app: &App) -> Result<Exit, Failure> {
        prune_runs(app, self)
    }
}
