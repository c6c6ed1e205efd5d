//! The shape of the tree: index nodes over slabs, read without changing anything but elements in place.

use crate::comparator::Comparator;
use crate::search::{interpolate_slot, is_dense_span, lower_bound, numbers_between, slab_near, slot_near};

/// An index node: children, and between each two of them a separator, which is not below any element before it and
/// below every element after it. A positional list carries separators too, and never reads them.
#[derive(Debug)]
pub(crate) struct IndexNode<T> {
    /// Elements reachable from here.
    pub len: usize,
    /// One less than there are children.
    pub seps: Vec<T>,
    pub kids: NodeChildren<T>,
}

#[derive(Debug)]
pub(crate) enum NodeChildren<T> {
    /// The bottom level. Each slab has room for a full one, except the only slab of a small list.
    Slabs(Vec<Vec<T>>),
    Nodes(Vec<IndexNode<T>>),
}

impl<T> IndexNode<T> {
    pub fn empty() -> Self {
        Self { len: 0, seps: Vec::new(), kids: NodeChildren::Slabs(Vec::new()) }
    }

    pub fn child_count(&self) -> usize {
        match &self.kids {
            NodeChildren::Slabs(slabs) => slabs.len(),
            NodeChildren::Nodes(nodes) => nodes.len(),
        }
    }

    /// The slabs of a bottom node; none of a higher one.
    pub fn slabs(&self) -> &[Vec<T>] {
        match &self.kids {
            NodeChildren::Slabs(slabs) => slabs,
            NodeChildren::Nodes(_) => &[],
        }
    }

    /// Every slab, in order, to `each`, which may change elements in place.
    pub fn for_each_slab_mut(&mut self, each: &mut impl FnMut(&mut [T])) {
        match &mut self.kids {
            NodeChildren::Nodes(kids) => kids.iter_mut().for_each(|kid| kid.for_each_slab_mut(each)),
            NodeChildren::Slabs(slabs) => slabs.iter_mut().for_each(|slab| each(slab)),
        }
    }

    /// All slabs, in order, out of the tree.
    pub fn move_slabs_into(self, out: &mut Vec<Vec<T>>) {
        match self.kids {
            NodeChildren::Nodes(kids) => kids.into_iter().for_each(|kid| kid.move_slabs_into(out)),
            NodeChildren::Slabs(mut slabs) => out.append(&mut slabs),
        }
    }

    /// Bytes on the heap, as they were requested.
    pub fn heap_bytes(&self) -> usize {
        let below = match &self.kids {
            NodeChildren::Nodes(kids) => {
                kids.capacity() * size_of::<Self>() + kids.iter().map(Self::heap_bytes).sum::<usize>()
            }
            NodeChildren::Slabs(slabs) => {
                slabs.capacity() * size_of::<Vec<T>>()
                    + slabs.iter().map(|slab| slab.capacity() * size_of::<T>()).sum::<usize>()
            }
        };
        below + self.seps.capacity() * size_of::<T>()
    }
}

/// Elements below `key` in the slab that is this child of a node with these separators.
#[inline]
fn find_slot<K: Copy, C: Comparator<K>>(
    slab: &[K],
    seps: &[K],
    child: usize,
    key: &K,
    order: C,
) -> Option<usize> {
    let low = child.checked_sub(1).map_or(slab.first(), |at| seps.get(at))?;
    let high = seps.get(child).or(slab.last())?;
    Some(match interpolate_slot::<K, C>(slab.len(), low, key, high) {
        Some(guess) => slot_near(slab, key, guess, order),
        None => lower_bound(slab, key, order),
    })
}

/// The slab that `key` belongs into, without which there is none, and which child of the node it is.
#[inline]
fn find_slab<'a, K: Copy, C: Comparator<K>>(
    seps: &[K],
    slabs: &'a [Vec<K>],
    key: &K,
    order: C,
) -> Option<(&'a [K], usize)> {
    let child = slab_near(seps, slabs, key, order);
    Some((slabs.get(child)?, child))
}

impl<K: Copy> IndexNode<K> {
    #[inline]
    pub fn find<C: Comparator<K>>(&self, key: &K, order: C) -> Option<&K> {
        let mut node = self;
        loop {
            match &node.kids {
                NodeChildren::Nodes(kids) => {
                    node = kids.get(node.seps.partition_point(|sep| order.is_below(sep, key)))?
                }
                NodeChildren::Slabs(slabs) => {
                    let (slab, child) = find_slab(&node.seps, slabs, key, order)?;
                    return slab
                        .get(find_slot(slab, &node.seps, child, key, order)?)
                        .filter(|found| order.is_upto(found, key));
                }
            }
        }
    }

    /// Whether `key` is there: known from above wherever there is a key for each number.
    #[inline]
    pub fn contains<C: Comparator<K>>(&self, key: &K, order: C) -> bool {
        let mut node = self;
        loop {
            match &node.kids {
                NodeChildren::Nodes(kids) => {
                    let child = node.seps.partition_point(|sep| order.is_below(sep, key));
                    match kids.get(child) {
                        Some(kid) if !is_filled::<K, C>(kid.len, &node.seps, child) => node = kid,
                        kid => return kid.is_some(),
                    }
                }
                NodeChildren::Slabs(slabs) => {
                    return find_slab(&node.seps, slabs, key, order).is_some_and(|(slab, child)| {
                        is_filled::<K, C>(slab.len(), &node.seps, child)
                            || find_slot(slab, &node.seps, child, key, order)
                                .and_then(|at| slab.get(at))
                                .is_some_and(|found| order.is_upto(found, key))
                    });
                }
            }
        }
    }

    /// Elements below `key`, and whether `key` itself is there.
    pub fn rank<C: Comparator<K>>(&self, key: &K, order: C) -> (usize, bool) {
        let (mut node, mut below) = (self, 0);
        loop {
            let child = lower_bound(&node.seps, key, order);
            let len = match &node.kids {
                NodeChildren::Nodes(kids) => count_before(kids, child, |kid| kid.len, &mut below),
                NodeChildren::Slabs(slabs) => count_before(slabs, child, Vec::len, &mut below),
            };
            if let Some(above) = child.checked_sub(1).and_then(|before| node.seps.get(before))
                && is_filled::<K, C>(len, &node.seps, child)
                && let Some(offset) = numbers_between::<K, C>(above, key)
            {
                return (below + offset, true);
            }
            match &node.kids {
                NodeChildren::Nodes(kids) => match kids.get(child) {
                    Some(kid) => node = kid,
                    None => return (below, false),
                },
                NodeChildren::Slabs(slabs) => {
                    let Some(slab) = slabs.get(child) else { return (below, false) };
                    let at = lower_bound(slab, key, order);
                    return (below + at, slab.get(at).is_some_and(|found| order.is_upto(found, key)));
                }
            }
        }
    }
}

/// Whether a child of so many keys has one for each number between the separators on either side of it.
#[inline]
fn is_filled<K: Copy, C: Comparator<K>>(len: usize, seps: &[K], child: usize) -> bool {
    matches!(seps.get(child.wrapping_sub(1)..).unwrap_or_default(), [above, upto, ..] if is_dense_span::<K, C>(len, above, upto))
}

/// Adds the elements of the children before `child` to `below`; those of the child itself are returned.
fn count_before<C>(kids: &[C], child: usize, len: impl Fn(&C) -> usize, below: &mut usize) -> usize {
    *below += kids.iter().take(child).map(&len).sum::<usize>();
    kids.get(child).map_or(0, len)
}
