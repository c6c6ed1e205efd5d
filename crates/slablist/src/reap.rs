//! Giving slabs back: a pass over all of them, a pass over the index, or one bounded step. When that is done is the
//! policy's decision.

use crate::list_core::ListCore;
use crate::node::{IndexNode, NodeChildren};
use crate::probe::{SlabEvent, SlabProbe, SlabWork};

impl<T: Copy, P: SlabProbe> ListCore<T, P> {
    /// Packs all elements into as few slabs as hold them. Returns the slabs saved.
    pub fn reap_slabs(&mut self, root: &mut IndexNode<T>) -> usize {
        self.probe.begin(SlabWork::Reap { level: 0 });
        let (examined, mut slabs) = (self.slabs, Vec::with_capacity(self.slabs));
        std::mem::replace(root, IndexNode::empty()).move_slabs_into(&mut slabs);
        let (packed, moved) = self.pack_slabs(slabs);
        *root = self.build_index(packed);
        let saved = examined - self.slabs;
        self.probe.event(SlabEvent::Reaped { level: 0, examined, saved, moved });
        saved
    }

    /// Fills each slab from the ones after it, and frees those that become empty.
    fn pack_slabs(&mut self, slabs: Vec<Vec<T>>) -> (Vec<Vec<T>>, usize) {
        let mut packed: Vec<Vec<T>> = Vec::with_capacity(slabs.len());
        let mut moved = 0;
        for mut slab in slabs {
            if let Some(last) = packed.last_mut().filter(|last| last.len() < self.capacity) {
                let fits = (self.capacity - last.len()).min(slab.len());
                last.extend(slab.drain(..fits));
                moved += fits;
            }
            if slab.is_empty() { self.free_slab(slab) } else { packed.push(slab) }
        }
        (packed, moved)
    }

    /// Rebuilds the index with full nodes. Returns the bottom nodes saved.
    pub fn reap_index(&mut self, root: &mut IndexNode<T>) -> usize {
        self.probe.begin(SlabWork::Reap { level: 1 });
        let (examined, kids) = (self.nodes, NodeChildren::Slabs(Vec::with_capacity(self.slabs)));
        let mut all = IndexNode { len: 0, seps: Vec::new(), kids };
        self.gather_slabs(std::mem::replace(root, IndexNode::empty()), &mut all);
        let NodeChildren::Slabs(slabs) = all.kids else { return 0 };
        let moved = slabs.len();
        *root = self.build_index(slabs);
        let saved = examined.saturating_sub(self.nodes);
        self.probe.event(SlabEvent::Reaped { level: 1, examined, saved, moved });
        saved
    }

    /// Appends the slabs of `node` to those of `all`, which needs neither separators nor a length. The slabs at the
    /// ends of two nodes may be thin, and would be neighbours in one: they are brought together first.
    fn gather_slabs(&mut self, node: IndexNode<T>, all: &mut IndexNode<T>) {
        match node.kids {
            NodeChildren::Nodes(kids) => kids.into_iter().for_each(|kid| self.gather_slabs(kid, all)),
            NodeChildren::Slabs(mut slabs) => {
                let seam = all.child_count();
                if let NodeChildren::Slabs(before) = &mut all.kids {
                    before.append(&mut slabs);
                }
                self.join_seam(all, seam);
            }
        }
    }

    /// An index of full nodes over `slabs`, none of which is empty.
    pub fn build_index(&mut self, slabs: Vec<Vec<T>>) -> IndexNode<T> {
        let ends = slabs.iter().filter_map(|slab| slab.last().copied()).collect();
        let lens = |slabs: &Vec<Vec<T>>| slabs.iter().map(Vec::len).sum();
        let mut level = group_into_nodes(slabs, ends, self.fanout, lens, NodeChildren::Slabs);
        self.set_node_count(level.0.len().max(1));
        let mut levels = 1;
        while level.0.len() > 1 {
            let lens = |nodes: &Vec<IndexNode<T>>| nodes.iter().map(|node| node.len).sum();
            level = group_into_nodes(level.0, level.1, self.fanout, lens, NodeChildren::Nodes);
            levels += 1;
        }
        self.set_levels(levels);
        level.0.pop().unwrap_or_else(IndexNode::empty)
    }

    /// One step at slab `i`: packs a window of at most `width` slabs if that saves one. Slabs are left an eighth
    /// empty, or the next insertion would spill at once.
    pub fn reap_window(&mut self, node: &mut IndexNode<T>, i: usize, width: usize) {
        let to = i.saturating_add(width).min(node.child_count());
        let total: usize = node.slabs().iter().take(to).skip(i).map(Vec::len).sum();
        let full = self.capacity - self.capacity / 8;
        let (examined, count) = (to - i, total.div_ceil(full));
        let saved = examined.saturating_sub(count);
        self.probe.begin(SlabWork::Reap { level: 0 });
        if saved > 0 {
            self.redistribute(node, (i, to), None, count, |_, _| full);
            self.join_seam(node, i + count);
            self.join_seam(node, i);
        }
        let moved = if saved > 0 { total } else { 0 };
        self.probe.event(SlabEvent::Reaped { level: 0, examined, saved, moved });
    }
}

/// Nodes over `items` in groups of `fanout`, and the end of each; `ends` are the ends of the items.
fn group_into_nodes<T: Copy, V>(
    items: Vec<V>,
    ends: Vec<T>,
    fanout: usize,
    len: impl Fn(&Vec<V>) -> usize,
    kids: impl Fn(Vec<V>) -> NodeChildren<T>,
) -> (Vec<IndexNode<T>>, Vec<T>) {
    let mut items = items.into_iter();
    let (mut nodes, mut above) = (Vec::new(), Vec::new());
    for ends in ends.chunks(fanout) {
        let chunk: Vec<V> = items.by_ref().take(ends.len()).collect();
        let Some((&end, seps)) = ends.split_last() else { continue };
        nodes.push(IndexNode { len: len(&chunk), seps: seps.to_vec(), kids: kids(chunk) });
        above.push(end);
    }
    (nodes, above)
}
