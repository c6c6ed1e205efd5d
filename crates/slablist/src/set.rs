//! The ordered set. It knows the order of keys; how they lie in slabs is the tree's matter.

use std::ops::{Bound, RangeBounds};

use crate::comparator::{Comparator, NaturalOrder};
use crate::error::{InvariantViolation, NotSorted};
use crate::invariants::check_order;
use crate::iter::{ElementIntoIter, ElementIter, SlabIter};
use crate::policy::{BoundedReap, Occupancy, ReapPolicy};
use crate::probe::{NoProbe, SlabProbe};
use crate::route::KeyRoute;
use crate::shape::ListShape;
use crate::tree::{SlabLoader, SlabTree};

/// An ordered set of fixed-size keys in slabs.
///
/// `R` decides when slabs are given back ([`BoundedReap`] unless said otherwise), `P` receives what happens inside
/// ([`NoProbe`]), `C` orders the keys ([`NaturalOrder`], by their type's [`Ord`]). With n keys, slabs of c keys and index
/// nodes of f children (constants of the [`ListShape`]), "O(log n)"
/// below is O(f log n / log f + c) without the policy's work, which [`ReapPolicy`]'s implementations state.
#[derive(Clone)]
pub struct SlabSet<K: Copy, R = BoundedReap, P: SlabProbe = NoProbe, C = NaturalOrder> {
    pub(crate) tree: SlabTree<K, R, P>,
    pub(crate) order: C,
}

impl<K: Copy + Ord> SlabSet<K> {
    /// An empty set with the default shape and policy. Allocates nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::with_shape(ListShape::DEFAULT, BoundedReap::default(), NoProbe)
    }

    /// A set of keys that rise strictly, in full slabs. O(n).
    ///
    /// # Errors
    /// [`NotSorted`] at the first key that is not above the one before it.
    pub fn from_sorted(keys: impl IntoIterator<Item = K>) -> Result<Self, NotSorted> {
        let mut set = Self::new();
        set.load_sorted(keys)?;
        Ok(set)
    }
}

impl<K: Copy + Ord, R: ReapPolicy, P: SlabProbe> SlabSet<K, R, P> {
    /// An empty set of this shape, policy and probe. Allocates nothing.
    #[must_use]
    pub fn with_shape(shape: ListShape, reap: R, probe: P) -> Self {
        Self { tree: SlabTree::new(shape, reap, probe), order: NaturalOrder }
    }
}

impl<K: Copy, C: Comparator<K>> SlabSet<K, BoundedReap, NoProbe, C> {
    /// An empty set with an order of the user's, and the default shape and policy. Allocates nothing.
    ///
    /// ```
    /// use slablist::SlabSet;
    ///
    /// // The largest first.
    /// let mut set = SlabSet::with_comparator(|a: &u64, b: &u64| b.cmp(a));
    /// for key in [20, 10, 30] {
    ///     set.insert(key);
    /// }
    /// assert!(set.iter().eq(&[30, 20, 10]));
    /// assert!(set.range(..=20).eq(&[30, 20]));
    ///
    /// // Keys that have no order of their own.
    /// let mut reals = SlabSet::with_comparator(f64::total_cmp);
    /// reals.insert_all(vec![2.0, -1.0, 0.5]);
    /// assert_eq!(reals.first(), Some(&-1.0));
    /// ```
    #[must_use]
    pub fn with_comparator(order: C) -> Self {
        Self::with_shape_and_comparator(ListShape::DEFAULT, BoundedReap::default(), NoProbe, order)
    }
}

impl<K: Copy, R: ReapPolicy, P: SlabProbe, C: Comparator<K>> SlabSet<K, R, P, C> {
    /// An empty set of this shape, policy, probe and order. Allocates nothing.
    #[must_use]
    pub fn with_shape_and_comparator(shape: ListShape, reap: R, probe: P, order: C) -> Self {
        Self { tree: SlabTree::new(shape, reap, probe), order }
    }

    /// What orders the keys.
    #[must_use]
    pub fn comparator(&self) -> C {
        self.order
    }

    /// Keys in the set. O(1).
    #[must_use]
    pub fn len(&self) -> usize {
        self.tree.root.len
    }

    /// Whether there are none. O(1).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds `key`; `false`, and nothing changes, if an equal one is there. O(log n).
    #[inline]
    pub fn insert(&mut self, key: K) -> bool {
        self.tree.insert(KeyRoute::new(&key, self.order), key)
    }

    /// Adds `key`, or replaces an equal one, which is returned. O(log n).
    pub fn replace(&mut self, key: K) -> Option<K> {
        match self.tree.root.find_mut(KeyRoute::new(&key, self.order)) {
            Some(old) => Some(std::mem::replace(old, key)),
            None => {
                self.insert(key);
                None
            }
        }
    }

    /// Removes the key equal to `key`; `false` if there is none. O(log n).
    pub fn remove(&mut self, key: &K) -> bool {
        self.take(key).is_some()
    }

    /// Removes and returns the key equal to `key`. O(log n).
    pub fn take(&mut self, key: &K) -> Option<K> {
        self.tree.remove(KeyRoute::new(key, self.order))
    }

    /// Removes and returns the first key. O(log n).
    pub fn pop_first(&mut self) -> Option<K> {
        let first = *self.first()?;
        self.take(&first)
    }

    /// Removes and returns the last key. O(log n).
    pub fn pop_last(&mut self) -> Option<K> {
        let last = *self.last()?;
        self.take(&last)
    }

    /// Whether a key equal to `key` is there. O(log n).
    #[must_use]
    #[inline]
    pub fn contains(&self, key: &K) -> bool {
        self.tree.root.contains(key, self.order)
    }

    /// The key equal to `key`. O(log n).
    #[must_use]
    #[inline]
    pub fn find(&self, key: &K) -> Option<&K> {
        self.tree.root.find(key, self.order)
    }

    /// The key at a position, counted from 0. O(log n).
    #[must_use]
    pub fn get(&self, position: usize) -> Option<&K> {
        self.tree.get(position)
    }

    /// The position of `key`, or the one it would have. O(log n).
    ///
    /// # Errors
    /// The position at which `key` would be inserted, if it is not there.
    pub fn position(&self, key: &K) -> Result<usize, usize> {
        match self.tree.root.rank(key, self.order) {
            (at, true) => Ok(at),
            (at, false) => Err(at),
        }
    }

    /// The smallest key. O(log n).
    #[must_use]
    pub fn first(&self) -> Option<&K> {
        self.get(0)
    }

    /// The largest key. O(log n).
    #[must_use]
    pub fn last(&self) -> Option<&K> {
        self.get(self.len().checked_sub(1)?)
    }

    /// The first key above `key`, which need not be there. O(log n).
    #[must_use]
    pub fn first_above(&self, key: &K) -> Option<&K> {
        self.get(self.position(key).map_or_else(|at| at, |at| at + 1))
    }

    /// The last key below `key`, which need not be there. O(log n).
    #[must_use]
    pub fn last_below(&self, key: &K) -> Option<&K> {
        self.get(self.tree.root.rank(key, self.order).0.checked_sub(1)?)
    }

    /// The positions of a range of keys; an empty one where the bounds cross.
    pub(crate) fn positions_of_range(&self, range: impl RangeBounds<K>) -> (usize, usize) {
        let upto = |key: &K| self.position(key).map_or_else(|at| at, |at| at + 1);
        let from = match range.start_bound() {
            Bound::Included(key) => self.tree.root.rank(key, self.order).0,
            Bound::Excluded(key) => upto(key),
            Bound::Unbounded => 0,
        };
        let to = match range.end_bound() {
            Bound::Included(key) => upto(key),
            Bound::Excluded(key) => self.tree.root.rank(key, self.order).0,
            Bound::Unbounded => self.len(),
        };
        (from, to.max(from))
    }

    /// All keys, rising; `rev` for falling. O(1) a key.
    #[must_use]
    pub fn iter(&self) -> ElementIter<'_, K> {
        ElementIter::from_slabs(self.slabs())
    }

    /// The keys of a range, from both ends. O(log n), then O(1) a key. Crossed bounds are an empty range.
    #[must_use]
    pub fn range(&self, range: impl RangeBounds<K>) -> ElementIter<'_, K> {
        ElementIter::from_slabs(self.range_slabs(range))
    }

    /// All keys, slab by slab, from both ends: what to fold or map over where speed counts.
    ///
    /// ```
    /// let set: slablist::SlabSet<u64> = (0..1000).collect();
    /// let sum = set.slabs().fold(0, |sum, slab| sum + slab.iter().sum::<u64>());
    /// assert_eq!(sum, 499_500);
    /// ```
    #[must_use]
    pub fn slabs(&self) -> SlabIter<'_, K> {
        SlabIter::over_all(&self.tree.root)
    }

    /// The keys of a range slab by slab; the first and the last slice are cut to the range. O(log n).
    #[must_use]
    pub fn range_slabs(&self, range: impl RangeBounds<K>) -> SlabIter<'_, K> {
        let (from, to) = self.positions_of_range(range);
        SlabIter::over_range(&self.tree.root, from, to)
    }

    /// Packs all keys into as few slabs as hold them, whatever the policy says. Returns the slabs saved. O(n).
    pub fn reap(&mut self) -> usize {
        self.tree.reap_now()
    }

    /// Sizes, as a policy sees them. O(1).
    #[must_use]
    pub fn occupancy(&self) -> Occupancy {
        self.tree.occupancy()
    }

    /// Levels of the index; 1 while one node is enough. O(1).
    #[must_use]
    pub fn index_levels(&self) -> u8 {
        self.tree.core.levels
    }

    /// Whether the set is in its small mode: one growing vector. O(1).
    #[must_use]
    pub fn is_small(&self) -> bool {
        self.tree.core.is_small
    }

    /// Bytes requested from the allocator and held now. O(slabs).
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.tree.heap_bytes()
    }

    /// The shape that the set was made with.
    #[must_use]
    pub fn shape(&self) -> ListShape {
        self.tree.core.shape
    }

    /// The policy.
    #[must_use]
    pub fn policy(&self) -> &R {
        &self.tree.reap
    }

    /// Another policy from now on. O(1); O(n) where the old one did not merge neighbours and the new one does, since
    /// the slabs are packed then.
    pub fn set_policy(&mut self, reap: R) {
        self.tree.set_policy(reap);
    }

    /// The probe.
    #[must_use]
    pub fn probe(&self) -> &P {
        &self.tree.core.probe
    }

    /// The probe, to reset or read it out.
    pub fn probe_mut(&mut self) -> &mut P {
        &mut self.tree.core.probe
    }

    /// Looks at every invariant: order, counts, fill bounds, separators. For tests. O(n).
    ///
    /// # Errors
    /// The first invariant that does not hold.
    pub fn check(&self) -> Result<(), InvariantViolation> {
        self.tree.check_structure()?;
        check_order(&self.tree.root, self.order, None, None)
    }

    pub(crate) fn new_loader(&self) -> SlabLoader<K> {
        SlabLoader::new(self.tree.core.capacity)
    }

    /// Replaces all keys by these, which rise strictly, in full slabs. O(n). The keys stay as they were on an error.
    ///
    /// # Errors
    /// [`NotSorted`] at the first key that is not above the one before it.
    pub fn load_sorted(&mut self, keys: impl IntoIterator<Item = K>) -> Result<(), NotSorted> {
        let mut loader = self.new_loader();
        for (at, key) in keys.into_iter().enumerate() {
            if loader.last().is_some_and(|last| self.order.is_upto(&key, last)) {
                return Err(NotSorted { at });
            }
            loader.push(&[key]);
        }
        self.tree.load(loader);
        Ok(())
    }
}

impl<K: Copy, R: ReapPolicy, P: SlabProbe, C: Comparator<K>> IntoIterator for SlabSet<K, R, P, C> {
    type Item = K;
    type IntoIter = ElementIntoIter<K>;

    fn into_iter(self) -> ElementIntoIter<K> {
        ElementIntoIter::from_root(self.tree.root)
    }
}

impl<'a, K: Copy, R: ReapPolicy, P: SlabProbe, C: Comparator<K>> IntoIterator for &'a SlabSet<K, R, P, C> {
    type Item = &'a K;
    type IntoIter = ElementIter<'a, K>;

    fn into_iter(self) -> ElementIter<'a, K> {
        self.iter()
    }
}
