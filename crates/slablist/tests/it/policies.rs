//! Each policy keeps what it promises: the fill of slabs, and the work of a single operation.

use slablist::{
    AnyReapPolicy, BoundedReap, EventCounts, ListShape, MinCapacity, NeverReap, NoProbe, ReapPolicy,
    ReapThresholds, SlabEvent, SlabProbe, SlabSet,
};

use crate::{random_numbers, scale_for_miri};

/// Fills with random keys, then removes most of them in random order; `each` sees the set after every operation.
fn churn_set<R: ReapPolicy, P: SlabProbe>(
    set: &mut SlabSet<u64, R, P>,
    mut each: impl FnMut(&mut SlabSet<u64, R, P>),
) {
    let keys: Vec<u64> = random_numbers(7).take(scale_for_miri(30_000)).collect();
    for key in &keys {
        set.insert(*key);
        each(set);
    }
    for key in keys.iter().skip(keys.len() / 20) {
        assert!(set.remove(key));
        each(set);
    }
    set.check().unwrap();
}

const SHAPE: ListShape = ListShape::new(32 * 8, 16, 16);

#[test]
fn old_policy_keeps_its_ratio() {
    let policy = MinCapacity { slabs: 70, index: 0 };
    let mut set = SlabSet::with_shape(SHAPE, policy, EventCounts::default());
    churn_set(&mut set, |set| {
        let s = set.occupancy();
        assert!(s.slabs < 4 || s.elements * 100 >= 70 * s.slabs * s.slab_capacity || s.saveable_slabs() == 0);
    });
    assert!(cfg!(miri) || set.probe().reaps > 0);
}

#[test]
fn old_policy_reaps_the_index_from_a_hundred_nodes_on() {
    if cfg!(miri) {
        return;
    }
    let mut set = SlabSet::with_shape(SHAPE, MinCapacity::default(), EventCounts::default());
    let mut onset = None;
    for key in random_numbers(3).take(60_000) {
        set.insert(key);
        if set.probe().index_reaps > 0 && onset.is_none() {
            onset = Some(set.probe().nodes_made);
        }
    }
    assert!(onset.is_some_and(|nodes| (99..=101).contains(&nodes)), "{onset:?}");
    let counts = set.probe();
    assert!(counts.index_reaps > 10, "{counts:?}");
    set.check().unwrap();
}

#[test]
fn new_policy_reaps_only_what_is_worth_it() {
    struct WorthwhileReaps;
    impl SlabProbe for WorthwhileReaps {
        fn event(&mut self, event: SlabEvent) {
            if let SlabEvent::Reaped { examined, saved, .. } = event {
                assert!(saved >= 10 && saved * 100 >= 30 * examined, "{event:?}");
            }
        }
    }
    let mut set = SlabSet::with_shape(SHAPE, ReapThresholds { slabs: 10, percent: 30 }, WorthwhileReaps);
    churn_set(&mut set, |set| {
        let s = set.occupancy();
        assert!(s.saveable_slabs() < 10 || s.saveable_slabs() * 100 < 30 * s.slabs);
    });
}

#[test]
fn never_frees_only_empty_slabs() {
    let mut set = SlabSet::with_shape(SHAPE, NeverReap, EventCounts::default());
    churn_set(&mut set, |_| {});
    let counts = set.probe();
    assert_eq!((counts.reaps, counts.shifted, counts.saved), (0, 0, 0));
}

/// Elements moved between slabs, and slabs made and freed, since it was last looked at.
#[derive(Default)]
struct MovedWork {
    moved: usize,
    slabs: usize,
}

impl SlabProbe for MovedWork {
    fn event(&mut self, event: SlabEvent) {
        match event {
            SlabEvent::Spilled { moved } | SlabEvent::Shifted { moved } | SlabEvent::Reaped { moved, .. } => {
                self.moved += moved
            }
            SlabEvent::SlabMade { .. } | SlabEvent::SlabFreed { .. } => self.slabs += 1,
            _ => {}
        }
    }
}

#[test]
fn bounded_work_is_bounded() {
    let mut worst = Vec::new();
    for n in [3_000, 30_000, 100_000] {
        let policy = BoundedReap::default();
        let mut set = SlabSet::with_shape(SHAPE, policy, MovedWork::default());
        let (mut moved, mut slabs) = (0, 0);
        let mut look = |set: &mut SlabSet<u64, BoundedReap, MovedWork>| {
            let work = std::mem::take(set.probe_mut());
            moved = moved.max(work.moved);
            slabs = slabs.max(work.slabs);
        };
        let keys: Vec<u64> = random_numbers(11).take(scale_for_miri(n)).collect();
        for key in &keys {
            set.insert(*key);
            look(&mut set);
        }
        for key in keys.iter().skip(keys.len() / 20) {
            set.remove(key);
            look(&mut set);
        }
        let bound = policy.worst_moves(set.occupancy().slab_capacity);
        assert!(moved <= bound, "{moved} elements moved by one operation, {bound} allowed");
        assert!(slabs <= policy.slabs + 6, "{slabs} slabs made or freed by one operation");
        worst.push(moved);
        set.check().unwrap();
    }
    assert!(cfg!(miri) || worst[2] <= 2 * worst[0], "the worst operation grows with the list: {worst:?}");
}

#[test]
fn bounded_work_reaches_its_target() {
    let mut set = SlabSet::with_shape(SHAPE, BoundedReap::default(), NoProbe);
    churn_set(&mut set, |_| {});
    let s = set.occupancy();
    assert!(s.elements * 100 >= 55 * s.slabs * s.slab_capacity || s.saveable_slabs() < 2, "{s:?}");
}

#[test]
fn a_reap_reaches_the_minimum() {
    let mut set = SlabSet::with_shape(SHAPE, NeverReap, EventCounts::default());
    random_numbers(5).take(scale_for_miri(20_000)).for_each(|key| _ = set.insert(key));
    let saveable = set.occupancy().saveable_slabs();
    assert_eq!(set.reap(), saveable);
    assert_eq!(set.occupancy().saveable_slabs(), 0);
    set.check().unwrap();
}

#[test]
fn policies_have_names() {
    for (text, policy) in [
        ("never", AnyReapPolicy::Never(NeverReap)),
        ("old", AnyReapPolicy::MinCapacity(MinCapacity { slabs: 70, index: 99 })),
        ("new", AnyReapPolicy::Thresholds(ReapThresholds { slabs: 30, percent: 30 })),
        ("new:40:30", AnyReapPolicy::Thresholds(ReapThresholds { slabs: 40, percent: 30 })),
        ("bounded:50:6", AnyReapPolicy::Bounded(BoundedReap { target: 50, slabs: 6 })),
    ] {
        assert_eq!(text.parse(), Ok(policy));
    }
    for wrong in ["", "nevr", "old:70", "old:700:1", "new:0:1", "bounded:60:4:1", "never:1:1"] {
        let error = wrong.parse::<AnyReapPolicy>().unwrap_err().to_string();
        assert!(error.starts_with("no reap policy"), "{error}");
    }
}

#[test]
fn a_policy_is_an_object_and_can_be_changed() {
    let mut set: SlabSet<u64, Box<dyn ReapPolicy>> = SlabSet::with_shape(SHAPE, Box::new(NeverReap), NoProbe);
    churn_set(&mut set, |_| {});
    let thin = set.occupancy();
    set.set_policy(Box::new(BoundedReap::default()));
    set.check().unwrap();
    assert!(set.occupancy().slabs < thin.slabs && set.occupancy().elements == thin.elements);
    assert_eq!(set.occupancy().saveable_slabs(), 0);
}
