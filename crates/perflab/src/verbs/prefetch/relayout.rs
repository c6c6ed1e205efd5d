//! `perflab prefetch relayout`

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use indicatif::{ProgressBar, ProgressStyle};
use perflab_model::Bytes;
use perflab_prefetch::relayout::{Part, RelayoutOutcome, look_again, parts, relayout as exchange, shares};
use perflab_prefetch::{Policy, Start, Store, combine};
use perflab_present::table::{Cell, Column, Grid};

use crate::arguments::prefetch::Relayout;
use crate::context::Context;
use crate::exit::{Exit, Usage};
use crate::signals::listening;

const STYLE: &str = "{bar:32.cyan/dim} {percent} %  {eta}";

/// Shows how what a program reads lies, or brings it together and shows how it lies then.
pub fn relayout(context: &Context, store: &Store, wanted: &Relayout) -> anyhow::Result<Exit> {
    let program = store.named(&wanted.program);
    let policy = super::policy(wanted.policy);
    let before = parts(&known(store, &program, policy)?);
    let elsewhere = |on: &&PathBuf| before.iter().all(|part| Path::new(&part.place) != on.as_path());
    if let Some(on) = wanted.on.as_ref().filter(elsewhere) {
        let places: Vec<&str> = before.iter().map(|part| part.place.as_str()).collect();
        let message = format!("nothing that it reads lies on the file system of {}", on.display());
        return Err(Usage::new(message, format!("it reads from {}", places.join(", "))).into());
    }
    if wanted.apply {
        bring_together(context, store, &program, policy, wanted.on.as_deref())?;
    }
    let now = if wanted.apply { parts(&known(store, &program, policy)?) } else { before.clone() };
    context.print(&table(&before, &now))?;
    if !wanted.apply && before.iter().any(|part| part.left_alone.is_none()) {
        context.say("nothing was moved: `--apply` brings it together");
    }
    Ok(Exit::Fine)
}

/// Moves what a program reads into one place, and notes where it lies.
pub fn bring_together(
    context: &Context,
    store: &Store,
    program: &Path,
    policy: Policy,
    on: Option<&Path>,
) -> anyhow::Result<()> {
    let start = known(store, program, policy)?;
    let bar = bar(context, start.pages());
    let others = store.others(program);
    let (done, stopped) = listening(|stop| exchange(&start, &others, on, stop, &|pages| bar.inc(pages)))?;
    bar.finish_and_clear();
    let mut own = store.get(program)?;
    own.relaid |= done.as_ref().is_ok_and(|done| done.bytes > 0);
    let sharing = others.into_iter().filter(|other| shares(other, &start));
    for mut known in sharing.chain([own]) {
        look_again(&mut known);
        store.replace(Path::new(&known.program), &known)?;
    }
    say(context, &done?);
    if stopped {
        bail!("stopped: what was moved is moved, and the rest lies where it lay");
    }
    Ok(())
}

fn known(store: &Store, program: &Path, policy: Policy) -> anyhow::Result<Start> {
    combine(&store.get(program)?, policy).context("no start is remembered")
}

fn bar(context: &Context, pages: u64) -> ProgressBar {
    let bar = if context.quiet { ProgressBar::hidden() } else { ProgressBar::new(pages) };
    if let Ok(style) = ProgressStyle::with_template(STYLE) {
        bar.set_style(style.progress_chars("━━─"));
    }
    bar
}

fn say(context: &Context, done: &RelayoutOutcome) {
    for (why, files) in &done.left {
        stderr_line!("{files} parts of files stay where they are: {why}");
    }
    context.say(format!(
        "{} moved; `perflab prefetch learn` again, for the file system's own blocks are others now",
        Bytes(done.bytes)
    ));
}

fn table(before: &[Part], now: &[Part]) -> Grid {
    let numbers = ["data", "files", "stretches before", "stretches"].map(Column::right);
    let titles = [Column::left("on"), Column::left("kind")].into_iter().chain(numbers);
    let mut grid = Grid::new(titles.chain([Column::left("left alone")]));
    for (before, now) in before.iter().zip(now) {
        grid.add([
            now.place.as_str().into(),
            now.kind.as_str().into(),
            Cell::shown(Bytes(now.layout.bytes).to_string(), now.layout.bytes),
            now.layout.files.into(),
            before.layout.stretches.into(),
            now.layout.stretches.into(),
            now.left_alone.as_deref().unwrap_or_default().into(),
        ]);
    }
    grid
}
