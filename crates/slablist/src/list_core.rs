//! The counters of a list, and the changes that keep them right: slabs made and freed, elements spread over a
//! window of slabs.
//!
//! This is what insertion, removal and reaping have in common.

use crate::node::{IndexNode, NodeChildren};
use crate::probe::{SlabEvent, SlabProbe, SlabWork};
use crate::search::GuessTrust;
use crate::shape::ListShape;

/// All of a list but its tree, so that both can be borrowed at once.
#[derive(Debug)]
pub(crate) struct ListCore<T, P> {
    pub shape: ListShape,
    pub capacity: usize,
    pub fanout: usize,
    pub small: usize,
    /// Whether removals bring neighbours together.
    pub merges: bool,
    /// Whether the only slab is still a growing vector.
    pub is_small: bool,
    pub slabs: usize,
    /// Index nodes right above the slabs; the root of a short list is one.
    pub nodes: usize,
    pub levels: u8,
    pub probe: P,
    /// In where keys lie: for insertions and removals.
    pub trust: GuessTrust,
    /// The nodes that an insertion goes to below the root: which child each is of the one before.
    pub path: Vec<usize>,
    scratch: Vec<T>,
}

/// Room for one more, by doubling up to `max`: nodes are many, their slack counts.
pub(crate) fn make_room<V>(vec: &mut Vec<V>, max: usize) {
    let len = vec.len();
    if len == vec.capacity() && len < max {
        vec.reserve_exact((len * 2).max(4).min(max) - len);
    }
}

impl<T: Copy, P: SlabProbe> ListCore<T, P> {
    pub fn new(shape: ListShape, merges: bool, probe: P) -> Self {
        Self {
            shape,
            capacity: shape.capacity::<T>(),
            fanout: shape.fanout(),
            small: shape.small_limit::<T>(),
            merges,
            is_small: true,
            slabs: 0,
            nodes: 1,
            levels: 1,
            probe,
            trust: GuessTrust::full(),
            path: Vec::new(),
            scratch: Vec::new(),
        }
    }

    pub fn make_slab(&mut self, capacity: usize) -> Vec<T> {
        self.probe.begin(SlabWork::MakeSlab);
        let slab = Vec::with_capacity(capacity);
        self.slabs += 1;
        self.probe.event(SlabEvent::SlabMade { slabs: self.slabs });
        slab
    }

    pub fn free_slab(&mut self, slab: Vec<T>) {
        drop(slab);
        self.slabs -= 1;
        self.probe.event(SlabEvent::SlabFreed { slabs: self.slabs });
    }

    /// The number of bottom nodes has changed.
    pub fn set_node_count(&mut self, nodes: usize) {
        while self.nodes < nodes {
            self.nodes += 1;
            self.probe.event(SlabEvent::NodeMade { nodes: self.nodes });
        }
        while self.nodes > nodes {
            self.nodes -= 1;
            self.probe.event(SlabEvent::NodeFreed { nodes: self.nodes });
        }
    }

    pub fn set_levels(&mut self, levels: u8) {
        if levels != self.levels {
            let grown = levels > self.levels;
            self.levels = levels;
            self.probe.event(if grown {
                SlabEvent::IndexGrown { levels }
            } else {
                SlabEvent::IndexShrunk { levels }
            });
        }
    }

    pub fn set_small(&mut self, is_small: bool) {
        if is_small != self.is_small {
            self.is_small = is_small;
            self.probe.event(if is_small { SlabEvent::BecameSmall } else { SlabEvent::BecameSlabs });
        }
    }

    /// Puts a new slab that holds `elements` at `at`, with the separator that belongs beside it.
    pub fn insert_slab(&mut self, node: &mut IndexNode<T>, at: usize, elements: &[T]) {
        let mut slab = self.make_slab(self.capacity);
        slab.extend_from_slice(elements);
        let NodeChildren::Slabs(slabs) = &mut node.kids else { return };
        make_room(slabs, self.fanout + 1);
        slabs.insert(at, slab);
        // The separator is the last element of the slab before: of the new one if it is the first.
        let before = at.saturating_sub(1);
        if let (true, Some(&last)) = (slabs.len() > 1, slabs.get(before).and_then(|slab| slab.last())) {
            make_room(&mut node.seps, self.fanout);
            node.seps.insert(before, last);
        }
    }

    /// Takes the slab at `at` out, and the separator that is no longer needed.
    pub fn remove_slab(&mut self, node: &mut IndexNode<T>, at: usize) {
        let NodeChildren::Slabs(slabs) = &mut node.kids else { return };
        let slab = slabs.remove(at);
        if !node.seps.is_empty() {
            node.seps.remove(at.min(node.seps.len() - 1));
        }
        self.free_slab(slab);
    }

    /// Brings slab `at` and the next together if both fit into three quarters of one.
    pub fn join_slabs(&mut self, node: &mut IndexNode<T>, at: usize) -> bool {
        let NodeChildren::Slabs(slabs) = &mut node.kids else { return false };
        let Some((left, right)) = slabs.get_mut(at..).and_then(|s| s.split_first_mut()) else { return false };
        let Some(right) = right.first() else { return false };
        if (left.len() + right.len()) * 4 > self.capacity * 3 {
            return false;
        }
        self.probe.begin(SlabWork::Shift);
        let moved = right.len();
        left.extend_from_slice(right);
        self.remove_slab(node, at + 1);
        // What went may have been the lower of two separators: the joined slab ends further right.
        self.refresh_separators(node, at, at + 1);
        self.probe.event(SlabEvent::Shifted { moved });
        true
    }

    /// Sets the separators after slabs `from..to` to their last elements.
    pub fn refresh_separators(&self, node: &mut IndexNode<T>, from: usize, to: usize) {
        let NodeChildren::Slabs(slabs) = &node.kids else { return };
        for at in from..to {
            if let (Some(sep), Some(&last)) = (node.seps.get_mut(at), slabs.get(at).and_then(|s| s.last())) {
                *sep = last;
            }
        }
    }

    /// Spreads the elements of slabs `from..to`, with `extra` at its offset among them, over `count` slabs; `size`
    /// says how many of all the k-th gets. Returns the number of elements that were taken up.
    pub fn redistribute(
        &mut self,
        node: &mut IndexNode<T>,
        (from, to): (usize, usize),
        extra: Option<(usize, T)>,
        count: usize,
        size: impl Fn(usize, usize) -> usize,
    ) -> usize {
        let mut all = std::mem::take(&mut self.scratch);
        for slab in node.slabs().iter().take(to).skip(from) {
            all.extend_from_slice(slab);
        }
        if let Some((offset, value)) = extra {
            all.insert(offset, value);
        }
        let total = all.len();
        let mut rest = all.as_slice();
        for k in 0..count {
            let (now, later) = rest.split_at(size(k, total).min(rest.len()));
            rest = later;
            self.refill_slab(node, from + k, from + k < to, now);
        }
        for at in (from + count..to).rev() {
            self.remove_slab(node, at);
        }
        self.refresh_separators(node, from, from + count);
        all.clear();
        self.scratch = all;
        total
    }

    fn refill_slab(&mut self, node: &mut IndexNode<T>, at: usize, exists: bool, elements: &[T]) {
        if !exists {
            return self.insert_slab(node, at, elements);
        }
        if let NodeChildren::Slabs(slabs) = &mut node.kids
            && let Some(slab) = slabs.get_mut(at)
        {
            slab.clear();
            slab.extend_from_slice(elements);
        }
    }

    pub fn scratch_bytes(&self) -> usize {
        self.scratch.capacity() * size_of::<T>() + self.path.capacity() * size_of::<usize>()
    }
}
