//! Owns the definitions: what a cache's slabs hold, how efficient that is, and where the rest went. It refuses means
//! of percentages: everything is a sum of integers first, a ratio when it is read.
//!
//! For one cache at one time, with `S` its slab bytes (source: field note 2.4; the counters are those of mm/slub.c,
//! `get_slabinfo`, and of /sys/kernel/slab):
//!
//! | name | formula | unit |
//! |---|---|---|
//! | `slab_bytes` S | slabs * pages_per_slab * page_size | bytes |
//! | `slot_bytes` P | total_objects * slab_size | bytes |
//! | `object_bytes` A | total_objects * object_size | bytes |
//! | `used_bytes` U | objects * object_size | bytes |
//! | packing | P / S | 1 |
//! | alignment | A / P | 1 |
//! | occupancy | U / A | 1; free objects on the nodes' partial lists only, so an upper bound of true use |
//! | overall | U / S = packing * alignment * occupancy | 1 |
//! | waste, tail | S - P | bytes |
//! | waste, align | P - A | bytes |
//! | waste, free | A - U | bytes |
//! | hidden bound | see [`Hidden`](super::HiddenObjectBound) | bytes |
//!
//! The same formulas over sums of S, P, A, U give many caches and many ticks: a ratio of sums, integrated over time
//! with the time that a tick stands for as weight (sum U*dt / sum S*dt). The three wastes add up to S - U exactly,
//! for every row, however torn: they are signed.

use serde::Serialize;

use super::ratio::{ExactRatio, serialize_optional, serialize_signed, serialize_unsigned};

/// Sums of bytes over any set of rows: caches, ticks, or both.
///
/// Serialised as [`UsageFigures`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(into = "UsageFigures")]
pub struct SlabUsage {
    /// S: what the page allocator gave.
    pub slab_bytes: u128,
    /// P: all slots, as padded by the allocator.
    pub slot_bytes: u128,
    /// A: all slots at the size that the creator asked for; the padded size where that is unknown.
    pub object_bytes: u128,
    /// U: the slots in use, at the size asked for; at the padded size where that is unknown.
    pub used_bytes: u128,
    /// The part of P of caches whose object size is unknown, so that their alignment is.
    pub unknown_slot_bytes: u128,
    /// Most bytes that may be free although counted in U: objects in CPUs' slabs and sheaves.
    pub hidden_bytes: u128,
    /// The part of S for which there is no bound on hidden bytes.
    pub unbounded_slab_bytes: u128,
}

/// How much of the padded size was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "is")]
pub enum AlignmentRatio {
    /// Every cache's object size is known: A / P.
    Whole {
        /// A / P
        ratio: ExactRatio,
    },
    /// Some are: A / P of those only.
    Partly {
        /// of the caches whose object size is known
        ratio: ExactRatio,
        /// which share of P they are
        known: ExactRatio,
    },
    /// No object size is known; `used_bytes` and everything made of it are upper bounds.
    Not,
}

/// Where the bytes that hold no object in use went; the parts add up to S - U.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SlabWaste {
    /// S - P: the end of each slab, where no further object fits. Bytes.
    #[serde(serialize_with = "serialize_signed")]
    pub tail: i128,
    /// P - A: padding and the allocator's own data in each slot, used or not. Bytes; absent where no object size is
    /// known (it is then inside U), and of the known caches only where [`AlignmentRatio::Partly`].
    #[serde(serialize_with = "serialize_optional")]
    pub align: Option<i128>,
    /// A - U: slots without an object. Bytes.
    #[serde(serialize_with = "serialize_signed")]
    pub free: i128,
}

impl SlabWaste {
    /// All of it: S - U. Bytes.
    #[must_use]
    pub fn total(&self) -> i128 {
        self.tail.saturating_add(self.align.unwrap_or(0)).saturating_add(self.free)
    }
}

impl SlabUsage {
    /// Adds another set of rows. Sums stop at the largest value: 2^128 bytes are no memory.
    pub fn add(&mut self, other: &SlabUsage) {
        for (sum, value) in self.sums_mut().into_iter().zip(other.sum_values()) {
            *sum = sum.saturating_add(value);
        }
    }

    /// Adds another set of rows that stands for `weight` units of time.
    pub fn add_weighted(&mut self, other: &SlabUsage, weight: u128) {
        for (sum, value) in self.sums_mut().into_iter().zip(other.sum_values()) {
            *sum = sum.saturating_add(saturating_product(value, weight));
        }
    }

    fn sums_mut(&mut self) -> [&mut u128; 7] {
        [
            &mut self.slab_bytes,
            &mut self.slot_bytes,
            &mut self.object_bytes,
            &mut self.used_bytes,
            &mut self.unknown_slot_bytes,
            &mut self.hidden_bytes,
            &mut self.unbounded_slab_bytes,
        ]
    }

    fn sum_values(&self) -> [u128; 7] {
        [
            self.slab_bytes,
            self.slot_bytes,
            self.object_bytes,
            self.used_bytes,
            self.unknown_slot_bytes,
            self.hidden_bytes,
            self.unbounded_slab_bytes,
        ]
    }

    /// P / S.
    #[must_use]
    pub fn packing(&self) -> ExactRatio {
        ExactRatio::new(self.slot_bytes, self.slab_bytes)
    }

    /// A / P, as far as it is known.
    #[must_use]
    pub fn alignment(&self) -> AlignmentRatio {
        let unknown = self.unknown_slot_bytes;
        // Where the size asked for is unknown, A counts the padded one: both lose the same bytes here.
        let known = self.slot_bytes.saturating_sub(unknown);
        let ratio = ExactRatio::new(self.object_bytes.saturating_sub(unknown), known);
        match (unknown, known) {
            (0, _) => AlignmentRatio::Whole { ratio },
            (_, 0) => AlignmentRatio::Not,
            _ => AlignmentRatio::Partly { ratio, known: ExactRatio::new(known, self.slot_bytes) },
        }
    }

    /// U / A.
    #[must_use]
    pub fn occupancy(&self) -> ExactRatio {
        ExactRatio::new(self.used_bytes, self.object_bytes)
    }

    /// U / S: the efficiency.
    #[must_use]
    pub fn overall(&self) -> ExactRatio {
        ExactRatio::new(self.used_bytes, self.slab_bytes)
    }

    /// (U - hidden bound) / S: the least that the efficiency can be. Absent where any cache has no bound.
    #[must_use]
    pub fn overall_at_least(&self) -> Option<ExactRatio> {
        let least = self.used_bytes.saturating_sub(self.hidden_bytes);
        (self.unbounded_slab_bytes == 0).then(|| ExactRatio::new(least, self.slab_bytes))
    }

    /// Tail, alignment and free objects, in bytes.
    #[must_use]
    pub fn waste(&self) -> SlabWaste {
        let known = !matches!(self.alignment(), AlignmentRatio::Not);
        SlabWaste {
            tail: signed_difference(self.slab_bytes, self.slot_bytes),
            align: known.then(|| signed_difference(self.slot_bytes, self.object_bytes)),
            free: signed_difference(self.object_bytes, self.used_bytes),
        }
    }

    /// S - U in bytes; negative for a torn row.
    #[must_use]
    pub fn wasted_bytes(&self) -> i128 {
        signed_difference(self.slab_bytes, self.used_bytes)
    }
}

/// The product, at most 2^128 - 1. Bytes and times of one run fit into 64 bits, whose product needs no check.
pub(super) fn saturating_product(value: u128, weight: u128) -> u128 {
    match (u64::try_from(value), u64::try_from(weight)) {
        (Ok(value), Ok(weight)) => u128::from(value) * u128::from(weight),
        _ => value.saturating_mul(weight),
    }
}

/// Exact up to 2^127, which no sum of [`SlabUsage`] reaches.
fn signed_difference(a: u128, b: u128) -> i128 {
    let size = i128::try_from(a.abs_diff(b)).unwrap_or(i128::MAX);
    if a >= b { size } else { -size }
}

/// A [`SlabUsage`] with everything that can be read from it, as it stands in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct UsageFigures {
    /// S, bytes.
    #[serde(serialize_with = "serialize_unsigned")]
    pub slab_bytes: u128,
    /// U, bytes.
    #[serde(serialize_with = "serialize_unsigned")]
    pub used_bytes: u128,
    /// Tail, alignment and free objects, bytes.
    pub waste: SlabWaste,
    /// Most bytes of U that may be free, bytes.
    #[serde(serialize_with = "serialize_unsigned")]
    pub hidden_bytes: u128,
    /// P / S.
    pub packing: ExactRatio,
    /// A / P.
    pub alignment: AlignmentRatio,
    /// U / A.
    pub occupancy: ExactRatio,
    /// U / S.
    pub overall: ExactRatio,
    /// (U - hidden) / S; null where there is no bound for every cache.
    pub overall_at_least: Option<ExactRatio>,
}

impl From<SlabUsage> for UsageFigures {
    fn from(usage: SlabUsage) -> Self {
        UsageFigures {
            slab_bytes: usage.slab_bytes,
            used_bytes: usage.used_bytes,
            waste: usage.waste(),
            hidden_bytes: usage.hidden_bytes,
            packing: usage.packing(),
            alignment: usage.alignment(),
            occupancy: usage.occupancy(),
            overall: usage.overall(),
            overall_at_least: usage.overall_at_least(),
        }
    }
}
