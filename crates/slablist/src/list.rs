//! The ordered list: elements by position, in the same slabs. It sorts only when told to.

use std::cmp::Ordering;
use std::fmt;
use std::ops::{Bound, RangeBounds};

use crate::error::{InvariantViolation, OutOfBounds};
use crate::iter::{ElementIntoIter, ElementIter, SlabIter};
use crate::policy::{BoundedReap, Occupancy, ReapPolicy};
use crate::probe::{NoProbe, SlabProbe};
use crate::route::{AccessRoute, InsertRoute};
use crate::set::SlabSet;
use crate::shape::ListShape;
use crate::tree::{SlabLoader, SlabTree};

/// A list of fixed-size elements by position, in slabs: insertion and removal anywhere are O(log n) (see
/// [`SlabSet`] for what that hides), equal elements are welcome.
#[derive(Clone)]
pub struct SlabList<T: Copy, R = BoundedReap, P: SlabProbe = NoProbe> {
    pub(crate) tree: SlabTree<T, R, P>,
}

impl<T: Copy> SlabList<T> {
    /// An empty list with the default shape and policy. Allocates nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::with_shape(ListShape::DEFAULT, BoundedReap::default(), NoProbe)
    }
}

impl<T: Copy, R: ReapPolicy, P: SlabProbe> SlabList<T, R, P> {
    /// An empty list of this shape, policy and probe. Allocates nothing.
    #[must_use]
    pub fn with_shape(shape: ListShape, reap: R, probe: P) -> Self {
        Self { tree: SlabTree::new(shape, reap, probe) }
    }

    /// Elements in the list. O(1).
    #[must_use]
    pub fn len(&self) -> usize {
        self.tree.root.len
    }

    /// Whether there are none. O(1).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn check_position(&self, position: usize, len: usize) -> Result<(), OutOfBounds> {
        if position < len { Ok(()) } else { Err(OutOfBounds { position, len: self.len() }) }
    }

    /// Adds an element at the end. O(log n).
    pub fn push_back(&mut self, value: T) {
        self.tree.insert(InsertRoute(self.len()), value);
    }

    /// Adds an element at the beginning. O(log n).
    pub fn push_front(&mut self, value: T) {
        self.tree.insert(InsertRoute(0), value);
    }

    /// Adds an element before the one at `position`; `len()` is the end. O(log n).
    ///
    /// # Errors
    /// [`OutOfBounds`] if `position` is beyond the end.
    pub fn insert(&mut self, position: usize, value: T) -> Result<(), OutOfBounds> {
        self.check_position(position, self.len() + 1)?;
        self.tree.insert(InsertRoute(position), value);
        Ok(())
    }

    /// Replaces the element at `position`, which is returned. O(log n).
    ///
    /// # Errors
    /// [`OutOfBounds`] if there is none.
    pub fn replace(&mut self, position: usize, value: T) -> Result<T, OutOfBounds> {
        let len = self.len();
        match self.tree.root.find_mut(AccessRoute(position)) {
            Some(old) => Ok(std::mem::replace(old, value)),
            None => Err(OutOfBounds { position, len }),
        }
    }

    /// Removes the element at `position`. O(log n).
    ///
    /// # Errors
    /// [`OutOfBounds`] if there is none.
    pub fn remove(&mut self, position: usize) -> Result<T, OutOfBounds> {
        self.check_position(position, self.len())?;
        self.tree.remove(AccessRoute(position)).ok_or(OutOfBounds { position, len: self.len() })
    }

    /// The element at `position`, counted from 0. O(log n).
    #[must_use]
    pub fn get(&self, position: usize) -> Option<&T> {
        self.tree.get(position)
    }

    /// The element at `position` counted round and round; `None` only if the list is empty. O(log n).
    #[must_use]
    pub fn get_circular(&self, position: usize) -> Option<&T> {
        self.get(position.checked_rem(self.len())?)
    }

    /// The first element. O(log n).
    #[must_use]
    pub fn first(&self) -> Option<&T> {
        self.get(0)
    }

    /// The last element. O(log n).
    #[must_use]
    pub fn last(&self) -> Option<&T> {
        self.get(self.len().checked_sub(1)?)
    }

    /// Whether an element equal to `value` is there. O(n).
    #[must_use]
    pub fn contains(&self, value: &T) -> bool
    where
        T: PartialEq,
    {
        self.slabs().any(|slab| slab.contains(value))
    }

    /// All elements in order; `rev` from the end. O(1) an element.
    #[must_use]
    pub fn iter(&self) -> ElementIter<'_, T> {
        ElementIter::from_slabs(self.slabs())
    }

    /// The elements of a range of positions, from both ends; a range beyond the end is cut. O(log n).
    #[must_use]
    pub fn range(&self, range: impl RangeBounds<usize>) -> ElementIter<'_, T> {
        ElementIter::from_slabs(self.range_slabs(range))
    }

    /// All elements, slab by slab, from both ends.
    #[must_use]
    pub fn slabs(&self) -> SlabIter<'_, T> {
        SlabIter::over_all(&self.tree.root)
    }

    /// The elements of a range of positions, slab by slab. O(log n).
    #[must_use]
    pub fn range_slabs(&self, range: impl RangeBounds<usize>) -> SlabIter<'_, T> {
        let (from, to) = self.positions_of_range(range);
        SlabIter::over_range(&self.tree.root, from, to)
    }

    fn positions_of_range(&self, range: impl RangeBounds<usize>) -> (usize, usize) {
        let from = match range.start_bound() {
            Bound::Included(at) => *at,
            Bound::Excluded(at) => at.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let to = match range.end_bound() {
            Bound::Included(at) => at.saturating_add(1),
            Bound::Excluded(at) => *at,
            Bound::Unbounded => self.len(),
        };
        (from, to.min(self.len()).max(from))
    }

    /// Changes all elements in place, slab by slab. O(n).
    pub fn map_slabs(&mut self, mut each: impl FnMut(&mut [T])) {
        self.tree.root.for_each_slab_mut(&mut each);
    }

    /// Changes the elements of a range of positions in place, slab by slab. O(n).
    pub fn map_range(&mut self, range: impl RangeBounds<usize>, mut each: impl FnMut(&mut [T])) {
        let (from, to) = self.positions_of_range(range);
        let mut passed = 0;
        self.tree.root.for_each_slab_mut(&mut |slab| {
            let (start, len) = (passed, slab.len());
            passed += len;
            let cut = from.saturating_sub(start)..to.saturating_sub(start).min(len);
            if let Some(part) = slab.get_mut(cut).filter(|part| !part.is_empty()) {
                each(part);
            }
        });
    }

    /// Adds a slice at the end. O(k log n).
    pub fn append_slice(&mut self, values: &[T]) {
        if self.is_empty() {
            let mut loader = self.new_loader();
            loader.push(values);
            self.tree.load(loader);
        } else {
            values.iter().for_each(|value| self.push_back(*value));
        }
    }

    /// Moves all elements of `other` to the end of this list. O(n + m), or O(m log n) where that is less.
    pub fn merge<R2: ReapPolicy, P2: SlabProbe>(&mut self, other: &mut SlabList<T, R2, P2>) {
        if other.len().saturating_mul(16) < self.len() {
            other.slabs().for_each(|slab| self.append_slice(slab));
        } else {
            let mut loader = self.new_loader();
            self.slabs().chain(other.slabs()).for_each(|slab| loader.push(slab));
            self.tree.load(loader);
        }
        other.tree.clear();
    }

    /// Removes the elements of a range of positions; each is shown to `sink`, slab by slab, before it goes. Returns
    /// how many there were. O(k + log n * slabs of the range).
    pub fn remove_range(&mut self, range: impl RangeBounds<usize>, sink: impl FnMut(&[T])) -> usize {
        let (from, to) = self.positions_of_range(range);
        self.tree.remove_run(from, to, sink)
    }

    /// Takes a range of positions out, as a list of the default shape and policy. Cost as
    /// [`remove_range`](Self::remove_range).
    pub fn extract(&mut self, range: impl RangeBounds<usize>) -> SlabList<T> {
        let mut list = SlabList::new();
        let mut loader = list.new_loader();
        self.remove_range(range, |part| loader.push(part));
        list.tree.load(loader);
        list
    }

    /// Removes everything, each element shown to `sink` before. O(n).
    pub fn clear(&mut self, sink: impl FnMut(&[T])) {
        self.slabs().for_each(sink);
        self.tree.clear();
    }

    /// Reverses the order. O(n).
    pub fn reverse(&mut self) {
        let mut loader = self.new_loader();
        self.iter().rev().for_each(|value| loader.push(&[*value]));
        self.tree.load(loader);
    }

    /// Sorts in place, stably; equal elements all stay. O(n log n), and a temporary copy of the elements.
    pub fn sort_by(&mut self, order: impl FnMut(&T, &T) -> Ordering) {
        let mut all = self.iter().copied().collect::<Vec<T>>();
        all.sort_by(order);
        let mut loader = self.new_loader();
        loader.push(&all);
        self.tree.load(loader);
    }

    /// Sorts in place by the elements' own order, stably; equal elements all stay. O(n log n).
    pub fn sort(&mut self)
    where
        T: Ord,
    {
        self.sort_by(T::cmp);
    }

    /// The set of the elements: of equal ones the first. O(n log n).
    #[must_use]
    pub fn to_set(&self) -> SlabSet<T>
    where
        T: Ord,
    {
        self.iter().copied().collect()
    }

    /// Lexicographic order, whatever shapes and policies. O(n).
    pub fn compare<R2: ReapPolicy, P2: SlabProbe>(&self, other: &SlabList<T, R2, P2>) -> Ordering
    where
        T: Ord,
    {
        self.iter().cmp(other.iter())
    }

    /// Packs all elements into as few slabs as hold them, whatever the policy says. Returns the slabs saved. O(n).
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

    /// Whether the list is in its small mode: one growing vector. O(1).
    #[must_use]
    pub fn is_small(&self) -> bool {
        self.tree.core.is_small
    }

    /// Bytes requested from the allocator and held now. O(slabs).
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.tree.heap_bytes()
    }

    /// Another policy from now on; as [`SlabSet::set_policy`].
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

    /// Looks at every invariant but order, which is yours. For tests. O(slabs).
    ///
    /// # Errors
    /// The first invariant that does not hold.
    pub fn check(&self) -> Result<(), InvariantViolation> {
        self.tree.check_structure()
    }

    fn new_loader(&self) -> SlabLoader<T> {
        SlabLoader::new(self.tree.core.capacity)
    }
}

impl<T: Copy + fmt::Debug, R: ReapPolicy, P: SlabProbe> fmt::Debug for SlabList<T, R, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self).finish()
    }
}

impl<T: Copy> Default for SlabList<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Copy> FromIterator<T> for SlabList<T> {
    /// O(n); full slabs.
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        let mut list = Self::new();
        let mut loader = list.new_loader();
        values.into_iter().for_each(|value| loader.push(&[value]));
        list.tree.load(loader);
        list
    }
}

impl<T: Copy, R: ReapPolicy, P: SlabProbe> Extend<T> for SlabList<T, R, P> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, values: I) {
        values.into_iter().for_each(|value| self.push_back(value));
    }
}

impl<T, R, P, R2, P2> PartialEq<SlabList<T, R2, P2>> for SlabList<T, R, P>
where
    T: Copy + PartialEq,
    R: ReapPolicy,
    P: SlabProbe,
    R2: ReapPolicy,
    P2: SlabProbe,
{
    fn eq(&self, other: &SlabList<T, R2, P2>) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl<T: Copy + Eq, R: ReapPolicy, P: SlabProbe> Eq for SlabList<T, R, P> {}

impl<T: Copy, R: ReapPolicy, P: SlabProbe> IntoIterator for SlabList<T, R, P> {
    type Item = T;
    type IntoIter = ElementIntoIter<T>;

    fn into_iter(self) -> ElementIntoIter<T> {
        ElementIntoIter::from_root(self.tree.root)
    }
}

impl<'a, T: Copy, R: ReapPolicy, P: SlabProbe> IntoIterator for &'a SlabList<T, R, P> {
    type Item = &'a T;
    type IntoIter = ElementIter<'a, T>;

    fn into_iter(self) -> ElementIter<'a, T> {
        self.iter()
    }
}
