//! Sets in an order of the user's, against a map from the rank of a key to the key that was there first.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use proptest::prelude::*;
use slablist::{AnyReapPolicy, Comparator, ListShape, NoProbe, SlabSet, StaleCursor};

use crate::scale_for_miri;
use crate::set_ops::POLICIES;

/// Each is told by the rank of a key: falling; scattered, so that numbers say nothing of places; with four keys that are one.
const RANKS: [fn(u16) -> u32; 3] = [
    |key| u32::from(u16::MAX - key),
    |key| u32::from(key.wrapping_mul(40_503).rotate_left(7)),
    |key| u32::from(key / 4),
];

/// A comparator with a state.
#[derive(Clone, Copy)]
struct RankOrder(fn(u16) -> u32);

impl Comparator<u16> for RankOrder {
    fn compare(&self, a: &u16, b: &u16) -> Ordering {
        (self.0)(*a).cmp(&(self.0)(*b))
    }
}

#[derive(Debug, Clone)]
enum RankedOp {
    Insert(u16),
    Run(u16, u16),
    Replace(u16),
    Remove(u16),
    RemoveRange(u16, u16),
    Extract(u16, u16),
    InsertAll(Vec<u16>),
    Merge(Vec<u16>, usize),
    PopFirst,
    PopLast,
    Reap,
}

fn any_ranked_op(keys: u16) -> impl Strategy<Value = RankedOp> {
    let key = 0..keys;
    let two = (key.clone(), key.clone());
    prop_oneof![
        12 => key.clone().prop_map(RankedOp::Insert),
        4 => (key.clone(), 1..300_u16).prop_map(|(from, n)| RankedOp::Run(from, n)),
        3 => key.clone().prop_map(RankedOp::Replace),
        10 => key.clone().prop_map(RankedOp::Remove),
        1 => two.clone().prop_map(|(a, b)| RankedOp::RemoveRange(a, b)),
        1 => two.prop_map(|(a, b)| RankedOp::Extract(a, b)),
        2 => prop::collection::vec(key.clone(), 0..200).prop_map(RankedOp::InsertAll),
        2 => (prop::collection::vec(key, 0..200), 0..3_usize).prop_map(|(keys, rank)| RankedOp::Merge(keys, rank)),
        1 => Just(RankedOp::PopFirst),
        1 => Just(RankedOp::PopLast),
        1 => Just(RankedOp::Reap),
    ]
}

type RankedSet = SlabSet<u16, AnyReapPolicy, NoProbe, RankOrder>;

struct RankedSubject {
    set: RankedSet,
    model: BTreeMap<u32, u16>,
    rank: fn(u16) -> u32,
}

impl RankedSubject {
    fn insert_into_model(&mut self, key: u16) -> bool {
        let is_new = !self.model.contains_key(&(self.rank)(key));
        self.model.entry((self.rank)(key)).or_insert(key);
        is_new
    }

    fn insert_all_into_model(&mut self, keys: &[u16]) -> usize {
        keys.iter().filter(|key| self.insert_into_model(**key)).count()
    }

    /// Takes the keys between two out of the model, the second among them or not.
    fn take_from_model(&mut self, low: u16, high: u16, with_high: bool) -> Vec<u16> {
        let (low, high) = ((self.rank)(low), (self.rank)(high));
        let is_in = |rank: &u32| *rank >= low && (*rank < high || with_high && *rank == high);
        let gone: Vec<u32> = self.model.keys().copied().filter(is_in).collect();
        gone.iter().map(|rank| self.model.remove(rank).unwrap()).collect()
    }

    /// Two keys, the one that comes first before the other.
    fn in_order(&self, a: u16, b: u16) -> (u16, u16) {
        if (self.rank)(a) <= (self.rank)(b) { (a, b) } else { (b, a) }
    }

    fn apply(&mut self, op: RankedOp) {
        match op {
            RankedOp::Insert(key) => assert_eq!(self.set.insert(key), self.insert_into_model(key)),
            RankedOp::Run(from, n) => (from..from.saturating_add(n))
                .for_each(|key| assert_eq!(self.set.insert(key), self.insert_into_model(key))),
            RankedOp::Replace(key) => {
                assert_eq!(self.set.replace(key), self.model.insert((self.rank)(key), key));
            }
            RankedOp::Remove(key) => {
                assert_eq!(self.set.take(&key), self.model.remove(&(self.rank)(key)));
            }
            RankedOp::RemoveRange(a, b) => {
                let (a, b) = self.in_order(a, b);
                let mut seen = Vec::new();
                self.set.remove_range(a..b, |keys| seen.extend_from_slice(keys));
                assert_eq!(seen, self.take_from_model(a, b, false));
            }
            RankedOp::Extract(a, b) => {
                let (a, b) = self.in_order(a, b);
                let out = self.set.extract(a..=b);
                out.check().unwrap();
                assert!(out.into_iter().eq(self.take_from_model(a, b, true)));
            }
            RankedOp::InsertAll(keys) => {
                assert_eq!(self.set.insert_all(keys.clone()), self.insert_all_into_model(&keys));
            }
            // The other set may be in another order.
            RankedOp::Merge(keys, rank) => {
                let mut other = SlabSet::with_comparator(RankOrder(RANKS[rank]));
                other.insert_all(keys);
                let keys: Vec<u16> = other.iter().copied().collect();
                assert_eq!(self.set.merge(&other), self.insert_all_into_model(&keys));
            }
            RankedOp::PopFirst => {
                assert_eq!(self.set.pop_first(), self.model.pop_first().map(|(_, key)| key));
            }
            RankedOp::PopLast => assert_eq!(self.set.pop_last(), self.model.pop_last().map(|(_, key)| key)),
            RankedOp::Reap => _ = self.set.reap(),
        }
        self.set.check().unwrap();
        assert!(self.set.iter().eq(self.model.values()));
    }

    fn check_readers(&self, probe: u16) {
        let (set, model, at) = (&self.set, &self.model, (self.rank)(probe));
        assert_eq!(set.len(), model.len());
        assert_eq!(set.find(&probe), model.get(&at));
        assert_eq!(set.contains(&probe), model.contains_key(&at));
        assert_eq!(set.first_above(&probe), model.range(at + 1..).next().map(|(_, key)| key));
        assert_eq!(set.last_below(&probe), model.range(..at).next_back().map(|(_, key)| key));
        assert_eq!(set.position(&probe).unwrap_or_else(|at| at), model.range(..at).count());
        assert!(set.range(probe..).eq(model.range(at..).map(|(_, key)| key)));
        let cursor = set.cursor(&probe);
        assert_eq!(cursor.map(|cursor| cursor.key()), model.get(&at).copied());
        if let Some(next) = cursor.and_then(|cursor| cursor.next(set).unwrap()) {
            assert_eq!(Some(&next.key()), model.range(at + 1..).next().map(|(_, key)| key));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: scale_for_miri(200) as u32, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn behaves_as_a_map_of_ranks(
        policy in prop::sample::select(&POLICIES[..]), rank in 0..RANKS.len(), bytes in 8..80_usize, small in 0..20_usize,
        ops in prop::collection::vec(any_ranked_op(2_000), 1..scale_for_miri(200).max(12)),
    ) {
        let rank = RANKS[rank];
        let shape = ListShape::new(bytes, 4, small);
        let set = SlabSet::with_shape_and_comparator(shape, policy.parse().unwrap(), NoProbe, RankOrder(rank));
        let mut subject = RankedSubject { set, model: BTreeMap::new(), rank };
        for (n, op) in ops.into_iter().enumerate() {
            subject.apply(op);
            subject.check_readers((n * 37 % 2_000) as u16);
        }
    }
}

#[test]
fn keys_without_gaps_are_found_in_any_order() {
    // Where keys fill the room between two others, the natural order answers without looking: no other may.
    let mut falling = SlabSet::with_comparator(|a: &u32, b: &u32| b.cmp(a));
    for key in 0..10_000 {
        falling.insert(key);
    }
    assert!(
        (0..10_000).all(|key| falling.contains(&key) && falling.position(&key) == Ok(9_999 - key as usize))
    );
    assert!(!falling.contains(&10_000) && falling.position(&10_000) == Err(0));
}

#[test]
fn a_comparator_may_refer_to_what_it_needs() {
    let names = ["pear", "apple", "fig"];
    let by_name = |a: &usize, b: &usize| names[*a].cmp(names[*b]);
    let mut set = SlabSet::with_comparator(by_name);
    assert!((0..names.len()).all(|index| set.insert(index)));
    assert!(set.iter().eq(&[1, 2, 0]));
    let fig = set.cursor(&2).unwrap();
    set.remove(&2);
    assert_eq!(fig.next(&set), Err(StaleCursor::Removed));
}

/// A comparator that contradicts itself loses keys; the structure stays whole, and nothing panics.
#[test]
fn a_comparator_that_is_no_order_does_no_other_harm() {
    let set_of = |compare: fn(&u16, &u16) -> Ordering| {
        let mut set = SlabSet::with_comparator(compare);
        for key in 0..3_000 {
            set.insert(key);
            set.remove(&(key / 2));
        }
        set.len()
    };
    assert!(set_of(|_, _| Ordering::Less) <= 3_000);
    assert!(set_of(|_, _| Ordering::Greater) <= 3_000);
    assert_eq!(set_of(|_, _| Ordering::Equal), 0);
    assert!(set_of(|a, b| (a.wrapping_mul(*b) % 3).cmp(&1)) <= 3_000);
}
