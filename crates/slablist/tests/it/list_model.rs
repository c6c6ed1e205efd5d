//! Sequences of operations on the positional list, against `Vec`.

use proptest::prelude::*;
use slablist::{Counts, OutOfBounds, Policy, Shape, SlabList};

use crate::scaled;

#[derive(Debug, Clone)]
enum Op {
    Insert(usize, i32),
    PushBack(Vec<i32>),
    PushFront(i32),
    Remove(usize),
    Replace(usize, i32),
    RemoveRange(usize, usize),
    Extract(usize, usize),
    Merge(Vec<i32>),
    MapRange(usize, usize),
    Reverse,
    Sort,
    Reap,
}

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
    ]
}

type List = SlabList<i32, Policy, Counts>;

fn cut(a: usize, b: usize, len: usize) -> std::ops::Range<usize> {
    a.min(b).min(len)..a.max(b).min(len)
}

fn apply(list: &mut List, model: &mut Vec<i32>, op: Op) {
    let len = model.len();
    match op {
        Op::Insert(at, value) if at <= len => {
            list.insert(at, value).unwrap();
            model.insert(at, value);
        }
        Op::Insert(position, value) => {
            assert_eq!(list.insert(position, value), Err(OutOfBounds { position, len }))
        }
        Op::PushBack(values) => {
            list.append_slice(&values);
            model.extend(values);
        }
        Op::PushFront(value) => {
            list.push_front(value);
            model.insert(0, value);
        }
        Op::Remove(at) if at < len => assert_eq!(list.remove(at), Ok(model.remove(at))),
        Op::Remove(position) => assert_eq!(list.remove(position), Err(OutOfBounds { position, len })),
        Op::Replace(at, value) if at < len => {
            assert_eq!(list.replace(at, value), Ok(std::mem::replace(&mut model[at], value)));
        }
        Op::Replace(position, value) => {
            assert_eq!(list.replace(position, value), Err(OutOfBounds { position, len }))
        }
        Op::RemoveRange(a, b) => {
            let (mut seen, gone) = (Vec::new(), model.drain(cut(a, b, len)).collect::<Vec<_>>());
            assert_eq!(
                list.remove_range(a.min(b)..a.max(b), |part| seen.extend_from_slice(part)),
                gone.len()
            );
            assert_eq!(seen, gone);
        }
        Op::Extract(a, b) => {
            let out = list.extract(a.min(b)..a.max(b));
            out.check().unwrap();
            assert!(out.into_iter().eq(model.drain(cut(a, b, len))));
        }
        Op::Merge(mut values) => {
            let mut other: SlabList<i32> = values.iter().copied().collect();
            list.merge(&mut other);
            model.append(&mut values);
            assert!(other.is_empty());
        }
        Op::MapRange(a, b) => {
            let flip = |part: &mut [i32]| part.iter_mut().for_each(|value| *value ^= 1);
            list.map_range(a.min(b)..a.max(b), flip);
            flip(&mut model[cut(a, b, len)]);
        }
        Op::Reverse => {
            list.reverse();
            model.reverse();
        }
        Op::Sort => {
            list.sort();
            model.sort();
        }
        Op::Reap => _ = list.reap(),
    }
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
        let policy: Policy = policy.parse().unwrap();
        let mut list = List::with(Shape::new(bytes, fanout, small), policy, Counts::default());
        let mut model = Vec::new();
        for op in ops {
            apply(&mut list, &mut model, op);
            list.check().unwrap();
            prop_assert_eq!(list.len(), model.len());
        }
        prop_assert!(list.iter().eq(model.iter()));
        prop_assert!(list.iter().rev().eq(model.iter().rev()));
        for (at, value) in model.iter().enumerate().step_by(7) {
            prop_assert_eq!(list.get(at), Some(value));
            prop_assert_eq!(list.get_circular(at + 2 * model.len()), Some(value));
        }
        let middle = model.len() / 3..model.len() / 2;
        prop_assert!(list.range(middle.clone()).eq(&model[middle]));
    }
}
