//! What must hold of a tree whatever was done to it, checked one by one.

use crate::comparator::Comparator;
use crate::error::InvariantViolation;
use crate::node::{IndexNode, NodeChildren};
use crate::probe::SlabProbe;
use crate::tree::SlabTree;

/// What was counted on the way.
#[derive(Default)]
struct CheckTotals {
    slabs: usize,
    nodes: usize,
}

fn ensure_holds(is: bool, what: impl FnOnce() -> String) -> Result<(), InvariantViolation> {
    if is { Ok(()) } else { Err(InvariantViolation(what())) }
}

impl<T: Copy, R, P: SlabProbe> SlabTree<T, R, P> {
    pub fn check_structure(&self) -> Result<(), InvariantViolation> {
        let mut totals = CheckTotals::default();
        self.check_node(&self.root, self.core.levels, &mut totals)?;
        ensure_holds(totals.slabs == self.core.slabs, || {
            format!("{} slabs, {} counted", totals.slabs, self.core.slabs)
        })?;
        ensure_holds(totals.nodes == self.core.nodes, || {
            format!("{} nodes, {} counted", totals.nodes, self.core.nodes)
        })?;
        let root = self.root.child_count();
        ensure_holds(self.core.levels == 1 || root > 1, || {
            format!("a root of {root} below {} levels", self.core.levels)
        })?;
        ensure_holds(!self.core.is_small || self.root.len <= self.core.small, || {
            format!("small at {}", self.root.len)
        })
    }

    fn check_node(
        &self,
        node: &IndexNode<T>,
        level: u8,
        totals: &mut CheckTotals,
    ) -> Result<(), InvariantViolation> {
        let children = node.child_count();
        ensure_holds(children <= self.core.fanout, || format!("{children} children at level {level}"))?;
        ensure_holds(node.seps.len() == children.saturating_sub(1), || {
            format!("{} separators", node.seps.len())
        })?;
        let len = match &node.kids {
            NodeChildren::Slabs(slabs) => {
                totals.nodes += 1;
                totals.slabs += slabs.len();
                ensure_holds(level == 1, || format!("slabs at level {level}"))?;
                self.check_slabs(slabs)?;
                slabs.iter().map(Vec::len).sum()
            }
            NodeChildren::Nodes(kids) => {
                ensure_holds(level > 1, || "nodes at the level of slabs".to_owned())?;
                kids.iter().try_for_each(|kid| {
                    ensure_holds(kid.child_count() > 0, || format!("an empty node at level {}", level - 1))?;
                    self.check_node(kid, level - 1, totals)
                })?;
                kids.iter().map(|kid| kid.len).sum::<usize>()
            }
        };
        ensure_holds(node.len == len, || format!("a node of {len} elements says {}", node.len))
    }

    fn check_slabs(&self, slabs: &[Vec<T>]) -> Result<(), InvariantViolation> {
        let (capacity, small) = (self.core.capacity, self.core.is_small);
        for slab in slabs {
            ensure_holds(!slab.is_empty() && slab.len() <= capacity, || {
                format!("a slab of {} elements", slab.len())
            })?;
            ensure_holds(small || slab.capacity() >= capacity, || {
                format!("a slab with room for {}", slab.capacity())
            })?;
        }
        ensure_holds(!small || slabs.len() < 2, || format!("a small list of {} slabs", slabs.len()))?;
        let thin = slabs.windows(2).find(|two| two.iter().map(Vec::len).sum::<usize>() * 2 <= capacity);
        ensure_holds(!self.core.merges || thin.is_none(), || "two neighbours within half a slab".to_owned())
    }
}

/// Order inside slabs, between them, and against every separator above them.
pub(crate) fn check_order<K: Copy, C: Comparator<K>>(
    node: &IndexNode<K>,
    order: C,
    above: Option<K>,
    upto: Option<K>,
) -> Result<(), InvariantViolation> {
    let bounds = |at: usize| {
        (if at == 0 { above } else { node.seps.get(at - 1).copied() }, node.seps.get(at).copied().or(upto))
    };
    match &node.kids {
        NodeChildren::Nodes(kids) => kids.iter().enumerate().try_for_each(|(at, kid)| {
            let (above, upto) = bounds(at);
            check_order(kid, order, above, upto)
        }),
        NodeChildren::Slabs(slabs) => slabs.iter().enumerate().try_for_each(|(at, slab)| {
            let (above, upto) = bounds(at);
            ensure_holds(slab.is_sorted_by(|a, b| order.is_below(a, b)), || {
                "a slab out of order".to_owned()
            })?;
            ensure_holds(slab.first().zip(above).is_none_or(|(k, sep)| order.is_below(&sep, k)), || {
                "a key below its slab".to_owned()
            })?;
            ensure_holds(slab.last().zip(upto).is_none_or(|(k, sep)| order.is_upto(k, &sep)), || {
                "a key beyond its slab".to_owned()
            })
        }),
    }
}
