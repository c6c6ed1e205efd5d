//! `perflab prefetch show` and `forget`

use std::path::Path;

use anyhow::Context as _;
use jiff::Timestamp;
use perflab_model::Bytes;
use perflab_model::io::PAGE;
use perflab_prefetch::{Known, Source, Start, Store, combine, file};
use perflab_present::table::{Cell, Column, Grid};

use crate::arguments::prefetch::{Forget, Show};
use crate::context::Context;
use crate::exit::Exit;

/// Prints all programs, or the files of one.
pub fn show(context: &Context, store: &Store, wanted: &Show) -> anyhow::Result<Exit> {
    match &wanted.program {
        Some(program) => {
            let known = store.get(&store.named(program))?;
            let start = combine(&known, super::policy(wanted.policy)).context("no start is remembered")?;
            context.print(&files(&start))?;
        }
        None => context.print(&programs(store))?,
    }
    Ok(Exit::Fine)
}

/// Forgets programs.
pub fn forget(context: &Context, store: &Store, wanted: &Forget) -> anyhow::Result<Exit> {
    let mut grid = Grid::new(["program", "is now"].map(Column::left));
    for program in &wanted.programs {
        // A program that is not there any more can still be forgotten.
        let path = store.named(program);
        let word = if store.forget(&path)? { "forgotten" } else { "was not known" };
        grid.add([path.display().to_string().into(), word.into()]);
    }
    context.print(&grid)?;
    Ok(Exit::Fine)
}

fn pages(pages: u64) -> Cell {
    Cell::shown(Bytes(pages * PAGE).to_string(), pages * PAGE)
}

fn programs(store: &Store) -> Grid {
    let numbers = ["starts", "files", "data", "metadata"].map(Column::right);
    let titles = std::iter::once(Column::left("program")).chain(numbers);
    let mut grid = Grid::new(titles.chain(["known by", "last"].map(Column::left)));
    for path in store.all() {
        match file::read(&path) {
            Ok(known) => program(&mut grid, &known),
            Err(error) => stderr_line!("warning: {error}"),
        }
    }
    grid
}

fn program(grid: &mut Grid, known: &Known) {
    let Some(last) = known.starts.last() else { return };
    let when = Timestamp::from_second(last.when.try_into().unwrap_or_default());
    grid.add([
        known.program.as_str().into(),
        known.starts.len().into(),
        last.files.len().into(),
        pages(last.pages()),
        pages(last.metadata()),
        match last.source {
            Source::Traced => "tracing".into(),
            Source::Residency => "residency".into(),
        },
        when.map(|when| when.to_string()).unwrap_or_default().into(),
    ]);
}

fn files(start: &Start) -> Grid {
    let numbers = ["data", "pieces", "inode", "on disk at"].map(Column::right);
    let titles = [Column::left("file")].into_iter().chain(numbers).chain([Column::left("is now")]);
    let mut grid = Grid::new(titles);
    for file in &start.files {
        let place = file.place.map(|place| Cell::shown(Bytes(place).to_string(), place));
        grid.add([
            file.path.as_str().into(),
            pages(file.pages.pages()),
            file.pages.iter().len().into(),
            file.inode.into(),
            place.unwrap_or_else(Cell::missing),
            state(file).into(),
        ]);
    }
    for system in start.systems.iter().filter(|system| !system.metadata.is_empty()) {
        let name = format!("{} on {}", system.kind, system.place);
        grid.add([name.into(), pages(system.metadata.pages()), system.metadata.iter().len().into()]);
    }
    grid
}

fn state(traced: &perflab_prefetch::TracedFile) -> &'static str {
    match perflab_observe::io::look(Path::new(&traced.path)) {
        None => "gone",
        Some(now) if now.inode != traced.inode => "another",
        Some(now) if (now.size, now.changed) != (traced.size, traced.changed) => "changed",
        Some(_) => "the same",
    }
}
