//! The events as USDT probes of provider `slablist`, for bpftrace, perf and SystemTap. A site that nobody is
//! attached to is one `nop`.
//!
//! Work that begins is `NAME_begin`, the event that ends it `NAME`: `slab_made`, `spilled`, `shifted`, `reaped`.
//! The other events are `slab_freed`, `node_made`, `node_freed`, `index_grown`, `index_shrunk`, `became_slabs` and
//! `became_small`.

use crate::probe::{Event, Probe, Work};

/// Fires a USDT probe for each event; arguments are the event's fields in the order of their declaration.
///
/// A list that is to be seen from outside is made with it: `SlabSet::with(shape, policy, Usdt)`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usdt;

impl Probe for Usdt {
    #[inline]
    fn begin(&mut self, work: Work) {
        match work {
            Work::MakeSlab => probe::probe!(slablist, slab_made_begin),
            Work::Spill => probe::probe!(slablist, spilled_begin),
            Work::Shift => probe::probe!(slablist, shifted_begin),
            Work::Reap { level } => probe::probe!(slablist, reaped_begin, level),
        }
    }

    #[inline]
    fn event(&mut self, event: Event) {
        match event {
            Event::SlabMade { slabs } => probe::probe!(slablist, slab_made, slabs),
            Event::SlabFreed { slabs } => probe::probe!(slablist, slab_freed, slabs),
            Event::Spilled { moved } => probe::probe!(slablist, spilled, moved),
            Event::Shifted { moved } => probe::probe!(slablist, shifted, moved),
            Event::NodeMade { nodes } => probe::probe!(slablist, node_made, nodes),
            Event::NodeFreed { nodes } => probe::probe!(slablist, node_freed, nodes),
            Event::IndexGrown { levels } => probe::probe!(slablist, index_grown, levels),
            Event::IndexShrunk { levels } => probe::probe!(slablist, index_shrunk, levels),
            Event::Reaped { level, examined, saved, moved } => {
                probe::probe!(slablist, reaped, level, examined, saved, moved);
            }
            Event::BecameSlabs => probe::probe!(slablist, became_slabs),
            Event::BecameSmall => probe::probe!(slablist, became_small),
        }
    }
}
