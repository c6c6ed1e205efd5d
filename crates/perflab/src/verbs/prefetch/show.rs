//! `perflab prefetch show` and `forget`

use std::path::Path;

use anyhow::Context as _;
use jiff::Timestamp;
use perflab_model::Bytes;
use perflab_model::io_trace::PAGE;
use perflab_prefetch::{ProgramTraces, StartupTrace, TraceSource, TraceStore, combine_traces, trace_store};
use perflab_present::comparison::{Grid, GridCell, GridColumn};

use crate::arguments::prefetch::{ForgetArgs, PrefetchShowArgs};
use crate::context::App;
use crate::exit::Exit;

/// Prints all programs, or the files of one.
pub fn show_traces(context: &App, store: &TraceStore, wanted: &PrefetchShowArgs) -> anyhow::Result<Exit> {
    match &wanted.program {
        Some(program) => {
            let known = store.read_trace(&store.resolve_name(program))?;
            let start = combine_traces(&known, super::trace_policy(wanted.policy))
                .context("no start is remembered")?;
            context.print_grid(&traced_file_grid(&start))?;
        }
        None => context.print_grid(&traced_program_grid(store))?,
    }
    Ok(Exit::Fine)
}

/// Forgets programs.
pub fn forget_programs(context: &App, store: &TraceStore, wanted: &ForgetArgs) -> anyhow::Result<Exit> {
    let mut grid = Grid::new(["program", "is now"].map(GridColumn::left));
    for program in &wanted.programs {
        // A program that is not there any more can still be forgotten.
        let path = store.resolve_name(program);
        let word = if store.forget(&path)? { "forgotten" } else { "was not known" };
        grid.add_row([path.display().to_string().into(), word.into()]);
    }
    context.print_grid(&grid)?;
    Ok(Exit::Fine)
}

fn traced_pages_cell(pages: u64) -> GridCell {
    GridCell::with_text(Bytes(pages * PAGE).to_string(), pages * PAGE)
}

fn traced_program_grid(store: &TraceStore) -> Grid {
    let numbers = ["starts", "files", "data", "metadata"].map(GridColumn::right);
    let titles = std::iter::once(GridColumn::left("program")).chain(numbers);
    let mut grid = Grid::new(titles.chain(["known by", "last"].map(GridColumn::left)));
    for path in store.trace_paths() {
        match trace_store::read_trace_file(&path) {
            Ok(known) => add_program_rows(&mut grid, &known),
            Err(error) => stderr_line!("warning: {error}"),
        }
    }
    grid
}

fn add_program_rows(grid: &mut Grid, known: &ProgramTraces) {
    let Some(last) = known.starts.last() else { return };
    let when = Timestamp::from_second(last.when.try_into().unwrap_or_default());
    grid.add_row([
        known.program.as_str().into(),
        known.starts.len().into(),
        last.files.len().into(),
        traced_pages_cell(last.page_count()),
        traced_pages_cell(last.metadata_page_count()),
        match last.source {
            TraceSource::Traced => "tracing".into(),
            TraceSource::Residency => "residency".into(),
        },
        when.map(|when| when.to_string()).unwrap_or_default().into(),
    ]);
}

fn traced_file_grid(start: &StartupTrace) -> Grid {
    let numbers = ["data", "pieces", "inode", "on disk at"].map(GridColumn::right);
    let titles = [GridColumn::left("file")].into_iter().chain(numbers).chain([GridColumn::left("is now")]);
    let mut grid = Grid::new(titles);
    for file in &start.files {
        let place = file.place.map(|place| GridCell::with_text(Bytes(place).to_string(), place));
        grid.add_row([
            file.path.as_str().into(),
            traced_pages_cell(file.pages.page_count()),
            file.pages.iter().len().into(),
            file.inode.into(),
            place.unwrap_or_else(GridCell::missing),
            traced_file_state(file).into(),
        ]);
    }
    for system in start.systems.iter().filter(|system| !system.metadata.is_empty()) {
        let name = format!("{} on {}", system.kind, system.place);
        grid.add_row([
            name.into(),
            traced_pages_cell(system.metadata.page_count()),
            system.metadata.iter().len().into(),
        ]);
    }
    grid
}

fn traced_file_state(traced: &perflab_prefetch::TracedFile) -> &'static str {
    match perflab_observe::io::describe_file(Path::new(&traced.path)) {
        None => "gone",
        Some(now) if now.inode != traced.inode => "another",
        Some(now) if (now.size, now.changed) != (traced.size, traced.changed) => "changed",
        Some(_) => "the same",
    }
}
