//! Moves the extents of a startup together on the disk, in the order in which they are needed, so that an arm reads
//! them in one sweep.
//!
//! No byte of any file changes, nor its times: the file system exchanges blocks, journaled, as when it defragments
//! (`EXT4_IOC_MOVE_EXT`, as e4defrag does). They are exchanged for free extents, one large one if the file system
//! has it, held by a file without a name, which takes the old blocks away with it, whatever happens to us. It is
//! done only on request; reading ahead never moves anything. ext4 can do it, other file systems are left alone.

#![expect(unsafe_code, reason = "ioctls of file systems have no safe wrappers")]

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use perflab_model::io_trace::PAGE;
use rustix::fs::{FallocateFlags, OFlags};

use crate::PrefetchError;
use crate::layout::{ExtentLayout, ReservedPages, target_layout};
use crate::replay::{is_mounted_unchanged, is_same_file};
use crate::replay_plan::{ReplayPlan, ReplayStep};
use crate::startup_trace::{ProgramTraces, StartupTrace, TracedFileSystem};

/// What can exchange blocks.
const ABLE: &str = "ext4";

/// What a startup reads of one file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSystemLayout {
    /// where it is mounted
    pub place: String,
    /// `ext4`
    pub kind: String,
    /// how it lies
    pub layout: ExtentLayout,
    /// why it is left alone; none where it can be relaid
    pub left_alone: Option<String>,
}

/// What came of the relayout.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RelayoutOutcome {
    /// bytes that were moved
    pub bytes: u64,
    /// parts of files that stay where they are, by the reason
    pub left: BTreeMap<String, usize>,
}

impl RelayoutOutcome {
    fn add_left(&mut self, why: impl Into<String>, files: usize) {
        if files > 0 {
            *self.left.entry(why.into()).or_default() += files;
        }
    }
}

/// How what a startup reads lies on its file systems.
pub fn file_system_layouts(start: &StartupTrace) -> Vec<FileSystemLayout> {
    let plan = target_layout(start, &ReservedPages::default());
    let part = |(at, system): (usize, &TracedFileSystem)| FileSystemLayout {
        place: system.place.clone(),
        kind: system.kind.clone(),
        layout: crate::layout::current_layout(&plan, at),
        left_alone: reason_skipped(system),
    };
    start.systems.iter().enumerate().map(part).collect()
}

/// Moves what a startup reads, file system by file system, or only that of one of them. What was brought together for one of the
/// `others`, programs that are known, stays with what that one reads. `tell` is called with the number of pages that are dealt with. It ends early,
/// with what is moved moved, when `stop` is set.
///
/// # Errors
/// No room on a file system; one that cannot be written.
pub fn relayout_startup(
    start: &StartupTrace,
    others: &[ProgramTraces],
    on: Option<&Path>,
    stop: &AtomicBool,
    tell: &dyn Fn(u64),
) -> Result<RelayoutOutcome, PrefetchError> {
    let staying = ReservedPages::of_programs(others);
    let plan = target_layout(start, &staying);
    let mut done = RelayoutOutcome::default();
    for (at, system) in start.systems.iter().enumerate() {
        let place = Path::new(&system.place);
        if reason_skipped(system).is_none() && on.is_none_or(|on| on == place) {
            done.add_left("brought together for another program", staying.count_files(start, at));
            relayout_file_system(&plan, at, place, &mut done, &mut |step| {
                tell(step.pages.page_count());
                !stop.load(Ordering::Relaxed)
            })?;
        }
    }
    Ok(done)
}

fn relayout_file_system(
    plan: &ReplayPlan<'_>,
    system: usize,
    place: &Path,
    done: &mut RelayoutOutcome,
    go_on: &mut dyn FnMut(&ReplayStep<'_>) -> bool,
) -> Result<(), PrefetchError> {
    let steps: Vec<&ReplayStep<'_>> = plan.steps.iter().filter(|step| step.file.system == system).collect();
    let pages = steps.iter().map(|step| step.pages.page_count()).sum();
    let mut free = FreeExtents::new(place, pages).map_err(PrefetchError::io_error("get room on", place))?;
    let fragments = free.fragments().map_err(PrefetchError::io_error("look at", place))? as u64;
    let layout = crate::layout::current_layout(plan, system);
    if fragments >= layout.extents {
        done.add_left(
            format!("the free room on {} lies in {fragments} pieces too", place.display()),
            layout.files,
        );
        return Ok(());
    }
    for step in steps {
        match move_step(&mut free, step) {
            Ok(bytes) => done.bytes += bytes,
            Err(error) => done.add_left(reason_left(&error), 1),
        }
        if !go_on(step) {
            break;
        }
    }
    free.sync().map_err(PrefetchError::io_error("write", place))
}

fn reason_skipped(system: &TracedFileSystem) -> Option<String> {
    if system.kind != ABLE {
        return Some(format!("{} cannot exchange blocks of files", system.kind));
    }
    (!is_mounted_unchanged(system)).then(|| "another file system is mounted there now".into())
}

fn move_step(free: &mut FreeExtents, step: &ReplayStep<'_>) -> io::Result<u64> {
    let file = perflab_observe::io::file_description::open_for_relocation(Path::new(&step.file.path));
    let file: File = file.and_then(|file| {
        is_same_file(&file, step.file)?.then_some(file).ok_or_else(|| io::ErrorKind::NotFound.into())
    })?;
    step.pages.iter().map(|(first, count)| free.exchange_pages(&file, first, count)).sum()
}

fn reason_left(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ExecutableFileBusy => "part of a running program".into(),
        io::ErrorKind::NotFound => "gone, or changed since it was traced".into(),
        _ => error.to_string(),
    }
}

/// `_IOWR('f', 15, struct move_extent)`
const MOVE_EXT: libc::c_ulong = 0xc028_660f;

/// What is exchanged, in blocks; the kernel answers how many were.
#[repr(C)]
#[derive(Default)]
struct MoveExtent {
    reserved: i32,
    donor: u32,
    from: u64,
    donor_from: u64,
    count: u64,
    moved: u64,
}

/// Free room, of which the beginning is used up.
struct FreeExtents {
    file: File,
    /// bytes of a block
    block: u64,
    /// bytes
    used: u64,
}

impl FreeExtents {
    /// Reserves this many pages of free room on the file system that is mounted at `place`.
    pub fn new(place: &Path, pages: u64) -> io::Result<Self> {
        let flags = OFlags::TMPFILE.bits() as i32;
        let file = OpenOptions::new().read(true).write(true).custom_flags(flags).mode(0o600).open(place)?;
        rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, pages * PAGE)?;
        let block = rustix::fs::fstatvfs(&file)?.f_frsize;
        let is_part = block > 0 && PAGE.is_multiple_of(block);
        is_part
            .then_some(FreeExtents { file, block, used: 0 })
            .ok_or_else(|| io::ErrorKind::Unsupported.into())
    }

    /// How many extents its room has.
    pub fn fragments(&self) -> io::Result<usize> {
        Ok(perflab_observe::io::file_extents(&self.file)?.len())
    }

    /// Gives pages of a file the next room in the free file; how many bytes got it. Holes have no blocks, and stay holes.
    pub fn exchange_pages(&mut self, file: &File, first: u64, count: u64) -> io::Result<u64> {
        let (begin, end) = (first * PAGE, ((first + count) * PAGE).min(file.metadata()?.len()));
        let blocks = end.saturating_sub(begin).div_ceil(self.block);
        let room = self.used / self.block;
        self.used += count * PAGE;
        let mut moved = 0;
        while moved < blocks {
            match self.exchange_blocks(file, begin / self.block + moved, room + moved, blocks - moved) {
                Ok(0) => break,
                Ok(more) => moved += more,
                Err(error) if error.raw_os_error() == Some(libc::ENODATA) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(moved * self.block)
    }

    /// How many blocks were exchanged.
    fn exchange_blocks(&self, file: &File, from: u64, donor_from: u64, count: u64) -> io::Result<u64> {
        let donor = self.file.as_raw_fd().cast_unsigned();
        let mut exchange = MoveExtent { donor, from, donor_from, count, ..MoveExtent::default() };
        // SAFETY: `exchange` is a `struct move_extent`, which outlives the call, and both files are open.
        let done = unsafe { libc::ioctl(file.as_raw_fd(), MOVE_EXT as _, &raw mut exchange) };
        match io::Error::last_os_error() {
            error if done < 0 && exchange.moved == 0 => Err(error),
            _ => Ok(exchange.moved),
        }
    }

    /// Waits until everything that was moved lies on the disk.
    pub fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::syncfs(&self.file)?)
    }
}
