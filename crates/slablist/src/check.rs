//! The invariants, looked at one by one. Owns what must hold of a tree whatever was done to it.

use crate::error::Broken;
use crate::node::{Kids, Node};
use crate::probe::Probe;
use crate::tree::Tree;

/// What was counted on the way.
#[derive(Default)]
struct Seen {
    slabs: usize,
    nodes: usize,
}

fn hold(is: bool, what: impl FnOnce() -> String) -> Result<(), Broken> {
    if is { Ok(()) } else { Err(Broken(what())) }
}

impl<T: Copy, R, P: Probe> Tree<T, R, P> {
    pub fn check(&self) -> Result<(), Broken> {
        let mut seen = Seen::default();
        self.check_node(&self.root, self.core.levels, &mut seen)?;
        hold(seen.slabs == self.core.slabs, || format!("{} slabs, {} counted", seen.slabs, self.core.slabs))?;
        hold(seen.nodes == self.core.nodes, || format!("{} nodes, {} counted", seen.nodes, self.core.nodes))?;
        let root = self.root.children();
        hold(self.core.levels == 1 || root > 1, || {
            format!("a root of {root} below {} levels", self.core.levels)
        })?;
        hold(!self.core.is_small || self.root.len <= self.core.small, || {
            format!("small at {}", self.root.len)
        })
    }

    fn check_node(&self, node: &Node<T>, level: u8, seen: &mut Seen) -> Result<(), Broken> {
        let children = node.children();
        hold(children <= self.core.fanout, || format!("{children} children at level {level}"))?;
        hold(node.seps.len() == children.saturating_sub(1), || format!("{} separators", node.seps.len()))?;
        let len = match &node.kids {
            Kids::Slabs(slabs) => {
                seen.nodes += 1;
                seen.slabs += slabs.len();
                hold(level == 1, || format!("slabs at level {level}"))?;
                self.check_slabs(slabs)?;
                slabs.iter().map(Vec::len).sum()
            }
            Kids::Nodes(kids) => {
                hold(level > 1, || "nodes at the level of slabs".to_owned())?;
                kids.iter().try_for_each(|kid| {
                    hold(kid.children() > 0, || format!("an empty node at level {}", level - 1))?;
                    self.check_node(kid, level - 1, seen)
                })?;
                kids.iter().map(|kid| kid.len).sum::<usize>()
            }
        };
        hold(node.len == len, || format!("a node of {len} elements says {}", node.len))
    }

    fn check_slabs(&self, slabs: &[Vec<T>]) -> Result<(), Broken> {
        let (capacity, small) = (self.core.capacity, self.core.is_small);
        for slab in slabs {
            hold(!slab.is_empty() && slab.len() <= capacity, || {
                format!("a slab of {} elements", slab.len())
            })?;
            hold(small || slab.capacity() >= capacity, || {
                format!("a slab with room for {}", slab.capacity())
            })?;
        }
        hold(!small || slabs.len() < 2, || format!("a small list of {} slabs", slabs.len()))?;
        let thin = slabs.windows(2).find(|two| two.iter().map(Vec::len).sum::<usize>() * 2 <= capacity);
        hold(!self.core.merges || thin.is_none(), || "two neighbours within half a slab".to_owned())
    }
}

/// Order inside slabs, between them, and against every separator above them.
pub(crate) fn check_order<K: Ord + Copy>(
    node: &Node<K>,
    above: Option<K>,
    upto: Option<K>,
) -> Result<(), Broken> {
    let bounds = |at: usize| {
        (if at == 0 { above } else { node.seps.get(at - 1).copied() }, node.seps.get(at).copied().or(upto))
    };
    match &node.kids {
        Kids::Nodes(kids) => kids.iter().enumerate().try_for_each(|(at, kid)| {
            let (above, upto) = bounds(at);
            check_order(kid, above, upto)
        }),
        Kids::Slabs(slabs) => slabs.iter().enumerate().try_for_each(|(at, slab)| {
            let (above, upto) = bounds(at);
            hold(slab.is_sorted_by(|a, b| a < b), || "a slab out of order".to_owned())?;
            hold(slab.first().zip(above).is_none_or(|(k, sep)| *k > sep), || {
                "a key below its slab".to_owned()
            })?;
            hold(slab.last().zip(upto).is_none_or(|(k, sep)| *k <= sep), || {
                "a key beyond its slab".to_owned()
            })
        }),
    }
}
