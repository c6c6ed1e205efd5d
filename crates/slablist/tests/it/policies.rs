//! Each policy keeps what it promises: the fill of slabs, and the work of a single operation.

use slablist::{
    Bounded, Counts, Event, MinCapacity, Never, NoProbe, Policy, Probe, ReapPolicy, Shape, SlabSet,
    Thresholds,
};

use crate::{random, scaled};

/// Fills with random keys, then removes most of them in random order; `each` sees the set after every operation.
fn churn<R: ReapPolicy, P: Probe>(
    set: &mut SlabSet<u64, R, P>,
    mut each: impl FnMut(&mut SlabSet<u64, R, P>),
) {
    let keys: Vec<u64> = random(7).take(scaled(30_000)).collect();
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

const SHAPE: Shape = Shape::new(32 * 8, 16, 16);

#[test]
fn old_policy_keeps_its_ratio() {
    let policy = MinCapacity { slabs: 70, index: 0 };
    let mut set = SlabSet::with(SHAPE, policy, Counts::default());
    churn(&mut set, |set| {
        let s = set.state();
        assert!(s.slabs < 4 || s.elements * 100 >= 70 * s.slabs * s.slab_capacity || s.saveable() == 0);
    });
    assert!(cfg!(miri) || set.probe().reaps > 0);
}

#[test]
fn old_policy_reaps_the_index_from_a_hundred_nodes_on() {
    if cfg!(miri) {
        return;
    }
    let mut set = SlabSet::with(SHAPE, MinCapacity::default(), Counts::default());
    let mut onset = None;
    for key in random(3).take(60_000) {
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
    struct Worth;
    impl Probe for Worth {
        fn event(&mut self, event: Event) {
            if let Event::Reaped { examined, saved, .. } = event {
                assert!(saved >= 10 && saved * 100 >= 30 * examined, "{event:?}");
            }
        }
    }
    let mut set = SlabSet::with(SHAPE, Thresholds { slabs: 10, percent: 30 }, Worth);
    churn(&mut set, |set| {
        let s = set.state();
        assert!(s.saveable() < 10 || s.saveable() * 100 < 30 * s.slabs);
    });
}

#[test]
fn never_frees_only_empty_slabs() {
    let mut set = SlabSet::with(SHAPE, Never, Counts::default());
    churn(&mut set, |_| {});
    let counts = set.probe();
    assert_eq!((counts.reaps, counts.shifted, counts.saved), (0, 0, 0));
}

/// Elements moved between slabs, and slabs made and freed, since it was last looked at.
#[derive(Default)]
struct Work {
    moved: usize,
    slabs: usize,
}

impl Probe for Work {
    fn event(&mut self, event: Event) {
        match event {
            Event::Spilled { moved } | Event::Shifted { moved } | Event::Reaped { moved, .. } => {
                self.moved += moved
            }
            Event::SlabMade { .. } | Event::SlabFreed { .. } => self.slabs += 1,
            _ => {}
        }
    }
}

#[test]
fn bounded_work_is_bounded() {
    let mut worst = Vec::new();
    for n in [3_000, 30_000, 100_000] {
        let policy = Bounded::default();
        let mut set = SlabSet::with(SHAPE, policy, Work::default());
        let (mut moved, mut slabs) = (0, 0);
        let mut look = |set: &mut SlabSet<u64, Bounded, Work>| {
            let work = std::mem::take(set.probe_mut());
            moved = moved.max(work.moved);
            slabs = slabs.max(work.slabs);
        };
        let keys: Vec<u64> = random(11).take(scaled(n)).collect();
        for key in &keys {
            set.insert(*key);
            look(&mut set);
        }
        for key in keys.iter().skip(keys.len() / 20) {
            set.remove(key);
            look(&mut set);
        }
        let bound = policy.worst_moves(set.state().slab_capacity);
        assert!(moved <= bound, "{moved} elements moved by one operation, {bound} allowed");
        assert!(slabs <= policy.slabs + 6, "{slabs} slabs made or freed by one operation");
        worst.push(moved);
        set.check().unwrap();
    }
    assert!(cfg!(miri) || worst[2] <= 2 * worst[0], "the worst operation grows with the list: {worst:?}");
}

#[test]
fn bounded_work_reaches_its_target() {
    let mut set = SlabSet::with(SHAPE, Bounded::default(), NoProbe);
    churn(&mut set, |_| {});
    let s = set.state();
    assert!(s.elements * 100 >= 55 * s.slabs * s.slab_capacity || s.saveable() < 2, "{s:?}");
}

#[test]
fn a_reap_reaches_the_minimum() {
    let mut set = SlabSet::with(SHAPE, Never, Counts::default());
    random(5).take(scaled(20_000)).for_each(|key| _ = set.insert(key));
    let saveable = set.state().saveable();
    assert_eq!(set.reap(), saveable);
    assert_eq!(set.state().saveable(), 0);
    set.check().unwrap();
}

#[test]
fn policies_have_names() {
    for (text, policy) in [
        ("never", Policy::Never(Never)),
        ("old", Policy::MinCapacity(MinCapacity { slabs: 70, index: 99 })),
        ("new", Policy::Thresholds(Thresholds { slabs: 30, percent: 30 })),
        ("new:40:30", Policy::Thresholds(Thresholds { slabs: 40, percent: 30 })),
        ("bounded:50:6", Policy::Bounded(Bounded { target: 50, slabs: 6 })),
    ] {
        assert_eq!(text.parse(), Ok(policy));
    }
    for wrong in ["", "nevr", "old:70", "old:700:1", "new:0:1", "bounded:60:4:1", "never:1:1"] {
        let error = wrong.parse::<Policy>().unwrap_err().to_string();
        assert!(error.starts_with("no reap policy"), "{error}");
    }
}

#[test]
fn a_policy_is_an_object_and_can_be_changed() {
    let mut set: SlabSet<u64, Box<dyn ReapPolicy>> = SlabSet::with(SHAPE, Box::new(Never), NoProbe);
    churn(&mut set, |_| {});
    let thin = set.state();
    set.set_policy(Box::new(Bounded::default()));
    set.check().unwrap();
    assert!(set.state().slabs < thin.slabs && set.state().elements == thin.elements);
    assert_eq!(set.state().saveable(), 0);
}
