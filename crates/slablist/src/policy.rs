//! When slabs are given back: a policy is asked after each insertion and each removal. The work itself is in
//! `reap`.

use std::fmt;
use std::str::FromStr;

/// What a policy may look at: all of it is kept up to date anyway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Occupancy {
    /// Elements in the list.
    pub elements: usize,
    /// Slabs in the list.
    pub slabs: usize,
    /// Elements that a slab holds.
    pub slab_capacity: usize,
    /// Index nodes right above the slabs.
    pub nodes: usize,
    /// Slabs that such a node holds.
    pub fanout: usize,
}

impl Occupancy {
    /// Slabs that a perfect packing would save.
    #[must_use]
    pub fn saveable_slabs(&self) -> usize {
        self.slabs.saturating_sub(self.elements.div_ceil(self.slab_capacity))
    }
}

/// What is to be done now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReapDecision {
    /// Nothing.
    Leave,
    /// One pass over all slabs: O(n).
    Slabs,
    /// One pass over the index nodes right above the slabs: O(slabs), and at most one slab's elements moved for each
    /// node, where slabs that meet are brought together.
    Index,
    /// One step over at most so many neighbouring slabs: O(slabs * capacity), however long the list is.
    Step {
        /// Slabs the step may touch.
        slabs: usize,
    },
}

/// Decides, after each operation that changed the list, whether slabs are to be given back.
pub trait ReapPolicy {
    /// The decision for a list in this state. Called once per change: keep it to a few instructions.
    fn decide(&self, state: &Occupancy) -> ReapDecision;

    /// Whether a removal brings its slab together with a neighbour once both fit into three quarters of one, as do
    /// slabs that meet where index nodes are brought together. If so, two neighbours below the same index node always
    /// hold more than half a slab together; if not, a slab is freed only when it becomes empty. Asked once, when the
    /// list is made.
    fn merges_neighbours(&self) -> bool {
        true
    }
}

impl<R: ReapPolicy + ?Sized> ReapPolicy for Box<R> {
    fn decide(&self, state: &Occupancy) -> ReapDecision {
        (**self).decide(state)
    }
    fn merges_neighbours(&self) -> bool {
        (**self).merges_neighbours()
    }
}

/// Never gives anything back but empty slabs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NeverReap;

impl ReapPolicy for NeverReap {
    #[inline]
    fn decide(&self, _: &Occupancy) -> ReapDecision {
        ReapDecision::Leave
    }
    fn merges_neighbours(&self) -> bool {
        false
    }
}

/// The policy of the original until November 2012: a whole pass as soon as the fill falls below a ratio, for the
/// slabs and, with a ratio that no user could see, for the index above them.
///
/// The index ratio of 99 % is what made the study's erratic outliers: only a level of 100 nodes and more can miss
/// it, and from then on nearly each new node is followed by a pass that saves one or two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MinCapacity {
    /// Least fill of the slabs, in percent.
    pub slabs: u8,
    /// Least fill of the index nodes right above them, in percent; 0 leaves the index alone.
    pub index: u8,
}

impl Default for MinCapacity {
    fn default() -> Self {
        Self { slabs: 70, index: 99 }
    }
}

impl MinCapacity {
    /// Below the ratio, and one partial unit could still satisfy it, and there is one to save.
    #[inline]
    fn is_below_fill(percent: u8, held: usize, units: usize, capacity: usize) -> bool {
        let percent = usize::from(percent.min(99));
        units * (100 - percent) >= 100
            && held * 100 < percent * units * capacity
            && held.div_ceil(capacity) < units
    }
}

impl ReapPolicy for MinCapacity {
    #[inline]
    fn decide(&self, s: &Occupancy) -> ReapDecision {
        if Self::is_below_fill(self.slabs, s.elements, s.slabs, s.slab_capacity) {
            ReapDecision::Slabs
        } else if Self::is_below_fill(self.index, s.slabs, s.nodes, s.fanout) {
            ReapDecision::Index
        } else {
            ReapDecision::Leave
        }
    }
}

/// The policy of the original since then: a whole pass when it saves at least so many slabs and at least that share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReapThresholds {
    /// Least number of slabs to save.
    pub slabs: usize,
    /// Least share of the slabs to save, in percent.
    pub percent: u8,
}

impl Default for ReapThresholds {
    fn default() -> Self {
        Self { slabs: 30, percent: 30 }
    }
}

impl ReapPolicy for ReapThresholds {
    #[inline]
    fn decide(&self, s: &Occupancy) -> ReapDecision {
        // No division unless the cheap upper bound passes: this runs after every operation.
        let at_most = (s.slabs * s.slab_capacity).saturating_sub(s.elements);
        if at_most < self.slabs * s.slab_capacity {
            return ReapDecision::Leave;
        }
        let saveable = s.saveable_slabs();
        if saveable >= self.slabs.max(1) && saveable * 100 >= usize::from(self.percent) * s.slabs {
            ReapDecision::Slabs
        } else {
            ReapDecision::Leave
        }
    }
}

/// Ours: while the fill is below a target, each operation does one small step, so that no single one is long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BoundedReap {
    /// Fill below which steps are made, in percent.
    pub target: u8,
    /// Neighbouring slabs that one step may touch.
    pub slabs: usize,
}

impl BoundedReap {
    /// The most elements that one insertion or removal moves between slabs of `capacity` elements: a spill over
    /// three slabs, a step, and the merges at their seams.
    #[must_use]
    pub const fn worst_moves(&self, capacity: usize) -> usize {
        (self.slabs + 6) * capacity
    }
}

impl Default for BoundedReap {
    fn default() -> Self {
        Self { target: 60, slabs: 4 }
    }
}

impl ReapPolicy for BoundedReap {
    #[inline]
    fn decide(&self, s: &Occupancy) -> ReapDecision {
        if s.elements * 100 < usize::from(self.target) * s.slabs * s.slab_capacity && s.saveable_slabs() > 0 {
            ReapDecision::Step { slabs: self.slabs }
        } else {
            ReapDecision::Leave
        }
    }
}

/// Any of the policies, chosen at run time: `never`, `old`, `old:70:99`, `new`, `new:40:30`, `bounded`,
/// `bounded:60:4`.
///
/// ```
/// use slablist::{AnyReapPolicy, ReapThresholds};
/// assert_eq!("new:40:30".parse(), Ok(AnyReapPolicy::Thresholds(ReapThresholds { slabs: 40, percent: 30 })));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnyReapPolicy {
    /// [`NeverReap`].
    Never(NeverReap),
    /// [`MinCapacity`].
    MinCapacity(MinCapacity),
    /// [`ReapThresholds`].
    Thresholds(ReapThresholds),
    /// [`BoundedReap`].
    Bounded(BoundedReap),
}

impl ReapPolicy for AnyReapPolicy {
    #[inline]
    fn decide(&self, s: &Occupancy) -> ReapDecision {
        match self {
            Self::Never(p) => p.decide(s),
            Self::MinCapacity(p) => p.decide(s),
            Self::Thresholds(p) => p.decide(s),
            Self::Bounded(p) => p.decide(s),
        }
    }
    fn merges_neighbours(&self) -> bool {
        !matches!(self, Self::Never(_))
    }
}

/// A text that names no policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownPolicy(String);

impl fmt::Display for UnknownPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "no reap policy {:?}: never, old[:SLABS%:INDEX%], new[:SLABS:PERCENT], bounded[:TARGET%:SLABS]",
            self.0
        )
    }
}

impl std::error::Error for UnknownPolicy {}

impl FromStr for AnyReapPolicy {
    type Err = UnknownPolicy;

    fn from_str(text: &str) -> Result<Self, UnknownPolicy> {
        let unknown = || UnknownPolicy(text.to_owned());
        let (name, rest) = text.split_once(':').map_or((text, None), |(name, rest)| (name, Some(rest)));
        let numbers = rest.map(|rest| rest.split_once(':').ok_or_else(unknown)).transpose()?;
        let percent = |text: &str| text.parse::<u8>().ok().filter(|p| *p <= 99).ok_or_else(unknown);
        let count = |text: &str| text.parse::<usize>().ok().filter(|n| *n > 0).ok_or_else(unknown);
        Ok(match (name, numbers) {
            ("never", None) => Self::Never(NeverReap),
            ("old", None) => Self::MinCapacity(MinCapacity::default()),
            ("old", Some((slabs, index))) => {
                Self::MinCapacity(MinCapacity { slabs: percent(slabs)?, index: percent(index)? })
            }
            ("new", None) => Self::Thresholds(ReapThresholds::default()),
            ("new", Some((slabs, share))) => {
                Self::Thresholds(ReapThresholds { slabs: count(slabs)?, percent: percent(share)? })
            }
            ("bounded", None) => Self::Bounded(BoundedReap::default()),
            ("bounded", Some((target, slabs))) => {
                Self::Bounded(BoundedReap { target: percent(target)?, slabs: count(slabs)? })
            }
            _ => return Err(unknown()),
        })
    }
}
