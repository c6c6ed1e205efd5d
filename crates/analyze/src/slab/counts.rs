//! Owns the account of rows: how many were read, used and flagged, and why. It refuses to lose one silently.

use serde::Serialize;

/// Marks on one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct SlabRowFlags {
    /// Its counts were not taken at one instant: more objects than slots, or more slots than its slabs hold.
    pub torn: bool,
    /// The kernel extrapolated `active_objs` (more than 10,000 partial slabs on a node, 6.12 and later).
    pub approximate: bool,
    /// The source said that a field of it was broken.
    pub malformed: bool,
    /// Fewer slots than slabs * objs_per_slab: some slabs are of a smaller order, S is an upper bound.
    pub smaller_slabs: bool,
}

impl SlabRowFlags {
    /// Reads the `flags` column; unknown words count as malformed.
    pub(super) fn parse(text: &str) -> Self {
        let mut flags = SlabRowFlags::default();
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            match word {
                "torn" => flags.torn = true,
                "approximate" => flags.approximate = true,
                _ => flags.malformed = true,
            }
        }
        flags
    }

    /// Whether any mark makes the row's numbers doubtful; smaller slabs are no doubt, but a fact.
    #[must_use]
    pub fn is_doubtful(self) -> bool {
        self.torn || self.approximate || self.malformed
    }
}

/// What became of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct SlabRowCounts {
    /// Rows of the series.
    pub read: usize,
    /// Rows that every sum contains, flagged ones among them.
    pub used: usize,
    /// Rows that cannot be used: a count is missing, below zero, or larger than any memory.
    pub unusable: usize,
    /// Used rows with a mark of doubt.
    pub flagged: usize,
    /// Used rows marked torn.
    pub torn: usize,
    /// Used rows marked approximate.
    pub approximate: usize,
    /// Used rows marked malformed.
    pub malformed: usize,
    /// Used rows with slabs of a smaller order.
    pub smaller_slabs: usize,
    /// Used rows of caches without slabs: they hold 0 bytes and have no efficiency.
    pub empty: usize,
}

impl SlabRowCounts {
    /// Counts as many rows that say the same; nothing stands for unusable ones.
    pub(super) fn count_row(&mut self, row: Option<(SlabRowFlags, bool)>, times: usize) {
        self.read += times;
        let Some((flags, empty)) = row else {
            self.unusable += times;
            return;
        };
        self.used += times;
        self.flagged += times * usize::from(flags.is_doubtful());
        self.torn += times * usize::from(flags.torn);
        self.approximate += times * usize::from(flags.approximate);
        self.malformed += times * usize::from(flags.malformed);
        self.smaller_slabs += times * usize::from(flags.smaller_slabs);
        self.empty += times * usize::from(empty);
    }
}
