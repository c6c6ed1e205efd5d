//! The same recording over time, and over the places of a disk.

use std::collections::{BTreeMap, HashSet};

use perflab_model::Nanos;
use perflab_model::io::{DeviceNumber, FileClass, IoEventKind, IoRecording, SECTOR};

/// What happened in a stretch of time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct IoInterval {
    /// its beginning, since tracing began
    pub at: Nanos,
    /// pages of files that came into the cache
    pub added: u64,
    /// pages of file systems' own blocks that did
    pub metadata: u64,
    /// times that a page was needed
    pub used: u64,
    /// requests that disks were sent for reading
    pub requests: u64,
    /// bytes that these asked for
    pub bytes: u64,
}

/// As many equal stretches of time as wanted, from the beginning of tracing to its end.
pub fn reads_over_time(recording: &IoRecording, wanted: usize) -> Vec<IoInterval> {
    let told = &recording.told;
    let whole = told.ended.since(told.begun).0.max(1);
    let width = whole.div_ceil(wanted.max(1) as u64).max(1);
    let mut ticks: Vec<IoInterval> = (0..whole.div_ceil(width))
        .map(|tick| IoInterval { at: Nanos(tick * width), ..IoInterval::default() })
        .collect();
    let disks = disk_inodes(recording);
    for event in &recording.events {
        let at = (event.at.since(told.begun).0 / width) as usize;
        let Some(tick) = ticks.get_mut(at) else { continue };
        match event.kind {
            IoEventKind::Added if disks.contains(&(event.device, event.inode)) => {
                tick.metadata += event.count
            }
            IoEventKind::Added => tick.added += event.count,
            IoEventKind::Fault | IoEventKind::Read => tick.used += 1,
            IoEventKind::Issued if event.is_disk_read() => {
                tick.requests += 1;
                tick.bytes += event.count * SECTOR;
            }
            _ => {}
        }
    }
    ticks
}

/// What events call a disk itself: its pages are file systems' own blocks.
fn disk_inodes(recording: &IoRecording) -> HashSet<(DeviceNumber, u64)> {
    let disks = recording.files.iter().filter(|file| file.class == FileClass::Disk);
    disks.map(|file| (file.device, file.inode)).collect()
}

/// Requests that went to a stretch of a disk.
#[derive(Debug, Clone, PartialEq)]
pub struct DiskRegion {
    /// the disk
    pub disk: DeviceNumber,
    /// first byte of the stretch
    pub from: u64,
    /// its length
    pub length: u64,
    /// requests for reading
    pub requests: u64,
    /// bytes that they asked for
    pub bytes: u64,
    /// requests that did not begin where the one before, of all on this disk, had ended
    pub seeks: u64,
}

/// Each disk that was read, from its first byte that was to its last, in as many equal stretches as wanted; those that were
/// not read are left out.
pub fn reads_over_disk(recording: &IoRecording, wanted: usize) -> Vec<DiskRegion> {
    let mut disks: BTreeMap<DeviceNumber, Vec<(u64, u64)>> = BTreeMap::new();
    for event in recording.events.iter().filter(|event| event.is_disk_read()) {
        disks.entry(event.device).or_default().push((event.first * SECTOR, event.count * SECTOR));
    }
    disks.into_iter().flat_map(|(disk, requests)| disk_regions(disk, &requests, wanted)).collect()
}

fn disk_regions(disk: DeviceNumber, requests: &[(u64, u64)], wanted: usize) -> Vec<DiskRegion> {
    let first = requests.iter().map(|(at, _)| *at).min().unwrap_or(0);
    let end = requests.iter().map(|(at, length)| at + length).max().unwrap_or(0);
    let length = (end - first).div_ceil(wanted.max(1) as u64).max(SECTOR);
    let mut all: BTreeMap<u64, DiskRegion> = BTreeMap::new();
    let mut before = None;
    for (at, bytes) in requests {
        let from = first + (at - first) / length * length;
        let place =
            all.entry(from).or_insert(DiskRegion { disk, from, length, requests: 0, bytes: 0, seeks: 0 });
        place.requests += 1;
        place.bytes += bytes;
        place.seeks += u64::from(before.is_some_and(|before| before != *at));
        before = Some(at + bytes);
    }
    all.into_values().collect()
}
