//! How what is read of files lies on a disk: in how many stretches an arm would go over it.

use std::path::Path;

use perflab_model::io::{IoFile, PAGE};

use crate::plan::{NEAR, Plan, Step};
use crate::trace::{Known, Mark, TracedFile};

/// How the steps of a plan lie on one file system.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Layout {
    /// bytes of files that have a place
    pub bytes: u64,
    /// how many files
    pub files: usize,
    /// parts of the disk with less than 256 KiB between one and the next of what is read
    pub stretches: u64,
}

/// How the steps of one file system lie now, as the file system says; a file that is gone has no place.
pub(super) fn layout_of(plan: &Plan<'_>, system: usize) -> Layout {
    let steps: Vec<&Step<'_>> = plan.steps.iter().filter(|step| step.file.system == system).collect();
    let mut files: Vec<u32> = steps.iter().map(|step| step.file.turn).collect();
    files.sort_unstable();
    files.dedup();
    let mut parts: Vec<(u64, u64)> = steps.iter().flat_map(|step| parts(step)).collect();
    parts.sort_unstable();
    Layout {
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
        let now = perflab_observe::io::look(Path::new(&file.path));
        if let Some(now) = now.filter(|now| now.inode == file.inode) {
            lies_at(file, &now);
        }
    }
}

/// Gives a file's pages the places that they have now, in as many pieces as they lie in.
fn lies_at(file: &mut TracedFile, now: &IoFile) {
    let mut marks: Vec<Mark> = Vec::new();
    for mark in file.pieces(&file.pages).into_iter().flat_map(|(mark, count)| broken(now, mark, count)) {
        let follows = |last: &Mark| last.turn == mark.turn && last.at(mark.page).place == mark.place;
        if !marks.last().is_some_and(follows) {
            marks.push(mark);
        }
    }
    let beginning = marks.first().map_or(file.place, |mark| mark.place);
    file.marks = marks.into_iter().skip(1).collect();
    file.place = beginning;
}

/// A piece of a file, by the extents that it lies in.
fn broken(now: &IoFile, mark: Mark, count: u64) -> impl Iterator<Item = Mark> {
    let within = mark.page + 1..mark.page + count;
    let further =
        now.extents.iter().map(|extent| extent.logical / PAGE).filter(move |page| within.contains(page));
    std::iter::once(mark.page).chain(further).map(move |page| Mark { page, place: now.place(page), ..mark })
}

#[cfg(test)]
mod tests {
    use perflab_model::io::{Extent, FileClass};

    use super::*;
    use crate::plan::tests::file;

    #[test]
    fn pieces_of_a_file_are_those_that_it_lies_in_now() {
        // Pages 0 to 8 in a row, then 20 to 24 elsewhere and later; now 0 to 4 lie apart, and the rest in a row.
        let mut known = file(1, &[(0, 8, 0, 1), (20, 4, 3, 9)]);
        let extent = |page: u64, place: u64, pages: u64| Extent {
            logical: page * PAGE,
            physical: place << 20,
            length: pages * PAGE,
        };
        let now = IoFile {
            device: perflab_model::io::Device(1),
            inode: 1,
            generation: None,
            class: FileClass::File,
            path: None,
            size: 24 * PAGE,
            changed: 0,
            extents: vec![extent(0, 5, 4), extent(4, 7, 20)],
        };
        let told = |file: &TracedFile| {
            let pieces = file.pieces(&file.pages).into_iter();
            pieces.map(|(mark, pages)| (mark.page, pages, mark.turn, mark.place)).collect::<Vec<_>>()
        };
        let place = |page: u64| Some((7 << 20) + (page - 4) * PAGE);
        let wanted = [(0, 4, 0, Some(5 << 20)), (4, 4, 0, place(4)), (20, 4, 3, place(20))];
        for _ in 0..2 {
            lies_at(&mut known, &now);
            assert_eq!(told(&known), wanted, "{known:?}");
        }
        lies_at(&mut known, &IoFile { extents: vec![extent(0, 3, 24)], ..now });
        assert_eq!(told(&known).len(), 2, "what lies in a row again is one piece: {known:?}");
    }

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
