//! Sequences of operations, against `BTreeSet`, under every policy and in shapes so small that all paths are taken.

use proptest::prelude::*;
use slablist::{AnyReapPolicy, EventCounts, ListShape};

use crate::scale_for_miri;
use crate::set_ops::{POLICIES, SetOp, SetSubject, TestedSet};

fn any_set_op(keys: u16) -> impl Strategy<Value = SetOp> {
    let key = 0..keys;
    prop_oneof![
        20 => key.clone().prop_map(SetOp::Insert),
        4 => (key.clone(), 1..300_u16, any::<bool>()).prop_map(|(from, n, up)| SetOp::Run(from, n, up)),
        3 => key.clone().prop_map(SetOp::Replace),
        16 => key.clone().prop_map(SetOp::Remove),
        2 => (key.clone(), key.clone()).prop_map(|(a, b)| SetOp::RemoveRange(a, b)),
        1 => (key.clone(), key.clone()).prop_map(|(a, b)| SetOp::Extract(a, b)),
        2 => prop::collection::vec(key, 0..200).prop_map(SetOp::Merge),
        2 => Just(SetOp::PopFirst),
        2 => Just(SetOp::PopLast),
        1 => Just(SetOp::Reap),
        1 => Just(SetOp::Copy),
        1 => Just(SetOp::Clear),
        2 => (0..keys).prop_map(SetOp::Cursor),
        2 => any::<bool>().prop_map(SetOp::Step),
        1 => (0..POLICIES.len()).prop_map(SetOp::Policy),
    ]
}

fn any_policy() -> impl Strategy<Value = AnyReapPolicy> {
    prop::sample::select(&POLICIES[..]).prop_map(|text| text.parse().unwrap())
}

fn any_shape() -> impl Strategy<Value = ListShape> {
    (8..80_usize, 4..9_usize, 0..20_usize)
        .prop_map(|(bytes, fanout, small)| ListShape::new(bytes, fanout, small))
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: scale_for_miri(200) as u32, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn behaves_as_a_btreeset(
        policy in any_policy(), shape in any_shape(), ops in prop::collection::vec(any_set_op(2_000), 1..scale_for_miri(300).max(12)),
    ) {
        let mut subject = SetSubject::new(shape, policy);
        for (n, op) in ops.into_iter().enumerate() {
            subject.apply(op);
            if n % 8 == 0 {
                subject.check_readers((n * 37 % 2_000) as u16);
            }
        }
        subject.check_all_readers();
    }

    #[test]
    fn iterators_meet_in_the_middle(n in 0..600_u16, from in 0..600_u16, to in 0..600_u16, front in any::<Vec<bool>>()) {
        let mut set = TestedSet::with_shape(ListShape::new(16, 4, 0), "never".parse().unwrap(), EventCounts::default());
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
