//! Whether the counts of one slab cache contradict each other because they were not read in one instant.
//!
//! SLUB keeps slabs and objects of a node in two counters and adds to one after the other (mm/slub.c,
//! `inc_slabs_node`), and free objects are counted later still, so a reader may fall in between. A count of objects
//! below slabs times objects is not always that: where memory was too fragmented for the preferred order, slabs of
//! a lower one hold fewer objects (`allocate_slab`). Such a cache gives the same counts twice.

use perflab_model::{CellRow, TableCell};

/// How often a row that contradicts itself is read again within its tick.
pub(crate) const REREADS: usize = 2;

/// What one reading says of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SlabCounts {
    /// Objects in use, as far as the kernel knows.
    pub in_use: u64,
    /// Objects that its slabs have room for.
    pub objects: u64,
    /// Objects of a slab of the preferred order.
    pub per_slab: u64,
    /// Its slabs.
    pub slabs: u64,
}

/// What those counts say about each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CountConsistency {
    /// They agree.
    Sound,
    /// Fewer objects than slabs of the preferred order hold: torn, or some slabs are of a lower order.
    Short,
    /// They cannot all have been true at once.
    Torn,
}

impl SlabCounts {
    /// What they say about each other.
    pub(crate) fn consistency(&self) -> CountConsistency {
        let full = self.slabs.checked_mul(self.per_slab);
        match full {
            _ if self.in_use > self.objects => CountConsistency::Torn,
            Some(full) if full == self.objects => CountConsistency::Sound,
            // Every slab, of whatever order, holds an object at least.
            Some(full) if self.objects < full && self.objects >= self.slabs => CountConsistency::Short,
            _ => CountConsistency::Torn,
        }
    }

    /// Whether `self` and an earlier reading show slabs of a lower order: short by the same, twice.
    pub(crate) fn shows_lower_order(&self, earlier: &SlabCounts) -> bool {
        let same = (self.objects, self.slabs) == (earlier.objects, earlier.slabs);
        same && self.consistency() == CountConsistency::Short
    }
}

/// Adds a flag to the last cell of a row, which holds them comma separated.
pub(crate) fn add_row_flag(row: &mut CellRow, flag: &str) {
    if let Some(TableCell::Text(flags)) = row.last_mut() {
        let comma = if flags.is_empty() { "" } else { "," };
        flags.push_str(comma);
        flags.push_str(flag);
    }
}
