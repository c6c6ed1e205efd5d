//! Where index nodes are brought together, what was in different ones becomes neighbours.

use std::cell::Cell;
use std::collections::BTreeSet;

use slablist::{
    EventCounts, ListShape, MinCapacity, NoProbe, Occupancy, ReapDecision, ReapPolicy, SlabEvent, SlabList,
    SlabProbe, SlabSet, SlabWork,
};

use crate::{random_numbers, scale_for_miri};

/// Four nodes of four slabs of eight; the index is reaped at eleven slabs, the slabs are not.
const SHAPE: ListShape = ListShape::new(8 * 8, 4, 0);
const INDEX: MinCapacity = MinCapacity { slabs: 0, index: 70 };
/// What leaves one element in slabs 3 and 4, which two nodes have at the seam, and frees five others.
const REMOVED: [std::ops::Range<u64>; 6] = [25..32, 32..39, 8..16, 48..56, 64..80, 96..104];

/// A set that has just reaped its index.
fn set_after_index_reap<R: ReapPolicy, P: SlabProbe>(policy: R, probe: P) -> SlabSet<u64, R, P> {
    let mut set = SlabSet::with_shape(SHAPE, policy, probe);
    (0..128).for_each(|key| assert!(set.insert(key)));
    assert_eq!((set.occupancy().slabs, set.occupancy().nodes), (16, 4));
    for keys in REMOVED {
        assert_eq!(set.occupancy().nodes, 4);
        set.remove_range(keys, |_| {});
        set.check().unwrap();
    }
    set
}

fn kept_keys() -> impl Iterator<Item = u64> {
    (0..128).filter(|key| !REMOVED.iter().any(|keys| keys.contains(key)))
}

#[test]
fn thin_slabs_of_two_nodes_become_one_when_the_index_is_reaped() {
    let set = set_after_index_reap(INDEX, EventCounts::default());
    assert!(set.iter().copied().eq(kept_keys()) && kept_keys().all(|key| set.contains(&key)));
    assert!(set.slabs().any(|slab| slab == [24, 39]));
    assert_eq!((set.len(), set.occupancy().slabs, set.occupancy().nodes), (kept_keys().count(), 10, 3));
    let counts = set.probe();
    assert_eq!((counts.index_reaps, counts.index_saved, counts.nodes_freed), (1, 1, 1));
    assert_eq!((counts.shifted, counts.reaps, counts.saved, counts.freed), (1, 0, 0, 6));
}

#[test]
fn positions_stay_as_they_are_when_the_index_is_reaped() {
    let mut list: SlabList<u64, _, _> = SlabList::with_shape(SHAPE, INDEX, EventCounts::default());
    (0..128).for_each(|value| list.push_back(value));
    let mut removed = REMOVED;
    removed.sort_by_key(|values| std::cmp::Reverse(values.start));
    for values in removed {
        list.remove_range(values.start as usize..values.end as usize, |_| {});
        list.check().unwrap();
    }
    assert_eq!((list.probe().index_reaps, list.probe().shifted), (1, 1));
    assert!(list.iter().copied().eq(kept_keys()));
    assert!(kept_keys().enumerate().all(|(at, value)| list.get(at) == Some(&value)));
}

/// What was told since the last reap began.
#[derive(Default)]
struct ReapLog(Vec<String>);

impl SlabProbe for ReapLog {
    fn begin(&mut self, work: SlabWork) {
        if matches!(work, SlabWork::Reap { .. }) {
            self.0.clear();
        }
        self.0.push(format!("{work:?}"));
    }
    fn event(&mut self, event: SlabEvent) {
        self.0.push(format!("{event:?}"));
    }
}

#[test]
fn a_reap_of_the_index_tells_of_the_slabs_that_it_joins() {
    let set = set_after_index_reap(INDEX, ReapLog::default());
    let told = [
        "Reap { level: 1 }",
        "Shift",
        "SlabFreed { slabs: 10 }",
        "Shifted { moved: 1 }",
        "NodeFreed { nodes: 3 }",
        "Reaped { level: 1, examined: 4, saved: 1, moved: 10 }",
    ];
    assert_eq!(set.probe().0, told);
}

/// As that policy, for lists whose removals join nothing.
struct WithoutMerging;

impl ReapPolicy for WithoutMerging {
    fn decide(&self, state: &Occupancy) -> ReapDecision {
        INDEX.decide(state)
    }
    fn merges_neighbours(&self) -> bool {
        false
    }
}

#[test]
fn slabs_stay_apart_when_the_index_is_reaped_where_removals_join_none() {
    let set = set_after_index_reap(WithoutMerging, EventCounts::default());
    assert_eq!((set.probe().index_reaps, set.probe().shifted), (1, 0));
    assert_eq!((set.occupancy().slabs, set.occupancy().nodes), (11, 3));
    assert!(set.iter().copied().eq(kept_keys()));
}

/// Reaps the index after every so many changes.
struct PeriodicIndexReap(u32, Cell<u32>);

impl ReapPolicy for PeriodicIndexReap {
    fn decide(&self, _: &Occupancy) -> ReapDecision {
        self.1.set(self.1.get() + 1);
        if self.1.get().is_multiple_of(self.0) { ReapDecision::Index } else { ReapDecision::Leave }
    }
}

#[test]
fn neighbours_hold_half_a_slab_however_often_the_index_is_reaped() {
    for (seed, every) in [1, 2, 5, 17, 60].into_iter().enumerate() {
        let mut set = SlabSet::with_shape(SHAPE, PeriodicIndexReap(every, Cell::new(0)), NoProbe);
        let mut model = BTreeSet::new();
        for (turn, word) in random_numbers(seed as u64).take(scale_for_miri(5_000)).enumerate() {
            let (key, grows) = (word >> 55, turn / 500 % 2 == 0);
            let same = if grows == (word % 4 > 0) {
                set.insert(key) == model.insert(key)
            } else {
                set.remove(&key) == model.remove(&key)
            };
            assert!(same, "{key}");
            set.check().unwrap();
        }
        assert!(set.iter().eq(&model));
    }
}
