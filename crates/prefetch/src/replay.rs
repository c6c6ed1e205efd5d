//! Reading ahead. Files are opened by name with the rights of who calls, never through a link and never for writing; one that
//! is not the traced file any more (another number, generation, size or time of change) is left alone and counted.

mod coming;

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use perflab_model::io::{Device, PAGE};
use perflab_observe::io::{Mounts, files, mounts};

use self::coming::{Coming, ask};
use crate::plan::{Plan, Step};
use crate::trace::{FileSystem, TracedFile};

/// Threads on disks that do several things at once.
const THREADS: usize = 4;

/// What may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// bytes a second at most; none is no limit
    pub rate: Option<u64>,
}

/// What came of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Replayed {
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
    pub foreign: Vec<String>,
    /// time until everything that was to be waited for had come
    pub nanos: u64,
}

/// What of a plan is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// the file systems' own blocks, first
    pub metadata: bool,
    /// these of its steps
    pub steps: std::ops::Range<usize>,
}

/// Reads a part of a plan, and waits for it to have come. Ends early when `stop` is set.
pub fn replay(plan: &Plan<'_>, part: Part, budget: Budget, stop: &AtomicBool) -> Replayed {
    let begun = Instant::now();
    let mut done = Replayed::default();
    let mounts = Mounts::read();
    let systems: Vec<Option<Here>> =
        plan.start.systems.iter().map(|system| here(system, &mounts, &mut done)).collect();
    if part.metadata {
        for (system, here) in plan.start.systems.iter().zip(&systems) {
            if let Some(here) = here {
                metadata(system, here, stop, &mut done);
            }
        }
    }
    let pace = Pace { begun, rate: budget.rate };
    let rotates = systems.iter().flatten().any(|here| here.rotates);
    let wanted: Vec<&Step<'_>> = plan.steps.get(part.steps).unwrap_or_default().iter().collect();
    let usable = |step: &&&Step<'_>| systems.get(step.file.system).is_some_and(Option::is_some);
    let (steps, lost): (Vec<&Step<'_>>, Vec<&Step<'_>>) = wanted.iter().partition(usable);
    done.skipped.extend(lost.iter().map(|step| step.file.turn));
    read(&steps, if rotates { 1 } else { THREADS }, &pace, stop, &mut done);
    done.nanos = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
    done
}

/// A file system as it is mounted now.
struct Here {
    device: Device,
    rotates: bool,
}

/// The device of a file system that is mounted where it was, and is the same one.
fn mounted(system: &FileSystem) -> Option<Device> {
    let folder = File::open(&system.place).ok()?;
    let is_same = perflab_observe::io::uuid(&folder) == system.uuid;
    folder.metadata().ok().filter(|_| is_same).map(|about| files::device(&about))
}

/// Whether a file system is mounted where it was.
pub(crate) fn is_mounted(system: &FileSystem) -> bool {
    mounted(system).is_some()
}

/// The same with what its disk does; a file system that is another one is noted.
fn here(system: &FileSystem, mounts: &Mounts, done: &mut Replayed) -> Option<Here> {
    let device = mounted(system);
    if device.is_none() {
        done.foreign.push(system.place.clone());
    }
    // A device of the kernel's invention (btrfs) turns as the disk below does.
    let below = || mounts.under(Path::new(&system.place)).and_then(mounts::disk);
    let rotates = |device| below().or(Some(device)).and_then(mounts::rotates).unwrap_or(false);
    device.map(|device| Here { device, rotates: rotates(device) })
}

/// A file system's own blocks come through its device, in the order of the disk, and are waited for: every later step needs
/// them. Where the device cannot be opened, opening files by name reads most of them.
fn metadata(system: &FileSystem, here: &Here, stop: &AtomicBool, done: &mut Replayed) {
    if system.metadata.is_empty() {
        return;
    }
    let opened = mounts::node(here.device).and_then(|node| files::open(&node).ok());
    match opened {
        Some(node) => {
            let mut coming = Coming::new(1, stop);
            ask(&Rc::new(node), &system.metadata, &mut coming, &mut |_| true);
            coming.wait_for_all();
            done.metadata += system.metadata.pages();
        }
        None => done.by_name += 1,
    }
}

/// Opens, asks, and waits for what was asked a window before.
fn read(steps: &[&Step<'_>], threads: usize, pace: &Pace, stop: &AtomicBool, done: &mut Replayed) {
    let (next, asked) = (AtomicUsize::new(0), AtomicU64::new(0));
    let work = || {
        let (mut coming, mut met) = (Coming::new(threads, stop), Vec::new());
        while let Some(step) = steps.get(next.fetch_add(1, Ordering::Relaxed)) {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let file = traced(step);
            met.push((step.file.turn, file.is_ok()));
            let Ok(file) = file else { continue };
            ask(&Rc::new(file), &step.pages, &mut coming, &mut |pages| {
                pace.wait((asked.fetch_add(pages, Ordering::Relaxed) + pages) * PAGE, stop);
                !stop.load(Ordering::Relaxed)
            });
        }
        coming.wait_for_all();
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
    done.pages += asked.into_inner();
}

/// The file of a step, if it is still the one that was traced.
fn traced(step: &Step<'_>) -> io::Result<File> {
    let file = files::open(Path::new(&step.file.path))?;
    if is_traced(&file, step.file)? { Ok(file) } else { Err(io::ErrorKind::NotFound.into()) }
}

/// Whether a file is still the one that was traced.
pub(crate) fn is_traced(file: &File, known: &TracedFile) -> io::Result<bool> {
    let about = file.metadata()?;
    let generation = |known| perflab_observe::io::generation(file).is_none_or(|now| now == known);
    Ok(about.is_file()
        && (about.ino(), about.len(), files::changed(&about)) == (known.inode, known.size, known.changed)
        && known.generation.is_none_or(generation))
}

/// Keeps to a number of bytes a second.
struct Pace {
    begun: Instant,
    rate: Option<u64>,
}

impl Pace {
    fn wait(&self, bytes: u64, stop: &AtomicBool) {
        let Some(rate) = self.rate.filter(|rate| *rate > 0) else { return };
        let due = Duration::from_secs_f64(bytes as f64 / rate as f64);
        while self.begun.elapsed() < due && !stop.load(Ordering::Relaxed) {
            std::thread::sleep((due - self.begun.elapsed().min(due)).min(Duration::from_millis(20)));
        }
    }
}
