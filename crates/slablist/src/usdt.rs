//! The events as USDT probes of provider `slablist`, for bpftrace, perf and SystemTap. A site that nobody is
//! attached to is one `nop`.
//!
//! Work that begins is `NAME_begin`, the event that ends it `NAME`: `slab_made`, `spilled`, `shifted`, `reaped`.
//! The other events are `slab_freed`, `node_made`, `node_freed`, `index_grown`, `index_shrunk`, `became_slabs` and
//! `became_small`.

use crate::probe::{SlabEvent, SlabProbe, SlabWork};

/// Fires a USDT probe for each event; arguments are the event's fields in the order of their declaration.
///
/// A list that is to be seen from outside is made with it: `SlabSet::with_shape(shape, policy, Usdt)`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usdt;

impl SlabProbe for Usdt {
    #[inline]
    fn begin(&mut self, work: SlabWork) {
        match work {
            SlabWork::MakeSlab => probe::probe!(slablist, slab_made_begin),
            SlabWork::Spill => probe::probe!(slablist, spilled_begin),
            SlabWork::Shift => probe::probe!(slablist, shifted_begin),
            SlabWork::Reap { level } => probe::probe!(slablist, reaped_begin, level),
        }
    }

    #[inline]
    fn event(&mut self, event: SlabEvent) {
        match event {
            SlabEvent::SlabMade { slabs } => probe::probe!(slablist, slab_made, slabs),
            SlabEvent::SlabFreed { slabs } => probe::probe!(slablist, slab_freed, slabs),
            SlabEvent::Spilled { moved } => probe::probe!(slablist, spilled, moved),
            SlabEvent::Shifted { moved } => probe::probe!(slablist, shifted, moved),
            SlabEvent::NodeMade { nodes } => probe::probe!(slablist, node_made, nodes),
            SlabEvent::NodeFreed { nodes } => probe::probe!(slablist, node_freed, nodes),
            SlabEvent::IndexGrown { levels } => probe::probe!(slablist, index_grown, levels),
            SlabEvent::IndexShrunk { levels } => probe::probe!(slablist, index_shrunk, levels),
            SlabEvent::Reaped { level, examined, saved, moved } => {
                probe::probe!(slablist, reaped, level, examined, saved, moved);
            }
            SlabEvent::BecameSlabs => probe::probe!(slablist, became_slabs),
            SlabEvent::BecameSmall => probe::probe!(slablist, became_small),
        }
    }
}
