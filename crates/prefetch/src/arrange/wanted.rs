//! What is moved, in which order: as it is needed, but with few pieces a file. A file of more than four has its map in a block of
//! its own, to which the arm has to go before it is read.

use std::collections::{HashMap, HashSet};

use indexmap::IndexMap;
use perflab_model::io::Runs;

use crate::plan::{Order, Plan, Step, plan};
use crate::trace::Start;

/// Pages that nobody reads, and that are taken along so that a file needs no block with a map. As many as a disk reads in the time
/// of a seek would be too many: such blocks lie together.
const CHEAP: u64 = 16;
/// Pages within which what is read of a file is put together, in the order of its pages: a program that reads beside does not
/// notice the 35 ms that a disk takes for them, and the file is in fewer pieces.
const TOGETHER: u64 = 512;

/// Everything that a start reads, in the order in which it is needed: a file in one piece, when the first of it is, where
/// that brings little along that nobody reads.
pub(super) fn wanted<'a>(start: &'a Start) -> Plan<'a> {
    let Plan { steps, left_out, .. } = plan(start, Order::Access, u64::MAX);
    let mut read: HashMap<u32, Runs> = HashMap::new();
    for step in &steps {
        let all = read.entry(step.file.turn).or_default();
        *all = all.union(&step.pages);
    }
    let whole: HashMap<u32, Runs> =
        read.iter().filter_map(|(file, pages)| Some((*file, in_one(pages)?))).collect();
    let mut met = HashSet::new();
    let step = |step: Step<'a>| match whole.get(&step.file.turn) {
        Some(pages) => met.insert(step.file.turn).then(|| Step { pages: pages.clone(), ..step }),
        None => Some(step),
    };
    Plan { start, steps: together(steps.into_iter().filter_map(step)), left_out }
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

/// From the first page to the last, where what lies between is soon read.
fn in_one(pages: &Runs) -> Option<Runs> {
    let (first, last) = (pages.iter().next()?, pages.iter().last()?);
    let count = last.0 + last.1 - first.0;
    (count - pages.pages() <= CHEAP).then(|| [(first.0, count)].into_iter().collect())
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
        let steps = wanted(&start).steps;
        let told: Vec<_> =
            steps.iter().map(|step| (step.file.inode, step.pages.iter().collect::<Vec<_>>())).collect();
        assert_eq!(told[0], (1, vec![(0, 4), (100, 4), (200, 4)]));
        assert_eq!(told[1..3], [(2, vec![(7, 4)]), (3, vec![(0, TOGETHER)])]);
        assert_eq!(told[3..], [(1, vec![(900, 4)])], "a later time");
    }

    #[test]
    fn small_gaps_are_taken_along_and_large_ones_are_not() {
        let runs = |runs: &[(u64, u64)]| runs.iter().copied().collect::<Runs>();
        assert_eq!(in_one(&runs(&[(10, 5), (20, 5), (36, 1)])), Some(runs(&[(10, 27)])));
        assert_eq!(in_one(&runs(&[(0, 5), (22, 5)])), None);
        assert_eq!(in_one(&runs(&[])), None);
    }
}
