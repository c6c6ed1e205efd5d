//! Reading ahead. Files are opened by name with the rights of who calls, never through a link and never for writing; one that
//! is not the traced file any more (another number, generation, size or time of change) is left alone and counted.

mod coming;
mod here;
mod pace;
mod reading;

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use perflab_model::io::{DeviceNumber, PAGE};
use perflab_observe::io::{MountTable, files};

use self::here::{MountedFileSystem, find_mounted};
pub(crate) use self::here::{is_mounted_unchanged, mounted_device};
use self::pace::RateLimit;
use self::reading::DiskReplay;
use crate::plan::{ReplayPlan, ReplayStep};
use crate::trace::TracedFile;

/// What may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplayBudget {
    /// bytes a second at most; none is no limit
    pub rate: Option<u64>,
}

/// What came of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplayResult {
    /// pages of files that were asked for
    pub pages: u64,
    /// pages of file systems' own blocks that were
    pub metadata: u64,
    /// files that were read, by their turns
    pub files: BTreeSet<u32>,
    /// files that are others now, gone, or not ours to open
    pub skipped: BTreeSet<u32>,
    /// file systems whose own blocks could not be read through their device: names were looked up instead
    pub by_name: usize,
    /// file systems that are not mounted where they were, or are others now
    pub foreign: BTreeSet<String>,
    /// nothing was read, as all of it was in memory
    pub was_there: bool,
    /// time until everything that was to be waited for had come
    pub nanos: u64,
}

impl ReplayResult {
    /// Together with what came of another part; times are not added.
    pub fn add(&mut self, other: ReplayResult) {
        self.pages += other.pages;
        self.metadata += other.metadata;
        self.files.extend(other.files);
        self.skipped.extend(other.skipped);
        self.by_name += other.by_name;
        self.foreign.extend(other.foreign);
        self.was_there |= other.was_there;
    }
}

/// What of a plan is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayPart {
    /// the file systems' own blocks, first
    pub metadata: bool,
    /// these of its steps
    pub steps: std::ops::Range<usize>,
}

/// Reads a part of a plan, and waits for it to have come. Ends early when `stop` is set.
pub fn replay_part(
    plan: &ReplayPlan<'_>,
    part: ReplayPart,
    budget: ReplayBudget,
    stop: &AtomicBool,
) -> ReplayResult {
    let begun = Instant::now();
    let mut done = ReplayResult::default();
    let mounts = MountTable::read();
    let systems: Vec<Option<MountedFileSystem>> =
        plan.start.systems.iter().map(|system| find_mounted(system, &mounts, &mut done)).collect();
    let ReplayPart { metadata, steps } = part;
    let steps = plan.steps.get(steps).unwrap_or_default();
    let is_lost = |step: &&ReplayStep<'_>| systems.get(step.file.system).is_none_or(Option::is_none);
    done.skipped.extend(steps.iter().filter(is_lost).map(|step| step.file.turn));
    let pace = RateLimit::new(begun, budget.rate);
    let reading = DiskReplay { plan, steps, metadata, systems: &systems, pace, stop };
    let disks: BTreeSet<DeviceNumber> = systems.iter().flatten().map(|here| here.disk).collect();
    // No disk waits for another one.
    let each = std::thread::scope(|scope| {
        let reading = &reading;
        let all: Vec<_> = disks.iter().map(|disk| scope.spawn(|| reading.read_disk(*disk))).collect();
        all.into_iter().filter_map(|one| one.join().ok()).collect::<Vec<_>>()
    });
    each.into_iter().for_each(|one| done.add(one));
    done.pages = reading.pace.requested_bytes() / PAGE;
    done.nanos = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
    done
}

/// The file of a step, if it is still the one that was traced.
pub(crate) fn open_traced(step: &ReplayStep<'_>) -> io::Result<File> {
    let file = files::open_unnoticed(Path::new(&step.file.path))?;
    if is_same_file(&file, step.file)? { Ok(file) } else { Err(io::ErrorKind::NotFound.into()) }
}

/// Whether a file is still the one that was traced.
pub(crate) fn is_same_file(file: &File, known: &TracedFile) -> io::Result<bool> {
    let about = file.metadata()?;
    let generation = |known| perflab_observe::io::file_generation(file).is_none_or(|now| now == known);
    Ok(about.is_file()
        && (about.ino(), about.len(), files::modified_ns(&about)) == (known.inode, known.size, known.changed)
        && known.generation.is_none_or(generation))
}
