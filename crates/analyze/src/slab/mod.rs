//! Slab efficiency: where the memory of kernel objects goes, over a run and between runs.
//!
//! This module takes the series of a run as values ([`SlabInput`]) and gives plain results that serialise. It refuses
//! files, colours and units for people: runs are read by the archive, results are drawn by `present`.
//!
//! | module | the user's noun |
//! |---|---|
//! | [`usage`] | the definitions: bytes, waste, packing x alignment x occupancy = overall |
//! | [`mean`] | the same, integrated over time |
//! | [`recording`] | a run's rows, read once; rows read, used, flagged |
//! | [`mod@show`] | the table of caches |
//! | [`mod@timeline`] | usage at every tick; stacked bytes by cache |
//! | [`mod@histogram`] | how efficiencies are spread |
//! | [`mod@growth`] | baseline, peak, retained after the end, slope, top contributors |
//! | [`mod@compare`] | bytes per cache between runs, with a noise floor |
//! | [`mod@reconcile`] | the account against /proc/meminfo |
//! | [`notebook`] | the figures of the notebook of 2019, beside ours, and why they differ |
//! | [`mod@what_if`] | bytes at another order or object size |

pub mod attributes;
mod class;
mod columns;
pub mod compare;
pub mod counts;
mod error;
mod floor;
pub mod growth;
mod held;
mod hidden;
pub mod histogram;
mod input;
mod intern;
mod line;
pub mod mean;
mod measured;
mod names;
pub mod notebook;
mod phase;
mod ratio;
mod read;
pub mod reconcile;
pub mod recording;
mod row;
pub mod show;
mod slope;
mod source;
pub mod timeline;
pub mod usage;
pub mod what_if;

pub use attributes::CacheAttributes;
pub use class::size_class;
pub use compare::{BytesChange, CacheChange, SlabCompareOptions, SlabComparison, SlabSide, compare_caches};
pub use counts::{SlabRowCounts, SlabRowFlags};
pub use error::SlabError;
pub use growth::{SlabGrowth, SlabGrowthOptions, slab_growth};
pub use hidden::HiddenObjectBound;
pub use histogram::{EfficiencyHistogram, efficiency_histogram};
pub use input::{SlabFacts, SlabInput};
pub use mean::{MeanUsage, UsageIntegral};
pub use measured::{ALL_CACHES, SlabRepetition};
pub use phase::{IterationSpan, iteration_spans};
pub use ratio::ExactRatio;
pub use reconcile::{MeminfoReconciliation, reconcile_with_meminfo};
pub use recording::{SlabCache, SlabRecording};
pub use row::SlabRow;
pub use show::{CacheOrder, CacheRow, CacheTable, CacheTableOptions, cache_table};
pub use timeline::{CacheStack, UsageTimeline, cache_stack, usage_timeline};
pub use usage::{AlignmentRatio, SlabUsage, SlabWaste, UsageFigures};
pub use what_if::{LayoutWhatIf, what_if_layout};
