//! Owns one row: the counts of one cache at the ticks at which it had them, and its usage. It refuses rows that no memory could hold.

use std::ops::Range;

use super::counts::RowFlags;
use super::usage::Usage;

/// The largest slab bytes that are believed: 2^52, the physical address space of x86-64 and arm64.
const MOST_BYTES: u128 = 1 << 52;

/// One cache at one tick, or at several on end that say the same, in whole objects, slabs and bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Observed {
    /// Index into [`Recording::caches`](super::Recording::caches).
    pub cache: usize,
    /// Its first tick: index into [`Recording::ticks`](super::Recording::ticks).
    pub tick: usize,
    /// Its last tick: it stood unchanged at all of them in between.
    pub last: usize,
    /// Objects in use, as far as the kernel knows (`active_objs`).
    pub objects: u64,
    /// Slots (`num_objs`).
    pub total_objects: u64,
    /// Slabs (`num_slabs`).
    pub slabs: u64,
    /// Padded bytes of a slot (`objsize`).
    pub slab_size: u64,
    /// Slots of a slab of the preferred order (`objperslab`).
    pub objs_per_slab: u64,
    /// Bytes of a slab: `pagesperslab` * page size.
    pub bytes_per_slab: u64,
    /// Bytes asked for by the creator, where known.
    pub object_size: Option<u64>,
    /// Most objects that may be free although counted in `objects`, where there is a bound.
    pub hidden_objects: Option<u64>,
    /// Marks.
    pub flags: RowFlags,
}

impl Observed {
    /// Whether its bytes could exist.
    pub(super) fn is_believable(&self) -> bool {
        let slots = product(self.total_objects.max(self.objects), self.slab_size);
        product(self.slabs, self.bytes_per_slab) <= MOST_BYTES && slots <= MOST_BYTES
    }

    /// Adds the marks that follow from the counts themselves.
    pub(super) fn checked(mut self) -> Self {
        let room = product(self.slabs, self.objs_per_slab);
        let total = u128::from(self.total_objects);
        self.flags.torn |= self.objects > self.total_objects || total > room;
        self.flags.smaller_slabs = total < room;
        self
    }

    /// At how many ticks it stood.
    #[must_use]
    pub fn times(&self) -> usize {
        self.ticks().len()
    }

    /// The ticks at which it stood.
    #[must_use]
    pub fn ticks(&self) -> Range<usize> {
        self.tick..self.last + 1
    }

    /// Its bytes, by the formulas of [`Usage`].
    #[must_use]
    pub fn usage(&self) -> Usage {
        let size = self.object_size.unwrap_or(self.slab_size);
        let slab_bytes = product(self.slabs, self.bytes_per_slab);
        let slot_bytes = product(self.total_objects, self.slab_size);
        let hidden = self.hidden_objects.map(|hidden| product(hidden.min(self.objects), size));
        Usage {
            slab_bytes,
            slot_bytes,
            object_bytes: product(self.total_objects, size),
            used_bytes: product(self.objects, size),
            unknown_slot_bytes: if self.object_size.is_none() { slot_bytes } else { 0 },
            hidden_bytes: hidden.unwrap_or(0),
            unbounded_slab_bytes: if hidden.is_none() { slab_bytes } else { 0 },
        }
    }
}

/// Two factors of 64 bits always fit.
fn product(a: u64, b: u64) -> u128 {
    u128::from(a) * u128::from(b)
}
