//! What happens inside a list, reported while it happens.
//!
//! A [`SlabProbe`] is a type parameter of the lists: with [`NoProbe`] each call is an empty inlined function, and
//! the compiled code is that of a list without probes.

/// Work that begins. It ends with the [`SlabEvent`] named at it; works nest (a spill makes a slab).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SlabWork {
    /// A slab is being allocated; ends with [`SlabEvent::SlabMade`].
    MakeSlab,
    /// A full slab gives elements to a neighbour, or to a new slab, or the first one what falling keys it has gathered;
    /// ends with [`SlabEvent::Spilled`].
    Spill,
    /// Slabs that fit into fewer are brought together; ends with [`SlabEvent::Shifted`].
    Shift,
    /// A pass over a level, or a bounded step of one; ends with [`SlabEvent::Reaped`].
    Reap {
        /// 0 for slabs, 1 for the index nodes right above them.
        level: u8,
    },
}

/// A structural event that has happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SlabEvent {
    /// A slab was made.
    SlabMade {
        /// Slabs in the list now.
        slabs: usize,
    },
    /// A slab was freed.
    SlabFreed {
        /// Slabs in the list now.
        slabs: usize,
    },
    /// An insertion found its slab full, or the first one at a step: elements went to a neighbour, or over one slab more.
    Spilled {
        /// Elements that changed place between slabs.
        moved: usize,
    },
    /// Neighbouring slabs were brought together.
    Shifted {
        /// Elements that changed place between slabs.
        moved: usize,
    },
    /// An index node right above the slabs was made.
    NodeMade {
        /// Such nodes in the list now.
        nodes: usize,
    },
    /// An index node right above the slabs was freed.
    NodeFreed {
        /// Such nodes in the list now.
        nodes: usize,
    },
    /// The index grew.
    IndexGrown {
        /// Index levels now.
        levels: u8,
    },
    /// The index lost levels.
    IndexShrunk {
        /// Index levels now.
        levels: u8,
    },
    /// A whole pass, or one bounded step, of reaping has ended.
    Reaped {
        /// 0 for slabs, 1 for the index nodes right above them.
        level: u8,
        /// Slabs (or nodes) that were looked at.
        examined: usize,
        /// Slabs (or nodes) that were saved: 0 is work for nothing.
        saved: usize,
        /// Elements (or children) that changed place.
        moved: usize,
    },
    /// The list left its small mode.
    BecameSlabs,
    /// The list went back to its small mode.
    BecameSmall,
}

/// Receives the structural events of one list. Both methods do nothing unless overridden.
pub trait SlabProbe {
    /// `work` begins now.
    #[inline(always)]
    fn begin(&mut self, work: SlabWork) {
        let _ = work;
    }

    /// `event` has happened now.
    #[inline(always)]
    fn event(&mut self, event: SlabEvent) {
        let _ = event;
    }
}

impl<P: SlabProbe + ?Sized> SlabProbe for &mut P {
    fn begin(&mut self, work: SlabWork) {
        (**self).begin(work);
    }
    fn event(&mut self, event: SlabEvent) {
        (**self).event(event);
    }
}

/// Listens to nothing and costs nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NoProbe;

impl SlabProbe for NoProbe {}

/// Counts events: the cheapest useful probe, and the one of our tests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EventCounts {
    /// Slabs made.
    pub made: u64,
    /// Slabs freed.
    pub freed: u64,
    /// Insertions that spilled.
    pub spilled: u64,
    /// Times that neighbours were brought together.
    pub shifted: u64,
    /// Index nodes made, right above the slabs.
    pub nodes_made: u64,
    /// Index nodes freed, right above the slabs.
    pub nodes_freed: u64,
    /// Times the index grew.
    pub grown: u64,
    /// Times the index lost levels.
    pub shrunk: u64,
    /// Reaps of slabs, whole or step.
    pub reaps: u64,
    /// Slabs that reaps saved.
    pub saved: u64,
    /// Reaps of the index.
    pub index_reaps: u64,
    /// Index nodes that reaps saved.
    pub index_saved: u64,
    /// Elements that changed slab, for whatever reason.
    pub moved: u64,
    /// Changes from small to slabs and back.
    pub modes: u64,
}

impl SlabProbe for EventCounts {
    fn event(&mut self, event: SlabEvent) {
        match event {
            SlabEvent::SlabMade { .. } => self.made += 1,
            SlabEvent::SlabFreed { .. } => self.freed += 1,
            SlabEvent::Spilled { moved } => {
                (self.spilled, self.moved) = (self.spilled + 1, self.moved + moved as u64)
            }
            SlabEvent::Shifted { moved } => {
                (self.shifted, self.moved) = (self.shifted + 1, self.moved + moved as u64)
            }
            SlabEvent::NodeMade { .. } => self.nodes_made += 1,
            SlabEvent::NodeFreed { .. } => self.nodes_freed += 1,
            SlabEvent::IndexGrown { .. } => self.grown += 1,
            SlabEvent::IndexShrunk { .. } => self.shrunk += 1,
            SlabEvent::Reaped { level: 0, saved, moved, .. } => {
                self.reaps += 1;
                self.saved += saved as u64;
                self.moved += moved as u64;
            }
            SlabEvent::Reaped { saved, .. } => {
                self.index_reaps += 1;
                self.index_saved += saved as u64;
            }
            SlabEvent::BecameSlabs | SlabEvent::BecameSmall => self.modes += 1,
        }
    }
}
