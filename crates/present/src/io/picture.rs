//! Reads of a disk as pictures: where they went and when, and how much of which kind. Colours stand for what a read was to
//! the prefetch trace, or to the program where there is none; the legend says how much of each there was.

use perflab_analyze::io::{Block, Coverage, STATUSES, Status};
use perflab_model::Bytes;
use perflab_model::io::{Device, SECTOR};

use crate::chart::{Layer, OTHERS, PALETTE, Rgb, Scene, Stacked, Stretch, Stretches, Unit};

/// What statuses are called: against a trace, or without one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Names {
    /// found in it, or missing
    Trace,
    /// needed by the program, or not
    Program,
}

impl Names {
    /// What a status is called.
    #[must_use]
    pub fn name(self, status: Status) -> &'static str {
        match (self, status) {
            (Names::Program, Status::Missing) => "needed",
            (Names::Program, Status::NotInTrace) => "of files",
            _ => status.name(),
        }
    }
}

fn colour(status: Status) -> Rgb {
    let [blue, orange, green, pink, sky, red, _] = PALETTE;
    match status {
        Status::Found => blue,
        Status::Missing => red,
        Status::NotInTrace => green,
        Status::ReadAround => orange,
        Status::Metadata => pink,
        Status::Before => sky,
        Status::Unknown => OTHERS,
    }
}

/// Statuses that there are, each with its name and bytes, and its colour.
fn groups(coverage: &Coverage, names: Names) -> Vec<(Status, String, Rgb)> {
    let of = |(status, _): &(Status, &str)| {
        let bytes = coverage.bytes.get(status).copied().filter(|bytes| *bytes > 0)?;
        Some((*status, format!("{}, {}", names.name(*status), Bytes(bytes)), colour(*status)))
    };
    STATUSES.iter().filter_map(of).collect()
}

/// The disk that was read most.
fn main_disk(coverage: &Coverage) -> Option<Device> {
    let mut sums = std::collections::BTreeMap::<Device, u64>::new();
    coverage.blocks.iter().for_each(|block| *sums.entry(block.disk).or_default() += block.sectors);
    sums.into_iter().max_by_key(|(_, sectors)| *sectors).map(|(disk, _)| disk)
}

/// Places are left out in stretches of this many bytes: less would tear what lies together apart.
const GRAIN: u64 = 64 << 10;

/// The stretches of a disk that were asked for, in order; those between are left out of the picture.
struct Touched(Vec<u64>);

impl Touched {
    fn of<'a>(blocks: impl Iterator<Item = &'a Block>) -> Self {
        let grains = blocks.flat_map(|block| {
            let (first, end) = (block.sector * SECTOR, (block.sector + block.sectors) * SECTOR);
            first / GRAIN..end.div_ceil(GRAIN)
        });
        let set: std::collections::BTreeSet<u64> = grains.collect();
        Touched(set.into_iter().collect())
    }

    /// How far up a byte of the disk is drawn.
    fn place(&self, byte: u64) -> f64 {
        let below = self.0.partition_point(|grain| *grain < byte / GRAIN) as u64;
        (below * GRAIN + byte % GRAIN) as f64
    }

    /// From the first byte of the disk that is drawn to the last, how many are not.
    fn left_out(&self) -> u64 {
        let ends = self.0.first().zip(self.0.last());
        ends.map_or(0, |(first, last)| (last - first + 1 - self.0.len() as u64) * GRAIN)
    }
}

/// Every read of the disk that was read most: when, and where on it.
#[must_use]
pub fn places(coverage: &Coverage, title: &str, names: Names) -> Scene {
    let disk = main_disk(coverage);
    let groups = groups(coverage, names);
    let group = |status: Status| groups.iter().position(|(of, ..)| *of == status).unwrap_or(0);
    let own = || coverage.blocks.iter().filter(|block| Some(block.disk) == disk);
    let touched = Touched::of(own());
    let stretch = |block: &Block| {
        let from = touched.place(block.sector * SECTOR);
        let (x, to) = (block.at.seconds(), from + (block.sectors * SECTOR) as f64);
        Stretch { x, from, to, group: group(block.status) }
    };
    let stretches: Vec<Stretch> = own().map(stretch).collect();
    let note = match disk {
        Some(disk) => format!(
            "Every read of disk {disk}, in the order of its places; {} between them are left out.",
            Bytes(touched.left_out())
        ),
        None => "No disk was asked for anything.".into(),
    };
    let groups = groups.into_iter().map(|(_, name, colour)| (name, colour)).collect();
    let (unit, across) = (Unit::Bytes, "seconds".into());
    Stretches { title: title.into(), note, unit, across, stretches, groups }.scene()
}

/// Points in time of a picture of sums.
const POINTS: usize = 300;

/// How much disks had been asked for by then, by status.
#[must_use]
pub fn classes(coverage: &Coverage, title: &str, names: Names) -> Scene {
    let end = coverage.blocks.last().map_or(0.0, |block| block.at.seconds());
    let times: Vec<f64> = (0..=POINTS).map(|point| end * point as f64 / POINTS as f64).collect();
    let layers = groups(coverage, names).into_iter().map(|(status, name, colour)| {
        let values = summed(coverage, status, &times);
        Layer { name, values, colour: Some(colour) }
    });
    Stacked {
        title: title.into(),
        note: "Bytes that disks had been asked for by then.".into(),
        unit: Unit::Bytes,
        layers: layers.collect(),
        times,
        ..Stacked::default()
    }
    .scene()
}

/// Bytes of a status until each of some times, ascending.
fn summed(coverage: &Coverage, status: Status, times: &[f64]) -> Vec<f64> {
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
    use perflab_analyze::io::Answers;
    use perflab_model::Nanos;

    use super::*;
    use crate::chart::{Mark, Surface};

    fn block(at: u64, sector: u64, sectors: u64, status: Status) -> Block {
        let (disk, name, program) = (Device::new(8, 0), String::new(), String::new());
        Block { at: Nanos(at * 1_000_000), disk, sector, sectors, pid: 1, program, status, file: None, name }
    }

    fn coverage() -> Coverage {
        let blocks = vec![
            block(1, 1 << 20, 256, Status::Metadata),
            block(20, 3 << 20, 4096, Status::Found),
            block(21, 3 << 20, 4096, Status::Found),
            block(50, 2 << 20, 8, Status::Missing),
        ];
        let mut bytes = std::collections::BTreeMap::new();
        blocks.iter().for_each(|block| *bytes.entry(block.status).or_default() += block.sectors * SECTOR);
        Coverage { blocks, bytes, answers: Answers::default() }
    }

    #[test]
    fn reads_lie_at_their_places_in_the_colour_of_their_status() {
        let scene = places(&coverage(), "Reads held against start", Names::Trace);
        insta::assert_snapshot!("places", scene.svg(Surface::Paper));
        let own = |mark: &&Mark| matches!(mark, Mark::Rect { width, .. } if *width < 3.0);
        assert!(scene.marks.iter().filter(own).count() >= 3);
    }

    #[test]
    fn sums_grow_to_what_was_read() {
        let found = coverage();
        assert_eq!(summed(&found, Status::Found, &[0.0, 0.02, 0.03]), [0.0, 2_097_152.0, 4_194_304.0]);
        let text = classes(&found, "Reads", Names::Program).svg(Surface::Paper);
        assert!(text.contains("needed, 4.0 KiB"), "{text}");
        assert!(!text.contains("unknown"), "what there is none of has no legend");
    }

    #[test]
    fn nothing_is_drawn_of_nothing() {
        assert!(places(&Coverage::default(), "x", Names::Trace).svg(Surface::Paper).contains("no data"));
    }
}
