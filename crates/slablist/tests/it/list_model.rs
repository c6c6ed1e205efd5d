//! Sequences of operations on the positional list, against `Vec`.

use proptest::prelude::*;
use slablist::{Policy, Shape};

use crate::list_ops::{Op, Subject};
use crate::scaled;

fn op() -> impl Strategy<Value = Op> {
    let at = 0..1_500_usize;
    let many = prop::collection::vec(any::<i32>(), 0..150);
    prop_oneof![
        20 => (at.clone(), any::<i32>()).prop_map(|(at, v)| Op::Insert(at, v)),
        5 => many.clone().prop_map(Op::PushBack),
        3 => any::<i32>().prop_map(Op::PushFront),
        16 => at.clone().prop_map(Op::Remove),
        4 => (at.clone(), any::<i32>()).prop_map(|(at, v)| Op::Replace(at, v)),
        2 => (at.clone(), at.clone()).prop_map(|(a, b)| Op::RemoveRange(a, b)),
        1 => (at.clone(), at.clone()).prop_map(|(a, b)| Op::Extract(a, b)),
        2 => many.prop_map(Op::Merge),
        2 => (at.clone(), at).prop_map(|(a, b)| Op::MapRange(a, b)),
        1 => Just(Op::Reverse),
        1 => Just(Op::Sort),
        1 => Just(Op::Reap),
        2 => (0..1_500_usize).prop_map(Op::Cursor),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: scaled(150) as u32, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn behaves_as_a_vec(
        policy in prop::sample::select(vec!["never", "old", "new:2:10", "bounded:75:5"]),
        bytes in 16..100_usize, fanout in 4..9_usize, small in 0..20_usize,
        ops in prop::collection::vec(op(), 1..scaled(300).max(12)),
    ) {
        let mut subject = Subject::new(Shape::new(bytes, fanout, small), policy.parse::<Policy>().unwrap());
        ops.into_iter().for_each(|op| subject.apply(op));
        subject.end();
    }
}
