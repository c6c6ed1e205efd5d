//! Sequences of operations, against `BTreeSet`, under every policy and in shapes so small that all paths are taken.

use std::collections::BTreeSet;

use proptest::prelude::*;
use slablist::{Counts, Policy, Shape, SlabSet};

use crate::scaled;

#[derive(Debug, Clone)]
enum Op {
    Insert(u16),
    Run(u16, u16, bool),
    Replace(u16),
    Remove(u16),
    RemoveRange(u16, u16),
    Extract(u16, u16),
    Merge(Vec<u16>),
    PopFirst,
    PopLast,
    Reap,
    Copy,
    Clear,
}

fn op(keys: u16) -> impl Strategy<Value = Op> {
    let key = 0..keys;
    prop_oneof![
        20 => key.clone().prop_map(Op::Insert),
        4 => (key.clone(), 1..300_u16, any::<bool>()).prop_map(|(from, n, up)| Op::Run(from, n, up)),
        3 => key.clone().prop_map(Op::Replace),
        16 => key.clone().prop_map(Op::Remove),
        2 => (key.clone(), key.clone()).prop_map(|(a, b)| Op::RemoveRange(a, b)),
        1 => (key.clone(), key.clone()).prop_map(|(a, b)| Op::Extract(a, b)),
        2 => prop::collection::vec(key, 0..200).prop_map(Op::Merge),
        2 => Just(Op::PopFirst),
        2 => Just(Op::PopLast),
        1 => Just(Op::Reap),
        1 => Just(Op::Copy),
        1 => Just(Op::Clear),
    ]
}

type Set = SlabSet<u16, Policy, Counts>;

fn run(from: u16, n: u16, up: bool) -> Vec<u16> {
    let keys = from..from.saturating_add(n);
    if up { keys.collect() } else { keys.rev().collect() }
}

fn apply(set: &mut Set, model: &mut BTreeSet<u16>, op: Op) {
    match op {
        Op::Insert(key) => assert_eq!(set.insert(key), model.insert(key)),
        Op::Run(from, n, up) => {
            run(from, n, up).into_iter().for_each(|key| assert_eq!(set.insert(key), model.insert(key)));
        }
        Op::Replace(key) => assert_eq!(set.replace(key), model.replace(key)),
        Op::Remove(key) => assert_eq!(set.remove(&key), model.remove(&key)),
        Op::RemoveRange(a, b) => {
            let (a, b) = (a.min(b), a.max(b));
            let (mut seen, gone) = (Vec::new(), model.range(a..b).copied().collect::<Vec<_>>());
            assert_eq!(set.remove_range(a..b, |keys| seen.extend_from_slice(keys)), gone.len());
            assert_eq!(seen, gone);
            gone.iter().for_each(|key| assert!(model.remove(key)));
        }
        Op::Extract(a, b) => {
            let (a, b) = (a.min(b), a.max(b));
            let gone = model.range(a..=b).copied().collect::<Vec<_>>();
            let out = set.extract(a..=b);
            out.check().unwrap();
            assert!(out.iter().eq(&gone));
            gone.iter().for_each(|key| assert!(model.remove(key)));
        }
        Op::Merge(keys) => {
            let other: SlabSet<u16> = keys.iter().copied().collect();
            let before = model.len();
            model.extend(keys);
            assert_eq!(set.merge(&other), model.len() - before);
        }
        Op::PopFirst => assert_eq!(set.pop_first(), model.pop_first()),
        Op::PopLast => assert_eq!(set.pop_last(), model.pop_last()),
        Op::Reap => {
            set.reap();
            assert_eq!(set.state().saveable(), 0);
        }
        Op::Copy => {
            let copy = set.clone();
            copy.check().unwrap();
            assert_eq!(&copy, set);
        }
        Op::Clear => {
            set.clear(|_| {});
            model.clear();
        }
    }
}

fn same(set: &Set, model: &BTreeSet<u16>, probe: u16) {
    set.check().unwrap();
    assert_eq!(set.len(), model.len());
    assert!(set.iter().eq(model.iter()));
    assert!(set.iter().rev().eq(model.iter().rev()));
    assert_eq!((set.first(), set.last()), (model.first(), model.last()));
    assert_eq!(set.contains(&probe), model.contains(&probe));
    assert_eq!(set.after(&probe), model.range(probe + 1..).next());
    assert_eq!(set.before(&probe), model.range(..probe).next_back());
    assert!(set.range(probe..).eq(model.range(probe..)));
    assert!(set.range(..=probe).rev().eq(model.range(..=probe).rev()));
    assert_eq!(set.position(&probe).unwrap_or_else(|at| at), model.range(..probe).count());
    assert_eq!(set.get(usize::from(probe)), model.iter().nth(usize::from(probe)));
}

fn policy() -> impl Strategy<Value = Policy> {
    prop::sample::select(vec![
        "never",
        "old",
        "old:90:99",
        "new",
        "new:2:10",
        "bounded",
        "bounded:90:8",
        "bounded:75:2",
    ])
    .prop_map(|text| text.parse().unwrap())
}

fn shape() -> impl Strategy<Value = Shape> {
    (8..80_usize, 4..9_usize, 0..20_usize).prop_map(|(bytes, fanout, small)| Shape::new(bytes, fanout, small))
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: scaled(200) as u32, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn behaves_as_a_btreeset(
        policy in policy(), shape in shape(), ops in prop::collection::vec(op(2_000), 1..scaled(300).max(12)),
    ) {
        let (mut set, mut model) = (Set::with(shape, policy, Counts::default()), BTreeSet::new());
        for (n, op) in ops.into_iter().enumerate() {
            apply(&mut set, &mut model, op);
            set.check().unwrap();
            if n % 8 == 0 {
                same(&set, &model, (n * 37 % 2_000) as u16);
            }
        }
        same(&set, &model, 1_000);
        let counts = *set.probe();
        prop_assert_eq!(counts.made - counts.freed, set.state().slabs as u64);
        prop_assert_eq!(counts.nodes_made + 1 - counts.nodes_freed, set.state().nodes as u64);
        prop_assert!(set.into_iter().eq(model));
    }

    #[test]
    fn iterators_meet_in_the_middle(n in 0..600_u16, from in 0..600_u16, to in 0..600_u16, front in any::<Vec<bool>>()) {
        let mut set = Set::with(Shape::new(16, 4, 0), "never".parse().unwrap(), Counts::default());
        (0..n).for_each(|key| _ = set.insert(key));
        let (from, to) = (from.min(to), from.max(to));
        let (mut ours, mut theirs) = (set.range(from..to), (from..to.min(n).max(from)).collect::<Vec<_>>().into_iter());
        for front in front {
            prop_assert_eq!(ours.len(), theirs.len());
            let (a, b) = if front { (ours.next(), theirs.next()) } else { (ours.next_back(), theirs.next_back()) };
            prop_assert_eq!(a.copied(), b);
        }
        prop_assert!(ours.copied().eq(theirs));
    }
}
