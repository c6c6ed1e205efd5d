//! Bringing together on the disk what a start reads, in the order in which it is needed, so that an arm goes over it in one
//! sweep. No byte of any file changes, nor its times: the file system exchanges blocks, journaled, as when it defragments.
//! Only who asks for it has it done; reading ahead never moves anything. ext4 can do it, others are left alone.

mod free_extents;
mod layout;
mod target_layout;

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use self::free_extents::FreeExtents;
pub use self::layout::{Layout, look_again};
pub use self::target_layout::shares;
use self::target_layout::{Staying, target_layout};
use crate::PrefetchError;
use crate::plan::{Plan, Step};
use crate::replay::{is_mounted, is_traced};
use crate::trace::{FileSystem, Known, Start};

/// What can exchange blocks.
const ABLE: &str = "ext4";

/// What a start reads of one file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// where it is mounted
    pub place: String,
    /// `ext4`
    pub kind: String,
    /// how it lies
    pub layout: Layout,
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
    fn leave(&mut self, why: impl Into<String>, files: usize) {
        if files > 0 {
            *self.left.entry(why.into()).or_default() += files;
        }
    }
}

/// How what a start reads lies on its file systems.
pub fn parts(start: &Start) -> Vec<Part> {
    let plan = target_layout(start, &Staying::default());
    let part = |(at, system): (usize, &FileSystem)| Part {
        place: system.place.clone(),
        kind: system.kind.clone(),
        layout: layout::layout_of(&plan, at),
        left_alone: left_alone(system),
    };
    start.systems.iter().enumerate().map(part).collect()
}

/// Moves what a start reads, file system by file system, or only that of one of them. What was brought together for one of the
/// `others`, programs that are known, stays with what that one reads. `tell` hears of pages that are dealt with. It ends early,
/// with what is moved moved, when `stop` is set.
///
/// # Errors
/// No room on a file system; one that cannot be written.
pub fn relayout(
    start: &Start,
    others: &[Known],
    on: Option<&Path>,
    stop: &AtomicBool,
    tell: &dyn Fn(u64),
) -> Result<RelayoutOutcome, PrefetchError> {
    let staying = Staying::of(others);
    let plan = target_layout(start, &staying);
    let mut done = RelayoutOutcome::default();
    for (at, system) in start.systems.iter().enumerate() {
        let place = Path::new(&system.place);
        if left_alone(system).is_none() && on.is_none_or(|on| on == place) {
            done.leave("brought together for another program", staying.files(start, at));
            relayout_one(&plan, at, place, &mut done, &mut |step| {
                tell(step.pages.pages());
                !stop.load(Ordering::Relaxed)
            })?;
        }
    }
    Ok(done)
}

fn relayout_one(
    plan: &Plan<'_>,
    system: usize,
    place: &Path,
    done: &mut RelayoutOutcome,
    go_on: &mut dyn FnMut(&Step<'_>) -> bool,
) -> Result<(), PrefetchError> {
    let steps: Vec<&Step<'_>> = plan.steps.iter().filter(|step| step.file.system == system).collect();
    let pages = steps.iter().map(|step| step.pages.pages()).sum();
    let mut free = FreeExtents::new(place, pages).map_err(PrefetchError::io("get room on", place))?;
    let pieces = free.pieces().map_err(PrefetchError::io("look at", place))? as u64;
    let layout = layout::layout_of(plan, system);
    if pieces >= layout.stretches {
        done.leave(format!("the free room on {} lies in {pieces} pieces too", place.display()), layout.files);
        return Ok(());
    }
    for step in steps {
        match give(&mut free, step) {
            Ok(bytes) => done.bytes += bytes,
            Err(error) => done.leave(why(&error), 1),
        }
        if !go_on(step) {
            break;
        }
    }
    free.settle().map_err(PrefetchError::io("write", place))
}

fn left_alone(system: &FileSystem) -> Option<String> {
    if system.kind != ABLE {
        return Some(format!("{} cannot exchange blocks of files", system.kind));
    }
    (!is_mounted(system)).then(|| "another file system is mounted there now".into())
}

fn give(free: &mut FreeExtents, step: &Step<'_>) -> io::Result<u64> {
    let file = perflab_observe::io::files::open_to_move(Path::new(&step.file.path));
    let file: File = file.and_then(|file| {
        is_traced(&file, step.file)?.then_some(file).ok_or_else(|| io::ErrorKind::NotFound.into())
    })?;
    step.pages.iter().map(|(first, count)| free.give(&file, first, count)).sum()
}

fn why(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ExecutableFileBusy => "a program that runs".into(),
        io::ErrorKind::NotFound => "gone, or changed since it was traced".into(),
        _ => error.to_string(),
    }
}
