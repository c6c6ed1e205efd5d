//! What the three monitors of the slab allocator share: the tree of `/sys/kernel/slab`, its attributes, and what the
//! counts of one cache say about each other. It owns no monitor and no column.

mod attribute;
mod capped;
mod identity;
mod page_size;
mod tree;

pub(super) use attribute::{Attribute, Count, said};
pub(super) use capped::Capped;
pub(super) use identity::{Counts, REREADS, Soundness, flag};
pub(super) use page_size::page_size;
pub(super) use tree::{Place, Tree};

/// What root would add, and what remains without; said by all three when they are refused.
pub(super) const WITHOUT_ROOT: &str = "root would add objects, sizes and slabs of every cache (/proc/slabinfo), and \
     their alignment, order, aliases and exact counts (/sys/kernel/slab); the totals remain in meminfo (Slab, \
     SReclaimable, SUnreclaim) and vmstat (nr_slab_reclaimable, nr_slab_unreclaimable)";
