//! Tables and scenes of I/O, blkparse text, the section Disk I/O.
//!
//! Colours of a read stand for what it was to the startup trace, or to the program where there is none; the legend says
//! how much of each there was.

use std::collections::BTreeMap;

use perflab_analyze::{
    BLOCK_STATUSES, BlockRead, BlockStatus, DirectoryUse, DiskRegion, FileIoUse, IoInterval,
    PublishedCoverage, PublishedDifference, TraceCoverage,
};
use perflab_analyze::{remove_stacked_requests, trace_coverage};
use perflab_model::io_trace::{DeviceNumber, IoEventKind, IoRecording, PAGE, SECTOR};
use perflab_model::{Bytes, Nanos};

use crate::chart::axis_unit::AxisUnit;
use crate::chart::dot_charts::{ChartExtent, ExtentChart};
use crate::chart::line_charts::{ChartLayer, StackedChart};
use crate::chart::palette::{OTHERS_COLOUR, PALETTE, RgbColour};
use crate::chart::scene::Scene;
use crate::grid::{Grid, GridCell, GridColumn};
use crate::run_viewer::{run_display_name, target_display_name};
use crate::section::{ReportData, Section, SectionBlock, SectionError, fold_parts, no_conclusions};
use perflab_model::quantity::format_share;

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
    let mut grid = counted_grid("file", ["read", "needed", "of it read", "extents read", "on disk", "first"]);
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

/// One row per range of time.
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

/// One row per range of a disk.
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
            GridCell::with_text(format_share(share), share),
        ]);
    }
    let answers = &coverage.answers;
    for (name, amount) in [
        ("sum", coverage.bytes.values().sum()),
        ("delivered by disks", answers.completed),
        ("of it asked for before", answers.before_start),
        ("in flight at the end", answers.in_flight),
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
            GridCell::with_text(format_share(share), share)
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

/// What statuses are called: against a trace, or without one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CoverageNames {
    /// found in it, or missing
    Trace,
    /// needed by the program, or not
    Program,
}

impl CoverageNames {
    /// What a status is called.
    #[must_use]
    pub fn status_name(self, status: BlockStatus) -> &'static str {
        match (self, status) {
            (CoverageNames::Program, BlockStatus::Missing) => "needed",
            (CoverageNames::Program, BlockStatus::NotInTrace) => "of files",
            _ => status.name(),
        }
    }
}

fn status_colour(status: BlockStatus) -> RgbColour {
    let [blue, orange, green, pink, sky, red, _] = PALETTE;
    match status {
        BlockStatus::Found => blue,
        BlockStatus::Missing => red,
        BlockStatus::NotInTrace => green,
        BlockStatus::ReadAround => orange,
        BlockStatus::Metadata => pink,
        BlockStatus::Before => sky,
        BlockStatus::Unknown => OTHERS_COLOUR,
    }
}

/// Statuses that there are, each with its name and bytes, and its colour.
fn coverage_groups(coverage: &TraceCoverage, names: CoverageNames) -> Vec<(BlockStatus, String, RgbColour)> {
    let of = |(status, _): &(BlockStatus, &str)| {
        let bytes = coverage.bytes.get(status).copied().filter(|bytes| *bytes > 0)?;
        Some((*status, format!("{}, {}", names.status_name(*status), Bytes(bytes)), status_colour(*status)))
    };
    BLOCK_STATUSES.iter().filter_map(of).collect()
}

/// The disk that was read most.
fn busiest_disk(coverage: &TraceCoverage) -> Option<DeviceNumber> {
    let mut sums = std::collections::BTreeMap::<DeviceNumber, u64>::new();
    coverage.blocks.iter().for_each(|block| *sums.entry(block.disk).or_default() += block.sectors);
    sums.into_iter().max_by_key(|(_, sectors)| *sectors).map(|(disk, _)| disk)
}

/// Places are left out in ranges of this many bytes: less would tear what lies together apart.
const GRAIN: u64 = 64 << 10;

/// The ranges of a disk that were asked for, in order; those between are left out of the picture.
struct TouchedExtents(Vec<u64>);

impl TouchedExtents {
    fn from_blocks<'a>(blocks: impl Iterator<Item = &'a BlockRead>) -> Self {
        let grains = blocks.flat_map(|block| {
            let (first, end) = (block.sector * SECTOR, (block.sector + block.sectors) * SECTOR);
            first / GRAIN..end.div_ceil(GRAIN)
        });
        let set: std::collections::BTreeSet<u64> = grains.collect();
        TouchedExtents(set.into_iter().collect())
    }

    /// How far up a byte of the disk is drawn.
    fn drawn_height(&self, byte: u64) -> f64 {
        let below = self.0.partition_point(|grain| *grain < byte / GRAIN) as u64;
        (below * GRAIN + byte % GRAIN) as f64
    }

    /// From the first byte of the disk that is drawn to the last, how many are not.
    fn skipped_bytes(&self) -> u64 {
        let ends = self.0.first().zip(self.0.last());
        ends.map_or(0, |(first, last)| (last - first + 1 - self.0.len() as u64) * GRAIN)
    }
}

/// Every read of the disk that was read most: when, and where on it.
#[must_use]
pub fn read_positions_chart(coverage: &TraceCoverage, title: &str, names: CoverageNames) -> Scene {
    let disk = busiest_disk(coverage);
    let groups = coverage_groups(coverage, names);
    let group = |status: BlockStatus| groups.iter().position(|(of, ..)| *of == status).unwrap_or(0);
    let own = || coverage.blocks.iter().filter(|block| Some(block.disk) == disk);
    let touched = TouchedExtents::from_blocks(own());
    let range = |block: &BlockRead| {
        let from = touched.drawn_height(block.sector * SECTOR);
        let (x, to) = (block.at.seconds(), from + (block.sectors * SECTOR) as f64);
        ChartExtent { x, from, to, group: group(block.status) }
    };
    let ranges: Vec<ChartExtent> = own().map(range).collect();
    let note = match disk {
        Some(disk) => format!(
            "Every read of disk {disk}, in the order of its places; {} between them are left out.",
            Bytes(touched.skipped_bytes())
        ),
        None => NOTHING_ASKED.into(),
    };
    let groups = groups.into_iter().map(|(_, name, colour)| (name, colour)).collect();
    let (unit, across) = (AxisUnit::Bytes, "seconds".into());
    ExtentChart { title: title.into(), note, unit, x_title: across, extents: ranges, groups }.render()
}

/// What is said of a recording without a read.
const NOTHING_ASKED: &str = "No disk was asked for anything.";

/// Points in time of a picture of sums.
const POINTS: usize = 300;

/// How much disks had been asked for by then, by status.
#[must_use]
pub fn read_classes_chart(coverage: &TraceCoverage, title: &str, names: CoverageNames) -> Scene {
    let end = coverage.blocks.last().map_or(0.0, |block| block.at.seconds());
    let times: Vec<f64> = (0..=POINTS).map(|point| end * point as f64 / POINTS as f64).collect();
    let layers = coverage_groups(coverage, names).into_iter().map(|(status, name, colour)| {
        let values = cumulative_bytes(coverage, status, &times);
        ChartLayer { name, values, colour: Some(colour) }
    });
    StackedChart {
        title: title.into(),
        note: "Bytes that disks had been asked for by then.".into(),
        unit: AxisUnit::Bytes,
        layers: layers.collect(),
        times,
        ..StackedChart::default()
    }
    .render()
}

/// Bytes of a status until each of some times, ascending.
fn cumulative_bytes(coverage: &TraceCoverage, status: BlockStatus, times: &[f64]) -> Vec<f64> {
    let mut own = coverage.blocks.iter().filter(|block| block.status == status).peekable();
    let mut sum = 0;
    let until = |time: &f64| {
        while let Some(block) = own.next_if(|block| block.at.seconds() <= *time) {
            sum += block.sectors * SECTOR;
        }
        sum as f64
    };
    times.iter().map(until).collect()
}

/// How what 2007 counted differs from ours.
#[must_use]
pub fn describe_published_difference(difference: &PublishedDifference) -> String {
    match difference {
        PublishedDifference::RequestsCounted { requests, blocks } => {
            format!("each request counts one, of whatever length: {requests} stand for {blocks} blocks of 4 KiB")
        }
        PublishedDifference::UnitsMixed { sectors } => format!(
            "the map's offsets are blocks and the dump's pages were made sectors, and the two are compared with each other: \
             block N counts as found where the dump has page N / {sectors}"
        ),
        PublishedDifference::FirstBlockOfExtent => {
            "within an extent the offset does not go on: all of its blocks are taken for its first".into()
        }
        PublishedDifference::ProgramsLeftOut { requests, programs } => format!(
            "names of programs may only have letters, digits and _: {requests} requests of {} are left out",
            programs.join(", ")
        ),
        PublishedDifference::DevicesIgnored { devices } => {
            format!("inodes of all {devices} file systems of the dump are taken for those of the mapped one")
        }
        PublishedDifference::DirectoriesTogether => {
            "which of those missing are directories was asked of the machine that it ran on; a map does not tell, so they are \
             counted together here"
                .into()
        }
    }
}

/// What was read from disks, where it lay, and which of it a startup trace explains.
pub(crate) const SECTION: Section =
    Section { id: "io", title: "Disk I/O", conclusions: no_conclusions, blocks: io_blocks };

/// The first traced iteration of each run on each of its targets stands for all.
fn io_blocks(data: &ReportData) -> Result<Vec<SectionBlock>, SectionError> {
    let mut parts = Vec::new();
    for run in &data.runs {
        let mut by_target: BTreeMap<Option<u32>, IoRecording> = BTreeMap::new();
        for (iteration, recording) in run.io_recordings()? {
            by_target.entry(iteration.target).or_insert(recording);
        }
        let several = by_target.len() > 1;
        for (target, recording) in by_target {
            let run_name = (data.runs.len() > 1).then(|| run_display_name(run.record()));
            let target_name = several.then(|| target_display_name(run.record(), target));
            let names: Vec<String> = run_name.into_iter().chain(target_name).collect();
            parts.push(recording_part(data, &names, &remove_stacked_requests(recording).0));
        }
    }
    Ok(fold_parts("recordings", parts))
}

/// A recording under the program's name, its run's and its target's.
fn recording_part(
    data: &ReportData,
    names_of_part: &[String],
    recording: &IoRecording,
) -> (Option<String>, Vec<SectionBlock>) {
    let program = recording.events.iter().find(|event| event.kind == IoEventKind::Exec);
    let program = program.and_then(|event| event.name.as_deref());
    let trace = program.and_then(data.startup_trace);
    let names = if trace.is_some() { CoverageNames::Trace } else { CoverageNames::Program };
    let found = trace_coverage(recording, &trace.unwrap_or_default());
    let subject = std::iter::once(program.unwrap_or("the system"));
    let subject: Vec<&str> = subject.chain(names_of_part.iter().map(String::as_str)).collect();
    let heading = format!("I/O of {}", subject.join(", "));
    if found.blocks.is_empty() {
        return (Some(heading), vec![SectionBlock::Text(NOTHING_ASKED.into())]);
    }
    let mut blocks: Vec<SectionBlock> =
        coverage_sentences(&found, names).into_iter().map(SectionBlock::Text).collect();
    blocks.push(SectionBlock::Figure(read_positions_chart(
        &found,
        "Reads of the disk: when, and where",
        names,
    )));
    blocks.push(SectionBlock::Figure(read_classes_chart(
        &found,
        "Reads of the disk: how much of which kind",
        names,
    )));
    (Some(heading), blocks)
}

fn coverage_sentences(found: &TraceCoverage, names: CoverageNames) -> [String; 2] {
    let sum: u64 = found.bytes.values().sum();
    let parts = found.bytes.iter().filter(|(_, bytes)| **bytes > 0);
    let parts: Vec<String> =
        parts.map(|(status, bytes)| format!("{} {}", Bytes(*bytes), names.status_name(*status))).collect();
    let against = match names {
        CoverageNames::Trace => "compared with the prefetch trace that is remembered of it",
        CoverageNames::Program => "no prefetch trace of it is remembered here",
    };
    [
        format!("Disks were asked for {}: {} ({against}).", Bytes(sum), parts.join(", ")),
        format!(
            "They delivered {} meanwhile, {} of it asked for before; {} were in flight at the end.",
            Bytes(found.answers.completed),
            Bytes(found.answers.before_start),
            Bytes(found.answers.in_flight)
        ),
    ]
}

#[cfg(test)]
mod tests {
    use perflab_analyze::DiskReadBytes;
    use perflab_model::Nanos;

    use super::*;
    use crate::chart::scene::{SceneMark, SceneSurface};

    fn disk_block(at: u64, sector: u64, sectors: u64, status: BlockStatus) -> BlockRead {
        let (disk, name, program) = (DeviceNumber::new(8, 0), String::new(), String::new());
        BlockRead {
            at: Nanos(at * 1_000_000),
            disk,
            sector,
            sectors,
            pid: 1,
            program,
            status,
            file: None,
            name,
        }
    }

    fn sample_coverage() -> TraceCoverage {
        let blocks = vec![
            disk_block(1, 1 << 20, 256, BlockStatus::Metadata),
            disk_block(20, 3 << 20, 4096, BlockStatus::Found),
            disk_block(21, 3 << 20, 4096, BlockStatus::Found),
            disk_block(50, 2 << 20, 8, BlockStatus::Missing),
        ];
        let mut bytes = std::collections::BTreeMap::new();
        blocks.iter().for_each(|block| *bytes.entry(block.status).or_default() += block.sectors * SECTOR);
        TraceCoverage { blocks, bytes, answers: DiskReadBytes::default() }
    }

    #[test]
    fn reads_lie_at_their_places_in_the_colour_of_their_status() {
        let scene =
            read_positions_chart(&sample_coverage(), "Reads held against start", CoverageNames::Trace);
        insta::assert_snapshot!("places", scene.to_svg(SceneSurface::Paper));
        let own = |mark: &&SceneMark| matches!(mark, SceneMark::Rect { width, .. } if *width < 3.0);
        assert!(scene.marks.iter().filter(own).count() >= 3);
    }

    #[test]
    fn sums_grow_to_what_was_read() {
        let found = sample_coverage();
        assert_eq!(
            cumulative_bytes(&found, BlockStatus::Found, &[0.0, 0.02, 0.03]),
            [0.0, 2_097_152.0, 4_194_304.0]
        );
        // What there is none of has no legend.
        let scene = read_classes_chart(&found, "Reads", CoverageNames::Program);
        insta::assert_snapshot!(scene.texts().join("\n"), @"
        Reads
        Bytes that disks had been asked for by then.
        0
        1
        2
        3
        4
        5
        0
        0.01
        0.02
        0.03
        0.04
        0.05
        MiB
        seconds
        metadata, 128 KiB
        needed, 4 KiB
        found, 4 MiB
        ");
    }

    #[test]
    fn nothing_is_drawn_of_nothing() {
        let scene = read_positions_chart(&TraceCoverage::default(), "x", CoverageNames::Trace);
        insta::assert_snapshot!(scene.texts().join("\n"), @"
        x
        No disk was asked for anything.
        no data
        ");
    }
}
