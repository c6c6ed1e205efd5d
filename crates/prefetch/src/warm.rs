//! Whether what a plan would read is in memory already: asked of a few files, by reads that the kernel answers at once or not at
//! all. A program that is started all day is read ahead once.

use std::fs::File;
use std::io::IoSliceMut;
use std::path::Path;

use perflab_model::io::PAGE;
use perflab_observe::io::files;
use rustix::io::{ReadWriteFlags, preadv2};

use crate::Plan;
use crate::plan::Step;

/// Files that are asked.
const ASKED: usize = 16;

/// Whether the beginning of a file is in memory.
pub(super) fn has_beginning(file: &File) -> bool {
    has(file, 0)
}

/// Whether every file that is asked is in memory.
pub(super) fn is_warm(plan: &Plan<'_>) -> bool {
    let every = plan.steps.len().div_ceil(ASKED).max(1);
    plan.steps.iter().step_by(every).all(is_there)
}

fn is_there(step: &Step<'_>) -> bool {
    // What cannot be opened will not be read ahead either.
    let Ok(file) = files::open(Path::new(&step.file.path)) else { return true };
    let mut ends = step.pages.iter().flat_map(|(first, count)| [first, first + count.saturating_sub(1)]);
    ends.all(|page| has(&file, page))
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
