//! Removal, and any other change to one bottom node: the way down, the change, and the mending of the nodes on the
//! way up. Owns what bounds its work: one slab and two seams, one node a level.

use crate::engine::Core;
use crate::node::{Kids, Node};
use crate::probe::Probe;
use crate::route::Route;

impl<T: Copy, P: Probe> Core<T, P> {
    /// Lets `act` change the bottom node that `route` leads to; it is given the slab's number and keeps the node's
    /// length right.
    pub fn edit<R: Route<T>, O>(
        &mut self,
        node: &mut Node<T>,
        mut route: R,
        act: impl FnOnce(&mut Self, &mut Node<T>, usize, R) -> O,
    ) -> Option<O> {
        let Kids::Nodes(kids) = &mut node.kids else {
            let slab = route.slab(&node.seps, node.slabs(), &mut self.trust);
            return (slab < node.children()).then(|| act(self, node, slab, route));
        };
        let child = route.node(&node.seps, kids);
        let kid = kids.get_mut(child)?;
        let (before, children) = (kid.len, kid.children());
        let out = self.edit(kid, route, act);
        node.len -= before - kid.len;
        if kid.children() < children && kid.children() < (self.fanout / 4).max(2) {
            self.mend(node, child);
        }
        out
    }

    /// Takes at most `most` elements out of slab `i`, from slot `from`, after showing them to `sink`.
    pub fn take(
        &mut self,
        node: &mut Node<T>,
        i: usize,
        from: usize,
        most: usize,
        sink: impl FnOnce(&[T]),
    ) -> usize {
        let Kids::Slabs(slabs) = &mut node.kids else { return 0 };
        let Some(slab) = slabs.get_mut(i) else { return 0 };
        let to = from.saturating_add(most).min(slab.len());
        let Some(gone) = slab.get(from..to) else { return 0 };
        sink(gone);
        slab.drain(from..to);
        node.len -= to - from;
        self.settle(node, i);
        to - from
    }

    /// After slab `i` lost elements: frees it if it is empty, else brings it together with a neighbour.
    fn settle(&mut self, node: &mut Node<T>, i: usize) {
        if node.slabs().get(i).is_some_and(Vec::is_empty) {
            self.remove_slab(node, i);
            self.seam(node, i);
        } else if self.merges {
            self.join(node, i);
            self.seam(node, i);
        }
    }

    /// Brings slabs `at - 1` and `at` together if the policy wants that and they fit.
    pub fn seam(&mut self, node: &mut Node<T>, at: usize) {
        if self.merges && at > 0 {
            self.join(node, at - 1);
        }
    }

    /// Child `at` has few children: an empty one goes, a narrow one joins a neighbour if there is room.
    fn mend(&mut self, node: &mut Node<T>, at: usize) {
        let Kids::Nodes(kids) = &mut node.kids else { return };
        let children = |at: usize| kids.get(at).map_or(usize::MAX, Node::children);
        let widest = self.fanout * 3 / 4;
        if children(at) == 0 {
            let gone = kids.remove(at);
            if !node.seps.is_empty() {
                node.seps.remove(at.min(node.seps.len() - 1));
            }
            self.count_gone(&gone);
        } else if children(at).saturating_add(children(at + 1)) <= widest {
            self.unite(node, at);
        } else if at > 0 && children(at - 1).saturating_add(children(at)) <= widest {
            self.unite(node, at - 1);
        }
    }

    fn count_gone(&mut self, node: &Node<T>) {
        if matches!(node.kids, Kids::Slabs(_)) {
            self.set_nodes(self.nodes - 1);
        }
    }

    /// Appends child `at + 1` to child `at`.
    fn unite(&mut self, node: &mut Node<T>, at: usize) {
        let Kids::Nodes(kids) = &mut node.kids else { return };
        let mut right = kids.remove(at + 1);
        let sep = node.seps.remove(at);
        let Some(left) = kids.get_mut(at) else { return };
        let seam = left.children();
        left.len += right.len;
        left.seps.push(sep);
        left.seps.append(&mut right.seps);
        match (&mut left.kids, &mut right.kids) {
            (Kids::Slabs(left), Kids::Slabs(right)) => left.append(right),
            (Kids::Nodes(left), Kids::Nodes(right)) => left.append(right),
            _ => {}
        }
        self.count_gone(&right);
        if matches!(left.kids, Kids::Slabs(_)) {
            self.seam(left, seam);
        }
    }
}
