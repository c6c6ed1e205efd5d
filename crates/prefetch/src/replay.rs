//! Reading a plan ahead, disk by disk, before and beside a program; whether it is in memory already.
//!
//! Files are opened by name with the caller's rights, never through a link and never for writing; one that is not
//! the traced file any more (another inode number, generation, size or modification time) is left alone and
//! counted.
//!
//! Whether a plan is in memory already is asked of a sample of it, by reads that the kernel answers at once or not
//! at all: a program that is started all day is read ahead once, and its other startups are not held up.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, IoSliceMut};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use perflab_model::io_trace::{DeviceNumber, PAGE};
use perflab_observe::io::MountTable;
use perflab_observe::io::page_residency::count_resident_pages;
use rustix::io::{ReadWriteFlags, preadv2};

use crate::in_flight_requests::{InFlightRequests, RateLimit, request_pages};
use crate::replay_plan::{ReplayPart, ReplayPlan, ReplayStep};
use crate::startup_trace::{TracedFile, TracedFileSystem};

/// What may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplayBudget {
    /// bytes a second at most; none: no limit
    pub rate: Option<u64>,
}

/// What came of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplayResult {
    /// pages of files that were asked for
    pub pages: u64,
    /// pages of file systems' own blocks that were
    pub metadata: u64,
    /// files that were read, by their order
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
    let rate_limit = RateLimit::new(begun, budget.rate);
    let reading = DiskReplay { plan, steps, metadata, systems: &systems, rate_limit, stop };
    let disks: BTreeSet<DeviceNumber> = systems.iter().flatten().map(|mounted| mounted.disk).collect();
    // No disk waits for another one.
    let each = std::thread::scope(|scope| {
        let reading = &reading;
        let all: Vec<_> = disks.iter().map(|disk| scope.spawn(|| reading.read_disk(*disk))).collect();
        all.into_iter().filter_map(|one| one.join().ok()).collect::<Vec<_>>()
    });
    each.into_iter().for_each(|one| done.add(one));
    done.pages = reading.rate_limit.requested_bytes() / PAGE;
    done.nanos = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
    done
}

/// The file of a step, if it is still the one that was traced.
fn open_traced(step: &ReplayStep<'_>) -> io::Result<File> {
    let file = perflab_observe::open_unnoticed(Path::new(&step.file.path))?;
    if is_same_file(&file, step.file)? { Ok(file) } else { Err(io::ErrorKind::NotFound.into()) }
}

/// Whether a file is still the one that was traced.
pub(crate) fn is_same_file(file: &File, known: &TracedFile) -> io::Result<bool> {
    let about = file.metadata()?;
    let generation = |known| perflab_observe::io::file_generation(file).is_none_or(|now| now == known);
    Ok(about.is_file()
        && (about.ino(), about.len(), perflab_observe::modified_ns(&about))
            == (known.inode, known.size, known.changed)
        && known.generation.is_none_or(generation))
}

/// A file system as it is mounted now.
struct MountedFileSystem {
    pub device: DeviceNumber,
    /// the disk below it, or where there is none, itself
    pub disk: DeviceNumber,
    pub rotates: bool,
}

/// The device of a file system that is mounted where it was, and is the same one.
fn mounted_device(system: &TracedFileSystem) -> Option<DeviceNumber> {
    let folder = File::open(&system.place).ok()?;
    let is_same = perflab_observe::io::file_system_uuid(&folder) == system.uuid;
    folder.metadata().ok().filter(|_| is_same).map(|about| perflab_observe::device_of(&about))
}

/// Whether a file system is mounted where it was.
pub(crate) fn is_mounted_unchanged(system: &TracedFileSystem) -> bool {
    mounted_device(system).is_some()
}

/// The same with what its disk does; a file system that is another one is noted.
fn find_mounted(
    system: &TracedFileSystem,
    mounts: &MountTable,
    done: &mut ReplayResult,
) -> Option<MountedFileSystem> {
    let device = mounted_device(system);
    if device.is_none() {
        done.foreign.insert(system.place.clone());
    }
    // A device of the kernel's invention (btrfs) is rotational as the disk below is.
    let below = || mounts.find_by_path(Path::new(&system.place)).and_then(perflab_observe::disk_below);
    device.map(|device| {
        let below = below().unwrap_or(device);
        let disk = perflab_observe::partition_of_device(below).map_or(below, |part| part.disk);
        MountedFileSystem { device, disk, rotates: perflab_observe::is_rotational(below).unwrap_or(false) }
    })
}

/// Threads on disks that do several things at once.
const THREADS: usize = 4;

/// Files that a thread opens before it asks for any of them, at most: a disk that hears of many requests at once costs the
/// processor less than one that is woken for each.
const TOGETHER: usize = 16;

/// What is read, from all disks.
struct DiskReplay<'a> {
    pub plan: &'a ReplayPlan<'a>,
    pub steps: &'a [ReplayStep<'a>],
    pub metadata: bool,
    pub systems: &'a [Option<MountedFileSystem>],
    pub rate_limit: RateLimit,
    pub stop: &'a AtomicBool,
}

impl DiskReplay<'_> {
    /// What of it lies on one disk.
    fn read_disk(&self, disk: DeviceNumber) -> ReplayResult {
        let mut done = ReplayResult::default();
        let ours = |mounted: &&MountedFileSystem| mounted.disk == disk;
        let systems = self.plan.start.systems.iter().zip(self.systems);
        let systems = systems.filter_map(|(system, mounted)| Some((system, mounted.as_ref().filter(ours)?)));
        let mut rotates = false;
        for (system, mounted) in systems {
            rotates |= mounted.rotates;
            if self.metadata {
                read_metadata_blocks(system, mounted, self.stop, &mut done);
            }
        }
        let mounted = |step: &ReplayStep<'_>| self.systems.get(step.file.system).and_then(Option::as_ref);
        let steps: Vec<&ReplayStep<'_>> =
            self.steps.iter().filter(|step| mounted(step).as_ref().is_some_and(ours)).collect();
        read_steps(&steps, if rotates { 1 } else { THREADS }, &self.rate_limit, self.stop, &mut done);
        done
    }
}

/// A file system's own blocks come through its device, in the order of the disk, and are waited for: every later step needs
/// them. Where the device cannot be opened, opening files by name reads most of them.
fn read_metadata_blocks(
    system: &TracedFileSystem,
    mounted: &MountedFileSystem,
    stop: &AtomicBool,
    done: &mut ReplayResult,
) {
    if system.metadata.is_empty() {
        return;
    }
    let opened = perflab_observe::device_node(mounted.device)
        .and_then(|node| perflab_observe::open_unnoticed(&node).ok());
    match opened {
        Some(node) => {
            let mut in_flight = InFlightRequests::new(1, stop);
            request_pages(&Rc::new(node), &system.metadata, &mut in_flight, &mut |_| true);
            in_flight.wait_for_all();
            done.metadata += system.metadata.page_count();
        }
        None => done.by_name += 1,
    }
}

/// Reads steps by so many threads, and notes which of them could not be.
fn read_steps(
    steps: &[&ReplayStep<'_>],
    threads: usize,
    rate_limit: &RateLimit,
    stop: &AtomicBool,
    done: &mut ReplayResult,
) {
    let (together, next) = (steps.len().div_ceil(threads).clamp(1, TOGETHER), AtomicUsize::new(0));
    let parts: Vec<_> = steps.chunks(together).collect();
    let work = || {
        let (mut in_flight, mut met) = (InFlightRequests::new(threads, stop), Vec::new());
        while let Some(part) =
            parts.get(next.fetch_add(1, Ordering::Relaxed)).filter(|_| is_not_stopped(stop))
        {
            met.extend(request_files(part, &mut in_flight, rate_limit, stop));
        }
        in_flight.wait_for_all();
        met
    };
    let met = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let own = work();
        others.into_iter().filter_map(|other| other.join().ok()).flatten().chain(own).collect::<Vec<_>>()
    });
    for (turn, read) in met {
        if read {
            done.files.insert(turn)
        } else {
            done.skipped.insert(turn)
        };
    }
}

fn is_not_stopped(stop: &AtomicBool) -> bool {
    !stop.load(Ordering::Relaxed)
}

/// Opens all, requests the pages of each, and waits for what was requested a window before: the order of the files, and whether
/// they were read. Those that a stop came before are neither.
fn request_files(
    part: &[&ReplayStep<'_>],
    in_flight: &mut InFlightRequests<'_>,
    rate_limit: &RateLimit,
    stop: &AtomicBool,
) -> Vec<(u32, bool)> {
    let opened: Vec<_> = part.iter().map(|step| (step, open_traced(step))).collect();
    let mut met = Vec::new();
    for (step, file) in opened.into_iter().take_while(|_| is_not_stopped(stop)) {
        met.push((step.file.turn, file.is_ok()));
        let Ok(file) = file else { continue };
        request_pages(&Rc::new(file), &step.pages, in_flight, &mut |pages| {
            rate_limit.throttle(pages * PAGE, stop);
            is_not_stopped(stop)
        });
    }
    met
}

/// Files that are asked for, and blocks of each file system.
const ASKED: usize = 32;

/// Whether the beginning of a file is in memory.
pub(crate) fn is_first_page_resident(file: &File) -> bool {
    is_page_resident(file, 0)
}

/// Whether everything that is asked for is in memory. File systems' own blocks come first, as far as their disks can be opened:
/// where they are missing, no name has to be looked up to know it.
pub fn is_plan_resident(plan: &ReplayPlan<'_>) -> bool {
    plan.start.systems.iter().all(is_metadata_resident) && are_files_resident(plan)
}

/// Reads every page of a plan's files that are still the traced ones: so all of it is in memory, whatever a look at some of it says, and
/// whatever was under way.
pub fn read_plan_files(plan: &ReplayPlan<'_>) {
    let mut room = vec![0; 128 << 10];
    for (step, file) in plan.steps.iter().filter_map(|step| Some((step, open_traced(step).ok()?))) {
        for (first, count) in step.pages.iter() {
            let (mut at, end) = (first * PAGE, (first + count) * PAGE);
            while at < end {
                let most = room.len().min(usize::try_from(end - at).unwrap_or(usize::MAX));
                // The program will read what cannot be read now, and knows better what to do about it.
                let Some(Ok(read @ 1..)) = room.get_mut(..most).map(|room| file.read_at(room, at)) else {
                    break;
                };
                at += read as u64;
            }
        }
    }
}

/// Of the files that are asked for, none lacks a page, and at least half are those that were traced: programs write some of what
/// they read, but where most have changed, whoever reads ahead has to say so.
fn are_files_resident(plan: &ReplayPlan<'_>) -> bool {
    let every = plan.steps.len().div_ceil(ASKED).max(1);
    let (mut asked, mut resident) = (0, 0);
    for step in plan.steps.iter().step_by(every) {
        match is_step_resident(step) {
            Some(false) => return false,
            found => resident += usize::from(found.is_some()),
        }
        asked += 1;
    }
    2 * resident >= asked
}

fn is_metadata_resident(system: &TracedFileSystem) -> bool {
    let node = mounted_device(system)
        .and_then(perflab_observe::device_node)
        .and_then(|node| perflab_observe::open_unnoticed(&node).ok());
    let Some(node) = node else { return true };
    let every = system.metadata.iter().count().div_ceil(ASKED).max(1);
    // Blocks that a file system has read itself cannot be read at once, though they are there: they are counted.
    let is_there = |page| count_resident_pages(&node, page * PAGE, PAGE).is_ok_and(|pages| pages > 0);
    system.metadata.iter().step_by(every).all(|(page, _)| is_there(page))
}

/// Nothing where it may not be opened or has changed: to ask might begin to read it.
fn is_step_resident(step: &ReplayStep<'_>) -> Option<bool> {
    let file = open_traced(step).ok()?;
    let mut ends = step.pages.iter().flat_map(|(first, count)| [first, first + count.saturating_sub(1)]);
    Some(ends.all(|page| is_page_resident(&file, page)))
}

fn is_page_resident(file: &File, page: u64) -> bool {
    let mut byte = [0];
    let read = preadv2(file, &mut [IoSliceMut::new(&mut byte)], page * PAGE, ReadWriteFlags::NOWAIT);
    read.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_just_written_is_there() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), vec![1; 8192]).unwrap();
        assert!(is_first_page_resident(&File::open(file.path()).unwrap()));
    }
}
