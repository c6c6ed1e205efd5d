//! What is read ahead: mode, order, ranges of the disk, memory budget.
//!
//! It is decided before anything is read, from the trace alone, so that it can be shown and tested. The order is a
//! compromise between one sweep, in which what is needed at once comes last as often as first, and the order of
//! need, in which the arm seeks for every page: where the arm has to move anyway it may as well move to what is
//! needed next. The budget keeps reading ahead from pushing out what others need.

use std::collections::HashSet;

use perflab_model::PageSet;
use perflab_model::io_trace::PAGE;
use perflab_model::named::Named;
use perflab_observe::Root;
use perflab_observe::facts::read_available_memory;

use crate::startup_trace::{StartupTrace, TracedExtent, TracedFile};

/// In which order files are read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ReadOrder {
    /// as the program needed them, in ranges of the disk: each in one sweep, the one with what is needed first first
    #[default]
    Need,
    /// as they lie on the disk: one sweep of a rotating one
    Block,
    /// by number, which is about where ext4 puts them
    Inode,
    /// as the program asked for them, wherever they lie
    Access,
}

impl Named for ReadOrder {
    const NAMES: &'static [(Self, &'static str, &'static str)] = &[
        (ReadOrder::Need, "need", "as the program needs them, in extents of the disk"),
        (ReadOrder::Block, "block", "as files lie on the disk"),
        (ReadOrder::Inode, "inode", "by their numbers"),
        (ReadOrder::Access, "access", "as the program asked for them"),
    ];
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
    let mut candidates: Vec<PlannedExtent<'_>> =
        start.files.iter().flat_map(|file| planned_extents(file, bridge)).collect();
    // What does not fit is what the program asks for last.
    candidates.sort_by_key(|extent| extent.mark.turn);
    let mut room = (memory / PAGE).saturating_sub(start.metadata_page_count());
    let fits =
        |extent: &PlannedExtent<'_>| room.checked_sub(extent.count).inspect(|rest| room = *rest).is_some();
    let (mut kept, lost): (Vec<PlannedExtent<'_>>, Vec<PlannedExtent<'_>>) =
        candidates.into_iter().partition(fits);
    let left_out = lost.iter().map(|extent| extent.file.turn).collect::<HashSet<_>>().len();
    match order {
        ReadOrder::Need => kept = order_ranges_by_need(kept),
        ReadOrder::Block => kept.sort_by_key(PlannedExtent::disk_order),
        ReadOrder::Inode => {
            kept.sort_by_key(|extent| (extent.file.system, extent.file.inode, extent.mark.page));
        }
        ReadOrder::Access => {}
    }
    ReplayPlan { start, steps: merge_into_steps(&kept), left_out }
}

/// What of a plan is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayPart {
    /// the file systems' own blocks, first
    pub metadata: bool,
    /// these of its steps
    pub steps: std::ops::Range<usize>,
}

impl ReplayPlan<'_> {
    /// Pages of files.
    pub fn page_count(&self) -> u64 {
        self.steps.iter().map(|step| step.pages.page_count()).sum()
    }
}

impl PlannedExtent<'_> {
    /// Where it ends on the disk; a damaged trace may name a place near the end of all numbers.
    fn end_on_disk(&self) -> Option<u64> {
        Some(self.mark.place?.saturating_add(self.count.saturating_mul(PAGE)))
    }

    /// File systems one after the other; what has no known address by its inode number.
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

/// Extents of one file that follow one another upwards are one step.
fn merge_into_steps<'a>(extents: &[PlannedExtent<'a>]) -> Vec<ReplayStep<'a>> {
    let same = |one: &PlannedExtent<'_>, next: &PlannedExtent<'_>| {
        std::ptr::eq(one.file, next.file) && one.mark.page < next.mark.page
    };
    let step = |extents: &[PlannedExtent<'a>]| {
        let file = extents.first()?.file;
        Some(ReplayStep {
            file,
            pages: extents.iter().map(|extent| (extent.mark.page, extent.count)).collect(),
        })
    };
    extents.chunk_by(same).filter_map(step).collect()
}

/// Bytes that pass below the head in the time of a seek: what lies nearer than that belongs to the same range.
pub(crate) const MAX_NEAR_BYTES: u64 = 256 << 10;

/// Bytes of a range at most, so that the beginning of a large library does not bring all of it before anything else. At
/// 60 MB/s a tenth of a second.
const MAX_RANGE_BYTES: u64 = 8 << 20;

/// Extents by ranges: within each as they lie, the one with what is needed first first.
fn order_ranges_by_need(mut extents: Vec<PlannedExtent<'_>>) -> Vec<PlannedExtent<'_>> {
    extents.sort_by_key(PlannedExtent::disk_order);
    let mut ranges: Vec<SweepRange<'_>> = Vec::new();
    for extent in extents {
        match ranges.last_mut() {
            Some(last) if last.is_continued_by(&extent) => last.add(extent),
            _ => ranges.push(SweepRange::from_extent(extent)),
        }
    }
    ranges.sort_by_key(|range| range.turn);
    ranges.into_iter().flat_map(|range| range.extents).collect()
}

struct SweepRange<'a> {
    extents: Vec<PlannedExtent<'a>>,
    /// when the first of them is needed
    turn: u32,
    /// where they begin and end on the disk; what has no known address is a range of its own
    place: Option<(u64, u64)>,
}

impl<'a> SweepRange<'a> {
    fn from_extent(extent: PlannedExtent<'a>) -> Self {
        let place = extent.mark.place.zip(extent.end_on_disk());
        SweepRange { extents: vec![extent], turn: extent.mark.turn, place }
    }

    fn is_continued_by(&self, extent: &PlannedExtent<'_>) -> bool {
        let Some(((begin, end), place)) = self.place.zip(extent.mark.place) else { return false };
        let same = self.extents.last().is_some_and(|last| last.file.system == extent.file.system);
        same && place.saturating_sub(end) <= MAX_NEAR_BYTES
            && extent.end_on_disk().is_some_and(|end| end.saturating_sub(begin) <= MAX_RANGE_BYTES)
    }

    fn add(&mut self, extent: PlannedExtent<'a>) {
        self.place = self.place.zip(extent.end_on_disk()).map(|((begin, old), end)| (begin, old.max(end)));
        self.turn = self.turn.min(extent.mark.turn);
        self.extents.push(extent);
    }
}

/// When.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ReplayMode {
    /// everything before the program starts
    Sync,
    /// everything beside it
    Async,
    /// metadata before it starts, the rest beside it
    #[default]
    Staged,
}

impl Named for ReplayMode {
    const NAMES: &'static [(Self, &'static str, &'static str)] = &[
        (ReplayMode::Sync, "sync", "everything before the program starts"),
        (ReplayMode::Async, "async", "beside the program"),
        (ReplayMode::Staged, "staged", "metadata before it starts, the rest beside it"),
    ];
}

impl ReplayMode {
    /// What of a startup is read, and in which order: in one sweep where the program waits for all of it, else as it needs
    /// it, unless another order is asked for.
    pub fn plan_replay(self, start: &StartupTrace, order: Option<ReadOrder>, memory: u64) -> ReplayPlan<'_> {
        let usual = if self == ReplayMode::Sync { ReadOrder::Block } else { ReadOrder::Need };
        plan_replay(start, order.unwrap_or(usual), memory)
    }

    /// What of a plan is read before the program starts, and what beside it.
    pub fn split_plan(self, plan: &ReplayPlan<'_>) -> [ReplayPart; 2] {
        let all = plan.steps.len();
        let nothing = || ReplayPart { metadata: false, steps: 0..0 };
        match self {
            ReplayMode::Sync => [ReplayPart { metadata: true, steps: 0..all }, nothing()],
            ReplayMode::Async => [nothing(), ReplayPart { metadata: true, steps: 0..all }],
            ReplayMode::Staged => {
                [ReplayPart { metadata: true, steps: 0..0 }, ReplayPart { metadata: false, steps: 0..all }]
            }
        }
    }
}

/// Half of the bytes that are available; none where the kernel does not say (before Linux 3.14).
pub fn replay_memory_limit(root: &Root) -> Option<u64> {
    read_available_memory(root).map(|bytes| bytes / 2)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::startup_trace::TraceSource;

    const MIB: u64 = 256;

    /// A file in extents of (first page, pages, order, MiB on the disk).
    pub(crate) fn traced_file(inode: u64, extents: &[(u64, u64, u32, u64)]) -> TracedFile {
        let marks: Vec<TracedExtent> = extents
            .iter()
            .map(|(page, _, turn, place)| TracedExtent { page: *page, turn: *turn, place: Some(place << 20) })
            .collect();
        let pages: PageSet = extents.iter().map(|(first, count, ..)| (*first, *count)).collect();
        TracedFile {
            system: 0,
            inode,
            generation: None,
            size: extents.iter().map(|(first, count, ..)| (first + count) * PAGE).max().unwrap_or(0),
            changed: 0,
            path: format!("/lib/{inode}"),
            pages,
            turn: marks[0].turn,
            place: marks[0].place,
            marks: marks[1..].to_vec(),
        }
    }

    fn example_trace_of(files: Vec<TracedFile>) -> StartupTrace {
        StartupTrace { when: 0, source: TraceSource::Traced, systems: Vec::new(), files }
    }

    /// Inode and pages of each step.
    fn step_pages(start: &StartupTrace, order: ReadOrder, memory: u64) -> Vec<(u64, Vec<(u64, u64)>)> {
        let plan = plan_replay(start, order, memory);
        plan.steps.iter().map(|step| (step.file.inode, step.pages.iter().collect())).collect()
    }

    /// A library whose end is needed first, one beside its beginning, and one far away that is needed between.
    fn library_trace() -> StartupTrace {
        example_trace_of(vec![
            traced_file(1, &[(0, 20, 5, 100), (20 * MIB, 10, 0, 120)]),
            traced_file(2, &[(0, 30, 4, 101)]),
            traced_file(3, &[(0, 7, 2, 900)]),
            traced_file(4, &[(0, 4, 9, 110)]),
        ])
    }

    #[test]
    fn what_is_needed_first_comes_first_with_what_lies_beside_it() {
        let start = library_trace();
        let need = [
            (1, vec![(20 * MIB, 10)]),
            (3, vec![(0, 7)]),
            (2, vec![(0, 30)]),
            (1, vec![(0, 20)]),
            (4, vec![(0, 4)]),
        ];
        // 20 pages end 944 KiB before the other file begins: two ranges.
        assert_eq!(step_pages(&start, ReadOrder::Need, u64::MAX), need);
        let mut near = start;
        near.files[1].place = Some((100 << 20) + 30 * PAGE);
        let together = step_pages(&near, ReadOrder::Need, u64::MAX);
        assert_eq!(together[2..4], [(1, vec![(0, 20)]), (2, vec![(0, 30)])], "in one sweep from turn 4 on");
    }

    #[test]
    fn other_orders_are_what_they_are_called() {
        let start = library_trace();
        let inodes = |order| {
            step_pages(&start, order, u64::MAX).into_iter().map(|(inode, _)| inode).collect::<Vec<_>>()
        };
        assert_eq!(inodes(ReadOrder::Block), [1, 2, 4, 1, 3]);
        assert_eq!(inodes(ReadOrder::Inode), [1, 2, 3, 4]);
        assert_eq!(inodes(ReadOrder::Access), [1, 3, 2, 1, 4]);
    }

    #[test]
    fn what_does_not_fit_is_what_is_needed_last() {
        let start = library_trace();
        let plan = plan_replay(&start, ReadOrder::Block, (10 + 7 + 30) * PAGE);
        assert_eq!((plan.page_count(), plan.left_out), (47, 2), "the beginning of one file, and another");
        assert!(plan.steps.iter().all(|step| step.file.inode != 4));
    }

    #[test]
    fn a_stretch_is_no_longer_than_a_tenth_of_a_second() {
        let long: Vec<_> = (0..20).map(|at| (at * MIB, MIB, 40 - at as u32, 300 + at)).collect();
        let steps = step_pages(&example_trace_of(vec![traced_file(1, &long)]), ReadOrder::Need, u64::MAX);
        let whole = [(1, vec![(16 * MIB, 4 * MIB)]), (1, vec![(8 * MIB, 8 * MIB)]), (1, vec![(0, 8 * MIB)])];
        assert_eq!(steps, whole);
    }

    #[test]
    fn gaps_are_read_where_the_disk_has_them_between() {
        let mut known = traced_file(1, &[(0, 4, 0, 1), (8, 4, 1, 2), (20, 4, 2, 3)]);
        let all = |known: &TracedFile| bridge_gaps(known, MAX_BRIDGED_PAGES).iter().collect::<Vec<_>>();
        assert_eq!(all(&known), [(0, 4), (8, 4), (20, 4)], "each lies elsewhere");
        let place = |page: u64| Some((1 << 20) + page * PAGE);
        known.marks[0].place = place(8);
        known.marks[1].place = place(12);
        assert_eq!(
            all(&known),
            [(0, 12), (20, 4)],
            "what follows on the disk is packed, what lies between is not"
        );
        known.marks[1].place = place(20);
        assert_eq!(all(&known), [(0, 24)]);
        assert_eq!(bridge_gaps(&known, MAX_PACKED_GAP_PAGES), known.pages);
        known.place = None;
        known.marks.iter_mut().for_each(|mark| mark.place = None);
        assert_eq!(all(&known), [(0, 24)], "where nothing is known of places");
    }

    #[test]
    fn no_order_loses_a_page_or_reads_one_twice() {
        // A walk through starts of all shapes.
        let mut state = 7_u64;
        let mut some = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        for _ in 0..200 {
            let files = (1..=1 + some(6)).map(|inode| {
                let mut page = 0;
                let extents: Vec<_> = (0..=some(5))
                    .map(|_| {
                        let (first, count) = (page + some(40), 1 + some(50));
                        page = first + count;
                        (first, count, some(100) as u32 * 10 + inode as u32, some(30))
                    })
                    .collect();
                traced_file(inode, &extents)
            });
            let start = example_trace_of(files.collect());
            for order in [ReadOrder::Need, ReadOrder::Block, ReadOrder::Inode, ReadOrder::Access] {
                let plan = plan_replay(&start, order, u64::MAX);
                for file in &start.files {
                    let own = plan.steps.iter().filter(|step| step.file.inode == file.inode);
                    let sum: u64 = own.clone().map(|step| step.pages.page_count()).sum();
                    let all: PageSet = own.flat_map(|step| step.pages.iter()).collect();
                    assert_eq!(
                        (&all, sum),
                        (&bridge_gaps(file, MAX_BRIDGED_PAGES), all.page_count()),
                        "{order:?}"
                    );
                }
            }
        }
    }
}
