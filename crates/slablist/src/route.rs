//! The way down, by key or by position, with the searches inside a node and inside a slab.

use crate::cache_prefetch::prefetch_slice;
use crate::comparator::Comparator;
use crate::node::IndexNode;
use crate::search::{GuessTrust, interpolate_slot};

/// Chooses the child at each level, and the slot in the slab.
pub(crate) trait TreeRoute<T> {
    /// The child of an index node to go into.
    fn choose_child(&mut self, seps: &[T], kids: &[IndexNode<T>]) -> usize;
    /// The slab of a bottom node to go into.
    fn choose_slab(&mut self, seps: &[T], slabs: &[Vec<T>], trust: &mut GuessTrust) -> usize;
    /// Where in the slab: of an element that is there, or to be inserted.
    fn choose_slot(&self, slab: &[T], trust: &mut GuessTrust) -> Result<usize, usize>;
}

/// Elements compared at a distance before their neighbourhood is: one cache line of eight-byte keys. Measured
/// against 16 and 32: a third less time per insertion and lookup.
const STRIDE: usize = 8;

/// The number of leading elements below `key`.
///
/// First counts over every eighth element, then within one stride: the loads of a stage do not depend on each
/// other, so their cache misses overlap, while those of a binary search queue up.
#[inline]
pub(crate) fn lower_bound<K, C: Comparator<K>>(keys: &[K], key: &K, order: C) -> usize {
    let strides: usize = keys
        .chunks_exact(STRIDE)
        .map(|c| usize::from(c.last().is_some_and(|k| order.is_below(k, key))))
        .sum();
    let start = strides * STRIDE;
    let rest = keys.get(start..).unwrap_or_default();
    let rest = rest.get(..STRIDE).unwrap_or(rest);
    start + rest.iter().map(|k| usize::from(order.is_below(k, key))).sum::<usize>()
}

/// As [`lower_bound`], of keys that end up at an end, as those do that rise or fall.
#[inline]
fn bound_at_ends<K, C: Comparator<K>>(keys: &[K], key: &K, order: C) -> Option<usize> {
    match keys {
        [.., last] if order.is_below(last, key) => Some(keys.len()),
        [first, ..] if order.is_upto(key, first) => Some(0),
        _ => None,
    }
}

/// Keys looked at around a guess: 99 in a hundred keys that lie evenly in a slab of 160 are this near to theirs.
const NEAR: usize = 4 * STRIDE;

/// Separators looked at around a guess. Between even keys they are a slab apart, give or take how full slabs are, and so
/// much nearer to theirs than keys are.
const NEAR_SEPS: usize = 2 * STRIDE;

/// Cache lines asked for of what an insertion moves: half a slab. The rest the processor sees coming.
const MOVED: usize = 12;

/// The number of leading elements below `key`, which is probably about `guess`.
///
/// The cache lines of `WINDOW` keys are loaded at once instead of a slab's twenty, so that the index stays in the cache; and
/// few enough instructions follow for the processor to begin the next lookup at the same time.
#[inline]
fn lower_bound_near<const WINDOW: usize, K, C: Comparator<K>>(
    keys: &[K],
    key: &K,
    guess: usize,
    order: C,
) -> usize {
    let from = guess.saturating_sub(WINDOW / 2).min(keys.len().saturating_sub(WINDOW));
    let Some((before, rest)) = keys.split_at_checked(from) else { return lower_bound_far(keys, key, order) };
    let Some((near, after)) = rest.split_first_chunk::<WINDOW>() else {
        return lower_bound_far(keys, key, order);
    };
    let (strides, _) = near.as_chunks::<STRIDE>();
    let passed =
        strides.iter().map(|stride| usize::from(order.is_below(&stride[STRIDE - 1], key))).sum::<usize>();
    let Some(stride) = strides.get(passed) else { return from + WINDOW + lower_bound_far(after, key, order) };
    match passed * STRIDE + bound_in_stride(stride, key, order) {
        0 => lower_bound_far(before, key, order),
        below => from + below,
    }
}

/// The number of leading elements of a slab below `key`, which is probably about `guess`.
#[inline]
pub(crate) fn slot_near<K, C: Comparator<K>>(slab: &[K], key: &K, guess: usize, order: C) -> usize {
    lower_bound_near::<NEAR, _, _>(slab, key, guess, order)
}

/// The guess was bad: kept out of the way of the good ones.
#[cold]
#[inline(never)]
fn lower_bound_far<K, C: Comparator<K>>(keys: &[K], key: &K, order: C) -> usize {
    lower_bound(keys, key, order)
}

/// The number of leading elements below `key`, which the last is not.
#[inline]
fn bound_in_stride<K, C: Comparator<K>>(stride: &[K; STRIDE], key: &K, order: C) -> usize {
    let fourth = 4 * usize::from(order.is_below(&stride[3], key));
    let second = fourth + 2 * usize::from(order.is_below(&stride[fourth + 1], key));
    second + usize::from(order.is_below(&stride[second], key))
}

/// Which of the slabs between `seps` holds `key` if they lie evenly. Where that one and its neighbours are kept is asked for
/// before it is known which it is: two misses that would wait for each other become one.
#[inline]
fn prefetch_guessed_slab<K: Copy, C: Comparator<K>>(seps: &[K], slabs: &[Vec<K>], key: &K) -> Option<usize> {
    let [low, .., high] = seps else { return None };
    let guess = interpolate_slot::<K, C>(seps.len(), low, key, high)?;
    for at in [guess.saturating_sub(3), guess, guess.saturating_add(3)] {
        prefetch_slice::<1, _>(slabs.get(at..).unwrap_or_default());
    }
    Some(guess)
}

/// The slab that `key` belongs into, for lookups.
#[inline]
pub(crate) fn slab_near<K: Copy, C: Comparator<K>>(seps: &[K], slabs: &[Vec<K>], key: &K, order: C) -> usize {
    match prefetch_guessed_slab::<K, C>(seps, slabs, key) {
        Some(guess) => lower_bound_near::<NEAR_SEPS, _, _>(seps, key, guess, order),
        None => seps.partition_point(|sep| order.is_below(sep, key)),
    }
}

/// By key: separators are upper bounds of the child before them.
pub(crate) struct KeyRoute<'a, K, C> {
    key: &'a K,
    order: C,
    /// The separators on either side of the slab, once it is known and has two.
    around: Option<(K, K)>,
}

impl<'a, K: Copy, C: Comparator<K>> KeyRoute<'a, K, C> {
    pub fn new(key: &'a K, order: C) -> Self {
        Self { key, order, around: None }
    }

    /// Where `key` is in the slab if it lies evenly. What is behind it an insertion will move: that is asked for.
    #[inline]
    fn prefetch_guessed_slot(&self, slab: &[K]) -> Option<usize> {
        let (low, high) = self.around.as_ref()?;
        let guess = interpolate_slot::<K, C>(slab.len(), low, self.key, high)?;
        prefetch_slice::<MOVED, _>(slab.get(guess.saturating_sub(NEAR / 2)..)?);
        Some(guess)
    }
}

/// The searches for keys that are at neither end. They are calls, so that keys at an end get by with few instructions.
impl<K: Copy, C: Comparator<K>> KeyRoute<'_, K, C> {
    /// The slab of a key that is at neither end of the node.
    #[inline(never)]
    fn find_inner_slab(&mut self, seps: &[K], slabs: &[Vec<K>], trust: &mut GuessTrust) -> usize {
        if !trust.should_guess() {
            return lower_bound(seps, self.key, self.order);
        }
        prefetch_guessed_slab::<K, C>(seps, slabs, self.key);
        let child = lower_bound(seps, self.key, self.order);
        if let Some([low, high, ..]) = seps.get(child.wrapping_sub(1)..) {
            self.around = Some((*low, *high));
        }
        child
    }

    /// The slot of a key that is at neither end of the slab.
    #[inline(never)]
    fn find_inner_slot(&self, slab: &[K], trust: &mut GuessTrust) -> usize {
        let Some(guess) = self.prefetch_guessed_slot(slab) else {
            return lower_bound(slab, self.key, self.order);
        };
        let at = slot_near(slab, self.key, guess, self.order);
        trust.learn(at.abs_diff(guess) <= NEAR / 2);
        at
    }
}

impl<K: Copy, C: Comparator<K>> TreeRoute<K> for KeyRoute<'_, K, C> {
    #[inline]
    fn choose_child(&mut self, seps: &[K], _: &[IndexNode<K>]) -> usize {
        bound_at_ends(seps, self.key, self.order).unwrap_or_else(|| lower_bound(seps, self.key, self.order))
    }
    #[inline]
    fn choose_slab(&mut self, seps: &[K], slabs: &[Vec<K>], trust: &mut GuessTrust) -> usize {
        bound_at_ends(seps, self.key, self.order).unwrap_or_else(|| self.find_inner_slab(seps, slabs, trust))
    }
    #[inline]
    fn choose_slot(&self, slab: &[K], trust: &mut GuessTrust) -> Result<usize, usize> {
        let at =
            bound_at_ends(slab, self.key, self.order).unwrap_or_else(|| self.find_inner_slot(slab, trust));
        if slab.get(at).is_some_and(|k| self.order.is_upto(k, self.key)) { Ok(at) } else { Err(at) }
    }
}

/// Passes over children as long as `inside` says that the position is not in them.
fn skip_children(
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
pub(crate) struct AccessRoute(pub usize);

impl<T> TreeRoute<T> for AccessRoute {
    fn choose_child(&mut self, _: &[T], kids: &[IndexNode<T>]) -> usize {
        skip_children(&mut self.0, kids.iter().map(|kid| kid.len), |at, len| at < len)
    }
    fn choose_slab(&mut self, _: &[T], slabs: &[Vec<T>], _: &mut GuessTrust) -> usize {
        skip_children(&mut self.0, slabs.iter().map(Vec::len), |at, len| at < len)
    }
    fn choose_slot(&self, _: &[T], _: &mut GuessTrust) -> Result<usize, usize> {
        Ok(self.0)
    }
}

/// To the place where an element inserted at a position goes: the end of a child counts as inside it.
pub(crate) struct InsertRoute(pub usize);

impl<T> TreeRoute<T> for InsertRoute {
    fn choose_child(&mut self, _: &[T], kids: &[IndexNode<T>]) -> usize {
        skip_children(&mut self.0, kids.iter().map(|kid| kid.len), |at, len| at <= len)
    }
    fn choose_slab(&mut self, _: &[T], slabs: &[Vec<T>], _: &mut GuessTrust) -> usize {
        skip_children(&mut self.0, slabs.iter().map(Vec::len), |at, len| at <= len)
    }
    fn choose_slot(&self, _: &[T], _: &mut GuessTrust) -> Result<usize, usize> {
        Err(self.0)
    }
}
