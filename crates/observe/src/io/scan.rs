//! Sectors made into files by walking a whole file system: for traces that name no file. Every file and folder is asked where
//! it lies; none is read.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use perflab_model::io::{Device, IoFile, IoKind, IoRecording, SECTOR};

use super::files::{look_at, tell, walk_all};
use super::mounts::{self, Mount, Mounts};
use super::stacks::{place_stacked, read_table};
use crate::Root;

/// Why a file system cannot be walked.
#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    /// Nothing is mounted there that lies on a disk.
    #[error("{} lies on no disk: it is {kind}", place.display())]
    NoDisk {
        /// the place
        place: PathBuf,
        /// its file system
        kind: String,
    },
    /// The place cannot be looked at.
    #[error("{}: {source}", place.display())]
    Place {
        /// the place
        place: PathBuf,
        /// what the system said
        source: std::io::Error,
    },
}

/// Whether the files below `place` can be held against sectors.
///
/// # Errors
/// A place that is not there, or on no disk.
pub fn lies_on_a_disk(place: &Path) -> Result<(), ScanError> {
    below(&Mounts::read(), place).map(drop)
}

/// The mount that a place belongs to, the disk below, and the number of the place.
fn below<'a>(mounts: &'a Mounts, place: &Path) -> Result<(&'a Mount, Device, u64), ScanError> {
    let about = fs::metadata(place).map_err(|source| ScanError::Place { place: place.into(), source })?;
    let mount = mounts.under(place);
    let kind = mount.map_or("no mount", |mount| mount.kind.as_str());
    let found = mount.and_then(|mount| Some((mount, mounts::disk(mount)?, about.ino())));
    found.ok_or_else(|| ScanError::NoDisk { place: place.into(), kind: kind.into() })
}

/// Adds the files below `place` to which sectors of a recording belong, and what is known of their file system. A recording of
/// one disk is taken to be of the disk below `place`, whatever its number was then.
///
/// # Errors
/// A place that is not there, or on no disk.
pub fn scan(recording: &mut IoRecording, place: &Path) -> Result<(), ScanError> {
    let mounts = Mounts::read();
    let (mount, now, inode) = below(&mounts, place)?;
    let mut files = vec![look_at(mount.device, inode, place)];
    walk_all(place, &mut |inode, path| {
        files.push(look_at(mount.device, inode, path));
        true
    });
    recording.files.extend(files.into_iter().filter(|file| !file.extents.is_empty()));
    tell(recording, mount);
    place_stacked(recording, &Root::host(), &read_table);
    // Unless its requests were those of a disk on which this one lies.
    let below = recording.told.segments.iter().map(|segment| segment.disk).collect::<Vec<_>>();
    if let Some(then) = only_disk(recording).filter(|then| *then != now && !below.contains(then)) {
        rename(recording, mount.device, then);
    }
    keep_asked(recording);
    Ok(())
}

/// The disk of all requests, if it is one.
fn only_disk(recording: &IoRecording) -> Option<Device> {
    let requests = recording.events.iter().filter(|event| event.kind == IoKind::Issued);
    let mut disks = requests.map(|event| event.device);
    let first = disks.next()?;
    disks.all(|disk| disk == first).then_some(first)
}

/// Says that the file system lay on a disk of another number when it was traced.
fn rename(recording: &mut IoRecording, device: Device, then: Device) {
    let told = &mut recording.told;
    let (_, start) = told.disk(device);
    told.partitions.retain(|partition| partition.device != device);
    told.partitions.push(perflab_model::io::Partition { device, disk: then, start });
}

/// Forgets files of which no sector was asked for.
fn keep_asked(recording: &mut IoRecording) {
    let requests = recording.events.iter().filter(|event| event.kind == IoKind::Issued && event.count > 0);
    let mut asked: Vec<(Device, u64, u64)> = requests
        .map(|event| (event.device, event.first * SECTOR, (event.first + event.count) * SECTOR))
        .collect();
    asked.sort_unstable();
    let told = &recording.told;
    // No request is longer than that: none that begins earlier reaches into an extent.
    let longest = asked.iter().map(|(_, from, end)| end - from).max().unwrap_or(0);
    let was_asked = |file: &IoFile| {
        let places =
            file.extents.iter().flat_map(|extent| told.places(file.device, extent.physical, extent.length));
        places.into_iter().any(|place| {
            let (disk, from, end) = (place.disk, place.physical, place.physical + place.length);
            let at = asked.partition_point(|request| *request < (disk, from.saturating_sub(longest), 0));
            let near = asked.iter().skip(at).take_while(|(of, begin, _)| *of == disk && *begin < end);
            near.into_iter().any(|(_, _, reached)| *reached > from)
        })
    };
    recording.files.retain(was_asked);
}
