//! What is done to many keys of a set at once: merging, extracting, removing ranges, comparing.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::RangeBounds;

use crate::comparator::Comparator;
use crate::list::SlabList;
use crate::policy::{BoundedReap, ReapPolicy};
use crate::probe::{NoProbe, SlabProbe};
use crate::set::SlabSet;
use crate::shape::ListShape;

impl<K: Copy, R: ReapPolicy, P: SlabProbe, C: Comparator<K>> SlabSet<K, R, P, C> {
    /// Removes the keys of a range; each is shown to `sink`, slab by slab, before it goes. Returns how many there
    /// were. O(k + log n * slabs of the range).
    ///
    /// ```
    /// let mut set: slablist::SlabSet<u32> = (0..100).collect();
    /// let mut gone = Vec::new();
    /// assert_eq!(set.remove_range(10..90, |keys| gone.extend_from_slice(keys)), 80);
    /// assert_eq!((set.len(), gone.len()), (20, 80));
    /// ```
    pub fn remove_range(&mut self, range: impl RangeBounds<K>, sink: impl FnMut(&[K])) -> usize {
        let (from, to) = self.positions_of_range(range);
        self.tree.remove_run(from, to, sink)
    }

    /// Takes the keys of a range out, as a set of the default shape and policy. O(k + log n * slabs of the range).
    pub fn extract(&mut self, range: impl RangeBounds<K>) -> SlabSet<K, BoundedReap, NoProbe, C> {
        let mut set = SlabSet::with_comparator(self.order);
        let mut loader = set.new_loader();
        self.remove_range(range, |keys| loader.push(keys));
        set.tree.load(loader);
        set
    }

    /// Removes everything, each key shown to `sink` before. O(n).
    pub fn clear(&mut self, sink: impl FnMut(&[K])) {
        self.slabs().for_each(sink);
        self.tree.clear();
    }

    /// Adds the keys of another set; where both have one, ours stays. Returns how many were new. O(n + m), or
    /// O(m log n) where that is less; with a comparator of the user's as [`insert_all`](Self::insert_all).
    pub fn merge<R2: ReapPolicy, P2: SlabProbe>(&mut self, other: &SlabSet<K, R2, P2, C>) -> usize {
        // Two functions are of one type and may be two orders.
        if !C::IS_NATURAL {
            return self.insert_all(other.iter().copied().collect());
        }
        let before = self.len();
        if other.len().saturating_mul(16) < before {
            other.iter().for_each(|key| _ = self.insert(*key));
        } else {
            let mut loader = self.new_loader();
            merge_sorted(self.iter().copied(), other.iter().copied(), self.order, |key| loader.push(&[key]));
            self.tree.load(loader);
        }
        self.len() - before
    }

    /// Adds keys in any order, with duplicates: sorted first, which is much cheaper than one insertion each.
    /// Returns how many were new. O(m log m) and then as [`merge`](Self::merge).
    pub fn insert_all(&mut self, mut keys: Vec<K>) -> usize {
        // Stable, and the first of equal ones stays: as if inserted one after the other.
        keys.sort_by(|a, b| self.order.compare(a, b));
        keys.dedup_by(|a, b| self.order.compare(a, b).is_eq());
        let before = self.len();
        if keys.len().saturating_mul(16) < before {
            keys.into_iter().for_each(|key| _ = self.insert(key));
        } else {
            let mut loader = self.new_loader();
            merge_sorted(self.iter().copied(), keys.into_iter(), self.order, |key| loader.push(&[key]));
            self.tree.load(loader);
        }
        self.len() - before
    }

    /// The set of what `f` makes of each key; equal results become one. O(n log n).
    pub fn map<U: Copy + Ord>(&self, mut f: impl FnMut(&K) -> U) -> SlabSet<U> {
        let mut keys = Vec::with_capacity(self.len());
        self.iter().for_each(|key| keys.push(f(key)));
        keys.into_iter().collect()
    }

    /// Lexicographic order of the keys, whatever shapes and policies. O(n).
    pub fn compare<R2: ReapPolicy, P2: SlabProbe>(&self, other: &SlabSet<K, R2, P2, C>) -> Ordering
    where
        K: Ord,
    {
        self.iter().cmp(other.iter())
    }

    /// The keys as a positional list, falling. O(n).
    #[must_use]
    pub fn to_reversed_list(&self) -> SlabList<K> {
        let mut list = self.to_list();
        list.reverse();
        list
    }

    /// The keys as a positional list, rising. O(n).
    #[must_use]
    pub fn to_list(&self) -> SlabList<K> {
        let mut list = SlabList::with_shape(ListShape::DEFAULT, BoundedReap::default(), NoProbe);
        self.slabs().for_each(|slab| list.append_slice(slab));
        list
    }
}

/// The union of two rising sequences; of equal keys the one of `ours`.
fn merge_sorted<K, C: Comparator<K>>(
    ours: impl Iterator<Item = K>,
    theirs: impl Iterator<Item = K>,
    by: C,
    mut sink: impl FnMut(K),
) {
    let (mut ours, mut theirs) = (ours.peekable(), theirs.peekable());
    loop {
        let order = match (ours.peek(), theirs.peek()) {
            (Some(a), Some(b)) => by.compare(a, b),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => return,
        };
        if order.is_eq() {
            theirs.next();
        }
        let next = if order.is_gt() { theirs.next() } else { ours.next() };
        next.into_iter().for_each(&mut sink);
    }
}

impl<K: Copy + fmt::Debug, R: ReapPolicy, P: SlabProbe, C: Comparator<K>> fmt::Debug for SlabSet<K, R, P, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self).finish()
    }
}

impl<K: Copy + Ord> Default for SlabSet<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Copy + Ord> FromIterator<K> for SlabSet<K> {
    /// Sorts and loads: O(n log n); full slabs.
    fn from_iter<I: IntoIterator<Item = K>>(keys: I) -> Self {
        let mut set = Self::new();
        set.insert_all(keys.into_iter().collect());
        set
    }
}

impl<K: Copy, R: ReapPolicy, P: SlabProbe, C: Comparator<K>> Extend<K> for SlabSet<K, R, P, C> {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        self.insert_all(keys.into_iter().collect());
    }
}

impl<K: Copy + PartialEq, R, P, R2, P2, C> PartialEq<SlabSet<K, R2, P2, C>> for SlabSet<K, R, P, C>
where
    R: ReapPolicy,
    P: SlabProbe,
    R2: ReapPolicy,
    P2: SlabProbe,
    C: Comparator<K>,
{
    fn eq(&self, other: &SlabSet<K, R2, P2, C>) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl<K: Copy + Eq, R: ReapPolicy, P: SlabProbe, C: Comparator<K>> Eq for SlabSet<K, R, P, C> {}

impl<K: Copy + Hash, R: ReapPolicy, P: SlabProbe, C: Comparator<K>> Hash for SlabSet<K, R, P, C> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_usize(self.len());
        self.iter().for_each(|key| key.hash(state));
    }
}

impl<K: Copy + Ord, R: ReapPolicy, P: SlabProbe, C: Comparator<K>> PartialOrd for SlabSet<K, R, P, C> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<K: Copy + Ord, R: ReapPolicy, P: SlabProbe, C: Comparator<K>> Ord for SlabSet<K, R, P, C> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.compare(other)
    }
}
