//! Insertion of one element: into its slab, else spilling to a neighbour, else over one slab more.
//!
//! Its work is bounded: never more than three slabs and one node a level are touched.
//!
//! Falling keys arrive in front of everything else. The first slab is kept short, so that they move little: a new
//! one begins while the next is half full, and hands on what it has gathered until that one is full.

use crate::list_core::{ListCore, make_room};
use crate::node::{IndexNode, NodeChildren};
use crate::probe::{SlabEvent, SlabProbe, SlabWork};
use crate::route::TreeRoute;
use crate::spill::spill_right;

/// How an insertion ended at a node.
pub(crate) enum InsertResult<T> {
    /// An equal element is there; nothing changed.
    Present,
    Inserted,
    /// The node became too wide: its right half, and the separator before it.
    Split(IndexNode<T>, T),
}

/// Whether a node is at the very beginning or end of the list, where runs of keys arrive.
#[derive(Clone, Copy)]
pub(crate) struct TreeEdge {
    pub first: bool,
    pub last: bool,
}

impl TreeEdge {
    fn edge_of_child(self, child: usize, children: usize) -> Self {
        Self { first: self.first && child == 0, last: self.last && child + 1 == children }
    }
}

/// What was found on the way down.
enum DescentEnd {
    Present,
    /// Room: the element is in, and not yet counted.
    Inserted,
    /// More is to be done than to insert it there.
    NeedsWork(SlabSlot),
}

/// A slab of a bottom node, and where in it.
#[derive(Clone, Copy)]
struct SlabSlot {
    slab: usize,
    at: usize,
}

impl<T: Copy, P: SlabProbe> ListCore<T, P> {
    /// Inserts where `route` leads, unless an equal element is there.
    pub fn insert<R: TreeRoute<T>>(
        &mut self,
        root: &mut IndexNode<T>,
        route: &mut R,
        value: T,
    ) -> InsertResult<T> {
        match self.descend_and_insert(root, route, value) {
            DescentEnd::Present => InsertResult::Present,
            DescentEnd::Inserted => self.count_inserted(root),
            DescentEnd::NeedsWork(slot) => {
                self.insert_along_path(root, 0, slot, value, TreeEdge { first: true, last: true })
            }
        }
    }

    /// Notes the children on the way down, and inserts where there is room. Counts nothing yet: a comparison may panic.
    #[inline]
    fn descend_and_insert<R: TreeRoute<T>>(
        &mut self,
        mut node: &mut IndexNode<T>,
        route: &mut R,
        value: T,
    ) -> DescentEnd {
        self.path.clear();
        let mut first = true;
        loop {
            let kids = match &mut node.kids {
                NodeChildren::Nodes(kids) => kids,
                NodeChildren::Slabs(slabs) => {
                    let met = self.insert_in_bottom_node(&node.seps, slabs, route, value, first);
                    node.len += usize::from(matches!(met, DescentEnd::Inserted));
                    return met;
                }
            };
            let child = route.choose_child(&node.seps, kids);
            self.path.push(child);
            first &= child == 0;
            let Some(kid) = kids.get_mut(child) else { return DescentEnd::Present };
            node = kid;
        }
    }

    #[inline]
    fn insert_in_bottom_node<R: TreeRoute<T>>(
        &mut self,
        seps: &[T],
        slabs: &mut [Vec<T>],
        route: &mut R,
        value: T,
        first: bool,
    ) -> DescentEnd {
        let i = route.choose_slab(seps, slabs, &mut self.trust);
        let Some(slab) = slabs.get_mut(i) else { return DescentEnd::NeedsWork(SlabSlot { slab: i, at: 0 }) };
        let Err(at) = route.choose_slot(slab, &mut self.trust) else { return DescentEnd::Present };
        let has_room = slab.len() < self.capacity.min(slab.capacity());
        if !has_room || (first && i == 0 && at == 0 && self.is_front_step(slab.len())) {
            return DescentEnd::NeedsWork(SlabSlot { slab: i, at });
        }
        slab.insert(at, value);
        DescentEnd::Inserted
    }

    /// Counts one element more in the nodes above the bottom one that it is in.
    #[inline]
    fn count_inserted(&self, mut node: &mut IndexNode<T>) -> InsertResult<T> {
        for &child in &self.path {
            node.len += 1;
            let NodeChildren::Nodes(kids) = &mut node.kids else { break };
            let Some(kid) = kids.get_mut(child) else { break };
            node = kid;
        }
        InsertResult::Inserted
    }

    /// Inserts on the way noted, from this level on, where more is to be done.
    fn insert_along_path(
        &mut self,
        node: &mut IndexNode<T>,
        level: usize,
        slot: SlabSlot,
        value: T,
        edge: TreeEdge,
    ) -> InsertResult<T> {
        node.len += 1;
        let NodeChildren::Nodes(kids) = &mut node.kids else {
            return self.insert_restructuring(node, slot, value, edge);
        };
        let child = self.path.get(level).copied().unwrap_or_default();
        let below = edge.edge_of_child(child, kids.len());
        let Some(kid) = kids.get_mut(child) else { return InsertResult::Present };
        let InsertResult::Split(right, sep) = self.insert_along_path(kid, level + 1, slot, value, below)
        else {
            return InsertResult::Inserted;
        };
        make_room(kids, self.fanout + 1);
        kids.insert(child + 1, right);
        make_room(&mut node.seps, self.fanout);
        node.seps.insert(child, sep);
        let is_first = below.first && kids.first().is_some_and(|kid| kid.child_count() == 1);
        self.split_if_wide(node, if is_first { 0 } else { child + 1 }, edge)
    }

    fn insert_restructuring(
        &mut self,
        node: &mut IndexNode<T>,
        slot: SlabSlot,
        value: T,
        edge: TreeEdge,
    ) -> InsertResult<T> {
        match node.slabs().get(slot.slab).map(Vec::len) {
            None => self.insert_first_slab(node, value),
            Some(len) if edge.first && slot.slab == 0 && slot.at == 0 && self.is_front_step(len) => {
                self.insert_at_front_step(node, value, edge)
            }
            Some(_) => self.insert_into_full_slab(node, slot.slab, slot.at, value, edge),
        }
    }

    #[cold]
    fn insert_first_slab(&mut self, node: &mut IndexNode<T>, value: T) -> InsertResult<T> {
        let mut slab = self.make_slab(if self.small > 0 { self.small.min(4) } else { self.capacity });
        self.set_small(self.small > 0);
        slab.push(value);
        node.kids = NodeChildren::Slabs(vec![slab]);
        node.len = 1;
        InsertResult::Inserted
    }

    fn insert_into_full_slab(
        &mut self,
        node: &mut IndexNode<T>,
        i: usize,
        at: usize,
        value: T,
        edge: TreeEdge,
    ) -> InsertResult<T> {
        if self.grow_small_list(node, i, at, value) {
            return InsertResult::Inserted;
        }
        self.set_small(false);
        let here = edge.edge_of_child(i, node.child_count());
        let mut made = i + 1;
        if here.last && at == self.capacity {
            self.insert_slab(node, made, &[value]);
        } else if here.first && at == 0 {
            made = 0;
            self.insert_slab(node, made, &[value]);
        } else {
            self.probe.begin(SlabWork::Spill);
            let moved = self.spill_slab(node, i, at, value);
            self.probe.event(SlabEvent::Spilled { moved });
        }
        self.split_if_wide(node, made, edge)
    }

    /// A small list grows as a vector does, and then to a whole slab.
    fn grow_small_list(&mut self, node: &mut IndexNode<T>, i: usize, at: usize, value: T) -> bool {
        let NodeChildren::Slabs(slabs) = &mut node.kids else { return false };
        let Some(slab) = slabs.get_mut(i).filter(|slab| slab.len() < self.capacity) else { return false };
        if slab.len() < self.small {
            make_room(slab, self.small);
        } else {
            slab.reserve_exact(self.capacity - slab.len());
        }
        let stays = slab.len() < self.small;
        slab.insert(at, value);
        self.set_small(stays);
        true
    }

    /// A node with more children than the fan-out becomes two; at the edges of the list only the new child moves
    /// out, so that rising and falling keys leave full nodes behind.
    pub fn split_if_wide(&mut self, node: &mut IndexNode<T>, made: usize, edge: TreeEdge) -> InsertResult<T> {
        let children = node.child_count();
        if children <= self.fanout {
            return InsertResult::Inserted;
        }
        let middle = match made {
            0 if edge.first => 1,
            _ if edge.last && made + 1 == children => made,
            _ => children / 2,
        };
        let right = node.split_off(middle);
        let Some((right, sep)) = right else { return InsertResult::Inserted };
        if matches!(right.kids, NodeChildren::Slabs(_)) {
            self.set_node_count(self.nodes + 1);
        }
        InsertResult::Split(right, sep)
    }
}

impl<T> IndexNode<T> {
    /// Keeps the first `middle` children; the others as a node, with the separator between.
    fn split_off(&mut self, middle: usize) -> Option<(Self, T)> {
        let seps = self.seps.split_off(middle);
        let sep = self.seps.pop()?;
        let (kids, len) = match &mut self.kids {
            NodeChildren::Slabs(slabs) => {
                let right = slabs.split_off(middle);
                let len = right.iter().map(Vec::len).sum();
                (NodeChildren::Slabs(right), len)
            }
            NodeChildren::Nodes(nodes) => {
                let right = nodes.split_off(middle);
                let len = right.iter().map(|node| node.len).sum::<usize>();
                (NodeChildren::Nodes(right), len)
            }
        };
        self.len -= len;
        Some((Self { len, seps, kids }, sep))
    }
}

impl<T: Copy, P: SlabProbe> ListCore<T, P> {
    /// Elements that the first slab gathers.
    #[inline]
    fn gather_limit(&self) -> usize {
        (self.capacity / 8).max(1)
    }

    /// Whether more may be to be done before a first slab of so many than to insert there: it has gathered enough, or has
    /// become half full, so that a new one before it makes no two neighbours within half a slab.
    #[inline]
    pub fn is_front_step(&self, len: usize) -> bool {
        (len == self.gather_limit() || len == self.capacity.div_ceil(2)) && !self.is_small
    }

    /// Inserts before the first slab, which is at a step.
    #[inline(never)]
    pub fn insert_at_front_step(
        &mut self,
        node: &mut IndexNode<T>,
        value: T,
        edge: TreeEdge,
    ) -> InsertResult<T> {
        let NodeChildren::Slabs(slabs) = &mut node.kids else { return InsertResult::Present };
        // A node that splits leaves its first slab alone, so that the one behind it is never filled: it is before.
        let splits = slabs.len() == self.fanout;
        match slabs.as_mut_slice() {
            [_, next, ..] if next.len() < self.capacity => self.pass_to_neighbour(node, value),
            [first, ..] if splits || first.len() == self.gather_limit() => first.insert(0, value),
            _ => {
                self.insert_slab(node, 0, &[value]);
                return self.split_if_wide(node, 0, edge);
            }
        }
        InsertResult::Inserted
    }

    /// Moves as much of the first slab to the next as that has room for, and inserts before it.
    fn pass_to_neighbour(&mut self, node: &mut IndexNode<T>, value: T) {
        let [first, next, ..] = node.slabs() else { return };
        let moved = first.len().min(self.capacity - next.len());
        self.probe.begin(SlabWork::Spill);
        spill_right(node, 0, 0, value, moved);
        self.refresh_separators(node, 0, 1);
        self.probe.event(SlabEvent::Spilled { moved });
    }
}
