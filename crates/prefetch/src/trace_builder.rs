//! From a recording, or from what is resident afterwards, to a trace.
//!
//! A recording gives the files that were read and can be opened again by name, and the blocks of their file
//! systems.
//!
//! Without root, files that the processes of a command have open or mapped are noted while it runs, and what of
//! them is in memory afterwards is taken for what it read. Pages that others had brought count too, files that were
//! open between two looks are missed, and nothing is known of metadata:
//! [`TraceSource::Residency`](crate::TraceSource) says so.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use perflab_model::PageSet;
use perflab_model::io_trace::{DeviceNumber, FileClass, IoEventKind, IoFile, IoRecording, PAGE};
use perflab_observe::io::MountTable;

use crate::error::PrefetchError;
use crate::startup_trace::{StartupTrace, TraceSource, TracedExtent, TracedFile, TracedFileSystem};

/// File systems that are not worth reading ahead (memory) or not ours to load (other machines, other programs).
const SKIPPED_FILE_SYSTEMS: [&str; 13] = [
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
pub fn is_skipped_file_system(kind: &str) -> bool {
    SKIPPED_FILE_SYSTEMS.contains(&kind) || kind.starts_with("fuse.")
}

/// A startup, from what was traced of it.
///
/// # Errors
/// [`PrefetchError::Empty`] where nothing was read: an empty trace must not replace a good one.
pub fn build_trace(recording: &IoRecording) -> Result<StartupTrace, PrefetchError> {
    let mounts = MountTable::read();
    let mut systems: Vec<TracedFileSystem> = Vec::new();
    let mut files = Vec::new();
    let known: HashMap<(DeviceNumber, u64), &IoFile> =
        recording.files.iter().map(|file| ((file.device, file.inode), file)).collect();
    for ((device, inode), reads) in reads_by_file(recording) {
        let Some(file) = known.get(&(device, inode)).filter(|file| file.class == FileClass::File) else {
            continue;
        };
        let Some(system) = file_system_index(&mounts, &mut systems, device) else { continue };
        files.extend(traced_file(file, system, reads));
    }
    for file in recording.files.iter().filter(|file| file.class == FileClass::Disk) {
        let disk = DeviceNumber(u32::try_from(file.inode).unwrap_or_default());
        let pages = added_pages(recording, file.device, file.inode);
        if let Some(system) = systems.iter_mut().find(|system| system.device == disk) {
            system.metadata = pages;
        }
    }
    let start = StartupTrace { when: seconds_since_1970(), source: TraceSource::Traced, systems, files };
    let empty = || PrefetchError::Empty {
        advice: "was it in memory already? `--cold` drops the caches first (as root)",
    };
    match start.page_count() {
        0 => Err(skipped_file_system_error(recording, &mounts).unwrap_or_else(empty)),
        _ => Ok(start),
    }
}

/// That the program itself lies where nothing is read ahead.
fn skipped_file_system_error(recording: &IoRecording, mounts: &MountTable) -> Option<PrefetchError> {
    let started = recording.events.iter().find(|event| event.kind == IoEventKind::Exec)?;
    let program = started.name.clone()?;
    let mount =
        mounts.find_by_path(Path::new(&program)).filter(|mount| is_skipped_file_system(&mount.kind))?;
    Some(PrefetchError::LeftAlone { program, kind: mount.kind.clone() })
}

/// Pages that came into the cache at once: the first, how many, and how many times before some had come.
type CachedRead = (u64, u64, u32);

/// Files with pages that came into the cache, in the order of the first.
fn reads_by_file(recording: &IoRecording) -> Vec<((DeviceNumber, u64), Vec<CachedRead>)> {
    let mut order = Vec::new();
    let mut reads: BTreeMap<(DeviceNumber, u64), Vec<CachedRead>> = BTreeMap::new();
    for (turn, event) in (0..).zip(recording.events.iter().filter(|event| event.kind == IoEventKind::Added)) {
        let key = (event.device, event.inode);
        let own = reads.entry(key).or_insert_with(|| {
            order.push(key);
            Vec::new()
        });
        own.push((event.first, event.count, turn));
    }
    order.into_iter().map(|key| (key, reads.remove(&key).unwrap_or_default())).collect()
}

fn added_pages(recording: &IoRecording, device: DeviceNumber, inode: u64) -> PageSet {
    let all = recording.events.iter().filter(|event| event.kind == IoEventKind::Added);
    let own = all.filter(|event| event.device == device && event.inode == inode);
    own.map(|event| (event.first, event.count)).collect()
}

/// The index of a file system among those of the startup; none where it is left alone.
fn file_system_index(
    mounts: &MountTable,
    systems: &mut Vec<TracedFileSystem>,
    device: DeviceNumber,
) -> Option<usize> {
    if let Some(found) = systems.iter().position(|system| system.device == device) {
        return Some(found);
    }
    let mount = mounts.find_by_device(device).filter(|mount| !is_skipped_file_system(&mount.kind))?;
    let uuid =
        File::open(&mount.mount_point).ok().and_then(|folder| perflab_observe::io::file_system_uuid(&folder));
    let place = mount.mount_point.to_str()?.to_owned();
    systems.push(TracedFileSystem {
        uuid,
        kind: mount.kind.clone(),
        device,
        place,
        metadata: PageSet::default(),
    });
    Some(systems.len() - 1)
}

fn traced_file(file: &IoFile, system: usize, reads: Vec<CachedRead>) -> Option<TracedFile> {
    let pages: PageSet = reads.iter().map(|(first, count, _)| (*first, *count)).collect();
    let pages = pages.pages_below(file.size.div_ceil(PAGE));
    let mut marks = extent_starts(file, reads).into_iter();
    let beginning = marks.next()?;
    Some(TracedFile {
        system,
        inode: file.inode,
        generation: file.generation,
        size: file.size,
        changed: file.changed,
        path: file.path.clone()?,
        place: beginning.place,
        pages,
        turn: beginning.turn,
        marks: marks.collect(),
    })
}

/// Pages of an extent at most: a file that is read from end to end is needed little by little.
const MAX_EXTENT_PAGES: u64 = 2048;

/// Marks of what was read of a file, the first of its first page. What was read in a row and lies in a row has one.
fn extent_starts(file: &IoFile, mut reads: Vec<CachedRead>) -> Vec<TracedExtent> {
    reads.sort_unstable();
    let mut marks: Vec<TracedExtent> = Vec::new();
    let (mut end, mut last) = (0, 0);
    for (first, count, turn) in reads.into_iter().filter(|(first, ..)| first * PAGE < file.size) {
        let (page, place) = (first, file.disk_offset_of_page(first));
        let follows = |mark: &TracedExtent| {
            first == end
                && turn == last + 1
                && mark.at_page(page).place == place
                && first - mark.page < MAX_EXTENT_PAGES
        };
        if first >= end && !marks.last().is_some_and(follows) {
            marks.push(TracedExtent { page, turn, place });
        }
        (end, last) = (end.max(first + count), turn);
    }
    marks
}

/// Seconds since 1970.
pub(crate) fn seconds_since_1970() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// A trace from files alone, for learning without root.
fn build_trace_from_files(files: Vec<(IoFile, PageSet)>) -> Result<StartupTrace, PrefetchError> {
    let mounts = MountTable::read();
    let mut systems = Vec::new();
    let mut found: Vec<TracedFile> = Vec::new();
    for (file, pages) in files {
        let Some(system) = file_system_index(&mounts, &mut systems, file.device) else { continue };
        let turn = found.len() as u32;
        found.extend(traced_file(
            &file,
            system,
            pages.iter().map(|(first, count)| (first, count, turn)).collect(),
        ));
    }
    let start =
        StartupTrace { when: seconds_since_1970(), source: TraceSource::Residency, systems, files: found };
    let advice = "without root only files of your own can be asked about; as root everything is traced";
    if start.files.is_empty() { Err(PrefetchError::Empty { advice }) } else { Ok(start) }
}

/// Files that were seen in use.
#[derive(Debug, Default)]
pub struct FilesInUse {
    files: BTreeSet<PathBuf>,
}

impl FilesInUse {
    /// Looks once at what a process and its descendants have open and mapped.
    pub fn add_process_tree(&mut self, pid: u32) {
        let process = PathBuf::from(format!("/proc/{pid}"));
        let maps = fs::read_to_string(process.join("maps")).unwrap_or_default();
        self.files.extend(maps.lines().filter_map(|line| Some(PathBuf::from(line.get(line.find('/')?..)?))));
        for entry in fs::read_dir(process.join("fd")).into_iter().flatten().flatten() {
            self.files.extend(fs::read_link(entry.path()).ok().filter(|path| path.is_absolute()));
        }
        for thread in fs::read_dir(process.join("task")).into_iter().flatten().flatten() {
            let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            children
                .split_whitespace()
                .filter_map(|pid| pid.parse().ok())
                .for_each(|child| self.add_process_tree(child));
        }
    }

    /// What of them is in memory now.
    ///
    /// # Errors
    /// [`PrefetchError::Empty`] where that is nothing that could be asked about.
    pub fn build_trace(&self) -> Result<StartupTrace, PrefetchError> {
        let resident = |path: &PathBuf| {
            let about =
                perflab_observe::io::describe_file(path).filter(|about| about.class == FileClass::File)?;
            let pages = resident_pages(path, about.size)?;
            (!pages.is_empty()).then_some((about, pages))
        };
        build_trace_from_files(self.files.iter().filter_map(resident).collect())
    }
}

/// Pages in memory. The kernel reports that only to a user who owns a file or could write it, and lies to others.
fn resident_pages(path: &Path, size: u64) -> Option<PageSet> {
    let file = fs::File::open(path).ok()?;
    let own =
        std::os::unix::fs::MetadataExt::uid(&file.metadata().ok()?) == rustix::process::geteuid().as_raw();
    let may = own || rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok();
    let map = may
        .then(|| perflab_observe::resident_page_map(&file, 0, size.div_ceil(PAGE) * PAGE).ok())
        .flatten()?;
    Some((0_u64..).zip(map).filter(|(_, resident)| *resident).map(|(page, _)| (page, 1)).collect())
}

#[cfg(test)]
mod tests {
    use perflab_model::io_trace::FileExtent;

    use super::*;

    /// Pages 0 to 99 at 1 MiB, the rest at 9 MiB.
    fn example_file() -> IoFile {
        let extents = vec![
            FileExtent { logical: 0, physical: 1 << 20, length: 100 * PAGE },
            FileExtent { logical: 100 * PAGE, physical: 9 << 20, length: 9900 * PAGE },
        ];
        let (path, class) = (Some("/lib/one".into()), FileClass::File);
        let size = 10_000 * PAGE - 1;
        IoFile {
            device: DeviceNumber(1),
            inode: 12,
            generation: None,
            class,
            path,
            size,
            changed: 0,
            extents,
        }
    }

    #[test]
    fn what_was_read_and_lies_in_a_row_has_one_mark() {
        let reads =
            vec![(96, 4, 8), (100, 4, 9), (104, 8, 10), (0, 4, 3), (4, 4, 4), (300, 2, 5), (10_000, 4, 6)];
        let found = traced_file(&example_file(), 0, reads).unwrap();
        assert_eq!((found.turn, found.place), (3, Some(1 << 20)));
        let found_marks: Vec<_> = found.marks.iter().map(|mark| (mark.page, mark.turn)).collect();
        assert_eq!(found_marks, [(96, 8), (100, 9), (300, 5)], "another time, another place, another time");
        let parts = found.extents_of(&found.pages);
        let counts: Vec<_> = parts.iter().map(|(mark, count)| (mark.page, *count)).collect();
        assert_eq!(counts, [(0, 8), (96, 4), (100, 12), (300, 2)]);
    }

    #[test]
    fn a_hole_and_what_comes_before_belong_to_the_mark_before_them() {
        let found = traced_file(&example_file(), 0, vec![(10, 2, 7), (20, 2, 1)]).unwrap();
        let parts = found.extents_of(&[(5, 20)].into_iter().collect());
        let found_marks: Vec<_> = parts.iter().map(|(mark, count)| (mark.page, mark.turn, *count)).collect();
        assert_eq!(found_marks, [(5, 7, 15), (20, 1, 5)]);
        assert_eq!(parts[0].0.place, example_file().disk_offset_of_page(5));
    }

    #[test]
    fn a_file_that_is_read_from_end_to_end_has_a_mark_now_and_then() {
        let reads = (0..200).map(|at| (100 + at * 32, 32, at as u32)).collect();
        let found = traced_file(&example_file(), 0, reads).unwrap();
        let pages: Vec<u64> = found.marks.iter().map(|mark| mark.page).collect();
        assert_eq!(pages, [100 + MAX_EXTENT_PAGES, 100 + 2 * MAX_EXTENT_PAGES, 100 + 3 * MAX_EXTENT_PAGES]);
    }
}
