//! Reads of a disk as pictures: where they went and when, and how much of which kind. Colours stand for what a read was to
//! the prefetch trace, or to the program where there is none; the legend says how much of each there was.

use perflab_analyze::io::{BLOCK_STATUSES, BlockRead, BlockStatus, TraceCoverage};
use perflab_model::Bytes;
use perflab_model::io::{DeviceNumber, SECTOR};

use crate::chart::{
    AxisUnit, ChartExtent, ChartLayer, ExtentChart, OTHERS_COLOUR, PALETTE, RgbColour, Scene, StackedChart,
};

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

/// Places are left out in stretches of this many bytes: less would tear what lies together apart.
const GRAIN: u64 = 64 << 10;

/// The stretches of a disk that were asked for, in order; those between are left out of the picture.
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
    let stretch = |block: &BlockRead| {
        let from = touched.drawn_height(block.sector * SECTOR);
        let (x, to) = (block.at.seconds(), from + (block.sectors * SECTOR) as f64);
        ChartExtent { x, from, to, group: group(block.status) }
    };
    let stretches: Vec<ChartExtent> = own().map(stretch).collect();
    let note = match disk {
        Some(disk) => format!(
            "Every read of disk {disk}, in the order of its places; {} between them are left out.",
            Bytes(touched.skipped_bytes())
        ),
        None => "No disk was asked for anything.".into(),
    };
    let groups = groups.into_iter().map(|(_, name, colour)| (name, colour)).collect();
    let (unit, across) = (AxisUnit::Bytes, "seconds".into());
    ExtentChart { title: title.into(), note, unit, x_title: across, extents: stretches, groups }.render()
}

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

#[cfg(test)]
mod tests {
    use perflab_analyze::io::DiskReadBytes;
    use perflab_model::Nanos;

    use super::*;
    use crate::chart::{SceneMark, SceneSurface};

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
        let text = read_classes_chart(&found, "Reads", CoverageNames::Program).to_svg(SceneSurface::Paper);
        assert!(text.contains("needed, 4.0 KiB"), "{text}");
        assert!(!text.contains("unknown"), "what there is none of has no legend");
    }

    #[test]
    fn nothing_is_drawn_of_nothing() {
        assert!(
            read_positions_chart(&TraceCoverage::default(), "x", CoverageNames::Trace)
                .to_svg(SceneSurface::Paper)
                .contains("no data")
        );
    }
}
