//! Walking a list, slab by slab or element by element, from both ends.

use std::iter::FusedIterator;

use crate::cache_prefetch::prefetch_slice;
use crate::node::IndexNode;

/// Slabs between the one handed out and the one prefetched.
const AHEAD: usize = 1;

/// Cache lines of it that are asked for: the rest the processor sees coming. Measured beside 4 and 24.
const LINES: usize = 12;

/// The slabs of a list or of a range of it, as slices, from both ends.
///
/// The next slab takes O(1), and O(log n) once per index node.
#[derive(Debug)]
pub struct SlabIter<'a, T> {
    root: &'a IndexNode<T>,
    /// Positions not handed out yet.
    from: usize,
    to: usize,
    /// What is left of the bottom node that the last slab from this end was in.
    front: &'a [Vec<T>],
    back: &'a [Vec<T>],
}

impl<T> Clone for SlabIter<'_, T> {
    fn clone(&self) -> Self {
        Self { ..*self }
    }
}

impl<'a, T> SlabIter<'a, T> {
    pub(crate) fn over_all(root: &'a IndexNode<T>) -> Self {
        Self::over_range(root, 0, root.len)
    }

    pub(crate) fn over_range(root: &'a IndexNode<T>, from: usize, to: usize) -> Self {
        Self { root, from, to: to.min(root.len), front: &[], back: &[] }
    }

    /// Elements not handed out yet.
    #[must_use]
    pub fn remaining_elements(&self) -> usize {
        self.to.saturating_sub(self.from)
    }
}

impl<'a, T> Iterator for SlabIter<'a, T> {
    type Item = &'a [T];

    #[inline]
    fn next(&mut self) -> Option<&'a [T]> {
        let left = self.remaining_elements();
        if left == 0 {
            return None;
        }
        let mut skip = 0;
        if self.front.is_empty() {
            let place = self.root.locate(self.from)?;
            self.front = place.slabs.get(place.slab..)?;
            skip = place.slot;
        }
        let (slab, rest) = self.front.split_first()?;
        self.front = rest;
        if let Some(soon) = rest.get(AHEAD) {
            prefetch_slice::<LINES, _>(soon);
        }
        let slab = slab.get(skip..)?;
        let slab = slab.get(..left).unwrap_or(slab);
        self.from += slab.len();
        Some(slab)
    }
}

impl<T> DoubleEndedIterator for SlabIter<'_, T> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let left = self.remaining_elements();
        if left == 0 {
            return None;
        }
        let mut end = usize::MAX;
        if self.back.is_empty() {
            let place = self.root.locate(self.to - 1)?;
            self.back = place.slabs.get(..=place.slab)?;
            end = place.slot + 1;
        }
        let (slab, rest) = self.back.split_last()?;
        self.back = rest;
        let slab = slab.get(..end).unwrap_or(slab);
        let slab = slab.get(slab.len().saturating_sub(left)..)?;
        self.to -= slab.len();
        Some(slab)
    }
}

impl<T> FusedIterator for SlabIter<'_, T> {}

/// The elements of a list or of a range of it, from both ends.
///
/// The next element takes O(1), and O(log n) once per index node. `fold` and what builds on it (`for_each`, `sum`)
/// run slab by slab and are several times faster than a loop over `next`.
#[derive(Debug)]
pub struct ElementIter<'a, T> {
    slabs: SlabIter<'a, T>,
    front: std::slice::Iter<'a, T>,
    back: std::slice::Iter<'a, T>,
}

impl<T> Clone for ElementIter<'_, T> {
    fn clone(&self) -> Self {
        Self { slabs: self.slabs.clone(), front: self.front.clone(), back: self.back.clone() }
    }
}

impl<'a, T> ElementIter<'a, T> {
    pub(crate) fn from_slabs(slabs: SlabIter<'a, T>) -> Self {
        Self { slabs, front: [].iter(), back: [].iter() }
    }
}

impl<'a, T> Iterator for ElementIter<'a, T> {
    type Item = &'a T;

    #[inline]
    fn next(&mut self) -> Option<&'a T> {
        loop {
            if let Some(element) = self.front.next() {
                return Some(element);
            }
            match self.slabs.next() {
                Some(slab) => self.front = slab.iter(),
                None => return self.back.next(),
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.slabs.remaining_elements() + self.front.len() + self.back.len();
        (left, Some(left))
    }

    #[inline]
    fn fold<B, F: FnMut(B, &'a T) -> B>(self, init: B, mut f: F) -> B {
        let mut so_far = self.front.fold(init, &mut f);
        for slab in self.slabs {
            so_far = slab.iter().fold(so_far, &mut f);
        }
        self.back.fold(so_far, f)
    }
}

impl<T> DoubleEndedIterator for ElementIter<'_, T> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(element) = self.back.next_back() {
                return Some(element);
            }
            match self.slabs.next_back() {
                Some(slab) => self.back = slab.iter(),
                None => return self.front.next_back(),
            }
        }
    }
}

impl<T> ExactSizeIterator for ElementIter<'_, T> {}

impl<T> FusedIterator for ElementIter<'_, T> {}

/// The elements of a list that was given away, in order.
#[derive(Debug)]
pub struct ElementIntoIter<T> {
    slabs: std::iter::Flatten<std::vec::IntoIter<Vec<T>>>,
    left: usize,
}

impl<T> ElementIntoIter<T> {
    pub(crate) fn from_root(root: IndexNode<T>) -> Self {
        let (left, mut slabs) = (root.len, Vec::new());
        root.move_slabs_into(&mut slabs);
        Self { slabs: slabs.into_iter().flatten(), left }
    }
}

impl<T> Iterator for ElementIntoIter<T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        let element = self.slabs.next()?;
        self.left -= 1;
        Some(element)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<T> DoubleEndedIterator for ElementIntoIter<T> {
    fn next_back(&mut self) -> Option<T> {
        let element = self.slabs.next_back()?;
        self.left -= 1;
        Some(element)
    }
}

impl<T> ExactSizeIterator for ElementIntoIter<T> {}

impl<T> FusedIterator for ElementIntoIter<T> {}
