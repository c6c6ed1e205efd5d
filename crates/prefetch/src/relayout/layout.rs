//! How what is read of files lies on a disk: in how many stretches an arm would go over it.

use std::path::Path;

use perflab_model::io::{IoFile, PAGE};

use crate::plan::{MAX_NEAR_BYTES, ReplayPlan, ReplayStep};
use crate::trace::{ProgramTraces, TracedExtent, TracedFile};

/// How the steps of a plan lie on one file system.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExtentLayout {
    /// bytes of files that have a place
    pub bytes: u64,
    /// how many files
    pub files: usize,
    /// parts of the disk with less than 256 KiB between one and the next of what is read
    pub stretches: u64,
}

/// How the steps of one file system lie now, as the file system says; a file that is gone has no place.
pub(super) fn current_layout(plan: &ReplayPlan<'_>, system: usize) -> ExtentLayout {
    let steps: Vec<&ReplayStep<'_>> = plan.steps.iter().filter(|step| step.file.system == system).collect();
    let mut files: Vec<u32> = steps.iter().map(|step| step.file.turn).collect();
    files.sort_unstable();
    files.dedup();
    let mut parts: Vec<(u64, u64)> = steps.iter().flat_map(|step| step_extents(step)).collect();
    parts.sort_unstable();
    ExtentLayout {
        bytes: parts.iter().map(|(_, bytes)| bytes).sum(),
        files: files.len(),
        stretches: count_ranges(&parts),
    }
}

/// Begin and length of what a step reads, in bytes of the disk.
fn step_extents(step: &ReplayStep<'_>) -> Vec<(u64, u64)> {
    let now = perflab_observe::io::describe_file(Path::new(&step.file.path));
    let now = now.filter(|now| now.inode == step.file.inode);
    now.map_or_else(Vec::new, |now| step.pages.iter().flat_map(|run| extents_of_run(&now, run)).collect())
}

fn extents_of_run(file: &IoFile, (first, count): (u64, u64)) -> Vec<(u64, u64)> {
    let (begin, end) = (first * PAGE, (first + count) * PAGE);
    let part = |extent: &perflab_model::io::FileExtent| {
        let (from, to) = (begin.max(extent.logical), end.min(extent.logical + extent.length));
        (from < to).then(|| (extent.physical + (from - extent.logical), to - from))
    };
    file.extents.iter().filter_map(part).collect()
}

/// Of parts in the order of the disk.
fn count_ranges(parts: &[(u64, u64)]) -> u64 {
    let mut head = None;
    let mut count = 0;
    for (begin, bytes) in parts {
        count += u64::from(head.is_none_or(|head: u64| begin.saturating_sub(head) > MAX_NEAR_BYTES));
        head = Some(head.unwrap_or(0).max(begin + bytes));
    }
    count
}

/// Brings what is known of a program up to date: its files lie elsewhere now. Nothing else of it changes.
pub fn refresh_extents(known: &mut ProgramTraces) {
    for file in known.starts.iter_mut().flat_map(|start| &mut start.files) {
        let now = perflab_observe::io::describe_file(Path::new(&file.path));
        if let Some(now) = now.filter(|now| now.inode == file.inode) {
            set_extents(file, &now);
        }
    }
}

/// Gives a file's pages the places that they have now, in as many pieces as they lie in.
fn set_extents(file: &mut TracedFile, now: &IoFile) {
    let mut marks: Vec<TracedExtent> = Vec::new();
    for mark in
        file.extents_of(&file.pages).into_iter().flat_map(|(mark, count)| split_by_extents(now, mark, count))
    {
        let follows =
            |last: &TracedExtent| last.turn == mark.turn && last.at_page(mark.page).place == mark.place;
        if !marks.last().is_some_and(follows) {
            marks.push(mark);
        }
    }
    let beginning = marks.first().map_or(file.place, |mark| mark.place);
    file.marks = marks.into_iter().skip(1).collect();
    file.place = beginning;
}

/// A piece of a file, by the extents that it lies in.
fn split_by_extents(now: &IoFile, mark: TracedExtent, count: u64) -> impl Iterator<Item = TracedExtent> {
    let within = mark.page + 1..mark.page + count;
    let further =
        now.extents.iter().map(|extent| extent.logical / PAGE).filter(move |page| within.contains(page));
    std::iter::once(mark.page).chain(further).map(move |page| TracedExtent {
        page,
        place: now.disk_offset_of_page(page),
        ..mark
    })
}

#[cfg(test)]
mod tests {
    use perflab_model::io::{FileClass, FileExtent};

    use super::*;
    use crate::plan::tests::traced_file;

    #[test]
    fn pieces_of_a_file_are_those_that_it_lies_in_now() {
        // Pages 0 to 8 in a row, then 20 to 24 elsewhere and later; now 0 to 4 lie apart, and the rest in a row.
        let mut known = traced_file(1, &[(0, 8, 0, 1), (20, 4, 3, 9)]);
        let extent = |page: u64, place: u64, pages: u64| FileExtent {
            logical: page * PAGE,
            physical: place << 20,
            length: pages * PAGE,
        };
        let now = IoFile {
            device: perflab_model::io::DeviceNumber(1),
            inode: 1,
            generation: None,
            class: FileClass::File,
            path: None,
            size: 24 * PAGE,
            changed: 0,
            extents: vec![extent(0, 5, 4), extent(4, 7, 20)],
        };
        let told = |file: &TracedFile| {
            let pieces = file.extents_of(&file.pages).into_iter();
            pieces.map(|(mark, pages)| (mark.page, pages, mark.turn, mark.place)).collect::<Vec<_>>()
        };
        let place = |page: u64| Some((7 << 20) + (page - 4) * PAGE);
        let wanted = [(0, 4, 0, Some(5 << 20)), (4, 4, 0, place(4)), (20, 4, 3, place(20))];
        for _ in 0..2 {
            set_extents(&mut known, &now);
            assert_eq!(told(&known), wanted, "{known:?}");
        }
        set_extents(&mut known, &IoFile { extents: vec![extent(0, 3, 24)], ..now });
        assert_eq!(told(&known).len(), 2, "what lies in a row again is one piece: {known:?}");
    }

    #[test]
    fn what_passes_below_the_head_belongs_to_the_stretch() {
        let kib = |places: &[(u64, u64)]| -> Vec<(u64, u64)> {
            places.iter().map(|(begin, bytes)| (begin << 10, bytes << 10)).collect()
        };
        assert_eq!(count_ranges(&[]), 0);
        assert_eq!(count_ranges(&kib(&[(0, 4), (260, 4), (521, 4)])), 2);
        assert_eq!(count_ranges(&kib(&[(0, 1000), (4, 4), (1200, 4)])), 1, "what lies within another");
    }
}
