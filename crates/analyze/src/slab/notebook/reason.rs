//! Owns why the notebook's figures are not ours, in words, and what it calls our columns. It refuses blame: each reason
//! says what was done, and what that does to the number.

use std::fmt;

use serde::Serialize;
use serde::ser::{SerializeStruct, Serializer};

/// One reason; those with a number say how much it concerns.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotebookDifference {
    /// Rows above 100 % are left out.
    AboveHundredDropped {
        /// How many.
        rows: usize,
    },
    /// The tool's percentages are whole numbers, cut, not rounded.
    FlooredPercentages,
    /// Space has one digit behind the point, cut, not rounded.
    TruncatedSpace,
    /// Space in M (10^6 bytes) is multiplied by 1024 to K (10^3 bytes).
    DecimalMegaTimes1024 {
        /// Rows in M.
        rows: usize,
    },
    /// Each cache counts the same, whatever its size.
    CachesAlike,
    /// Each tick counts the same, whatever the time between.
    TicksAlike,
    /// The mean of a cache leaves out the ticks at which it was not there.
    AbsentTicks {
        /// Caches that this concerns.
        caches: usize,
    },
    /// Names of merged groups (`:a-0000104`) stay names.
    MergedNames {
        /// How many.
        names: usize,
    },
    /// Rows of equal %Ef have no order.
    TiesUnordered,
    /// Slots are counted as if all were in use, so that it is one number a cache for all time.
    CapacityAsUse,
    /// The padded size is taken for the object's.
    PaddedSize,
    /// A page is taken to have 4,096 bytes.
    PageSizeAssumed {
        /// What it has.
        page_size: Option<u64>,
    },
    /// A cache without a known order gets order 0.
    OrderAssumed {
        /// Rows that this concerns.
        rows: usize,
    },
    /// Caches without slabs are 0 / 0 and vanish.
    EmptyDropped {
        /// Rows that this concerns.
        rows: usize,
    },
    /// The notebook stops at a Space that is not in K or M.
    OtherUnits {
        /// Rows that this concerns; they are left out here.
        rows: usize,
    },
}

impl NotebookDifference {
    /// A short name for it, in JSON.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            NotebookDifference::AboveHundredDropped { .. } => "above-hundred-dropped",
            NotebookDifference::FlooredPercentages => "floored-percentages",
            NotebookDifference::TruncatedSpace => "truncated-space",
            NotebookDifference::DecimalMegaTimes1024 { .. } => "decimal-mega-times-1024",
            NotebookDifference::CachesAlike => "caches-alike",
            NotebookDifference::TicksAlike => "ticks-alike",
            NotebookDifference::AbsentTicks { .. } => "absent-ticks",
            NotebookDifference::MergedNames { .. } => "merged-names",
            NotebookDifference::TiesUnordered => "ties-unordered",
            NotebookDifference::CapacityAsUse => "capacity-as-use",
            NotebookDifference::PaddedSize => "padded-size",
            NotebookDifference::PageSizeAssumed { .. } => "page-size-assumed",
            NotebookDifference::OrderAssumed { .. } => "order-assumed",
            NotebookDifference::EmptyDropped { .. } => "empty-dropped",
            NotebookDifference::OtherUnits { .. } => "other-units",
        }
    }
}

impl NotebookDifference {
    /// Those that are the same wherever they hold.
    fn fixed_text(&self) -> Option<&'static str> {
        Some(match self {
            NotebookDifference::FlooredPercentages => {
                "the tool cuts %Ef to a whole number, so a mean of it is low by up to 1 point; ours divides bytes by bytes"
            }
            NotebookDifference::TruncatedSpace => {
                "Space is cut to one digit behind the point, so weights are low by up to 100 kB"
            }
            NotebookDifference::CachesAlike => {
                "every cache counts the same: one of 16 kB as much as one of 260 MB, which says nothing about memory"
            }
            NotebookDifference::TicksAlike => {
                "every tick counts the same; ours counts the time that it stands for"
            }
            NotebookDifference::TiesUnordered => {
                "rows of the same %Ef stand in no defined order (an unstable sort); ours are ordered by name"
            }
            NotebookDifference::CapacityAsUse => {
                "num_objs counts slots, used or free: the result is one constant a cache (the packing) and cannot move with the load"
            }
            NotebookDifference::PaddedSize => {
                "objsize is the padded size of a slot, so that what alignment costs is counted as use"
            }
            _ => return None,
        })
    }

    /// Those that say how much they concern.
    fn counted_text(&self) -> String {
        match self {
            NotebookDifference::AboveHundredDropped { rows } => format!(
                "{rows} rows above 100 % are left out; they were torn (files of one cache read at different times), and as torn rows below 100 % stay, the mean is not cured"
            ),
            NotebookDifference::DecimalMegaTimes1024 { rows } => format!(
                "{rows} rows have Space in M, which is 1,000 K; times 1,024 they weigh 2.4 % too much"
            ),
            NotebookDifference::AbsentTicks { caches } => format!(
                "{caches} caches have no row at some ticks; the mean leaves these ticks out, ours counts 0 bytes"
            ),
            NotebookDifference::MergedNames { names } => format!(
                "{names} rows are groups of merged caches under the name of their directory; the members are not named"
            ),
            NotebookDifference::OrderAssumed { rows } => format!(
                "{rows} rows of caches without a known order get order 0; pagesperslab says the truth in each row"
            ),
            NotebookDifference::EmptyDropped { rows } => {
                format!("{rows} rows of caches without slabs are 0 / 0 and vanish without a word")
            }
            NotebookDifference::OtherUnits { rows } => format!(
                "{rows} rows have a Space that is neither in K nor in M: there the notebook stops; here they are left out"
            ),
            NotebookDifference::PageSizeAssumed { page_size } => {
                let here = page_size.map_or("unknown".into(), |bytes| bytes.to_string());
                format!("a page is taken to have 4,096 bytes; here it is {here}")
            }
            _ => String::new(),
        }
    }
}

impl fmt::Display for NotebookDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.fixed_text() {
            Some(text) => f.write_str(text),
            None => f.write_str(&self.counted_text()),
        }
    }
}

impl Serialize for NotebookDifference {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Reason", 2)?;
        fields.serialize_field("code", self.code())?;
        fields.serialize_field("words", &self.to_string())?;
        fields.end()
    }
}

/// One column: what we call it, and what the notebook does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct NotebookColumn {
    /// In our tables and JSON.
    pub ours: &'static str,
    /// In the notebook's frames.
    pub notebook: &'static str,
    /// What sets them apart; empty where they are the same number.
    pub difference: &'static str,
}

const fn same_column(ours: &'static str, notebook: &'static str) -> NotebookColumn {
    NotebookColumn { ours, notebook, difference: "" }
}

const fn different_column(
    ours: &'static str,
    notebook: &'static str,
    difference: &'static str,
) -> NotebookColumn {
    NotebookColumn { ours, notebook, difference }
}

/// Every column that both have.
pub const NOTEBOOK_COLUMNS: &[NotebookColumn] = &[
    same_column("cache", "name"),
    same_column("at", "time"),
    different_column("overall", "percent_efficient", "a whole number, cut"),
    different_column("slab_bytes", "space_normalized_in_kb", "decimal K; M times 1,024; one digit"),
    different_column("slab_bytes", "space", "text as printed"),
    same_column("objects", "objects"),
    same_column("object_size", "object_size"),
    different_column(
        "slabs, partial, cpu_slabs",
        "slabs_part_cpu",
        "one text; its slabs are those not held by CPUs",
    ),
    same_column("objs_per_slab", "o_s"),
    same_column("order", "o"),
    different_column("partial / slabs", "percent_free", "share of slabs that are partial, not free space"),
    same_column("flags", "flags"),
    same_column("active_objs", "active_objs"),
    same_column("num_objs", "num_objs"),
    different_column("slab_size", "objsize", "the padded size of a slot"),
    same_column("objs_per_slab", "objperslab"),
    same_column("pages_per_slab", "pagesperslab"),
    same_column("slabs", "num_slabs"),
    different_column("occupancy", "active_vs_num", "objects, not bytes"),
    different_column("packing", "ef", "called efficiency there; one constant a cache"),
];
