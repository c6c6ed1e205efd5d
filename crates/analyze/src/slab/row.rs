//! Owns one row: the counts of one cache at the ticks at which it had them, and its usage. It refuses rows that no memory could hold.

use std::ops::Range;

use super::counts::SlabRowFlags;
use super::usage::SlabUsage;

/// The largest slab bytes that are believed: 2^52, the physical address space of x86-64 and arm64.
const MOST_BYTES: u128 = 1 << 52;

/// One cache at one tick, or at several on end that say the same, in whole objects, slabs and bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SlabRow {
    /// Index into [`Recording::caches`](super::SlabRecording::caches).
    pub cache: usize,
    /// Its first tick: index into [`Recording::ticks`](super::SlabRecording::ticks).
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
    pub flags: SlabRowFlags,
}

impl SlabRow {
    /// Whether its bytes could exist.
    pub(super) fn is_believable(&self) -> bool {
        let slots = wide_product(self.total_objects.max(self.objects), self.slab_size);
        wide_product(self.slabs, self.bytes_per_slab) <= MOST_BYTES && slots <= MOST_BYTES
    }

    /// Adds the marks that follow from the counts themselves.
    pub(super) fn with_count_flags(mut self) -> Self {
        let room = wide_product(self.slabs, self.objs_per_slab);
        let total = u128::from(self.total_objects);
        self.flags.torn |= self.objects > self.total_objects || total > room;
        self.flags.smaller_slabs = total < room;
        self
    }

    /// At how many ticks it stood.
    #[must_use]
    pub fn tick_count(&self) -> usize {
        self.ticks().len()
    }

    /// The ticks at which it stood.
    #[must_use]
    pub fn ticks(&self) -> Range<usize> {
        self.tick..self.last + 1
    }

    /// Its bytes, by the formulas of [`SlabUsage`].
    #[must_use]
    pub fn usage(&self) -> SlabUsage {
        let size = self.object_size.unwrap_or(self.slab_size);
        let slab_bytes = wide_product(self.slabs, self.bytes_per_slab);
        let slot_bytes = wide_product(self.total_objects, self.slab_size);
        let hidden = self.hidden_objects.map(|hidden| wide_product(hidden.min(self.objects), size));
        SlabUsage {
            slab_bytes,
            slot_bytes,
            object_bytes: wide_product(self.total_objects, size),
            used_bytes: wide_product(self.objects, size),
            unknown_slot_bytes: if self.object_size.is_none() { slot_bytes } else { 0 },
            hidden_bytes: hidden.unwrap_or(0),
            unbounded_slab_bytes: if hidden.is_none() { slab_bytes } else { 0 },
        }
    }
}

/// Two factors of 64 bits always fit.
fn wide_product(a: u64, b: u64) -> u128 {
    u128::from(a) * u128::from(b)
}
