//! What is moved, in which order: as it is needed, but with few pieces a file. A file of more than four has its map in a block of
//! its own, to which the arm has to go before it is read.

use std::collections::{HashMap, HashSet};

use perflab_model::io::Runs;

use crate::plan::{Order, Plan, Step, plan};
use crate::trace::Start;

/// Pages that a disk reads in the time of a seek, which a block with a map costs.
const CHEAP: u64 = 80;

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
    Plan { start, steps: steps.into_iter().filter_map(step).collect(), left_out }
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

    #[test]
    fn small_gaps_are_taken_along_and_large_ones_are_not() {
        let runs = |runs: &[(u64, u64)]| runs.iter().copied().collect::<Runs>();
        assert_eq!(in_one(&runs(&[(10, 5), (40, 5), (100, 1)])), Some(runs(&[(10, 91)])));
        assert_eq!(in_one(&runs(&[(0, 5), (86, 5)])), None);
        assert_eq!(in_one(&runs(&[])), None);
    }
}
