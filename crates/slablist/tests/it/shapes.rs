//! Kinds of keys, runs of keys, the small mode, the index as it grows and shrinks, memory.

use std::ops::Bound;

use slablist::{BoundedReap, EventCounts, F32, F64, ListShape, NotSorted, SlabSet};

use crate::{random_numbers, scale_for_miri};

fn counted_set<K: Copy + Ord>() -> SlabSet<K, BoundedReap, EventCounts> {
    SlabSet::with_shape(ListShape::DEFAULT, BoundedReap::default(), EventCounts::default())
}

#[test]
fn floats_by_total_order() {
    let keys = [f64::NAN, 1.0, -0.0, f64::NEG_INFINITY, 0.0, -f64::NAN, f64::INFINITY, -1.5];
    let set: SlabSet<F64> = keys.into_iter().map(F64).collect();
    let text = set.iter().map(|key| format!("{:?}", key.0)).collect::<Vec<_>>().join(" ");
    assert_eq!(text, "NaN -inf -1.5 -0.0 0.0 1.0 inf NaN");
    assert!(set.contains(&F64(f64::NAN)) && set.contains(&F64(-0.0)));
    let set: SlabSet<F32> = [2.0, -1.0].into_iter().map(F32).collect();
    assert_eq!(set.first(), Some(&F32(-1.0)));
}

#[test]
fn byte_arrays_and_keys_wider_than_a_slab_would_like() {
    let mut set = SlabSet::new();
    for n in 0..scale_for_miri(5_000) as u32 {
        set.insert(n.wrapping_mul(2_654_435_761).to_be_bytes());
    }
    set.check().unwrap();
    assert_eq!(set.len(), scale_for_miri(5_000));
    let mut wide: SlabSet<[u8; 1000]> = SlabSet::new();
    for n in 0..200_u8 {
        wide.insert([n; 1000]);
    }
    wide.check().unwrap();
    assert_eq!(wide.occupancy().slab_capacity, 4);
    let mut units = SlabSet::new();
    assert!(units.insert(()) && !units.insert(()) && units.remove(&()));
}

/// Every key and no other is found, however far from an even distribution the keys are.
fn check_all_found<K: Copy + Ord>(keys: impl Iterator<Item = K>, what: &str) {
    let (mut set, mut absent) = (SlabSet::new(), Vec::new());
    for (at, key) in keys.enumerate() {
        if at % 3 == 0 { absent.push(key) } else { _ = set.insert(key) }
    }
    assert!(set.len() > scale_for_miri(1_000), "{what}: {} keys", set.len());
    assert!(set.iter().all(|key| set.find(key) == Some(key)), "{what}");
    let model: std::collections::BTreeSet<K> = set.iter().copied().collect();
    assert!(absent.iter().all(|key| set.contains(key) == model.contains(key)), "{what}");
}

#[test]
fn keys_are_found_wherever_they_lie() {
    let n = scale_for_miri(20_000);
    let raw: Vec<u64> = random_numbers(7).take(n).collect();
    let keys = || raw.iter().copied();
    check_all_found(keys(), "even");
    check_all_found(keys().map(|key| key >> (key % 60)), "one in each power of two");
    check_all_found(keys().map(|key| (key % 7) << 61 | key >> 40), "seven heaps");
    check_all_found(
        keys().map(|key| if key % 200 == 0 { key } else { key >> 50 }),
        "a heap and its outliers",
    );
    check_all_found(keys().map(|key| u64::MAX - (key >> 40)), "all at the end");
    check_all_found(keys().map(|key| key.cast_signed() >> (key % 60)), "both signs");
    check_all_found(keys().map(|key| (key >> 33) as i32), "half of i32");
    check_all_found(keys().map(|key| (key >> 32) as u32), "u32");
    check_all_found(keys().map(|key| key as usize), "usize");
    check_all_found(keys().map(|key| u128::from(key) << (key % 64)), "u128");
    check_all_found(keys().map(|key| key.to_be_bytes()), "eight bytes");
    check_all_found(keys().map(|key| u128::from(key).to_be_bytes()), "sixteen bytes, the first of them zero");
    check_all_found(keys().map(|key| (key as u8, key)), "pairs, which have no number");
}

#[test]
fn runs_leave_full_slabs_and_nodes() {
    let n = scale_for_miri(200_000) as u64;
    let mut up = counted_set();
    (0..n).for_each(|key| _ = up.insert(key));
    let mut down = counted_set();
    (0..n).rev().for_each(|key| _ = down.insert(key));
    assert_eq!((up.occupancy().saveable_slabs(), up.probe().moved), (0, 0));
    // The first slab hands on what it has gathered: not every key changes its slab, and none more than once.
    assert!(down.occupancy().saveable_slabs() <= 1 && down.probe().moved < n);
    for set in [&up, &down] {
        set.check().unwrap();
        assert!(
            cfg!(miri) || set.heap_bytes() as f64 <= 8.3 * n as f64,
            "{}",
            set.heap_bytes() as f64 / n as f64
        );
    }
    assert!(up.iter().eq(down.iter()));
}

#[test]
fn random_keys_fill_slabs_well() {
    if cfg!(miri) {
        return;
    }
    let mut set = counted_set();
    random_numbers(1).take(300_000).for_each(|key| _ = set.insert(key));
    set.check().unwrap();
    let each = set.heap_bytes() as f64 / set.len() as f64;
    assert!(each <= 10.0, "{each} bytes an element");
}

#[test]
fn small_mode_and_back() {
    let mut set = counted_set();
    (0..64_u64).for_each(|key| _ = set.insert(key));
    assert!(set.is_small() && set.heap_bytes() <= 64 * 8 + 24, "{}", set.heap_bytes());
    set.insert(64);
    assert!(!set.is_small());
    assert_eq!(set.probe().modes, 1);
    (33..65).for_each(|key| assert!(set.remove(&key)));
    assert!(!set.is_small());
    assert!(set.remove(&32));
    assert!(set.is_small());
    (0..32).for_each(|key| assert!(set.remove(&key)));
    assert_eq!((set.len(), set.occupancy().slabs, set.probe().modes), (0, 0, 2));
    set.check().unwrap();
}

#[test]
fn the_index_grows_and_shrinks() {
    let mut set =
        SlabSet::with_shape(ListShape::new(32, 4, 0), BoundedReap::default(), EventCounts::default());
    let n = scale_for_miri(5_000) as u64;
    random_numbers(9).take(n as usize).for_each(|key| _ = set.insert(key));
    let levels = set.index_levels();
    assert!(levels >= 3);
    assert_eq!(u64::from(levels), 1 + set.probe().grown - set.probe().shrunk);
    while set.pop_first().is_some() {}
    set.check().unwrap();
    assert_eq!((set.index_levels(), set.occupancy().nodes), (1, 1));
}

#[test]
fn bulk_load_says_where_keys_do_not_rise() {
    assert_eq!(SlabSet::from_sorted([1, 2, 2]).map(|set| set.len()), Err(NotSorted { at: 2 }));
    let mut set = SlabSet::from_sorted(0..1_000_u32).unwrap();
    assert_eq!(set.load_sorted([5, 4]), Err(NotSorted { at: 1 }));
    assert_eq!(set.len(), 1_000);
}

#[test]
fn whole_sets() {
    let set: SlabSet<u32> = (0..1_000).rev().collect();
    assert_eq!(set.map(|key| key / 10).len(), 100);
    assert!(set.to_reversed_list().into_iter().eq((0..1_000).rev()));
    assert!(set.to_list().iter().eq(set.iter()));
    assert_eq!(set.range((Bound::Included(7), Bound::Included(3))).count(), 0);
    let mut more = set.clone();
    assert_eq!(more.insert_all(vec![5_000, 3, 5_000, 4_000]), 2);
    assert!(set < more);
    assert_eq!(more.iter().max(), Some(&5_000));
}
