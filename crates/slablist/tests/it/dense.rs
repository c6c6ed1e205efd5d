//! Keys so close that a set knows of some without looking at them: runs without a hole and with few, at the ends of
//! their types too, and separators that removals have left behind.

use std::collections::BTreeSet;
use std::fmt::Debug;

use proptest::prelude::*;
use slablist::{AnyReapPolicy, ListShape, NeverReap, NoProbe, SlabSet};

use crate::scale_for_miri;

/// A window of numbers onto keys of some type, the numbers below `WIDTH`.
const WIDTH: u64 = if cfg!(miri) { 60 } else { 1_500 };

/// What the set says of every key of the window is what the model says.
fn assert_same_keys<K: Copy + Ord + Debug>(
    set: &SlabSet<K, AnyReapPolicy>,
    model: &BTreeSet<K>,
    key: fn(u64) -> K,
) {
    set.check().unwrap();
    let sorted: Vec<K> = model.iter().copied().collect();
    for at in 0..WIDTH {
        let key = key(at);
        let position = sorted.binary_search(&key);
        assert_eq!(set.contains(&key), position.is_ok(), "{key:?}");
        assert_eq!(set.find(&key), position.is_ok().then_some(&key));
        assert_eq!(set.position(&key), position, "{key:?}");
    }
}

/// Runs put in and taken out again: (from, how many, every how many-eth, in or out).
type KeyRuns<'a> = &'a [(u64, u64, u64, bool)];

fn check_key_runs<K: Copy + Ord + Debug>(policy: &str, runs: KeyRuns<'_>, key: fn(u64) -> K) {
    let mut set = SlabSet::with_shape(ListShape::new(48, 4, 0), policy.parse().unwrap(), NoProbe);
    let mut model = BTreeSet::new();
    for (from, len, step, put) in runs {
        for at in (*from..(from + len).min(WIDTH)).step_by(*step as usize) {
            let key = key(at);
            if *put {
                assert_eq!(set.insert(key), model.insert(key));
            } else {
                assert_eq!(set.remove(&key), model.remove(&key));
            }
        }
        assert_same_keys(&set, &model, key);
    }
}

fn check_many_key_types(runs: KeyRuns<'_>) {
    check_key_runs("never", runs, |at| at);
    check_key_runs("bounded", runs, |at| u64::MAX - at);
    check_key_runs("never", runs, |at| u64::MAX - WIDTH + 1 + at);
    check_key_runs("bounded", runs, |at| at as i64 - 700);
    check_key_runs("never", runs, |at| i64::MIN + at as i64);
    check_key_runs("never", runs, |at| i64::MAX - at as i64);
    check_key_runs("never", runs, |at| i32::MIN + at as i32);
    check_key_runs("never", runs, |at| at as u16 + (u16::MAX - WIDTH as u16 + 1));
    check_key_runs("never", runs, |at| (at << 60 | at).to_be_bytes());
    // Only the upper half of its number is looked at: never full, whatever that half says.
    check_key_runs("never", runs, |at| u128::from(at) << 63);
}

#[test]
fn runs_and_what_is_left_of_them() {
    check_many_key_types(&[
        (0, WIDTH, 1, true),
        (0, WIDTH, 97, false),
        (0, 3, 1, false),
        (WIDTH - 1, 1, 1, false),
    ]);
    check_many_key_types(&[
        (0, WIDTH, 2, true),
        (1, WIDTH, 2, true),
        (100, 900, 1, false),
        (500, 1, 1, true),
    ]);
}

#[test]
fn every_number_of_a_narrow_type() {
    let mut bytes = SlabSet::with_shape(ListShape::new(8, 4, 0), NeverReap, NoProbe);
    (i8::MIN..=i8::MAX).rev().for_each(|key| _ = bytes.insert(key));
    assert!((i8::MIN..=i8::MAX).all(|key| bytes.contains(&key)));
    if cfg!(miri) {
        return;
    }
    let mut set: SlabSet<u16> = (0..=u16::MAX).collect();
    assert!((0..=u16::MAX).all(|key| set.contains(&key) && set.position(&key) == Ok(key.into())));
    for gone in [0, 1, 4_242, 32_767, 32_768, u16::MAX] {
        assert!(set.remove(&gone) && !set.contains(&gone), "{gone}");
        assert_eq!((0..=u16::MAX).filter(|key| !set.contains(key)).collect::<Vec<_>>(), [gone]);
        assert!(set.insert(gone) && set.contains(&gone));
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: scale_for_miri(40) as u32, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn dense_sets_know_their_keys(
        runs in prop::collection::vec((0..WIDTH, 1..WIDTH, 1..9_u64, prop::bool::weighted(0.6)), 1..6),
    ) {
        check_many_key_types(&runs);
    }
}
