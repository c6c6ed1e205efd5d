//! Whether what a plan would read is in memory already: asked of some of it, by reads that the kernel answers at once or not at
//! all. A program that is started all day is read ahead once, and its other starts are not held up.

use std::fs::File;
use std::io::IoSliceMut;
use std::os::unix::fs::FileExt as _;

use perflab_model::io::PAGE;
use perflab_observe::io::residency::resident;
use perflab_observe::io::{files, mounts};
use rustix::io::{ReadWriteFlags, preadv2};

use crate::plan::Step;
use crate::replay::{mounted, traced};
use crate::{FileSystem, Plan};

/// Files that are asked for, and blocks of each file system.
const ASKED: usize = 32;

/// Whether the beginning of a file is in memory.
pub(crate) fn has_beginning(file: &File) -> bool {
    has(file, 0)
}

/// Whether everything that is asked for is in memory. File systems' own blocks come first, as far as their disks can be opened:
/// where they are missing, no name has to be looked up to know it.
pub fn is_warm(plan: &Plan<'_>) -> bool {
    plan.start.systems.iter().all(has_metadata) && has_files(plan)
}

/// Reads every page of a plan's files that are still the traced ones: so all of it is in memory, whatever a look at some of it says, and
/// whatever was under way.
pub fn read_whole(plan: &Plan<'_>) {
    let mut room = vec![0; 128 << 10];
    for (step, file) in plan.steps.iter().filter_map(|step| Some((step, traced(step).ok()?))) {
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
fn has_files(plan: &Plan<'_>) -> bool {
    let every = plan.steps.len().div_ceil(ASKED).max(1);
    let (mut asked, mut there) = (0, 0);
    for step in plan.steps.iter().step_by(every) {
        match is_there(step) {
            Some(false) => return false,
            found => there += usize::from(found.is_some()),
        }
        asked += 1;
    }
    2 * there >= asked
}

fn has_metadata(system: &FileSystem) -> bool {
    let node = mounted(system).and_then(mounts::node).and_then(|node| files::open(&node).ok());
    let Some(node) = node else { return true };
    let every = system.metadata.iter().count().div_ceil(ASKED).max(1);
    // Blocks that a file system has read itself cannot be read at once, though they are there: they are counted.
    let is_there = |page| resident(&node, page * PAGE, PAGE).is_ok_and(|pages| pages > 0);
    system.metadata.iter().step_by(every).all(|(page, _)| is_there(page))
}

/// Nothing where it may not be opened or has changed: to ask might begin to read it.
fn is_there(step: &Step<'_>) -> Option<bool> {
    let file = traced(step).ok()?;
    let mut ends = step.pages.iter().flat_map(|(first, count)| [first, first + count.saturating_sub(1)]);
    Some(ends.all(|page| has(&file, page)))
}

fn has(file: &File, page: u64) -> bool {
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
        assert!(has_beginning(&File::open(file.path()).unwrap()));
    }
}
