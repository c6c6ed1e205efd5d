//! Walking a list, slab by slab or element by element, from both ends. Owns the iterators; changes nothing.

use std::iter::FusedIterator;

use crate::ahead::load_ahead;
use crate::node::Node;

/// Slabs between the one handed out and the one asked for meanwhile.
const AHEAD: usize = 1;

/// Cache lines of it that are asked for: the rest the processor sees coming. Measured beside 4 and 24.
const LINES: usize = 12;

/// The slabs of a list or of a range of it, as slices, from both ends.
///
/// The next slab takes O(1), and O(log n) once per index node.
#[derive(Debug)]
pub struct Slabs<'a, T> {
    root: &'a Node<T>,
    /// Positions not handed out yet.
    from: usize,
    to: usize,
    /// What is left of the bottom node that the last slab from this end was in.
    front: &'a [Vec<T>],
    back: &'a [Vec<T>],
}

impl<T> Clone for Slabs<'_, T> {
    fn clone(&self) -> Self {
        Self { ..*self }
    }
}

impl<'a, T> Slabs<'a, T> {
    pub(crate) fn all(root: &'a Node<T>) -> Self {
        Self::range(root, 0, root.len)
    }

    pub(crate) fn range(root: &'a Node<T>, from: usize, to: usize) -> Self {
        Self { root, from, to: to.min(root.len), front: &[], back: &[] }
    }

    /// Elements not handed out yet.
    #[must_use]
    pub fn elements(&self) -> usize {
        self.to.saturating_sub(self.from)
    }
}

impl<'a, T> Iterator for Slabs<'a, T> {
    type Item = &'a [T];

    #[inline]
    fn next(&mut self) -> Option<&'a [T]> {
        let left = self.elements();
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
            load_ahead::<LINES, _>(soon);
        }
        let slab = slab.get(skip..)?;
        let slab = slab.get(..left).unwrap_or(slab);
        self.from += slab.len();
        Some(slab)
    }
}

impl<T> DoubleEndedIterator for Slabs<'_, T> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let left = self.elements();
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

impl<T> FusedIterator for Slabs<'_, T> {}

/// The elements of a list or of a range of it, from both ends.
///
/// The next element takes O(1), and O(log n) once per index node. `fold` and what builds on it (`for_each`, `sum`)
/// run slab by slab and are several times faster than a loop over `next`.
#[derive(Debug)]
pub struct Iter<'a, T> {
    slabs: Slabs<'a, T>,
    front: std::slice::Iter<'a, T>,
    back: std::slice::Iter<'a, T>,
}

impl<T> Clone for Iter<'_, T> {
    fn clone(&self) -> Self {
        Self { slabs: self.slabs.clone(), front: self.front.clone(), back: self.back.clone() }
    }
}

impl<'a, T> Iter<'a, T> {
    pub(crate) fn over(slabs: Slabs<'a, T>) -> Self {
        Self { slabs, front: [].iter(), back: [].iter() }
    }
}

impl<'a, T> Iterator for Iter<'a, T> {
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
        let left = self.slabs.elements() + self.front.len() + self.back.len();
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

impl<T> DoubleEndedIterator for Iter<'_, T> {
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

impl<T> ExactSizeIterator for Iter<'_, T> {}
impl<T> FusedIterator for Iter<'_, T> {}

/// The elements of a list that was given away, in order.
#[derive(Debug)]
pub struct IntoIter<T> {
    slabs: std::iter::Flatten<std::vec::IntoIter<Vec<T>>>,
    left: usize,
}

impl<T> IntoIter<T> {
    pub(crate) fn of(root: Node<T>) -> Self {
        let (left, mut slabs) = (root.len, Vec::new());
        root.into_slabs(&mut slabs);
        Self { slabs: slabs.into_iter().flatten(), left }
    }
}

impl<T> Iterator for IntoIter<T> {
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

impl<T> DoubleEndedIterator for IntoIter<T> {
    fn next_back(&mut self) -> Option<T> {
        let element = self.slabs.next_back()?;
        self.left -= 1;
        Some(element)
    }
}

impl<T> ExactSizeIterator for IntoIter<T> {}
impl<T> FusedIterator for IntoIter<T> {}
