//! The way down: by key or by position. Owns the searches inside a node and inside a slab.

use crate::node::Node;

/// Chooses the child at each level, and the slot in the slab.
pub(crate) trait Route<T> {
    /// The child of an index node to go into.
    fn node(&mut self, seps: &[T], kids: &[Node<T>]) -> usize;
    /// The slab of a bottom node to go into.
    fn slab(&mut self, seps: &[T], slabs: &[Vec<T>]) -> usize;
    /// Where in the slab: of an element that is there, or to be inserted.
    fn slot(&self, slab: &[T]) -> Result<usize, usize>;
}

/// Elements compared at a distance before their neighbourhood is: one cache line of eight-byte keys. Measured
/// against 16 and 32: a third less time per insertion and lookup.
const STRIDE: usize = 8;

/// The number of leading elements below `key`.
///
/// First counts over every eighth element, then within one stride: the loads of a stage do not depend on each
/// other, so their cache misses overlap, while those of a binary search queue up.
#[inline]
pub(crate) fn lower_bound<K: Ord>(keys: &[K], key: &K) -> usize {
    let strides: usize =
        keys.chunks_exact(STRIDE).map(|c| usize::from(c.last().is_some_and(|k| k < key))).sum();
    let start = strides * STRIDE;
    let rest = keys.get(start..).unwrap_or_default();
    let rest = rest.get(..STRIDE).unwrap_or(rest);
    start + rest.iter().map(|k| usize::from(k < key)).sum::<usize>()
}

/// As [`lower_bound`], for whoever puts keys in: those that rise or fall end up at an end, which is looked at first.
#[inline]
fn place<K: Ord>(keys: &[K], key: &K) -> usize {
    match keys {
        [.., last] if last < key => keys.len(),
        [first, ..] if key <= first => 0,
        _ => lower_bound(keys, key),
    }
}

/// Keys looked at around a guess: 99 in a hundred keys that lie evenly in a slab of 160 are this near to theirs.
const NEAR: usize = 4 * STRIDE;

/// The number of leading elements below `key`, which is probably about `guess`.
///
/// Four cache lines are loaded at once instead of a slab's twenty, so that the index stays in the cache; and few
/// enough instructions follow for the processor to begin the next lookup meanwhile.
#[inline]
pub(crate) fn lower_bound_near<K: Ord>(keys: &[K], key: &K, guess: usize) -> usize {
    let from = guess.saturating_sub(NEAR / 2).min(keys.len().saturating_sub(NEAR));
    let Some((before, rest)) = keys.split_at_checked(from) else { return far(keys, key) };
    let Some((near, after)) = rest.split_first_chunk::<NEAR>() else { return far(keys, key) };
    let (strides, _) = near.as_chunks::<STRIDE>();
    let passed = strides.iter().map(|stride| usize::from(stride[STRIDE - 1] < *key)).sum::<usize>();
    let Some(stride) = strides.get(passed) else { return from + NEAR + far(after, key) };
    match passed * STRIDE + within(stride, key) {
        0 => far(before, key),
        below => from + below,
    }
}

/// The guess was bad: kept out of the way of the good ones.
#[cold]
#[inline(never)]
fn far<K: Ord>(keys: &[K], key: &K) -> usize {
    lower_bound(keys, key)
}

/// The number of leading elements below `key`, which the last is not.
#[inline]
fn within<K: Ord>(stride: &[K; STRIDE], key: &K) -> usize {
    let fourth = 4 * usize::from(stride[3] < *key);
    let second = fourth + 2 * usize::from(stride[fourth + 1] < *key);
    second + usize::from(stride[second] < *key)
}

/// By key: separators are upper bounds of the child before them.
pub(crate) struct ByKey<'a, K>(pub &'a K);

impl<K: Ord> Route<K> for ByKey<'_, K> {
    #[inline]
    fn node(&mut self, seps: &[K], _: &[Node<K>]) -> usize {
        place(seps, self.0)
    }
    #[inline]
    fn slab(&mut self, seps: &[K], _: &[Vec<K>]) -> usize {
        place(seps, self.0)
    }
    #[inline]
    fn slot(&self, slab: &[K]) -> Result<usize, usize> {
        let at = place(slab, self.0);
        if slab.get(at).is_some_and(|k| k <= self.0) { Ok(at) } else { Err(at) }
    }
}

/// Passes over children as long as `inside` says that the position is not in them.
fn pick(
    position: &mut usize,
    lens: impl Iterator<Item = usize>,
    inside: impl Fn(usize, usize) -> bool,
) -> usize {
    let mut passed = 0;
    for len in lens {
        if inside(*position, len) {
            break;
        }
        *position -= len;
        passed += 1;
    }
    passed
}

/// To the element at a position; the number left is its offset in the slab.
pub(crate) struct AccessAt(pub usize);

impl<T> Route<T> for AccessAt {
    fn node(&mut self, _: &[T], kids: &[Node<T>]) -> usize {
        pick(&mut self.0, kids.iter().map(|kid| kid.len), |at, len| at < len)
    }
    fn slab(&mut self, _: &[T], slabs: &[Vec<T>]) -> usize {
        pick(&mut self.0, slabs.iter().map(Vec::len), |at, len| at < len)
    }
    fn slot(&self, _: &[T]) -> Result<usize, usize> {
        Ok(self.0)
    }
}

/// To the place where an element inserted at a position goes: the end of a child counts as inside it.
pub(crate) struct InsertAt(pub usize);

impl<T> Route<T> for InsertAt {
    fn node(&mut self, _: &[T], kids: &[Node<T>]) -> usize {
        pick(&mut self.0, kids.iter().map(|kid| kid.len), |at, len| at <= len)
    }
    fn slab(&mut self, _: &[T], slabs: &[Vec<T>]) -> usize {
        pick(&mut self.0, slabs.iter().map(Vec::len), |at, len| at <= len)
    }
    fn slot(&self, _: &[T]) -> Result<usize, usize> {
        Err(self.0)
    }
}
