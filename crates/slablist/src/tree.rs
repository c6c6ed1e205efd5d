//! One list: the tree, its counters, its policy. This is what the set and the positional list share; it knows no
//! order.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::insert::InsertResult;
use crate::iter::SlabIter;
use crate::list_core::ListCore;
use crate::node::{IndexNode, NodeChildren};
use crate::policy::{Occupancy, ReapDecision, ReapPolicy};
use crate::probe::SlabProbe;
use crate::route::{AccessRoute, TreeRoute};
use crate::shape::ListShape;

#[derive(Debug)]
pub(crate) struct SlabTree<T, R, P> {
    pub root: IndexNode<T>,
    pub core: ListCore<T, P>,
    pub reap: R,
    /// Where the next bounded step begins, as a position.
    next_step: usize,
    /// Which list this is, for cursors.
    pub id: u64,
    /// Changes so far, for cursors.
    pub changes: u64,
}

fn next_list_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl<T: Copy, R: Clone, P: SlabProbe + Clone> Clone for SlabTree<T, R, P> {
    /// A copy is another list: cursors do not carry over. Its slabs are packed and have their full capacity.
    fn clone(&self) -> Self {
        let mut loader = SlabLoader::new(self.core.capacity);
        SlabIter::over_all(&self.root).for_each(|slab| loader.push(slab));
        let mut copy = Self {
            root: IndexNode::empty(),
            core: ListCore::new(self.core.shape, self.core.merges, self.core.probe.clone()),
            reap: self.reap.clone(),
            next_step: 0,
            id: next_list_id(),
            changes: 0,
        };
        copy.load(loader);
        copy
    }
}

impl<T: Copy, R, P: SlabProbe> SlabTree<T, R, P> {
    pub fn new(shape: ListShape, reap: R, probe: P) -> Self
    where
        R: ReapPolicy,
    {
        let core = ListCore::new(shape, reap.merges_neighbours(), probe);
        Self { root: IndexNode::empty(), core, reap, next_step: 0, id: next_list_id(), changes: 0 }
    }

    pub fn get(&self, position: usize) -> Option<&T> {
        let place = self.root.locate(position)?;
        place.slabs.get(place.slab)?.get(place.slot)
    }

    /// Replaces everything by what was loaded.
    pub fn load(&mut self, loader: SlabLoader<T>) {
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
        self.root = self.core.build_index(slabs);
        self.changes += 1;
    }

    pub fn clear(&mut self) {
        let mut slabs = Vec::new();
        std::mem::replace(&mut self.root, IndexNode::empty()).move_slabs_into(&mut slabs);
        slabs.into_iter().for_each(|slab| self.core.free_slab(slab));
        self.core.set_node_count(1);
        self.core.set_levels(1);
        self.core.set_small(true);
        self.next_step = 0;
        self.changes += 1;
    }

    pub fn occupancy(&self) -> Occupancy {
        Occupancy {
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
        let merges = reap.merges_neighbours();
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

impl<T: Copy, R: ReapPolicy, P: SlabProbe> SlabTree<T, R, P> {
    /// Inserts where `route` leads, unless an equal element is there.
    #[inline]
    pub fn insert(&mut self, mut route: impl TreeRoute<T>, value: T) -> bool {
        match self.core.insert(&mut self.root, &mut route, value) {
            InsertResult::Present => return false,
            InsertResult::Inserted => {}
            InsertResult::Split(right, sep) => self.grow_root(right, sep),
        }
        self.changes += 1;
        self.apply_policy();
        true
    }

    #[cold]
    fn grow_root(&mut self, right: IndexNode<T>, sep: T) {
        let left = std::mem::replace(&mut self.root, IndexNode::empty());
        let len = left.len + right.len;
        self.root = IndexNode { len, seps: vec![sep], kids: NodeChildren::Nodes(vec![left, right]) };
        self.core.set_levels(self.core.levels + 1);
    }

    /// Removes the one element that `route` leads to.
    pub fn remove(&mut self, route: impl TreeRoute<T>) -> Option<T> {
        let taken = self.core.edit_bottom_node(&mut self.root, route, |core, node, slab, route| {
            let slot = route.choose_slot(node.slabs().get(slab)?, &mut core.trust).ok()?;
            let mut taken = None;
            core.take_elements(node, slab, slot, 1, |gone| taken = gone.first().copied());
            taken
        });
        let taken = taken.flatten()?;
        self.finish_removal();
        Some(taken)
    }

    /// Removes the positions `from..to` slab by slab, each part shown to `sink` first. Returns how many there were.
    pub fn remove_run(&mut self, from: usize, to: usize, mut sink: impl FnMut(&[T])) -> usize {
        let mut left = to.min(self.root.len).saturating_sub(from);
        let all = left;
        while left > 0 {
            let taken =
                self.core.edit_bottom_node(&mut self.root, AccessRoute(from), |core, node, slab, route| {
                    core.take_elements(node, slab, route.0, left, &mut sink)
                });
            match taken {
                Some(taken) if taken > 0 => left -= taken,
                _ => break,
            }
        }
        if all > left {
            self.finish_removal();
        }
        all - left
    }

    fn finish_removal(&mut self) {
        self.changes += 1;
        self.lower_root();
        self.apply_policy();
        self.return_to_small();
    }

    /// A root with a single child is one level too many.
    fn lower_root(&mut self) {
        let mut levels = self.core.levels;
        loop {
            match &mut self.root.kids {
                NodeChildren::Nodes(kids) if kids.len() < 2 => {
                    let only = kids.pop();
                    levels = if only.is_some() { levels - 1 } else { 1 };
                    self.root = only.unwrap_or_else(IndexNode::empty);
                }
                _ => break,
            }
        }
        self.core.set_node_count(self.core.nodes.max(1));
        self.core.set_levels(levels);
    }

    /// At half the size at which it left, so that a list at the border does not go to and fro.
    fn return_to_small(&mut self) {
        let len = self.root.len;
        if self.core.is_small || self.core.small == 0 || len > self.core.small / 2 || self.core.slabs > 1 {
            return;
        }
        if let NodeChildren::Slabs(slabs) = &mut self.root.kids
            && let Some(slab) = slabs.first_mut()
        {
            slab.shrink_to(self.core.small);
        }
        self.core.set_small(true);
    }

    #[inline]
    fn apply_policy(&mut self) {
        if self.core.slabs < 2 {
            return;
        }
        match self.reap.decide(&self.occupancy()) {
            ReapDecision::Leave => {}
            decision => self.execute_decision(decision),
        }
    }

    #[cold]
    fn execute_decision(&mut self, decision: ReapDecision) {
        match decision {
            ReapDecision::Leave => {}
            ReapDecision::Slabs => drop(self.core.reap_slabs(&mut self.root)),
            ReapDecision::Index => drop(self.core.reap_index(&mut self.root)),
            ReapDecision::Step { slabs } => self.reap_step(slabs),
        }
    }

    fn reap_step(&mut self, width: usize) {
        let hand = if self.next_step < self.root.len { self.next_step } else { 0 };
        let next =
            self.core.edit_bottom_node(&mut self.root, AccessRoute(hand), |core, node, slab, route| {
                core.reap_window(node, slab, width);
                hand - route.0 + node.slabs().get(slab).map_or(1, Vec::len)
            });
        self.next_step = next.unwrap_or(0);
        self.lower_root();
    }
}

/// Fills slabs one after the other, for loading many elements at once.
pub(crate) struct SlabLoader<T> {
    capacity: usize,
    slabs: Vec<Vec<T>>,
}

impl<T: Copy> SlabLoader<T> {
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
