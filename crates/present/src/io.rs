//! The tables and pictures of `perflab io`.

mod picture;

use perflab_analyze::io::{Coverage, FileUse, Folder, Place, PublishedCoverage, Status, Tick};
use perflab_model::Nanos;
use perflab_model::io::{PAGE, SECTOR};

use crate::table::{Cell, Column, Grid};

pub use picture::{Names, classes, places};

fn bytes(bytes: u64) -> Cell {
    Cell::shown(perflab_model::Bytes(bytes).to_string(), bytes)
}

fn pages(pages: u64) -> Cell {
    bytes(pages * PAGE)
}

fn time(at: Nanos) -> Cell {
    Cell::shown(format!("{:.3} s", at.seconds()), at.0)
}

fn grid<const N: usize>(name: &str, numbers: [&str; N]) -> Grid {
    Grid::new(std::iter::once(Column::left(name)).chain(numbers.map(Column::right)))
}

/// One row a file, at most `top`.
#[must_use]
pub fn files_grid(files: &[FileUse], top: usize) -> Grid {
    let mut grid = grid("file", ["read", "needed", "of it read", "pieces read", "on disk", "first"]);
    for file in files.iter().take(top) {
        let both = file.used.intersection(&file.added).pages();
        grid.add([
            file.name.as_str().into(),
            bytes(file.read),
            pages(file.used.pages()),
            pages(both),
            file.added.iter().len().into(),
            file.extents.into(),
            time(file.first),
        ]);
    }
    grid
}

/// One row a directory, at most `top`.
#[must_use]
pub fn folders_grid(folders: &[Folder], top: usize) -> Grid {
    let mut grid = grid("directory", ["files", "read", "needed"]);
    for folder in folders.iter().take(top) {
        grid.add([folder.name.as_str().into(), folder.files.into(), bytes(folder.read), pages(folder.used)]);
    }
    grid
}

/// One row a stretch of time.
#[must_use]
pub fn time_grid(ticks: &[Tick]) -> Grid {
    let mut grid = grid("since", ["requests", "asked for", "pages added", "metadata", "uses"]);
    for tick in ticks {
        let counts = [tick.added, tick.metadata, tick.used].map(Cell::from);
        grid.add([time(tick.at), tick.requests.into(), bytes(tick.bytes)].into_iter().chain(counts));
    }
    grid
}

/// One row a stretch of a disk.
#[must_use]
pub fn disk_grid(places: &[Place]) -> Grid {
    let mut grid = grid("disk", ["from", "length", "requests", "asked for", "seeks"]);
    for place in places {
        let bytes = [place.from, place.length].map(bytes);
        grid.add(std::iter::once(place.disk.to_string().into()).chain(bytes).chain([
            place.requests.into(),
            self::bytes(place.bytes),
            place.seeks.into(),
        ]));
    }
    grid
}

/// One row a status, and their sum beside what disks delivered.
#[must_use]
pub fn coverage_grid(coverage: &Coverage) -> Grid {
    let mut grid = grid("status", ["bytes", "blocks", "share"]);
    for (status, amount) in &coverage.bytes {
        let share = *amount as f64 / coverage.answers.asked.max(1) as f64;
        grid.add([
            status.name().into(),
            bytes(*amount),
            amount.div_ceil(PAGE).into(),
            Cell::shown(format!("{:.1} %", share * 100.0), share),
        ]);
    }
    let answers = &coverage.answers;
    for (name, amount) in [
        ("sum", coverage.bytes.values().sum()),
        ("delivered by disks", answers.delivered),
        ("of it asked for before", answers.early),
        ("under way at the end", answers.under_way),
    ] {
        grid.add([name.into(), bytes(amount), amount.div_ceil(PAGE).into()]);
    }
    grid
}

/// The figures of the comparison of 2007, and those by block beside them.
#[must_use]
pub fn published_grid(published: &PublishedCoverage, ours: &Coverage) -> Grid {
    let mut grid = grid("status", ["2007: requests", "2007: share", "blocks", "share"]);
    let of = |statuses: &[Status]| {
        let bytes: u64 = statuses.iter().filter_map(|status| ours.bytes.get(status)).sum();
        bytes.div_ceil(PAGE)
    };
    let lacking = [Status::NotInTrace, Status::Missing, Status::ReadAround];
    let rows = [
        ("found", published.found, of(&[Status::Found])),
        ("not in trace", published.missing, of(&lacking)),
        ("metadata", published.indirect, of(&[Status::Metadata])),
        ("unknown", published.unknown, of(&[Status::Unknown, Status::Before])),
    ];
    let (requests, blocks) = (published.requests(), rows.iter().map(|(_, _, blocks)| blocks).sum::<u64>());
    for (name, theirs, ours) in rows.into_iter().chain([("sum", requests, blocks)]) {
        let share = |count: u64, of: u64| {
            let share = count as f64 / of.max(1) as f64;
            Cell::shown(format!("{:.1} %", share * 100.0), share)
        };
        grid.add([name.into(), theirs.into(), share(theirs, requests), ours.into(), share(ours, blocks)]);
    }
    grid
}

/// The lines of the old comparison: time, sector, blocks, program, inode, offset, status, path.
#[must_use]
pub fn blocks_grid(coverage: &Coverage) -> Grid {
    let numbers = ["time", "disk", "sector", "block", "blocks"].map(Column::right);
    let file = ["inode", "offset"].map(Column::right);
    let titles = numbers.into_iter().chain([Column::left("program")]).chain(file);
    let mut grid = Grid::new(titles.chain(["status", "path"].map(Column::left)));
    let sectors = PAGE / SECTOR;
    for block in &coverage.blocks {
        grid.add([
            time(block.at),
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
