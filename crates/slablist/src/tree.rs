//! One list: the tree, its counters, its policy. Owns what the set and the positional list share; knows no order.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::engine::Core;
use crate::insert::Landed;
use crate::iter::Slabs;
use crate::node::{Kids, Node};
use crate::policy::{Decision, ReapPolicy, State};
use crate::probe::Probe;
use crate::route::{AccessAt, Route};
use crate::shape::Shape;

#[derive(Debug)]
pub(crate) struct Tree<T, R, P> {
    pub root: Node<T>,
    pub core: Core<T, P>,
    pub reap: R,
    /// Where the next bounded step begins, as a position.
    hand: usize,
    /// Which list this is, for cursors.
    pub id: u64,
    /// Changes so far, for cursors.
    pub changes: u64,
}

fn next_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl<T: Copy, R: Clone, P: Probe + Clone> Clone for Tree<T, R, P> {
    /// A copy is another list: cursors do not carry over. Its slabs are packed and have their full capacity.
    fn clone(&self) -> Self {
        let mut loader = Loader::new(self.core.capacity);
        Slabs::all(&self.root).for_each(|slab| loader.push(slab));
        let mut copy = Self {
            root: Node::empty(),
            core: Core::new(self.core.shape, self.core.merges, self.core.probe.clone()),
            reap: self.reap.clone(),
            hand: 0,
            id: next_id(),
            changes: 0,
        };
        copy.load(loader);
        copy
    }
}

impl<T: Copy, R, P: Probe> Tree<T, R, P> {
    pub fn new(shape: Shape, reap: R, probe: P) -> Self
    where
        R: ReapPolicy,
    {
        let core = Core::new(shape, reap.merges(), probe);
        Self { root: Node::empty(), core, reap, hand: 0, id: next_id(), changes: 0 }
    }

    pub fn get(&self, position: usize) -> Option<&T> {
        let place = self.root.locate(position)?;
        place.slabs.get(place.slab)?.get(place.slot)
    }

    /// Replaces everything by what was loaded.
    pub fn load(&mut self, loader: Loader<T>) {
        self.clear();
        let mut slabs = loader.slabs;
        if let [only] = slabs.as_mut_slice()
            && only.len() <= self.core.small
        {
            only.shrink_to_fit();
        } else {
            self.core.set_small(slabs.is_empty());
        }
        for _ in &slabs {
            // The loader's slabs are accounted for when they arrive: it may be dropped half-way.
            drop(self.core.make_slab(0));
        }
        self.root = self.core.build(slabs);
        self.changes += 1;
    }

    pub fn clear(&mut self) {
        let mut slabs = Vec::new();
        std::mem::replace(&mut self.root, Node::empty()).into_slabs(&mut slabs);
        slabs.into_iter().for_each(|slab| self.core.free_slab(slab));
        self.core.set_nodes(1);
        self.core.set_levels(1);
        self.core.set_small(true);
        self.hand = 0;
        self.changes += 1;
    }

    pub fn state(&self) -> State {
        State {
            elements: self.root.len,
            slabs: self.core.slabs,
            slab_capacity: self.core.capacity,
            nodes: self.core.nodes,
            fanout: self.core.fanout,
        }
    }

    pub fn set_policy(&mut self, reap: R)
    where
        R: ReapPolicy,
    {
        let merges = reap.merges();
        if merges && !self.core.merges {
            self.reap_now();
        }
        self.core.merges = merges;
        self.reap = reap;
    }

    pub fn reap_now(&mut self) -> usize {
        self.changes += 1;
        self.core.reap_slabs(&mut self.root)
    }

    pub fn heap_bytes(&self) -> usize {
        self.root.heap_bytes() + self.core.scratch_bytes()
    }
}

impl<T: Copy, R: ReapPolicy, P: Probe> Tree<T, R, P> {
    /// Inserts where `route` leads, unless an equal element is there.
    #[inline]
    pub fn insert(&mut self, mut route: impl Route<T>, value: T) -> bool {
        match self.core.insert(&mut self.root, &mut route, value) {
            Landed::Present => return false,
            Landed::In => {}
            Landed::Split(right, sep) => self.grow(right, sep),
        }
        self.changes += 1;
        self.maintain();
        true
    }

    #[cold]
    fn grow(&mut self, right: Node<T>, sep: T) {
        let left = std::mem::replace(&mut self.root, Node::empty());
        let len = left.len + right.len;
        self.root = Node { len, seps: vec![sep], kids: Kids::Nodes(vec![left, right]) };
        self.core.set_levels(self.core.levels + 1);
    }

    /// Removes the one element that `route` leads to.
    pub fn remove(&mut self, route: impl Route<T>) -> Option<T> {
        let taken = self.core.edit(&mut self.root, route, |core, node, slab, route| {
            let slot = route.slot(node.slabs().get(slab)?, &mut core.trust).ok()?;
            let mut taken = None;
            core.take(node, slab, slot, 1, |gone| taken = gone.first().copied());
            taken
        });
        let taken = taken.flatten()?;
        self.removed();
        Some(taken)
    }

    /// Removes the positions `from..to` slab by slab, each part shown to `sink` first. Returns how many there were.
    pub fn remove_run(&mut self, from: usize, to: usize, mut sink: impl FnMut(&[T])) -> usize {
        let mut left = to.min(self.root.len).saturating_sub(from);
        let all = left;
        while left > 0 {
            let taken = self.core.edit(&mut self.root, AccessAt(from), |core, node, slab, route| {
                core.take(node, slab, route.0, left, &mut sink)
            });
            match taken {
                Some(taken) if taken > 0 => left -= taken,
                _ => break,
            }
        }
        if all > left {
            self.removed();
        }
        all - left
    }

    fn removed(&mut self) {
        self.changes += 1;
        self.lower();
        self.maintain();
        self.back_to_small();
    }

    /// A root with a single child is one level too many.
    fn lower(&mut self) {
        let mut levels = self.core.levels;
        loop {
            match &mut self.root.kids {
                Kids::Nodes(kids) if kids.len() < 2 => {
                    let only = kids.pop();
                    levels = if only.is_some() { levels - 1 } else { 1 };
                    self.root = only.unwrap_or_else(Node::empty);
                }
                _ => break,
            }
        }
        self.core.set_nodes(self.core.nodes.max(1));
        self.core.set_levels(levels);
    }

    /// At half the size at which it left, so that a list at the border does not go to and fro.
    fn back_to_small(&mut self) {
        let len = self.root.len;
        if self.core.is_small || self.core.small == 0 || len > self.core.small / 2 || self.core.slabs > 1 {
            return;
        }
        if let Kids::Slabs(slabs) = &mut self.root.kids
            && let Some(slab) = slabs.first_mut()
        {
            slab.shrink_to(self.core.small);
        }
        self.core.set_small(true);
    }

    #[inline]
    fn maintain(&mut self) {
        if self.core.slabs < 2 {
            return;
        }
        match self.reap.decide(&self.state()) {
            Decision::Leave => {}
            decision => self.reap_as(decision),
        }
    }

    #[cold]
    fn reap_as(&mut self, decision: Decision) {
        match decision {
            Decision::Leave => {}
            Decision::Slabs => drop(self.core.reap_slabs(&mut self.root)),
            Decision::Index => drop(self.core.reap_index(&mut self.root)),
            Decision::Step { slabs } => self.step(slabs),
        }
    }

    fn step(&mut self, width: usize) {
        let hand = if self.hand < self.root.len { self.hand } else { 0 };
        let next = self.core.edit(&mut self.root, AccessAt(hand), |core, node, slab, route| {
            core.step(node, slab, width);
            hand - route.0 + node.slabs().get(slab).map_or(1, Vec::len)
        });
        self.hand = next.unwrap_or(0);
        self.lower();
    }
}

/// Fills slabs one after the other, for loading many elements at once.
pub(crate) struct Loader<T> {
    capacity: usize,
    slabs: Vec<Vec<T>>,
}

impl<T: Copy> Loader<T> {
    pub fn new(capacity: usize) -> Self {
        Self { capacity, slabs: Vec::new() }
    }

    pub fn push(&mut self, mut elements: &[T]) {
        while !elements.is_empty() {
            if self.slabs.last().is_none_or(|slab| slab.len() == self.capacity) {
                self.slabs.push(Vec::with_capacity(self.capacity));
            }
            let Some(slab) = self.slabs.last_mut() else { return };
            let (now, later) = elements.split_at((self.capacity - slab.len()).min(elements.len()));
            slab.extend_from_slice(now);
            elements = later;
        }
    }

    pub fn last(&self) -> Option<&T> {
        self.slabs.last()?.last()
    }
}
