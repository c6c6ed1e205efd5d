//! What is moved, in which order: as it is needed, but with few pieces a file. A file of more than four has its map in a block of
//! its own, to which the arm has to go before it is read.

use std::collections::{HashMap, HashSet};

use indexmap::IndexMap;
use perflab_model::io::{PAGE, Runs};

use crate::plan::{Plan, Step, to_pack};
use crate::trace::{Known, Start, TracedFile};

/// Pages that nobody reads, and that are taken along so that a file needs no block with a map. As many as a disk reads in the time
/// of a seek would be too many: such blocks lie together.
const CHEAP: u64 = 16;
/// Pages within which what is read of a file is put together, in the order of its pages: a program that reads beside does not
/// notice the 35 ms that a disk takes for them, and the file is in fewer pieces.
const TOGETHER: u64 = 512;

/// Pieces that a file's number has room for.
const WITHOUT_MAP: usize = 4;

/// Everything that a start reads, in the order in which it is needed: a file all at once, when the first of it is, where it
/// needs no map then and that brings little along that nobody reads. Without what is to stay where it lies.
pub(super) fn target_layout<'a>(start: &'a Start, staying: &Staying) -> Plan<'a> {
    let Plan { steps, left_out, .. } = to_pack(start);
    let mut read: HashMap<u32, Runs> = HashMap::new();
    for step in &steps {
        let all = read.entry(step.file.turn).or_default();
        *all = all.union(&step.pages);
    }
    let files = start.files.iter();
    let at_once: HashMap<u32, Runs> =
        files.filter_map(|file| Some((file.turn, in_few(file, read.get(&file.turn)?)?))).collect();
    let mut met = HashSet::new();
    let step = |step: Step<'a>| match at_once.get(&step.file.turn) {
        Some(pages) => met.insert(step.file.turn).then(|| Step { pages: pages.clone(), ..step }),
        None => Some(step),
    };
    let steps = steps.into_iter().filter_map(step).filter_map(|step| staying.leave(start, step));
    Plan { start, steps: together(steps), left_out }
}

/// Pages that were brought together for other programs.
#[derive(Debug, Default)]
pub(super) struct Staying(HashMap<Identity, Runs>);

/// A file, wherever it was traced: its file system, its number there, and when it was changed last.
type Identity = (Option<String>, u64, i64);

impl Staying {
    /// What the latest starts of relaid programs read, with what was taken along.
    pub(super) fn of(others: &[Known]) -> Self {
        let mut all = Staying::default();
        for start in others.iter().filter(|known| known.relaid).filter_map(|known| known.starts.last()) {
            for file in &start.files {
                let pages = all.0.entry(identity(start, file)).or_default();
                *pages = pages.union(in_few(file, &file.pages).as_ref().unwrap_or(&file.pages));
            }
        }
        all
    }

    /// What of a step does not stay; nothing where that is all of it.
    fn leave<'a>(&self, start: &Start, step: Step<'a>) -> Option<Step<'a>> {
        let Some(staying) = self.0.get(&identity(start, step.file)) else { return Some(step) };
        let pages = step.pages.without(staying);
        (!pages.is_empty()).then_some(Step { pages, ..step })
    }

    /// How many of a start's files stay, or parts of them.
    pub(super) fn files(&self, start: &Start, system: usize) -> usize {
        let here = start.files.iter().filter(|file| file.system == system);
        let stays = |file: &&TracedFile| {
            self.0
                .get(&identity(start, file))
                .is_some_and(|pages| !pages.intersection(&file.pages).is_empty())
        };
        here.filter(stays).count()
    }
}

fn identity(start: &Start, file: &TracedFile) -> Identity {
    (start.systems.get(file.system).and_then(|system| system.uuid.clone()), file.inode, file.changed)
}

/// Whether a program reads one of the files that a start reads.
pub fn shares(known: &Known, start: &Start) -> bool {
    let read: HashSet<Identity> = start.files.iter().map(|file| identity(start, file)).collect();
    let mut starts = known.starts.iter();
    starts.any(|other| other.files.iter().any(|file| read.contains(&identity(other, file))))
}

/// What is read of a file at about the same time in one step.
fn together<'a>(steps: impl Iterator<Item = Step<'a>>) -> Vec<Step<'a>> {
    let (mut done, mut group, mut pages) = (Vec::new(), IndexMap::<u32, Step<'a>>::new(), 0);
    for step in steps {
        pages += step.pages.pages();
        let own = group.entry(step.file.turn).or_insert_with(|| Step { pages: Runs::default(), ..step });
        own.pages = own.pages.union(&step.pages);
        if pages >= TOGETHER {
            done.extend(group.drain(..).map(|(_, step)| step));
            pages = 0;
        }
    }
    done.extend(group.into_values());
    done
}

/// From the first page to the last, or all but the widest gap, where the file needs no map then and what lies between is soon read.
fn in_few(file: &TracedFile, pages: &Runs) -> Option<Runs> {
    let ends = pages.iter().map(|(first, count)| first + count);
    let widest = pages.iter().skip(1).zip(ends).map(|((next, _), end)| next - end).max().unwrap_or(0);
    let few = [pages.joined(|_, _| true), pages.joined(|end, next| next - end < widest)];
    let is_cheap = |few: &Runs| few.pages() - pages.pages() <= CHEAP && pieces(file, few) <= WITHOUT_MAP;
    few.into_iter().find(is_cheap)
}

/// In how many pieces a file lies once some of its pages lie elsewhere: those, and what is left between.
fn pieces(file: &TracedFile, moved: &Runs) -> usize {
    let begins = moved.iter().next().is_some_and(|(first, _)| first == 0);
    let ends = moved.iter().last().is_some_and(|(first, count)| first + count >= file.size.div_ceil(PAGE));
    2 * moved.iter().count() + 1 - usize::from(begins) - usize::from(ends)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::file;

    #[test]
    fn what_is_read_of_a_file_at_about_one_time_lies_together() {
        let one = file(1, &[(0, 4, 0, 1), (100, 4, 2, 2), (200, 4, 4, 3), (900, 4, 6, 4)]);
        let (other, long) = (file(2, &[(7, 4, 1, 5)]), file(3, &[(0, TOGETHER, 5, 6)]));
        let systems = vec![];
        let start = Start { when: 0, source: crate::Source::Traced, systems, files: vec![one, other, long] };
        let steps = target_layout(&start, &Staying::default()).steps;
        let told: Vec<_> =
            steps.iter().map(|step| (step.file.inode, step.pages.iter().collect::<Vec<_>>())).collect();
        assert_eq!(told[0], (1, vec![(0, 4), (100, 4), (200, 4)]));
        assert_eq!(told[1..3], [(2, vec![(7, 4)]), (3, vec![(0, TOGETHER)])]);
        assert_eq!(told[3..], [(1, vec![(900, 4)])], "a later time");
    }

    #[test]
    fn what_lies_together_for_another_program_stays() {
        let started = |files| Start { when: 0, source: crate::Source::Traced, systems: vec![], files };
        let known = |relaid| Known {
            starts: vec![started(vec![file(1, &[(0, 8, 0, 1)]), file(2, &[(4, 4, 1, 1)])])],
            relaid,
            ..Known::new("/bin/other".into(), 0)
        };
        let start =
            started(vec![file(1, &[(0, 8, 0, 1)]), file(2, &[(0, 16, 1, 1)]), file(3, &[(0, 4, 2, 1)])]);
        let moved = |others: &[Known]| {
            let steps = target_layout(&start, &Staying::of(others)).steps;
            steps
                .iter()
                .map(|step| (step.file.inode, step.pages.iter().collect()))
                .collect::<Vec<(_, Vec<_>)>>()
        };
        assert_eq!(moved(&[known(true)]), [(2, vec![(0, 4), (8, 8)]), (3, vec![(0, 4)])]);
        assert_eq!(moved(&[known(false)]).len(), 3);
        assert_eq!(Staying::of(&[known(true)]).files(&start, 0), 2);
        assert!(
            shares(&known(false), &start) && !shares(&known(false), &started(vec![file(3, &[(0, 4, 2, 1)])]))
        );
    }

    #[test]
    fn what_was_taken_along_for_another_program_stays_too() {
        let started = |pieces: &[(u64, u64, u32, u64)]| Start {
            when: 0,
            source: crate::Source::Traced,
            systems: vec![],
            files: vec![file(1, pieces)],
        };
        let other = |pieces| Known {
            starts: vec![started(pieces)],
            relaid: true,
            ..Known::new("/bin/other".into(), 0)
        };
        let own = started(&[(4, 4, 0, 1)]);
        let moved = |pieces| target_layout(&own, &Staying::of(&[other(pieces)])).steps.len();
        assert_eq!(moved(&[(0, 4, 0, 1), (8, 4, 1, 1)]), 0, "the file was moved as a whole");
        assert_eq!(moved(&[(0, 4, 0, 1), (90, 4, 1, 1)]), 1);
    }

    #[test]
    fn small_gaps_are_taken_along_where_that_saves_a_map() {
        let runs = |runs: &[(u64, u64)]| runs.iter().copied().collect::<Runs>();
        let long = TracedFile { size: 100 * PAGE, ..file(1, &[(0, 1, 0, 1)]) };
        let few = |read| in_few(&long, &runs(read));
        assert_eq!(few(&[(10, 5), (20, 5), (36, 1)]), Some(runs(&[(10, 27)])));
        assert_eq!(few(&[(0, 5), (8, 5), (60, 5)]), Some(runs(&[(0, 13), (60, 5)])), "four pieces");
        assert_eq!(few(&[(1, 5), (8, 5), (60, 5)]), None, "five");
        assert_eq!(few(&[(1, 5), (8, 5), (60, 40)]), Some(runs(&[(1, 12), (60, 40)])), "up to its end");
        assert_eq!(few(&[(0, 5), (22, 5), (60, 5)]), None, "too much between");
    }
}
