//! Whether what a plan would read is in memory already: asked of some of it, by reads that the kernel answers at once or not at
//! all. A program that is started all day is read ahead once, and its other starts are not held up.

use std::fs::File;
use std::io::IoSliceMut;
use std::os::unix::fs::FileExt as _;

use perflab_model::io::PAGE;
use perflab_observe::io::residency::count_resident_pages;
use perflab_observe::io::{files, mounts};
use rustix::io::{ReadWriteFlags, preadv2};

use crate::plan::ReplayStep;
use crate::replay::{mounted_device, open_traced};
use crate::{ReplayPlan, TracedFileSystem};

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
    let (mut asked, mut there) = (0, 0);
    for step in plan.steps.iter().step_by(every) {
        match is_step_resident(step) {
            Some(false) => return false,
            found => there += usize::from(found.is_some()),
        }
        asked += 1;
    }
    2 * there >= asked
}

fn is_metadata_resident(system: &TracedFileSystem) -> bool {
    let node = mounted_device(system)
        .and_then(mounts::device_node)
        .and_then(|node| files::open_unnoticed(&node).ok());
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
