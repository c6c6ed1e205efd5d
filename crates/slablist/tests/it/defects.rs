//! The nine defects found in the original at its last commit (field notes, 1.3), each as a test here.

use std::cmp::Ordering;

use crate::scale_for_miri;
use slablist::{SlabList, SlabSet};

fn rising_set(n: usize) -> SlabSet<u64> {
    let mut set = SlabSet::new();
    (0..n as u64).for_each(|key| assert!(set.insert(key)));
    set
}

/// Original: a segmentation fault from 5,000 elements on.
#[test]
fn get_by_position_once_there_is_an_index() {
    let set = rising_set(scale_for_miri(100_000));
    assert!(cfg!(miri) || set.index_levels() > 1);
    for at in (0..set.len()).step_by(97) {
        assert_eq!(set.get(at), Some(&(at as u64)));
    }
    assert_eq!(set.get(set.len()), None);
}

/// Original: the callback ran 0 of 5,000 times.
#[test]
fn destroy_callback_sees_every_element_of_slabs() {
    let mut set = rising_set(5_000);
    let mut seen = 0;
    set.clear(|keys| seen += keys.len());
    assert_eq!((seen, set.len()), (5_000, 0));
    set.check().unwrap();
}

/// Original: the callback ran for 96 of 3,000, and the count stayed 96 too high.
#[test]
fn remove_range_callback_and_count() {
    let mut set = rising_set(5_000);
    let mut seen = Vec::new();
    assert_eq!(set.remove_range(1_000..4_000, |keys| seen.extend_from_slice(keys)), 3_000);
    assert_eq!(seen, (1_000..4_000).collect::<Vec<u64>>());
    assert_eq!((set.len(), set.iter().count()), (2_000, 2_000));
    set.check().unwrap();
}

/// Original: two different lists compared equal, since one was compared with itself.
#[test]
fn compare_of_two_different_lists() {
    let (a, mut b) = (rising_set(1_000), rising_set(1_000));
    assert_eq!(a.compare(&b), Ordering::Equal);
    b.remove(&500);
    assert_eq!(a.compare(&b), Ordering::Less);
    assert_ne!(a, b);
    let (a, b) = (SlabList::from_iter([1, 2, 4]), SlabList::from_iter([1, 2, 3]));
    assert_eq!(a.compare(&b), Ordering::Greater);
}

/// Original: a segmentation fault where the range lies in one slab.
#[test]
fn map_range_inside_one_slab() {
    let mut list: SlabList<u64> = (0..1_000).collect();
    let mut calls = 0;
    list.map_range(10..15, |part| {
        calls += 1;
        part.iter_mut().for_each(|value| *value += 10_000);
    });
    assert_eq!(calls, 1);
    let expected = (0..1_000).map(|v| if (10..15).contains(&v) { v + 10_000 } else { v });
    assert!(list.iter().copied().eq(expected));
}

/// Original: 10 elements where 11 are in the range.
#[test]
fn fold_left_range_inside_one_slab() {
    let set = rising_set(1_000);
    let back: Vec<u64> = set.range_slabs(20..=30).rev().flat_map(|keys| keys.iter().rev().copied()).collect();
    assert_eq!(back, (20..=30).rev().collect::<Vec<u64>>());
    assert_eq!(set.range(20..=30).rev().count(), 11);
}

/// A key of which only a part is compared.
#[derive(Debug, Clone, Copy)]
struct TaggedKey(u32, &'static str);

impl PartialEq for TaggedKey {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}
impl Eq for TaggedKey {}
impl PartialOrd for TaggedKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for TaggedKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }
}

/// Original: replacing was ignored in a small list.
#[test]
fn replace_in_a_small_list() {
    let mut set: SlabSet<TaggedKey> = (0..10).map(|n| TaggedKey(n, "old")).collect();
    assert!(set.is_small());
    assert_eq!(set.replace(TaggedKey(4, "new")).map(|old| old.1), Some("old"));
    assert_eq!(set.find(&TaggedKey(4, "")).map(|key| key.1), Some("new"));
    assert_eq!(set.len(), 10);
    assert!(!set.insert(TaggedKey(4, "third")));
    assert_eq!(set.find(&TaggedKey(4, "")).map(|key| key.1), Some("new"));
}

/// Original: the count grew by one with each replacement in a slab.
#[test]
fn replace_in_a_slab_list_keeps_the_count() {
    let mut set: SlabSet<TaggedKey> = (0..5_000).map(|n| TaggedKey(n, "old")).collect();
    assert!(!set.is_small());
    for n in (0..5_000).step_by(7) {
        assert_eq!(set.replace(TaggedKey(n, "new")).map(|old| old.1), Some("old"));
    }
    assert_eq!((set.len(), set.iter().count()), (5_000, 5_000));
    assert_eq!(set.replace(TaggedKey(9_999, "more")).map(|old| old.1), None);
    assert_eq!(set.len(), 5_001);
    set.check().unwrap();
}

/// Original: 74,670 of 100,000 elements were left when each value was there twice.
#[test]
fn sort_with_each_value_twice() {
    let n = scale_for_miri(50_000) as u64;
    let mut list: SlabList<u64> = (0..n).rev().chain(0..n).collect();
    list.sort();
    assert_eq!(list.slabs().map(<[u64]>::len).sum::<usize>(), 2 * n as usize);
    assert!(list.iter().copied().eq((0..n).flat_map(|value| [value, value])));
    list.check().unwrap();
    assert_eq!(list.to_set().len(), n as usize);
}
