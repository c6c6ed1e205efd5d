//! The tables and pictures of `perflab io`.

mod picture;

use perflab_analyze::io::{
    BlockStatus, DirectoryUse, DiskRegion, FileIoUse, IoInterval, PublishedCoverage, TraceCoverage,
};
use perflab_model::Nanos;
use perflab_model::io::{PAGE, SECTOR};

use crate::table::{Grid, GridCell, GridColumn};

pub use picture::{CoverageNames, read_classes_chart, read_positions_chart};

fn io_bytes_cell(bytes: u64) -> GridCell {
    GridCell::with_text(perflab_model::Bytes(bytes).to_string(), bytes)
}

fn page_count_cell(pages: u64) -> GridCell {
    io_bytes_cell(pages * PAGE)
}

fn io_time_cell(at: Nanos) -> GridCell {
    GridCell::with_text(format!("{:.3} s", at.seconds()), at.0)
}

fn counted_grid<const N: usize>(name: &str, numbers: [&str; N]) -> Grid {
    Grid::new(std::iter::once(GridColumn::left(name)).chain(numbers.map(GridColumn::right)))
}

/// One row a file, at most `top`.
#[must_use]
pub fn files_grid(files: &[FileIoUse], top: usize) -> Grid {
    let mut grid = counted_grid("file", ["read", "needed", "of it read", "pieces read", "on disk", "first"]);
    for file in files.iter().take(top) {
        let both = file.used.intersection(&file.added).page_count();
        grid.add_row([
            file.name.as_str().into(),
            io_bytes_cell(file.read),
            page_count_cell(file.used.page_count()),
            page_count_cell(both),
            file.added.iter().len().into(),
            file.extents.into(),
            io_time_cell(file.first),
        ]);
    }
    grid
}

/// One row a directory, at most `top`.
#[must_use]
pub fn folders_grid(folders: &[DirectoryUse], top: usize) -> Grid {
    let mut grid = counted_grid("directory", ["files", "read", "needed"]);
    for folder in folders.iter().take(top) {
        grid.add_row([
            folder.name.as_str().into(),
            folder.files.into(),
            io_bytes_cell(folder.read),
            page_count_cell(folder.used),
        ]);
    }
    grid
}

/// One row a stretch of time.
#[must_use]
pub fn reads_over_time_grid(ticks: &[IoInterval]) -> Grid {
    let mut grid = counted_grid("since", ["requests", "asked for", "pages added", "metadata", "uses"]);
    for tick in ticks {
        let counts = [tick.added, tick.metadata, tick.used].map(GridCell::from);
        grid.add_row(
            [io_time_cell(tick.at), tick.requests.into(), io_bytes_cell(tick.bytes)]
                .into_iter()
                .chain(counts),
        );
    }
    grid
}

/// One row a stretch of a disk.
#[must_use]
pub fn reads_over_disk_grid(places: &[DiskRegion]) -> Grid {
    let mut grid = counted_grid("disk", ["from", "length", "requests", "asked for", "seeks"]);
    for place in places {
        let bytes = [place.from, place.length].map(io_bytes_cell);
        grid.add_row(std::iter::once(place.disk.to_string().into()).chain(bytes).chain([
            place.requests.into(),
            self::io_bytes_cell(place.bytes),
            place.seeks.into(),
        ]));
    }
    grid
}

/// One row a status, and their sum beside what disks delivered.
#[must_use]
pub fn coverage_grid(coverage: &TraceCoverage) -> Grid {
    let mut grid = counted_grid("status", ["bytes", "blocks", "share"]);
    for (status, amount) in &coverage.bytes {
        let share = *amount as f64 / coverage.answers.requested.max(1) as f64;
        grid.add_row([
            status.name().into(),
            io_bytes_cell(*amount),
            amount.div_ceil(PAGE).into(),
            GridCell::with_text(format!("{:.1} %", share * 100.0), share),
        ]);
    }
    let answers = &coverage.answers;
    for (name, amount) in [
        ("sum", coverage.bytes.values().sum()),
        ("delivered by disks", answers.completed),
        ("of it asked for before", answers.before_start),
        ("under way at the end", answers.in_flight),
    ] {
        grid.add_row([name.into(), io_bytes_cell(amount), amount.div_ceil(PAGE).into()]);
    }
    grid
}

/// The figures of the comparison of 2007, and those by block beside them.
#[must_use]
pub fn published_grid(published: &PublishedCoverage, ours: &TraceCoverage) -> Grid {
    let mut grid = counted_grid("status", ["2007: requests", "2007: share", "blocks", "share"]);
    let of = |statuses: &[BlockStatus]| {
        let bytes: u64 = statuses.iter().filter_map(|status| ours.bytes.get(status)).sum();
        bytes.div_ceil(PAGE)
    };
    let lacking = [BlockStatus::NotInTrace, BlockStatus::Missing, BlockStatus::ReadAround];
    let rows = [
        ("found", published.found, of(&[BlockStatus::Found])),
        ("not in trace", published.missing, of(&lacking)),
        ("metadata", published.indirect, of(&[BlockStatus::Metadata])),
        ("unknown", published.unknown, of(&[BlockStatus::Unknown, BlockStatus::Before])),
    ];
    let (requests, blocks) = (published.requests(), rows.iter().map(|(_, _, blocks)| blocks).sum::<u64>());
    for (name, theirs, ours) in rows.into_iter().chain([("sum", requests, blocks)]) {
        let share = |count: u64, of: u64| {
            let share = count as f64 / of.max(1) as f64;
            GridCell::with_text(format!("{:.1} %", share * 100.0), share)
        };
        grid.add_row([name.into(), theirs.into(), share(theirs, requests), ours.into(), share(ours, blocks)]);
    }
    grid
}

/// The lines of the old comparison: time, sector, blocks, program, inode, offset, status, path.
#[must_use]
pub fn blocks_grid(coverage: &TraceCoverage) -> Grid {
    let numbers = ["time", "disk", "sector", "block", "blocks"].map(GridColumn::right);
    let file = ["inode", "offset"].map(GridColumn::right);
    let titles = numbers.into_iter().chain([GridColumn::left("program")]).chain(file);
    let mut grid = Grid::new(titles.chain(["status", "path"].map(GridColumn::left)));
    let sectors = PAGE / SECTOR;
    for block in &coverage.blocks {
        grid.add_row([
            io_time_cell(block.at),
            block.disk.to_string().into(),
            block.sector.into(),
            (block.sector / sectors).into(),
            block.sectors.div_ceil(sectors).into(),
            block.program.as_str().into(),
            block.file.map(|(inode, _)| inode).into(),
            block.file.map(|(_, page)| page * PAGE).into(),
            block.status.name().into(),
            block.name.as_str().into(),
        ]);
    }
    grid
}
