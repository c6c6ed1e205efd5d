//! The way down, by key or by position, and reading a tree along it.

use crate::cache_prefetch::prefetch_slice;
use crate::comparator::Comparator;
use crate::node::{IndexNode, NodeChildren};
use crate::search::{
    GuessTrust, NEAR, bound_at_ends, interpolate_slot, lower_bound, prefetch_guessed_slab, slot_near,
};

/// Chooses the child at each level, and the slot in the slab.
pub(crate) trait TreeRoute<T> {
    /// The child of an index node to go into.
    fn choose_child(&mut self, seps: &[T], kids: &[IndexNode<T>]) -> usize;
    /// The slab of a bottom node to go into.
    fn choose_slab(&mut self, seps: &[T], slabs: &[Vec<T>], trust: &mut GuessTrust) -> usize;
    /// Where in the slab: of an element that is there, or to be inserted.
    fn choose_slot(&self, slab: &[T], trust: &mut GuessTrust) -> Result<usize, usize>;
}

/// Cache lines asked for of what an insertion moves: half a slab. The rest the processor sees coming.
const MOVED: usize = 12;

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

/// Where an element is: the slabs of its bottom node, which of them, which slot.
pub(crate) struct SlabPosition<'a, T> {
    pub slabs: &'a [Vec<T>],
    pub slab: usize,
    pub slot: usize,
}

impl<T> IndexNode<T> {
    pub fn locate(&self, position: usize) -> Option<SlabPosition<'_, T>> {
        let mut route = AccessRoute(position);
        let mut node = self;
        loop {
            match &node.kids {
                NodeChildren::Nodes(kids) => node = kids.get(route.choose_child(&node.seps, kids))?,
                NodeChildren::Slabs(slabs) => {
                    let slab = route.choose_slab(&node.seps, slabs, &mut GuessTrust::full());
                    return (slab < slabs.len()).then_some(SlabPosition { slabs, slab, slot: route.0 });
                }
            }
        }
    }

    /// The element that `route` leads to.
    pub fn find_mut(&mut self, mut route: impl TreeRoute<T>) -> Option<&mut T> {
        let mut node = self;
        loop {
            match &mut node.kids {
                NodeChildren::Nodes(kids) => {
                    let child = route.choose_child(&node.seps, kids);
                    node = kids.get_mut(child)?;
                }
                NodeChildren::Slabs(slabs) => {
                    let mut trust = GuessTrust::full();
                    let child = route.choose_slab(&node.seps, slabs, &mut trust);
                    let slab = slabs.get_mut(child)?;
                    let at = route.choose_slot(slab, &mut trust).ok()?;
                    return slab.get_mut(at);
                }
            }
        }
    }
}
