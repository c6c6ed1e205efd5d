//! What is moved, in which order: as it is needed, but with few pieces a file. A file of more than four has its map in a block of
//! its own, to which the arm has to go before it is read.

use std::collections::{HashMap, HashSet};

use indexmap::IndexMap;
use perflab_model::io::{PAGE, PageSet};

use crate::plan::{ReplayPlan, ReplayStep, plan_relayout};
use crate::trace::{ProgramTraces, StartupTrace, TracedFile};

/// Pages that nobody reads, and that are taken along so that a file needs no block with a map. As many as a disk reads in the time
/// of a seek would be too many: such blocks lie together.
const MAX_EXTRA_PAGES: u64 = 16;
/// Pages within which what is read of a file is put together, in the order of its pages: a program that reads beside does not
/// notice the 35 ms that a disk takes for them, and the file is in fewer pieces.
const MAX_GROUP_PAGES: u64 = 512;

/// Pieces that a file's number has room for.
const MAX_FRAGMENTS_WITHOUT_MAP: usize = 4;

/// Everything that a start reads, in the order in which it is needed: a file all at once, when the first of it is, where it
/// needs no map then and that brings little along that nobody reads. Without what is to stay where it lies.
pub(super) fn target_layout<'a>(start: &'a StartupTrace, staying: &ReservedPages) -> ReplayPlan<'a> {
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
pub(super) struct ReservedPages(HashMap<TracedFileId, PageSet>);

/// A file, wherever it was traced: its file system, its number there, and when it was changed last.
type TracedFileId = (Option<String>, u64, i64);

impl ReservedPages {
    /// What the latest starts of relaid programs read, with what was taken along.
    pub(super) fn of_programs(others: &[ProgramTraces]) -> Self {
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

    /// How many of a start's files stay, or parts of them.
    pub(super) fn count_files(&self, start: &StartupTrace, system: usize) -> usize {
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

/// Whether a program reads one of the files that a start reads.
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

/// In how many pieces a file lies once some of its pages lie elsewhere: those, and what is left between.
fn count_fragments(file: &TracedFile, moved: &PageSet) -> usize {
    let begins = moved.iter().next().is_some_and(|(first, _)| first == 0);
    let ends = moved.iter().last().is_some_and(|(first, count)| first + count >= file.size.div_ceil(PAGE));
    2 * moved.iter().count() + 1 - usize::from(begins) - usize::from(ends)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::traced_file;

    #[test]
    fn what_is_read_of_a_file_at_about_one_time_lies_together() {
        let one = traced_file(1, &[(0, 4, 0, 1), (100, 4, 2, 2), (200, 4, 4, 3), (900, 4, 6, 4)]);
        let (other, long) = (traced_file(2, &[(7, 4, 1, 5)]), traced_file(3, &[(0, MAX_GROUP_PAGES, 5, 6)]));
        let systems = vec![];
        let start = StartupTrace {
            when: 0,
            source: crate::TraceSource::Traced,
            systems,
            files: vec![one, other, long],
        };
        let steps = target_layout(&start, &ReservedPages::default()).steps;
        let told: Vec<_> =
            steps.iter().map(|step| (step.file.inode, step.pages.iter().collect::<Vec<_>>())).collect();
        assert_eq!(told[0], (1, vec![(0, 4), (100, 4), (200, 4)]));
        assert_eq!(told[1..3], [(2, vec![(7, 4)]), (3, vec![(0, MAX_GROUP_PAGES)])]);
        assert_eq!(told[3..], [(1, vec![(900, 4)])], "a later time");
    }

    #[test]
    fn what_lies_together_for_another_program_stays() {
        let started =
            |files| StartupTrace { when: 0, source: crate::TraceSource::Traced, systems: vec![], files };
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
            source: crate::TraceSource::Traced,
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
