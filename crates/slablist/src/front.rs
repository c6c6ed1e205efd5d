//! Insertion before everything else, where falling keys arrive. Owns how the first slab is kept short, so that they move
//! little: it begins while the next is half full, and hands on what it has gathered until that one is full.

use crate::engine::ListCore;
use crate::insert::{InsertResult, TreeEdge};
use crate::node::{IndexNode, NodeChildren};
use crate::probe::{SlabEvent, SlabProbe, SlabWork};
use crate::spill::spill_right;

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
