//! Sequences of operations on the positional list, against `Vec`.

use proptest::prelude::*;
use slablist::{AnyReapPolicy, ListShape};

use crate::list_ops::{ListOp, ListSubject};
use crate::scale_for_miri;

fn any_list_op() -> impl Strategy<Value = ListOp> {
    let at = 0..1_500_usize;
    let many = prop::collection::vec(any::<i32>(), 0..150);
    prop_oneof![
        20 => (at.clone(), any::<i32>()).prop_map(|(at, v)| ListOp::Insert(at, v)),
        5 => many.clone().prop_map(ListOp::PushBack),
        3 => any::<i32>().prop_map(ListOp::PushFront),
        16 => at.clone().prop_map(ListOp::Remove),
        4 => (at.clone(), any::<i32>()).prop_map(|(at, v)| ListOp::Replace(at, v)),
        2 => (at.clone(), at.clone()).prop_map(|(a, b)| ListOp::RemoveRange(a, b)),
        1 => (at.clone(), at.clone()).prop_map(|(a, b)| ListOp::Extract(a, b)),
        2 => many.prop_map(ListOp::Merge),
        2 => (at.clone(), at).prop_map(|(a, b)| ListOp::MapRange(a, b)),
        1 => Just(ListOp::Reverse),
        1 => Just(ListOp::Sort),
        1 => Just(ListOp::Reap),
        2 => (0..1_500_usize).prop_map(ListOp::Cursor),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: scale_for_miri(150) as u32, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn behaves_as_a_vec(
        policy in prop::sample::select(vec!["never", "old", "new:2:10", "bounded:75:5"]),
        bytes in 16..100_usize, fanout in 4..9_usize, small in 0..20_usize,
        ops in prop::collection::vec(any_list_op(), 1..scale_for_miri(300).max(12)),
    ) {
        let mut subject = ListSubject::new(ListShape::new(bytes, fanout, small), policy.parse::<AnyReapPolicy>().unwrap());
        ops.into_iter().for_each(|op| subject.apply(op));
        subject.check_all_readers();
    }
}
