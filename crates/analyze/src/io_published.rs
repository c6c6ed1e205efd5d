//! Coverage as the comparison of 2007 counted it, to check its published figures and to say why ours differ.
//!
//! The figures are published with the raw results of the prefetch module. For each read that came to the disk's queue:
//! who owns its first sector by the map, and whether the dump has that. What is wrong with the method is kept to the
//! digit; [`PublishedDifference`] names it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use perflab_model::PageSet;
use perflab_model::error_class::{Classify, ErrorClass};
use perflab_model::io_trace::{
    DeviceNumber, IoEvent, IoEventKind, IoRecording, PAGE, PageRange, SECTOR, ThreadNames,
};

/// Reads by what the comparison of 2007 calls them, each counted once, whatever its length.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct PublishedCoverage {
    /// `found_in_prefetch`
    pub found: u64,
    /// `missing_in_prefetch` and `directory`: which paths are folders was asked of the machine that it ran on
    pub missing: u64,
    /// `indirect_block`
    pub indirect: u64,
    /// `Cannot find inode`
    pub unknown: u64,
    /// why these figures differ from those by block
    pub reasons: Vec<PublishedDifference>,
}

/// Why a figure of 2007 differs from ours.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(tag = "reason", rename_all = "kebab-case")]
pub enum PublishedDifference {
    /// Each request counts one, of whatever length.
    RequestsCounted {
        /// requests that are counted
        requests: u64,
        /// blocks of 4 KiB that they read
        blocks: u64,
    },
    /// The map's offsets stay blocks, and the dump's pages become sectors.
    UnitsMixed {
        /// sectors of a page
        sectors: u64,
    },
    /// An extent's offset stands for each of its blocks.
    FirstBlockOfExtent,
    /// Names of programs with other characters than letters, digits and `_` are not understood, and their requests left out.
    ProgramsLeftOut {
        /// requests
        requests: u64,
        /// programs
        programs: Vec<String>,
    },
    /// Inodes of all file systems of the dump are taken for this one's.
    DevicesIgnored {
        /// how many file systems there are
        devices: usize,
    },
    /// Directories were told apart by asking the machine that the comparison ran on.
    DirectoriesTogether,
}

/// Why the figures of 2007 cannot be computed of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PublishedCoverageError {
    /// Its files are not those of a map.
    #[error("the comparison of 2007 needs a map from blocks to files, and this run has none")]
    NoMap,
    /// It has no requests as they came to a queue.
    #[error(
        "the comparison of 2007 counts requests as they came to the disk's queue, and this run has none such"
    )]
    NoQueue,
}

impl Classify for PublishedCoverageError {
    fn class(&self) -> ErrorClass {
        match self {
            PublishedCoverageError::NoMap | PublishedCoverageError::NoQueue => ErrorClass::Usage,
        }
    }
}

/// Coverage as the comparison of 2007 counted it.
///
/// # Errors
/// A recording without a map, or without requests as they came to a queue.
pub fn published_coverage(
    recording: &IoRecording,
    ranges: &[PageRange],
) -> Result<PublishedCoverage, PublishedCoverageError> {
    let map = recording.summary.block_map.ok_or(PublishedCoverageError::NoMap)?;
    if !recording.events.iter().any(|event| event.kind == IoEventKind::Queued) {
        return Err(PublishedCoverageError::NoQueue);
    }
    let owners = FirstOffsetMap::from_recording(recording, map.block_size.max(1));
    let mut pages: HashMap<u64, Vec<(u64, u64)>> = HashMap::new();
    ranges.iter().for_each(|range| pages.entry(range.inode).or_default().push((range.first, range.count)));
    let pages: HashMap<u64, PageSet> =
        pages.into_iter().map(|(inode, pages)| (inode, pages.into_iter().collect())).collect();
    let programs = ThreadNames::from_recording(recording);
    let mut found = PublishedCoverage::default();
    let (mut blocks, mut left_out, mut names) = (0, 0, BTreeSet::new());
    for event in recording.events.iter().filter(|event| is_counted_read(event)) {
        let name = programs.name_at(event.pid, event.at);
        if !name.is_some_and(is_understood_name) {
            left_out += 1;
            names.insert(name.unwrap_or("no known program"));
            continue;
        }
        blocks += (event.count * SECTOR).div_ceil(PAGE);
        *match owners.owner_at(event.device, event.first) {
            None => &mut found.unknown,
            Some(FirstOffsetOwner::Indirect) => &mut found.indirect,
            Some(FirstOffsetOwner::File { inode, offset }) => {
                // A page N of the dump became sectors 8 N to 8 N + 7.
                let is_found =
                    pages.get(&inode).is_some_and(|pages| pages.contains(offset / (PAGE / SECTOR)));
                if is_found { &mut found.found } else { &mut found.missing }
            }
        } += 1;
    }
    found.reasons = vec![
        PublishedDifference::RequestsCounted { requests: found.requests(), blocks },
        PublishedDifference::UnitsMixed { sectors: PAGE / SECTOR },
        PublishedDifference::FirstBlockOfExtent,
    ];
    if left_out > 0 {
        let programs = names.into_iter().map(String::from).collect();
        found.reasons.push(PublishedDifference::ProgramsLeftOut { requests: left_out, programs });
    }
    let devices = ranges.iter().map(|range| range.device).collect::<BTreeSet<_>>().len();
    if devices > 1 {
        found.reasons.push(PublishedDifference::DevicesIgnored { devices });
    }
    found.reasons.push(PublishedDifference::DirectoriesTogether);
    Ok(found)
}

impl PublishedCoverage {
    /// All that are counted.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.found + self.missing + self.indirect + self.unknown
    }
}

/// Reads for data or metadata as they came to the queue; those with other flags are not looked at.
fn is_counted_read(event: &IoEvent) -> bool {
    event.kind == IoEventKind::Queued && event.count > 0 && matches!(event.name.as_deref(), Some("R" | "RM"))
}

fn is_understood_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// What the comparison takes a sector for.
#[derive(Debug, Clone, Copy, PartialEq)]
enum FirstOffsetOwner {
    /// of this file, at the block with which its extent begins
    File { inode: u64, offset: u64 },
    /// a block that says where others lie
    Indirect,
}

/// Extents of a map by the first sector, with their ends.
struct FirstOffsetMap(HashMap<DeviceNumber, BTreeMap<u64, (u64, FirstOffsetOwner)>>);

impl FirstOffsetMap {
    fn from_recording(recording: &IoRecording, block_size: u64) -> Self {
        let summary = &recording.summary;
        let mut all: HashMap<DeviceNumber, BTreeMap<u64, (u64, FirstOffsetOwner)>> = HashMap::new();
        let mut add = |device: DeviceNumber, physical: u64, length: u64, of: FirstOffsetOwner| {
            let (disk, start) = summary.disk_below(device);
            let first = (start + physical) / SECTOR;
            all.entry(disk).or_default().insert(first, (first + length / SECTOR, of));
        };
        for range in &summary.metadata {
            add(range.device, range.physical, range.length, FirstOffsetOwner::Indirect);
        }
        for file in &recording.files {
            for extent in &file.extents {
                let of = FirstOffsetOwner::File { inode: file.inode, offset: extent.logical / block_size };
                add(file.device, extent.physical, extent.length, of);
            }
        }
        FirstOffsetMap(all)
    }

    fn owner_at(&self, disk: DeviceNumber, sector: u64) -> Option<FirstOffsetOwner> {
        let (_, (end, of)) = self.0.get(&disk)?.range(..=sector).next_back()?;
        (sector < *end).then_some(*of)
    }
}
