//! Sequences of operations, against `BTreeSet`, under every policy and in shapes so small that all paths are taken.

use proptest::prelude::*;
use slablist::{Counts, Policy, Shape};

use crate::scaled;
use crate::set_ops::{Op, POLICIES, Set, Subject};

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
        2 => (0..keys).prop_map(Op::Cursor),
        2 => any::<bool>().prop_map(Op::Step),
        1 => (0..POLICIES.len()).prop_map(Op::Policy),
    ]
}

fn policy() -> impl Strategy<Value = Policy> {
    prop::sample::select(&POLICIES[..]).prop_map(|text| text.parse().unwrap())
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
        let mut subject = Subject::new(shape, policy);
        for (n, op) in ops.into_iter().enumerate() {
            subject.apply(op);
            if n % 8 == 0 {
                subject.same((n * 37 % 2_000) as u16);
            }
        }
        subject.end();
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
