//! What the three monitors of the slab allocator share: the tree of `/sys/kernel/slab`, its attributes, and what the
//! counts of one cache say about each other. It owns no monitor and no column.

mod attribute;
mod capped;
mod identity;
mod page_size;
mod tree;

pub(super) use attribute::{NodeCounts, SlabAttribute, read_slab_attribute};
pub(super) use capped::CountEstimates;
pub(super) use identity::{CountConsistency, REREADS, SlabCounts, add_row_flag};
pub(super) use page_size::read_page_size;
pub(super) use tree::{SlabDirectory, SysfsSlabTree};

/// What root would add, and what remains without; said by all three when they are refused.
pub(super) const WITHOUT_ROOT: &str = "root would add objects, sizes and slabs of every cache (/proc/slabinfo), and \
     their alignment, order, aliases and exact counts (/sys/kernel/slab); the totals remain in meminfo (Slab, \
     SReclaimable, SUnreclaim) and vmstat (nr_slab_reclaimable, nr_slab_unreclaimable)";
