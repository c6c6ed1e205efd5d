//! Removal, and any other change to one bottom node: the way down, the change, and the mending of the nodes on the
//! way up.
//!
//! Its work is bounded: one slab and two seams, one node a level.

use crate::list_core::ListCore;
use crate::node::{IndexNode, NodeChildren};
use crate::probe::SlabProbe;
use crate::route::TreeRoute;

impl<T: Copy, P: SlabProbe> ListCore<T, P> {
    /// Lets `act` change the bottom node that `route` leads to; it is given the slab's number and keeps the node's
    /// length right.
    pub fn edit_bottom_node<R: TreeRoute<T>, O>(
        &mut self,
        node: &mut IndexNode<T>,
        mut route: R,
        act: impl FnOnce(&mut Self, &mut IndexNode<T>, usize, R) -> O,
    ) -> Option<O> {
        let NodeChildren::Nodes(kids) = &mut node.kids else {
            let slab = route.choose_slab(&node.seps, node.slabs(), &mut self.trust);
            return (slab < node.child_count()).then(|| act(self, node, slab, route));
        };
        let child = route.choose_child(&node.seps, kids);
        let kid = kids.get_mut(child)?;
        let (before, children) = (kid.len, kid.child_count());
        let out = self.edit_bottom_node(kid, route, act);
        node.len -= before - kid.len;
        if kid.child_count() < children && kid.child_count() < (self.fanout / 4).max(2) {
            self.rebalance(node, child);
        }
        out
    }

    /// Takes at most `most` elements out of slab `i`, from slot `from`, after showing them to `sink`.
    pub fn take_elements(
        &mut self,
        node: &mut IndexNode<T>,
        i: usize,
        from: usize,
        most: usize,
        sink: impl FnOnce(&[T]),
    ) -> usize {
        let NodeChildren::Slabs(slabs) = &mut node.kids else { return 0 };
        let Some(slab) = slabs.get_mut(i) else { return 0 };
        let to = from.saturating_add(most).min(slab.len());
        let Some(gone) = slab.get(from..to) else { return 0 };
        sink(gone);
        slab.drain(from..to);
        node.len -= to - from;
        self.close_up_slab(node, i);
        to - from
    }

    /// After slab `i` lost elements: frees it if it is empty, else brings it together with a neighbour.
    fn close_up_slab(&mut self, node: &mut IndexNode<T>, i: usize) {
        if node.slabs().get(i).is_some_and(Vec::is_empty) {
            self.remove_slab(node, i);
            self.join_seam(node, i);
        } else if self.merges {
            self.join_slabs(node, i);
            self.join_seam(node, i);
        }
    }

    /// Brings slabs `at - 1` and `at` together if the policy wants that and they fit.
    pub fn join_seam(&mut self, node: &mut IndexNode<T>, at: usize) {
        if self.merges && at > 0 {
            self.join_slabs(node, at - 1);
        }
    }

    /// Child `at` has few children: an empty one goes, a narrow one joins a neighbour if there is room.
    fn rebalance(&mut self, node: &mut IndexNode<T>, at: usize) {
        let NodeChildren::Nodes(kids) = &mut node.kids else { return };
        let children = |at: usize| kids.get(at).map_or(usize::MAX, IndexNode::child_count);
        let widest = self.fanout * 3 / 4;
        if children(at) == 0 {
            let gone = kids.remove(at);
            if !node.seps.is_empty() {
                node.seps.remove(at.min(node.seps.len() - 1));
            }
            self.count_removed_node(&gone);
        } else if children(at).saturating_add(children(at + 1)) <= widest {
            self.join_nodes(node, at);
        } else if at > 0 && children(at - 1).saturating_add(children(at)) <= widest {
            self.join_nodes(node, at - 1);
        }
    }

    fn count_removed_node(&mut self, node: &IndexNode<T>) {
        if matches!(node.kids, NodeChildren::Slabs(_)) {
            self.set_node_count(self.nodes - 1);
        }
    }

    /// Appends child `at + 1` to child `at`.
    fn join_nodes(&mut self, node: &mut IndexNode<T>, at: usize) {
        let NodeChildren::Nodes(kids) = &mut node.kids else { return };
        let mut right = kids.remove(at + 1);
        let sep = node.seps.remove(at);
        let Some(left) = kids.get_mut(at) else { return };
        let seam = left.child_count();
        left.len += right.len;
        left.seps.push(sep);
        left.seps.append(&mut right.seps);
        match (&mut left.kids, &mut right.kids) {
            (NodeChildren::Slabs(left), NodeChildren::Slabs(right)) => left.append(right),
            (NodeChildren::Nodes(left), NodeChildren::Nodes(right)) => left.append(right),
            _ => {}
        }
        self.count_removed_node(&right);
        if matches!(left.kids, NodeChildren::Slabs(_)) {
            self.join_seam(left, seam);
        }
    }
}
