//! Room in a full slab: its elements go to a neighbour, or over one slab more.

use crate::list_core::ListCore;
use crate::node::{IndexNode, NodeChildren};
use crate::probe::SlabProbe;

impl<T: Copy, P: SlabProbe> ListCore<T, P> {
    /// Makes room in full slab `i`; returns the elements that changed place.
    pub fn spill_slab(&mut self, node: &mut IndexNode<T>, i: usize, at: usize, value: T) -> usize {
        let room = |at: Option<usize>| {
            let slab = at.and_then(|at| node.slabs().get(at));
            slab.map_or(0, |slab| self.capacity.saturating_sub(slab.len()))
        };
        let (left, right) = (room(i.checked_sub(1)), room(i.checked_add(1)));
        if left.max(right) < (self.capacity / 8).max(2) {
            self.split_window(node, i, at, value)
        } else if right >= left {
            spill_right(node, i, at, value, right / 2);
            self.refresh_separators(node, i, i + 1);
            right / 2
        } else {
            spill_left(node, i, at, value, left / 2);
            self.refresh_separators(node, i - 1, i);
            left / 2
        }
    }

    /// The neighbours are (nearly) full too: spreads them, the slab and the element over one slab more.
    fn split_window(&mut self, node: &mut IndexNode<T>, i: usize, at: usize, value: T) -> usize {
        let (from, to) = (i.saturating_sub(1), (i + 2).min(node.child_count()));
        let before: usize = node.slabs().iter().take(i).skip(from).map(Vec::len).sum();
        let count = to - from + 1;
        let even = |k, total| total / count + usize::from(k < total % count);
        self.redistribute(node, (from, to), Some((before + at, value)), count, even)
    }
}

/// Moves the end of slab `i` to the beginning of the next.
pub(crate) fn spill_right<T: Copy>(node: &mut IndexNode<T>, i: usize, at: usize, value: T, moved: usize) {
    let NodeChildren::Slabs(slabs) = &mut node.kids else { return };
    let Some([slab, next]) = slabs.get_mut(i..i + 2) else { return };
    let (keep, old) = (slab.len() - moved, next.len());
    let (_, tail) = slab.split_at(keep);
    next.extend_from_slice(tail);
    next.copy_within(..old, moved);
    if let Some(front) = next.get_mut(..moved) {
        front.copy_from_slice(tail);
    }
    slab.truncate(keep);
    if at <= keep { slab.insert(at, value) } else { next.insert(at - keep, value) }
}

/// Moves the beginning of slab `i` to the end of the one before.
fn spill_left<T: Copy>(node: &mut IndexNode<T>, i: usize, at: usize, value: T, moved: usize) {
    let NodeChildren::Slabs(slabs) = &mut node.kids else { return };
    let Some([previous, slab]) = slabs.get_mut(i - 1..=i) else { return };
    let old = previous.len();
    previous.extend(slab.drain(..moved));
    if at <= moved { previous.insert(old + at, value) } else { slab.insert(at - moved, value) }
}
