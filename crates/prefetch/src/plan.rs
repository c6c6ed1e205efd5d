//! What is to be read, in which order. Decided before anything is read, from the trace alone, so that it can be shown and
//! tested.

mod stretch;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::HashSet;

use perflab_model::io::{PAGE, PageSet};

pub(crate) use self::stretch::MAX_NEAR_BYTES;
use crate::trace::{StartupTrace, TracedExtent, TracedFile};

/// In which order files are read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ReadOrder {
    /// as the program needed them, in stretches of the disk: each in one sweep, the one with what is needed first first
    #[default]
    Need,
    /// as they lie on the disk: one sweep of a rotating one
    Block,
    /// by number, which is about where ext4 puts them
    Inode,
    /// as the program asked for them, wherever they lie
    Access,
}

/// A gap that is cheaper to read than to skip, where the disk has it between what is read: a disk reads 32 KiB in less time
/// than it seeks, and each request has its price.
const MAX_BRIDGED_PAGES: u64 = 8;
/// The same where what is read is only going to be brought together: no more than a single page comes along.
const MAX_PACKED_GAP_PAGES: u64 = 1;

/// Pages of a file to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayStep<'a> {
    /// the file
    pub file: &'a TracedFile,
    /// its pages, with small gaps filled
    pub pages: PageSet,
}

/// What is to be read: first the metadata, then these pages of files; a file may come more than once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayPlan<'a> {
    /// the start it is made from
    pub start: &'a StartupTrace,
    /// in order
    pub steps: Vec<ReplayStep<'a>>,
    /// files of which the memory budget had no room for everything
    pub left_out: usize,
}

/// Pages of a file that lie in one, and were read at one time.
#[derive(Debug, Clone, Copy)]
struct PlannedExtent<'a> {
    file: &'a TracedFile,
    mark: TracedExtent,
    count: u64,
}

/// Makes a plan; `memory` is the most bytes that may be read.
pub fn plan_replay(start: &StartupTrace, order: ReadOrder, memory: u64) -> ReplayPlan<'_> {
    plan_with_bridge(start, order, memory, MAX_BRIDGED_PAGES)
}

/// What is to be brought together, in the order in which it was asked for.
pub(crate) fn plan_relayout(start: &StartupTrace) -> ReplayPlan<'_> {
    plan_with_bridge(start, ReadOrder::Access, u64::MAX, MAX_PACKED_GAP_PAGES)
}

fn plan_with_bridge(start: &StartupTrace, order: ReadOrder, memory: u64, bridge: u64) -> ReplayPlan<'_> {
    let mut wanted: Vec<PlannedExtent<'_>> =
        start.files.iter().flat_map(|file| planned_extents(file, bridge)).collect();
    // What does not fit is what the program asks for last.
    wanted.sort_by_key(|piece| piece.mark.turn);
    let mut room = (memory / PAGE).saturating_sub(start.metadata_page_count());
    let fits =
        |piece: &PlannedExtent<'_>| room.checked_sub(piece.count).inspect(|rest| room = *rest).is_some();
    let (mut kept, lost): (Vec<PlannedExtent<'_>>, Vec<PlannedExtent<'_>>) =
        wanted.into_iter().partition(fits);
    let left_out = lost.iter().map(|piece| piece.file.turn).collect::<HashSet<_>>().len();
    match order {
        ReadOrder::Need => kept = stretch::order_ranges_by_need(kept),
        ReadOrder::Block => kept.sort_by_key(PlannedExtent::disk_order),
        ReadOrder::Inode => {
            kept.sort_by_key(|piece| (piece.file.system, piece.file.inode, piece.mark.page));
        }
        ReadOrder::Access => {}
    }
    ReplayPlan { start, steps: merge_into_steps(&kept), left_out }
}

impl ReplayPlan<'_> {
    /// Pages of files.
    pub fn page_count(&self) -> u64 {
        self.steps.iter().map(|step| step.pages.page_count()).sum()
    }
}

impl PlannedExtent<'_> {
    /// File systems one after the other; what has no known place by the number of its file.
    fn disk_order(&self) -> (usize, bool, u64, u64) {
        let place = self.mark.place;
        (self.file.system, place.is_none(), place.unwrap_or(self.file.inode), self.mark.page)
    }
}

fn planned_extents(file: &TracedFile, bridge: u64) -> impl Iterator<Item = PlannedExtent<'_>> {
    file.extents_of(&bridge_gaps(file, bridge)).into_iter().map(move |(mark, count)| PlannedExtent {
        file,
        mark,
        count,
    })
}

/// What is read of a file, with gaps of so many pages at most that the disk has there, too. Of what was brought together, gaps
/// lie elsewhere.
fn bridge_gaps(file: &TracedFile, most: u64) -> PageSet {
    let pages = file.pages.pages_below(file.size.div_ceil(PAGE));
    pages.fill_gaps(|end, next| next - end <= most && file.is_contiguous(end - 1, next))
}

/// Pieces of one file that follow one another upwards are one step.
fn merge_into_steps<'a>(pieces: &[PlannedExtent<'a>]) -> Vec<ReplayStep<'a>> {
    let same = |one: &PlannedExtent<'_>, next: &PlannedExtent<'_>| {
        std::ptr::eq(one.file, next.file) && one.mark.page < next.mark.page
    };
    let step = |pieces: &[PlannedExtent<'a>]| {
        let file = pieces.first()?.file;
        Some(ReplayStep { file, pages: pieces.iter().map(|piece| (piece.mark.page, piece.count)).collect() })
    };
    pieces.chunk_by(same).filter_map(step).collect()
}
