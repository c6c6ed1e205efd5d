//! Insertion of one element: into its slab, else spilling to a neighbour, else over one slab more.
//! Owns what bounds its work: never more than three slabs and one node a level are touched.

use crate::engine::{Core, make_room};
use crate::node::{Kids, Node};
use crate::probe::{Event, Probe, Work};
use crate::route::Route;

/// How an insertion ended at a node.
pub(crate) enum Landed<T> {
    /// An equal element is there; nothing changed.
    Present,
    In,
    /// The node became too wide: its right half, and the separator before it.
    Split(Node<T>, T),
}

/// Whether a node is at the very beginning or end of the list, where runs of keys arrive.
#[derive(Clone, Copy)]
pub(crate) struct Edge {
    pub first: bool,
    pub last: bool,
}

impl Edge {
    fn below(self, child: usize, children: usize) -> Self {
        Self { first: self.first && child == 0, last: self.last && child + 1 == children }
    }
}

/// What the way down came upon.
enum Met {
    Present,
    /// Room: the element is in, and not yet counted.
    Room,
    /// More is to be done than to insert it there.
    Work(Slot),
}

/// A slab of a bottom node, and where in it.
#[derive(Clone, Copy)]
struct Slot {
    slab: usize,
    at: usize,
}

impl<T: Copy, P: Probe> Core<T, P> {
    /// Inserts where `route` leads, unless an equal element is there.
    pub fn insert<R: Route<T>>(&mut self, root: &mut Node<T>, route: &mut R, value: T) -> Landed<T> {
        match self.go_down(root, route, value) {
            Met::Present => Landed::Present,
            Met::Room => self.count(root),
            Met::Work(slot) => self.insert_along(root, 0, slot, value, Edge { first: true, last: true }),
        }
    }

    /// Notes the children on the way down, and inserts where there is room. Counts nothing yet: a comparison may panic.
    #[inline]
    fn go_down<R: Route<T>>(&mut self, mut node: &mut Node<T>, route: &mut R, value: T) -> Met {
        self.path.clear();
        let mut first = true;
        loop {
            let kids = match &mut node.kids {
                Kids::Nodes(kids) => kids,
                Kids::Slabs(slabs) => {
                    let met = self.insert_bottom(&node.seps, slabs, route, value, first);
                    node.len += usize::from(matches!(met, Met::Room));
                    return met;
                }
            };
            let child = route.node(&node.seps, kids);
            self.path.push(child);
            first &= child == 0;
            let Some(kid) = kids.get_mut(child) else { return Met::Present };
            node = kid;
        }
    }

    #[inline]
    fn insert_bottom<R: Route<T>>(
        &mut self,
        seps: &[T],
        slabs: &mut [Vec<T>],
        route: &mut R,
        value: T,
        first: bool,
    ) -> Met {
        let i = route.slab(seps, slabs, &mut self.trust);
        let Some(slab) = slabs.get_mut(i) else { return Met::Work(Slot { slab: i, at: 0 }) };
        let Err(at) = route.slot(slab, &mut self.trust) else { return Met::Present };
        let has_room = slab.len() < self.capacity.min(slab.capacity());
        if !has_room || (first && i == 0 && at == 0 && self.is_step(slab.len())) {
            return Met::Work(Slot { slab: i, at });
        }
        slab.insert(at, value);
        Met::Room
    }

    /// Counts one element more in the nodes above the bottom one that it is in.
    #[inline]
    fn count(&self, mut node: &mut Node<T>) -> Landed<T> {
        for &child in &self.path {
            node.len += 1;
            let Kids::Nodes(kids) = &mut node.kids else { break };
            let Some(kid) = kids.get_mut(child) else { break };
            node = kid;
        }
        Landed::In
    }

    /// Inserts on the way noted, from this level on, where more is to be done.
    fn insert_along(
        &mut self,
        node: &mut Node<T>,
        level: usize,
        slot: Slot,
        value: T,
        edge: Edge,
    ) -> Landed<T> {
        node.len += 1;
        let Kids::Nodes(kids) = &mut node.kids else { return self.insert_working(node, slot, value, edge) };
        let child = self.path.get(level).copied().unwrap_or_default();
        let below = edge.below(child, kids.len());
        let Some(kid) = kids.get_mut(child) else { return Landed::Present };
        let Landed::Split(right, sep) = self.insert_along(kid, level + 1, slot, value, below) else {
            return Landed::In;
        };
        make_room(kids, self.fanout + 1);
        kids.insert(child + 1, right);
        make_room(&mut node.seps, self.fanout);
        node.seps.insert(child, sep);
        let is_first = below.first && kids.first().is_some_and(|kid| kid.children() == 1);
        self.split_wide(node, if is_first { 0 } else { child + 1 }, edge)
    }

    fn insert_working(&mut self, node: &mut Node<T>, slot: Slot, value: T, edge: Edge) -> Landed<T> {
        match node.slabs().get(slot.slab).map(Vec::len) {
            None => self.insert_first(node, value),
            Some(len) if edge.first && slot.slab == 0 && slot.at == 0 && self.is_step(len) => {
                self.step_front(node, value, edge)
            }
            Some(_) => self.overflow(node, slot.slab, slot.at, value, edge),
        }
    }

    #[cold]
    fn insert_first(&mut self, node: &mut Node<T>, value: T) -> Landed<T> {
        let mut slab = self.make_slab(if self.small > 0 { self.small.min(4) } else { self.capacity });
        self.set_small(self.small > 0);
        slab.push(value);
        node.kids = Kids::Slabs(vec![slab]);
        node.len = 1;
        Landed::In
    }

    fn overflow(&mut self, node: &mut Node<T>, i: usize, at: usize, value: T, edge: Edge) -> Landed<T> {
        if self.grow_small(node, i, at, value) {
            return Landed::In;
        }
        self.set_small(false);
        let here = edge.below(i, node.children());
        let mut made = i + 1;
        if here.last && at == self.capacity {
            self.insert_slab(node, made, &[value]);
        } else if here.first && at == 0 {
            made = 0;
            self.insert_slab(node, made, &[value]);
        } else {
            self.probe.begin(Work::Spill);
            let moved = self.spill(node, i, at, value);
            self.probe.event(Event::Spilled { moved });
        }
        self.split_wide(node, made, edge)
    }

    /// A small list grows as a vector does, and then to a whole slab.
    fn grow_small(&mut self, node: &mut Node<T>, i: usize, at: usize, value: T) -> bool {
        let Kids::Slabs(slabs) = &mut node.kids else { return false };
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
    pub fn split_wide(&mut self, node: &mut Node<T>, made: usize, edge: Edge) -> Landed<T> {
        let children = node.children();
        if children <= self.fanout {
            return Landed::In;
        }
        let middle = match made {
            0 if edge.first => 1,
            _ if edge.last && made + 1 == children => made,
            _ => children / 2,
        };
        let right = node.split_off(middle);
        let Some((right, sep)) = right else { return Landed::In };
        if matches!(right.kids, Kids::Slabs(_)) {
            self.set_nodes(self.nodes + 1);
        }
        Landed::Split(right, sep)
    }
}

impl<T> Node<T> {
    /// Keeps the first `middle` children; the others as a node, with the separator between.
    fn split_off(&mut self, middle: usize) -> Option<(Self, T)> {
        let seps = self.seps.split_off(middle);
        let sep = self.seps.pop()?;
        let (kids, len) = match &mut self.kids {
            Kids::Slabs(slabs) => {
                let right = slabs.split_off(middle);
                let len = right.iter().map(Vec::len).sum();
                (Kids::Slabs(right), len)
            }
            Kids::Nodes(nodes) => {
                let right = nodes.split_off(middle);
                let len = right.iter().map(|node| node.len).sum::<usize>();
                (Kids::Nodes(right), len)
            }
        };
        self.len -= len;
        Some((Self { len, seps, kids }, sep))
    }
}
