//! Where the extents of a startup lie on a disk, and where they should.
//!
//! The target layout is the order in which pages are needed, but with few extents a file: a file of more than four
//! has its extent map in a block of its own, to which the arm has to go before it is read.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use indexmap::IndexMap;
use perflab_model::PageSet;
use perflab_model::io_trace::{IoFile, PAGE};

use crate::replay_plan::{MAX_NEAR_BYTES, ReplayPlan, ReplayStep, plan_relayout};
use crate::startup_trace::{ProgramTraces, StartupTrace, TracedExtent, TracedFile};

/// How the steps of a plan lie on one file system.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExtentLayout {
    /// bytes of files that have a physical address
    pub bytes: u64,
    /// how many files
    pub files: usize,
    /// parts of the disk with less than 256 KiB between one and the next of what is read
    pub extents: u64,
}

/// How the steps of one file system lie now, as the file system says; a file that is gone has no address.
pub(crate) fn current_layout(plan: &ReplayPlan<'_>, system: usize) -> ExtentLayout {
    let steps: Vec<&ReplayStep<'_>> = plan.steps.iter().filter(|step| step.file.system == system).collect();
    let mut files: Vec<u32> = steps.iter().map(|step| step.file.turn).collect();
    files.sort_unstable();
    files.dedup();
    let mut parts: Vec<(u64, u64)> = steps.iter().flat_map(|step| step_extents(step)).collect();
    parts.sort_unstable();
    ExtentLayout {
        bytes: parts.iter().map(|(_, bytes)| bytes).sum(),
        files: files.len(),
        extents: count_ranges(&parts),
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
    let part = |extent: &perflab_model::io_trace::FileExtent| {
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

/// Gives a file's pages the addresses that they have now, an entry for each extent.
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

/// A range of a file, split by the extents that it lies in.
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

/// Pages that are not read, and that are taken along so that a file needs no block with an extent map. As many as a disk reads in the time
/// of a seek would be too many: such blocks lie together.
const MAX_EXTRA_PAGES: u64 = 16;

/// Pages within which what is read of a file is put together, in the order of its pages: a program that reads beside does not
/// notice the 35 ms that a disk takes for them, and the file has fewer extents.
const MAX_GROUP_PAGES: u64 = 512;

/// Extents that an inode has room for.
const MAX_FRAGMENTS_WITHOUT_MAP: usize = 4;

/// Everything that a startup reads, in the order in which it is needed: a file all at once, when the first of it is, where it
/// needs no map block then and that takes few pages along that are not read. Without what is to stay where it lies.
pub(crate) fn target_layout<'a>(start: &'a StartupTrace, staying: &ReservedPages) -> ReplayPlan<'a> {
    let ReplayPlan { steps, left_out, .. } = plan_relayout(start);
    let mut read: HashMap<u32, PageSet> = HashMap::new();
    for step in &steps {
        let all = read.entry(step.file.turn).or_default();
        *all = all.union(&step.pages);
    }
    let files = start.files.iter();
    let at_once: HashMap<u32, PageSet> =
        files.filter_map(|file| Some((file.turn, few_fragments(file, read.get(&file.turn)?)?))).collect();
    let mut met = HashSet::new();
    let step = |step: ReplayStep<'a>| match at_once.get(&step.file.turn) {
        Some(pages) => met.insert(step.file.turn).then(|| ReplayStep { pages: pages.clone(), ..step }),
        None => Some(step),
    };
    let steps = steps.into_iter().filter_map(step).filter_map(|step| staying.without_reserved(start, step));
    ReplayPlan { start, steps: group_steps(steps), left_out }
}

/// Pages that were brought together for other programs.
#[derive(Debug, Default)]
pub(crate) struct ReservedPages(HashMap<TracedFileId, PageSet>);

/// A file, wherever it was traced: its file system, its number there, and when it was changed last.
type TracedFileId = (Option<String>, u64, i64);

impl ReservedPages {
    /// What the latest starts of relaid programs read, with what was taken along.
    pub(crate) fn of_programs(others: &[ProgramTraces]) -> Self {
        let mut all = ReservedPages::default();
        for start in others.iter().filter(|known| known.relaid).filter_map(|known| known.starts.last()) {
            for file in &start.files {
                let pages = all.0.entry(traced_file_id(start, file)).or_default();
                *pages = pages.union(few_fragments(file, &file.pages).as_ref().unwrap_or(&file.pages));
            }
        }
        all
    }

    /// What of a step does not stay; nothing where that is all of it.
    fn without_reserved<'a>(&self, start: &StartupTrace, step: ReplayStep<'a>) -> Option<ReplayStep<'a>> {
        let Some(staying) = self.0.get(&traced_file_id(start, step.file)) else { return Some(step) };
        let pages = step.pages.difference(staying);
        (!pages.is_empty()).then_some(ReplayStep { pages, ..step })
    }

    /// How many of a startup's files stay, or parts of them.
    pub(crate) fn count_files(&self, start: &StartupTrace, system: usize) -> usize {
        let here = start.files.iter().filter(|file| file.system == system);
        let stays = |file: &&TracedFile| {
            self.0
                .get(&traced_file_id(start, file))
                .is_some_and(|pages| !pages.intersection(&file.pages).is_empty())
        };
        here.filter(stays).count()
    }
}

fn traced_file_id(start: &StartupTrace, file: &TracedFile) -> TracedFileId {
    (start.systems.get(file.system).and_then(|system| system.uuid.clone()), file.inode, file.changed)
}

/// Whether a program reads one of the files that a startup reads.
pub fn shares_files(known: &ProgramTraces, start: &StartupTrace) -> bool {
    let read: HashSet<TracedFileId> = start.files.iter().map(|file| traced_file_id(start, file)).collect();
    let mut starts = known.starts.iter();
    starts.any(|other| other.files.iter().any(|file| read.contains(&traced_file_id(other, file))))
}

/// What is read of a file at about the same time in one step.
fn group_steps<'a>(steps: impl Iterator<Item = ReplayStep<'a>>) -> Vec<ReplayStep<'a>> {
    let (mut done, mut group, mut pages) = (Vec::new(), IndexMap::<u32, ReplayStep<'a>>::new(), 0);
    for step in steps {
        pages += step.pages.page_count();
        let own =
            group.entry(step.file.turn).or_insert_with(|| ReplayStep { pages: PageSet::default(), ..step });
        own.pages = own.pages.union(&step.pages);
        if pages >= MAX_GROUP_PAGES {
            done.extend(group.drain(..).map(|(_, step)| step));
            pages = 0;
        }
    }
    done.extend(group.into_values());
    done
}

/// From the first page to the last, or all but the widest gap, where the file needs no map then and what lies between is soon read.
fn few_fragments(file: &TracedFile, pages: &PageSet) -> Option<PageSet> {
    let ends = pages.iter().map(|(first, count)| first + count);
    let widest = pages.iter().skip(1).zip(ends).map(|((next, _), end)| next - end).max().unwrap_or(0);
    let few = [pages.fill_gaps(|_, _| true), pages.fill_gaps(|end, next| next - end < widest)];
    let is_cheap = |few: &PageSet| {
        few.page_count() - pages.page_count() <= MAX_EXTRA_PAGES
            && count_fragments(file, few) <= MAX_FRAGMENTS_WITHOUT_MAP
    };
    few.into_iter().find(is_cheap)
}

/// How many extents a file has once some of its pages lie elsewhere: those, and what is left between.
fn count_fragments(file: &TracedFile, moved: &PageSet) -> usize {
    let begins = moved.iter().next().is_some_and(|(first, _)| first == 0);
    let ends = moved.iter().last().is_some_and(|(first, count)| first + count >= file.size.div_ceil(PAGE));
    2 * moved.iter().count() + 1 - usize::from(begins) - usize::from(ends)
}

#[cfg(test)]
mod tests {
    use perflab_model::io_trace::{FileClass, FileExtent};

    use super::*;
    use crate::replay_plan::tests::traced_file;

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
            device: perflab_model::io_trace::DeviceNumber(1),
            inode: 1,
            generation: None,
            class: FileClass::File,
            path: None,
            size: 24 * PAGE,
            changed: 0,
            extents: vec![extent(0, 5, 4), extent(4, 7, 20)],
        };
        let found = |file: &TracedFile| {
            let pieces = file.extents_of(&file.pages).into_iter();
            pieces.map(|(mark, pages)| (mark.page, pages, mark.turn, mark.place)).collect::<Vec<_>>()
        };
        let place = |page: u64| Some((7 << 20) + (page - 4) * PAGE);
        let wanted = [(0, 4, 0, Some(5 << 20)), (4, 4, 0, place(4)), (20, 4, 3, place(20))];
        for _ in 0..2 {
            set_extents(&mut known, &now);
            assert_eq!(found(&known), wanted, "{known:?}");
        }
        set_extents(&mut known, &IoFile { extents: vec![extent(0, 3, 24)], ..now });
        assert_eq!(found(&known).len(), 2, "what lies in a row again is one piece: {known:?}");
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

    #[test]
    fn what_is_read_of_a_file_at_about_one_time_lies_together() {
        let one = traced_file(1, &[(0, 4, 0, 1), (100, 4, 2, 2), (200, 4, 4, 3), (900, 4, 6, 4)]);
        let (other, long) = (traced_file(2, &[(7, 4, 1, 5)]), traced_file(3, &[(0, MAX_GROUP_PAGES, 5, 6)]));
        let systems = vec![];
        let start = StartupTrace {
            when: 0,
            source: crate::startup_trace::TraceSource::Traced,
            systems,
            files: vec![one, other, long],
        };
        let steps = target_layout(&start, &ReservedPages::default()).steps;
        let found: Vec<_> =
            steps.iter().map(|step| (step.file.inode, step.pages.iter().collect::<Vec<_>>())).collect();
        assert_eq!(found[0], (1, vec![(0, 4), (100, 4), (200, 4)]));
        assert_eq!(found[1..3], [(2, vec![(7, 4)]), (3, vec![(0, MAX_GROUP_PAGES)])]);
        assert_eq!(found[3..], [(1, vec![(900, 4)])], "a later time");
    }

    #[test]
    fn what_lies_together_for_another_program_stays() {
        let started = |files| StartupTrace {
            when: 0,
            source: crate::startup_trace::TraceSource::Traced,
            systems: vec![],
            files,
        };
        let known = |relaid| ProgramTraces {
            starts: vec![started(vec![traced_file(1, &[(0, 8, 0, 1)]), traced_file(2, &[(4, 4, 1, 1)])])],
            relaid,
            ..ProgramTraces::new("/bin/other".into(), 0)
        };
        let start = started(vec![
            traced_file(1, &[(0, 8, 0, 1)]),
            traced_file(2, &[(0, 16, 1, 1)]),
            traced_file(3, &[(0, 4, 2, 1)]),
        ]);
        let moved = |others: &[ProgramTraces]| {
            let steps = target_layout(&start, &ReservedPages::of_programs(others)).steps;
            steps
                .iter()
                .map(|step| (step.file.inode, step.pages.iter().collect()))
                .collect::<Vec<(_, Vec<_>)>>()
        };
        assert_eq!(moved(&[known(true)]), [(2, vec![(0, 4), (8, 8)]), (3, vec![(0, 4)])]);
        assert_eq!(moved(&[known(false)]).len(), 3);
        assert_eq!(ReservedPages::of_programs(&[known(true)]).count_files(&start, 0), 2);
        assert!(
            shares_files(&known(false), &start)
                && !shares_files(&known(false), &started(vec![traced_file(3, &[(0, 4, 2, 1)])]))
        );
    }

    #[test]
    fn what_was_taken_along_for_another_program_stays_too() {
        let started = |pieces: &[(u64, u64, u32, u64)]| StartupTrace {
            when: 0,
            source: crate::startup_trace::TraceSource::Traced,
            systems: vec![],
            files: vec![traced_file(1, pieces)],
        };
        let other = |pieces| ProgramTraces {
            starts: vec![started(pieces)],
            relaid: true,
            ..ProgramTraces::new("/bin/other".into(), 0)
        };
        let own = started(&[(4, 4, 0, 1)]);
        let moved = |pieces| target_layout(&own, &ReservedPages::of_programs(&[other(pieces)])).steps.len();
        assert_eq!(moved(&[(0, 4, 0, 1), (8, 4, 1, 1)]), 0, "the file was moved as a whole");
        assert_eq!(moved(&[(0, 4, 0, 1), (90, 4, 1, 1)]), 1);
    }

    #[test]
    fn small_gaps_are_taken_along_where_that_saves_a_map() {
        let runs = |runs: &[(u64, u64)]| runs.iter().copied().collect::<PageSet>();
        let long = TracedFile { size: 100 * PAGE, ..traced_file(1, &[(0, 1, 0, 1)]) };
        let few = |read| few_fragments(&long, &runs(read));
        assert_eq!(few(&[(10, 5), (20, 5), (36, 1)]), Some(runs(&[(10, 27)])));
        assert_eq!(few(&[(0, 5), (8, 5), (60, 5)]), Some(runs(&[(0, 13), (60, 5)])), "four pieces");
        assert_eq!(few(&[(1, 5), (8, 5), (60, 5)]), None, "five");
        assert_eq!(few(&[(1, 5), (8, 5), (60, 40)]), Some(runs(&[(1, 12), (60, 40)])), "up to its end");
        assert_eq!(few(&[(0, 5), (22, 5), (60, 5)]), None, "too much between");
    }
}
