//! A set of pages as runs, with union, intersection, difference: what a file has in memory, what was needed of it,
//! what is to be read.

use serde::{Deserialize, Deserializer, Serialize};

/// A set of numbers of pages, as runs (first, count) that neither touch nor overlap, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct PageSet(Vec<(u64, u64)>);

/// No file or disk has pages from this number on: of the smallest size of a page they are 8 EiB.
const END: u64 = 1 << 51;

impl<'de> Deserialize<'de> for PageSet {
    /// From runs that somebody may have changed: those that no file can have are left out, so that sums of what is left fit.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Vec::<(u64, u64)>::deserialize(deserializer)?.into_iter().collect())
    }
}

impl PageSet {
    /// The runs, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (u64, u64)> + '_ {
        self.0.iter().copied()
    }

    /// How many pages.
    pub fn page_count(&self) -> u64 {
        self.0.iter().map(|(_, count)| count).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a page is among them. O(log n).
    pub fn contains(&self, page: u64) -> bool {
        let at = self.0.partition_point(|(first, _)| *first <= page);
        at.checked_sub(1).and_then(|at| self.0.get(at)).is_some_and(|(first, count)| page - first < *count)
    }

    /// Pages that are in either.
    #[must_use]
    pub fn union(&self, other: &PageSet) -> PageSet {
        self.iter().chain(other.iter()).collect()
    }

    /// Pages that are in both.
    #[must_use]
    pub fn intersection(&self, other: &PageSet) -> PageSet {
        let mut both = Vec::new();
        let (mut ours, mut theirs) = (self.iter().peekable(), other.iter().peekable());
        while let (Some(&(a, m)), Some(&(b, n))) = (ours.peek(), theirs.peek()) {
            let (first, end) = (a.max(b), (a + m).min(b + n));
            if first < end {
                both.push((first, end - first));
            }
            if a + m <= b + n {
                ours.next().is_some()
            } else {
                theirs.next().is_some()
            };
        }
        PageSet(both)
    }

    /// Pages that are not in `other`.
    #[must_use]
    pub fn difference(&self, other: &PageSet) -> PageSet {
        let mut rest = Vec::new();
        for (first, count) in self.iter() {
            let (mut at, end) = (first, first + count);
            let from = other.0.partition_point(|(first, count)| first + count <= at);
            for (hole, length) in other.0.iter().skip(from).copied().take_while(|(hole, _)| *hole < end) {
                if hole > at {
                    rest.push((at, hole - at));
                }
                at = at.max(hole + length);
            }
            if at < end {
                rest.push((at, end - at));
            }
        }
        PageSet(rest)
    }

    /// The same with gaps filled where `joins` says so of the end of one run and the beginning of the next.
    #[must_use]
    pub fn fill_gaps(&self, joins: impl Fn(u64, u64) -> bool) -> PageSet {
        let mut all: Vec<(u64, u64)> = Vec::new();
        for (first, count) in self.iter() {
            match all.last_mut() {
                Some((start, length)) if joins(*start + *length, first) => *length = first + count - *start,
                _ => all.push((first, count)),
            }
        }
        PageSet(all)
    }

    /// Pages below `end`.
    #[must_use]
    pub fn pages_below(&self, end: u64) -> PageSet {
        self.intersection(&PageSet(vec![(0, end)]))
    }
}

impl FromIterator<(u64, u64)> for PageSet {
    /// From runs in any order, which may touch and overlap; those that reach beyond 2^51 are left out.
    fn from_iter<I: IntoIterator<Item = (u64, u64)>>(runs: I) -> Self {
        let sound = |(first, count): &(u64, u64)| {
            *count > 0 && first.checked_add(*count).is_some_and(|end| end <= END)
        };
        let mut sorted: Vec<(u64, u64)> = runs.into_iter().filter(sound).collect();
        sorted.sort_unstable();
        let mut all: Vec<(u64, u64)> = Vec::new();
        for (first, count) in sorted {
            match all.last_mut() {
                Some((start, length)) if first <= *start + *length => {
                    *length = (*length).max(first + count - *start);
                }
                _ => all.push((first, count)),
            }
        }
        PageSet(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page_set(list: &[(u64, u64)]) -> PageSet {
        list.iter().copied().collect()
    }

    #[test]
    fn sets_are_what_sets_are() {
        let (a, b) = (page_set(&[(0, 4), (10, 4), (2, 3), (5, 1)]), page_set(&[(3, 8), (13, 9)]));
        assert_eq!(a, page_set(&[(0, 6), (10, 4)]));
        assert_eq!(a.intersection(&b), page_set(&[(3, 3), (10, 1), (13, 1)]));
        assert_eq!(a.union(&b), page_set(&[(0, 22)]));
        assert_eq!(a.difference(&b), page_set(&[(0, 3), (11, 2)]));
        assert_eq!((a.page_count(), a.contains(5), a.contains(6)), (10, true, false));
        assert_eq!(a.fill_gaps(|end, next| next - end <= 3), a);
        assert_eq!(a.fill_gaps(|end, next| next - end <= 4), page_set(&[(0, 14)]));
        assert_eq!(a.pages_below(11), page_set(&[(0, 6), (10, 1)]));
        assert_eq!(page_set(&[(u64::MAX, 1), (1, u64::MAX), (7, 0)]), PageSet::default());
    }

    #[test]
    fn a_stored_set_that_was_changed_is_a_set_again() {
        let read = |text: &str| serde_json::from_str::<PageSet>(text).unwrap();
        assert_eq!(read("[[9,3],[0,4],[2,3]]"), page_set(&[(0, 5), (9, 3)]));
        assert_eq!(read("[[0,18446744073709551615],[5,18446744073709551615],[7,1]]"), page_set(&[(7, 1)]));
        assert_eq!(serde_json::to_string(&page_set(&[(7, 1)])).unwrap(), "[[7,1]]");
    }

    #[test]
    fn set_operations_agree_with_sets_of_numbers() {
        use std::collections::BTreeSet;
        let numbers = |runs: &PageSet| runs.iter().flat_map(|(a, n)| a..a + n).collect::<BTreeSet<u64>>();
        // A multiplicative walk through all small shapes.
        let mut state = 1_u64;
        for _ in 0..500 {
            let mut set = || -> PageSet {
                (0..6)
                    .map(|_| {
                        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                        (state >> 33 & 31, state >> 40 & 7)
                    })
                    .collect()
            };
            let (a, b) = (set(), set());
            let (x, y) = (numbers(&a), numbers(&b));
            assert_eq!(numbers(&a.union(&b)), &x | &y);
            assert_eq!(numbers(&a.intersection(&b)), &x & &y);
            assert_eq!(numbers(&a.difference(&b)), &x - &y);
        }
    }
}
