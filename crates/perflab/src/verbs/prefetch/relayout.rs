//! `perflab prefetch relayout`

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use indicatif::{ProgressBar, ProgressStyle};
use perflab_model::Bytes;
use perflab_prefetch::relayout::{
    FileSystemLayout, RelayoutOutcome, file_system_layouts, relayout_startup as exchange,
};
use perflab_prefetch::{CombinePolicy, StartupTrace, TraceStore, combine_traces};
use perflab_prefetch::{refresh_extents, shares_files};
use perflab_present::comparison::{Grid, GridCell, GridColumn};

use crate::arguments::prefetch::RelayoutArgs;
use crate::context::App;
use crate::exit::{Exit, UsageError};
use crate::signals::with_stop_signal;

const STYLE: &str = "{bar:32.cyan/dim} {percent} %  {eta}";

/// Shows how what a program reads lies, or brings it together and shows how it lies then.
pub fn show_or_relayout(context: &App, store: &TraceStore, wanted: &RelayoutArgs) -> anyhow::Result<Exit> {
    let program = store.resolve_name(&wanted.program);
    let policy = super::trace_policy(wanted.policy);
    let before = file_system_layouts(&read_combined_trace(store, &program, policy)?);
    let elsewhere = |on: &&PathBuf| before.iter().all(|part| Path::new(&part.place) != on.as_path());
    if let Some(on) = wanted.on.as_ref().filter(elsewhere) {
        let places: Vec<&str> = before.iter().map(|part| part.place.as_str()).collect();
        let message = format!("nothing that it reads lies on the file system of {}", on.display());
        return Err(UsageError::new(message, format!("it reads from {}", places.join(", "))).into());
    }
    if wanted.apply {
        relayout_program(context, store, &program, policy, wanted.on.as_deref())?;
    }
    let now = if wanted.apply {
        file_system_layouts(&read_combined_trace(store, &program, policy)?)
    } else {
        before.clone()
    };
    context.print_grid(&layout_grid(&before, &now))?;
    if !wanted.apply && before.iter().any(|part| part.left_alone.is_none()) {
        context.note("nothing was moved: `--apply` brings it together");
    }
    Ok(Exit::Fine)
}

/// Moves what a program reads into one place, and notes where it lies.
pub fn relayout_program(
    context: &App,
    store: &TraceStore,
    program: &Path,
    policy: CombinePolicy,
    on: Option<&Path>,
) -> anyhow::Result<()> {
    let start = read_combined_trace(store, program, policy)?;
    let bar = relayout_progress_bar(context, start.page_count());
    let others = store.other_programs(program);
    let (done, stopped) =
        with_stop_signal(|stop| exchange(&start, &others, on, stop, &|pages| bar.inc(pages)))?;
    bar.finish_and_clear();
    let mut own = store.read_trace(program)?;
    own.relaid |= done.as_ref().is_ok_and(|done| done.bytes > 0);
    let sharing = others.into_iter().filter(|other| shares_files(other, &start));
    for mut known in sharing.chain([own]) {
        refresh_extents(&mut known);
        store.replace(Path::new(&known.program), &known)?;
    }
    note_relayout(context, &done?);
    if stopped {
        bail!("stopped: what was moved is moved, and the rest lies where it lay");
    }
    Ok(())
}

fn read_combined_trace(
    store: &TraceStore,
    program: &Path,
    policy: CombinePolicy,
) -> anyhow::Result<StartupTrace> {
    combine_traces(&store.read_trace(program)?, policy).context("no start is remembered")
}

fn relayout_progress_bar(context: &App, pages: u64) -> ProgressBar {
    let bar = if context.quiet { ProgressBar::hidden() } else { ProgressBar::new(pages) };
    if let Ok(style) = ProgressStyle::with_template(STYLE) {
        bar.set_style(style.progress_chars("━━─"));
    }
    bar
}

fn note_relayout(context: &App, done: &RelayoutOutcome) {
    for (why, files) in &done.left {
        stderr_line!("{files} parts of files stay where they are: {why}");
    }
    context.note(format!(
        "{} moved; `perflab prefetch learn` again, for the file system's own blocks are others now",
        Bytes(done.bytes)
    ));
}

fn layout_grid(before: &[FileSystemLayout], now: &[FileSystemLayout]) -> Grid {
    let numbers = ["data", "files", "stretches before", "stretches"].map(GridColumn::right);
    let titles = [GridColumn::left("on"), GridColumn::left("kind")].into_iter().chain(numbers);
    let mut grid = Grid::new(titles.chain([GridColumn::left("left alone")]));
    for (before, now) in before.iter().zip(now) {
        grid.add_row([
            now.place.as_str().into(),
            now.kind.as_str().into(),
            GridCell::with_text(Bytes(now.layout.bytes).to_string(), now.layout.bytes),
            now.layout.files.into(),
            before.layout.stretches.into(),
            now.layout.stretches.into(),
            now.left_alone.as_deref().unwrap_or_default().into(),
        ]);
    }
    grid
}
