//! From a recording to a start: files that were read and can be opened again by name, and the blocks of their file systems.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use perflab_model::io::{Device, FileClass, IoFile, IoKind, IoRecording, PAGE, Runs};
use perflab_observe::io::Mounts;

use crate::PrefetchError;
use crate::trace::{FileSystem, Source, Start, TracedFile};

/// File systems that are not worth reading ahead (memory) or not ours to load (other machines, other programs).
const REFUSED: [&str; 13] = [
    "tmpfs",
    "ramfs",
    "devtmpfs",
    "proc",
    "sysfs",
    "hugetlbfs",
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "9p",
    "fuse",
    "ceph",
];

/// Whether a file system is left alone, with everything on it.
pub fn is_refused(kind: &str) -> bool {
    REFUSED.contains(&kind) || kind.starts_with("fuse.")
}

/// A start, from what was traced of it.
///
/// # Errors
/// [`PrefetchError::Empty`] where nothing was read: an empty trace must not replace a good one.
pub fn learn(recording: &IoRecording) -> Result<Start, PrefetchError> {
    let mounts = Mounts::read();
    let mut systems: Vec<FileSystem> = Vec::new();
    let mut files = Vec::new();
    let known: HashMap<(Device, u64), &IoFile> =
        recording.files.iter().map(|file| ((file.device, file.inode), file)).collect();
    for ((device, inode), pages) in read(recording) {
        let Some(file) = known.get(&(device, inode)).filter(|file| file.class == FileClass::File) else {
            continue;
        };
        let Some(system) = system(&mounts, &mut systems, device) else { continue };
        files.extend(traced(file, system, pages, files.len()));
    }
    for file in recording.files.iter().filter(|file| file.class == FileClass::Disk) {
        let disk = Device(u32::try_from(file.inode).unwrap_or_default());
        let pages = added(recording, file.device, file.inode);
        if let Some(system) = systems.iter_mut().find(|system| system.device == disk) {
            system.metadata = pages;
        }
    }
    let start = Start { when: now(), source: Source::Traced, systems, files };
    let empty = || PrefetchError::Empty {
        advice: "was it in memory already? `--cold` drops the caches first (as root)",
    };
    match start.pages() {
        0 => Err(left_alone(recording, &mounts).unwrap_or_else(empty)),
        _ => Ok(start),
    }
}

/// That the program itself lies where nothing is read ahead.
fn left_alone(recording: &IoRecording, mounts: &Mounts) -> Option<PrefetchError> {
    let started = recording.events.iter().find(|event| event.kind == IoKind::Exec)?;
    let program = started.name.clone()?;
    let mount = mounts.under(Path::new(&program)).filter(|mount| is_refused(&mount.kind))?;
    Some(PrefetchError::LeftAlone { program, kind: mount.kind.clone() })
}

/// Files with pages that came into the cache, in the order of the first.
fn read(recording: &IoRecording) -> Vec<((Device, u64), Runs)> {
    let mut order = Vec::new();
    let mut pages: BTreeMap<(Device, u64), Vec<(u64, u64)>> = BTreeMap::new();
    for event in recording.events.iter().filter(|event| event.kind == IoKind::Added) {
        let key = (event.device, event.inode);
        let runs = pages.entry(key).or_insert_with(|| {
            order.push(key);
            Vec::new()
        });
        runs.push((event.first, event.count));
    }
    order.into_iter().map(|key| (key, pages.remove(&key).unwrap_or_default().into_iter().collect())).collect()
}

fn added(recording: &IoRecording, device: Device, inode: u64) -> Runs {
    let all = recording.events.iter().filter(|event| event.kind == IoKind::Added);
    let own = all.filter(|event| event.device == device && event.inode == inode);
    own.map(|event| (event.first, event.count)).collect()
}

/// The index of a file system among those of the start; none where it is left alone.
fn system(mounts: &Mounts, systems: &mut Vec<FileSystem>, device: Device) -> Option<usize> {
    if let Some(found) = systems.iter().position(|system| system.device == device) {
        return Some(found);
    }
    let mount = mounts.of(device).filter(|mount| !is_refused(&mount.kind))?;
    let uuid = File::open(&mount.place).ok().and_then(|folder| perflab_observe::io::uuid(&folder));
    let place = mount.place.to_str()?.to_owned();
    systems.push(FileSystem { uuid, kind: mount.kind.clone(), device, place, metadata: Runs::default() });
    Some(systems.len() - 1)
}

fn traced(file: &IoFile, system: usize, pages: Runs, turn: usize) -> Option<TracedFile> {
    let pages = pages.below(file.size.div_ceil(PAGE));
    let (first, _) = pages.iter().next()?;
    Some(TracedFile {
        system,
        inode: file.inode,
        generation: file.generation,
        size: file.size,
        changed: file.changed,
        path: file.path.clone()?,
        place: file.place(first),
        pages,
        turn: turn as u32,
    })
}

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// A start from files alone, for [`crate::residency`].
pub(crate) fn from_files(files: Vec<(IoFile, Runs)>) -> Result<Start, PrefetchError> {
    let mounts = Mounts::read();
    let mut systems = Vec::new();
    let mut found: Vec<TracedFile> = Vec::new();
    for (file, pages) in files {
        let Some(system) = system(&mounts, &mut systems, file.device) else { continue };
        found.extend(traced(&file, system, pages, found.len()));
    }
    let start = Start { when: now(), source: Source::Residency, systems, files: found };
    let advice = "without root only files of your own can be asked about; as root everything is traced";
    if start.files.is_empty() { Err(PrefetchError::Empty { advice }) } else { Ok(start) }
}
