//! The shape of the tree: index nodes over slabs. Owns the nodes and the reading of them; changes nothing but
//! elements in place.

use crate::guess::{between, fills, guess};
use crate::route::{AccessAt, ByKey, Route, lower_bound, lower_bound_near};

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
                    let slab = route.slab(&node.seps, slabs);
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
                    let child = route.slab(&node.seps, slabs);
                    let slab = slabs.get_mut(child)?;
                    let at = route.slot(slab).ok()?;
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

/// `key` in the slab that is this child of a node with these separators.
#[inline]
fn find_in<'a, K: Copy + Ord>(slab: &'a [K], seps: &[K], child: usize, key: &K) -> Option<&'a K> {
    let low = child.checked_sub(1).map_or(slab.first(), |at| seps.get(at))?;
    let high = seps.get(child).or(slab.last())?;
    let at = match guess(slab.len(), low, key, high) {
        Some(guess) => lower_bound_near(slab, key, guess),
        None => lower_bound(slab, key),
    };
    slab.get(at).filter(|found| *found <= key)
}

impl<K: Copy + Ord> Node<K> {
    #[inline]
    pub fn find(&self, key: &K) -> Option<&K> {
        let mut node = self;
        loop {
            let child = node.seps.partition_point(|sep| sep < key);
            match &node.kids {
                Kids::Nodes(kids) => node = kids.get(child)?,
                Kids::Slabs(slabs) => return find_in(slabs.get(child)?, &node.seps, child, key),
            }
        }
    }

    /// Whether `key` is there: known from above wherever there is a key for each number.
    #[inline]
    pub fn contains(&self, key: &K) -> bool {
        let mut node = self;
        loop {
            let child = node.seps.partition_point(|sep| sep < key);
            match &node.kids {
                Kids::Nodes(kids) => match kids.get(child) {
                    Some(kid) if !is_filled(kid.len, &node.seps, child) => node = kid,
                    kid => return kid.is_some(),
                },
                Kids::Slabs(slabs) => {
                    return slabs.get(child).is_some_and(|slab| {
                        is_filled(slab.len(), &node.seps, child)
                            || find_in(slab, &node.seps, child, key).is_some()
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
                    return match slabs.get(child).map(|slab| ByKey(key).slot(slab)) {
                        Some(Ok(at)) => (below + at, true),
                        Some(Err(at)) => (below + at, false),
                        None => (below, false),
                    };
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
