//! The shape of the tree: index nodes over slabs. Owns the nodes and the reading of them; changes nothing but
//! elements in place.

use crate::guess::{Trust, between, fills, guess};
use crate::route::{AccessAt, Route, lower_bound, slab_near, slot_near};

/// An index node: children, and between each two of them a separator, which is not below any element before it and
/// below every element after it. A positional list carries separators too, and never reads them.
#[derive(Debug)]
pub(crate) struct Node<T> {
    /// Elements reachable from here.
    pub len: usize,
    /// One less than there are children.
    pub seps: Vec<T>,
    pub kids: Kids<T>,
}

#[derive(Debug)]
pub(crate) enum Kids<T> {
    /// The bottom level. Each slab has room for a full one, except the only slab of a small list.
    Slabs(Vec<Vec<T>>),
    Nodes(Vec<Node<T>>),
}

/// Where an element is: the slabs of its bottom node, which of them, which slot.
pub(crate) struct Place<'a, T> {
    pub slabs: &'a [Vec<T>],
    pub slab: usize,
    pub slot: usize,
}

impl<T> Node<T> {
    pub fn empty() -> Self {
        Self { len: 0, seps: Vec::new(), kids: Kids::Slabs(Vec::new()) }
    }

    pub fn children(&self) -> usize {
        match &self.kids {
            Kids::Slabs(slabs) => slabs.len(),
            Kids::Nodes(nodes) => nodes.len(),
        }
    }

    /// The slabs of a bottom node; none of a higher one.
    pub fn slabs(&self) -> &[Vec<T>] {
        match &self.kids {
            Kids::Slabs(slabs) => slabs,
            Kids::Nodes(_) => &[],
        }
    }

    pub fn locate(&self, position: usize) -> Option<Place<'_, T>> {
        let mut route = AccessAt(position);
        let mut node = self;
        loop {
            match &node.kids {
                Kids::Nodes(kids) => node = kids.get(route.node(&node.seps, kids))?,
                Kids::Slabs(slabs) => {
                    let slab = route.slab(&node.seps, slabs, &mut Trust::full());
                    return (slab < slabs.len()).then_some(Place { slabs, slab, slot: route.0 });
                }
            }
        }
    }

    /// Every slab, in order, to `each`, which may change elements in place.
    pub fn visit_mut(&mut self, each: &mut impl FnMut(&mut [T])) {
        match &mut self.kids {
            Kids::Nodes(kids) => kids.iter_mut().for_each(|kid| kid.visit_mut(each)),
            Kids::Slabs(slabs) => slabs.iter_mut().for_each(|slab| each(slab)),
        }
    }

    /// The element that `route` leads to.
    pub fn find_mut(&mut self, mut route: impl Route<T>) -> Option<&mut T> {
        let mut node = self;
        loop {
            match &mut node.kids {
                Kids::Nodes(kids) => {
                    let child = route.node(&node.seps, kids);
                    node = kids.get_mut(child)?;
                }
                Kids::Slabs(slabs) => {
                    let mut trust = Trust::full();
                    let child = route.slab(&node.seps, slabs, &mut trust);
                    let slab = slabs.get_mut(child)?;
                    let at = route.slot(slab, &mut trust).ok()?;
                    return slab.get_mut(at);
                }
            }
        }
    }

    /// All slabs, in order, out of the tree.
    pub fn into_slabs(self, out: &mut Vec<Vec<T>>) {
        match self.kids {
            Kids::Nodes(kids) => kids.into_iter().for_each(|kid| kid.into_slabs(out)),
            Kids::Slabs(mut slabs) => out.append(&mut slabs),
        }
    }

    /// Bytes on the heap, as they were requested.
    pub fn heap_bytes(&self) -> usize {
        let below = match &self.kids {
            Kids::Nodes(kids) => {
                kids.capacity() * size_of::<Self>() + kids.iter().map(Self::heap_bytes).sum::<usize>()
            }
            Kids::Slabs(slabs) => {
                slabs.capacity() * size_of::<Vec<T>>()
                    + slabs.iter().map(|slab| slab.capacity() * size_of::<T>()).sum::<usize>()
            }
        };
        below + self.seps.capacity() * size_of::<T>()
    }
}

/// Elements below `key` in the slab that is this child of a node with these separators.
#[inline]
fn slot_in<K: Copy + Ord>(slab: &[K], seps: &[K], child: usize, key: &K) -> Option<usize> {
    let low = child.checked_sub(1).map_or(slab.first(), |at| seps.get(at))?;
    let high = seps.get(child).or(slab.last())?;
    Some(match guess(slab.len(), low, key, high) {
        Some(guess) => slot_near(slab, key, guess),
        None => lower_bound(slab, key),
    })
}

/// The slab that `key` belongs into, without which there is none, and which child of the node it is.
#[inline]
fn slab_of<'a, K: Copy + Ord>(seps: &[K], slabs: &'a [Vec<K>], key: &K) -> Option<(&'a [K], usize)> {
    let child = slab_near(seps, slabs, key);
    Some((slabs.get(child)?, child))
}

impl<K: Copy + Ord> Node<K> {
    #[inline]
    pub fn find(&self, key: &K) -> Option<&K> {
        let mut node = self;
        loop {
            match &node.kids {
                Kids::Nodes(kids) => node = kids.get(node.seps.partition_point(|sep| sep < key))?,
                Kids::Slabs(slabs) => {
                    let (slab, child) = slab_of(&node.seps, slabs, key)?;
                    return slab.get(slot_in(slab, &node.seps, child, key)?).filter(|found| *found <= key);
                }
            }
        }
    }

    /// Whether `key` is there: known from above wherever there is a key for each number.
    #[inline]
    pub fn contains(&self, key: &K) -> bool {
        let mut node = self;
        loop {
            match &node.kids {
                Kids::Nodes(kids) => {
                    let child = node.seps.partition_point(|sep| sep < key);
                    match kids.get(child) {
                        Some(kid) if !is_filled(kid.len, &node.seps, child) => node = kid,
                        kid => return kid.is_some(),
                    }
                }
                Kids::Slabs(slabs) => {
                    return slab_of(&node.seps, slabs, key).is_some_and(|(slab, child)| {
                        is_filled(slab.len(), &node.seps, child)
                            || slot_in(slab, &node.seps, child, key)
                                .and_then(|at| slab.get(at))
                                .is_some_and(|found| found <= key)
                    });
                }
            }
        }
    }

    /// Elements below `key`, and whether `key` itself is there.
    pub fn rank(&self, key: &K) -> (usize, bool) {
        let (mut node, mut below) = (self, 0);
        loop {
            let child = lower_bound(&node.seps, key);
            let len = match &node.kids {
                Kids::Nodes(kids) => passed(kids, child, |kid| kid.len, &mut below),
                Kids::Slabs(slabs) => passed(slabs, child, Vec::len, &mut below),
            };
            if let Some(above) = child.checked_sub(1).and_then(|before| node.seps.get(before))
                && is_filled(len, &node.seps, child)
                && let Some(offset) = between(above, key)
            {
                return (below + offset, true);
            }
            match &node.kids {
                Kids::Nodes(kids) => match kids.get(child) {
                    Some(kid) => node = kid,
                    None => return (below, false),
                },
                Kids::Slabs(slabs) => {
                    let Some(slab) = slabs.get(child) else { return (below, false) };
                    let at = lower_bound(slab, key);
                    return (below + at, slab.get(at).is_some_and(|found| found <= key));
                }
            }
        }
    }
}

/// Whether a child of so many keys has one for each number between the separators on either side of it.
#[inline]
fn is_filled<K: Copy>(len: usize, seps: &[K], child: usize) -> bool {
    matches!(seps.get(child.wrapping_sub(1)..).unwrap_or_default(), [above, upto, ..] if fills(len, above, upto))
}

/// Adds the elements of the children before `child` to `below`; those of the child itself are returned.
fn passed<C>(kids: &[C], child: usize, len: impl Fn(&C) -> usize, below: &mut usize) -> usize {
    *below += kids.iter().take(child).map(&len).sum::<usize>();
    kids.get(child).map_or(0, len)
}
