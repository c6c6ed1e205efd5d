//! What can go wrong, as types.

use std::fmt;

/// A cursor that no longer names an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StaleCursor {
    /// The element that the set's cursor was at was removed.
    Removed,
    /// The ordered list was changed after the cursor was made, so its position may mean another element.
    Changed,
    /// The cursor belongs to another list.
    OtherList,
}

impl fmt::Display for StaleCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Removed => "stale cursor: its element was removed",
            Self::Changed => "stale cursor: the list was changed since it was made",
            Self::OtherList => "stale cursor: it belongs to another list",
        })
    }
}

impl std::error::Error for StaleCursor {}

/// Keys for [`SlabSet::from_sorted`](crate::SlabSet::from_sorted) that do not rise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NotSorted {
    /// Index of the first key that is not above the one before it.
    pub at: usize,
}

impl fmt::Display for NotSorted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "keys do not rise: number {} is not above the one before it", self.at)
    }
}

impl std::error::Error for NotSorted {}

/// A position beyond the end of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OutOfBounds {
    /// The position asked for.
    pub position: usize,
    /// Elements in the list.
    pub len: usize,
}

impl fmt::Display for OutOfBounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "position {} is beyond the {} elements of the list", self.position, self.len)
    }
}

impl std::error::Error for OutOfBounds {}

/// An invariant that does not hold: a defect of this crate. Returned by the `check` functions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvariantViolation(pub(crate) String);

impl fmt::Display for InvariantViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "broken slab list: {}", self.0)
    }
}

impl std::error::Error for InvariantViolation {}
