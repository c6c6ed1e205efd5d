//! Slab efficiency: where the memory of kernel objects goes, over a run and between runs.
//!
//! Takes the series of a run as values ([`SlabInput`]) and gives plain results that serialise. Units and colours for
//! people are `present`'s.
//!
//! | module | content |
//! |---|---|
//! | [`usage`] | the definitions: bytes, waste, packing × alignment × occupancy = overall; means over time |
//! | [`recording`] | a run's rows, read once; rows read, used, flagged |
//! | [`recording_reader`] | from series to a recording |
//! | [`mod@cache_table`] | the table of caches; how efficiencies are spread |
//! | [`timeline`] | usage at every tick; stacked bytes by cache |
//! | [`growth`] | baseline, peak, retained after the end, slope, top contributors |
//! | [`cache_comparison`] | bytes per cache between runs, with a noise floor |
//! | [`reconciliation`] | the account against /proc/meminfo |
//! | [`notebook`] | the figures of the notebook of 2019, beside ours, and why they differ |
//! | [`what_if`] | bytes at another order or object size |

pub mod cache_comparison;
pub mod cache_table;
pub mod growth;
pub mod notebook;
pub mod reconciliation;
pub mod recording;
pub mod recording_reader;
pub mod timeline;
pub mod usage;
pub mod what_if;

pub use cache_comparison::{
    ALL_CACHES, BytesChange, CacheChange, SlabCompareOptions, SlabComparison, SlabRepetition, SlabSide,
    compare_caches,
};
pub use cache_table::{
    CacheOrder, CacheRow, CacheTable, CacheTableOptions, EfficiencyHistogram, cache_table,
    efficiency_histogram, size_class,
};
pub use growth::{SlabGrowth, SlabGrowthOptions, slab_growth};
pub use reconciliation::{MeminfoReconciliation, reconcile_with_meminfo};
pub use recording::{
    CacheAttributes, IterationSpan, SlabCache, SlabError, SlabInput, SlabRecording, SlabRow, SlabRowCounts,
    SlabRowFlags, iteration_spans,
};
pub use timeline::{CacheStack, UsageTimeline, cache_stack, usage_timeline};
pub use usage::{
    AlignmentRatio, ExactRatio, HiddenObjectBound, MeanUsage, SlabFacts, SlabUsage, SlabWaste, UsageFigures,
    UsageIntegral,
};
pub use what_if::{LayoutWhatIf, what_if_layout};
