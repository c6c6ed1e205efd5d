//! How what is read of files lies on a disk: in how many stretches an arm would go over it.

use std::path::Path;

use perflab_model::io::{IoFile, PAGE};

use crate::plan::{NEAR, Plan, Step};
use crate::trace::Known;

/// How the steps of a plan lie on one file system.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lying {
    /// bytes of files that have a place
    pub bytes: u64,
    /// how many files
    pub files: usize,
    /// parts of the disk with less than 256 KiB between one and the next of what is read
    pub stretches: u64,
}

/// How the steps of one file system lie now, as the file system says; a file that is gone has no place.
pub(super) fn lying(plan: &Plan<'_>, system: usize) -> Lying {
    let steps: Vec<&Step<'_>> = plan.steps.iter().filter(|step| step.file.system == system).collect();
    let mut files: Vec<u32> = steps.iter().map(|step| step.file.turn).collect();
    files.sort_unstable();
    files.dedup();
    let mut parts: Vec<(u64, u64)> = steps.iter().flat_map(|step| parts(step)).collect();
    parts.sort_unstable();
    Lying {
        bytes: parts.iter().map(|(_, bytes)| bytes).sum(),
        files: files.len(),
        stretches: stretches(&parts),
    }
}

/// Begin and length of what a step reads, in bytes of the disk.
fn parts(step: &Step<'_>) -> Vec<(u64, u64)> {
    let now = perflab_observe::io::look(Path::new(&step.file.path));
    let now = now.filter(|now| now.inode == step.file.inode);
    now.map_or_else(Vec::new, |now| step.pages.iter().flat_map(|run| placed(&now, run)).collect())
}

fn placed(file: &IoFile, (first, count): (u64, u64)) -> Vec<(u64, u64)> {
    let (begin, end) = (first * PAGE, (first + count) * PAGE);
    let part = |extent: &perflab_model::io::Extent| {
        let (from, to) = (begin.max(extent.logical), end.min(extent.logical + extent.length));
        (from < to).then(|| (extent.physical + (from - extent.logical), to - from))
    };
    file.extents.iter().filter_map(part).collect()
}

/// Of parts in the order of the disk.
fn stretches(parts: &[(u64, u64)]) -> u64 {
    let mut head = None;
    let mut count = 0;
    for (begin, bytes) in parts {
        count += u64::from(head.is_none_or(|head: u64| begin.saturating_sub(head) > NEAR));
        head = Some(head.unwrap_or(0).max(begin + bytes));
    }
    count
}

/// Brings what is known of a program up to date: its files lie elsewhere now. Nothing else of it changes.
pub fn look_again(known: &mut Known) {
    for file in known.starts.iter_mut().flat_map(|start| &mut start.files) {
        let Some(now) = perflab_observe::io::look(Path::new(&file.path)) else { continue };
        if now.inode == file.inode {
            let first = file.pages.iter().next().map_or(0, |(first, _)| first);
            file.place = now.place(first);
            file.marks.iter_mut().for_each(|mark| mark.place = now.place(mark.page));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::stretches;

    #[test]
    fn what_passes_below_the_head_belongs_to_the_stretch() {
        let kib = |places: &[(u64, u64)]| -> Vec<(u64, u64)> {
            places.iter().map(|(begin, bytes)| (begin << 10, bytes << 10)).collect()
        };
        assert_eq!(stretches(&[]), 0);
        assert_eq!(stretches(&kib(&[(0, 4), (260, 4), (521, 4)])), 2);
        assert_eq!(stretches(&kib(&[(0, 1000), (4, 4), (1200, 4)])), 1, "what lies within another");
    }
}
