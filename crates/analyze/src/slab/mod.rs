//! Slab efficiency: where the memory of kernel objects goes, over a run and between runs.
//!
//! This module takes the series of a run as values ([`Input`]) and gives plain results that serialise. It refuses
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

pub use attributes::Attributes;
pub use class::size_class;
pub use compare::{CacheChange, ChangeInBytes, SlabCompareOptions, SlabComparison, SlabSide, compare};
pub use counts::{RowCounts, RowFlags};
pub use error::SlabError;
pub use growth::{Growth, GrowthOptions, growth};
pub use hidden::Hidden;
pub use histogram::{Histogram, histogram};
pub use input::{Input, System};
pub use mean::{Integral, Mean};
pub use measured::{ALL_CACHES, Repetition};
pub use phase::{Phase, phases};
pub use ratio::Ratio;
pub use reconcile::{Reconciliation, reconcile};
pub use recording::{Cache, Recording};
pub use row::Observed;
pub use show::{CacheLine, Order, Show, ShowOptions, show};
pub use timeline::{Stack, Timeline, stack, timeline};
pub use usage::{Alignment, Figures, Usage, Waste};
pub use what_if::{WhatIf, what_if};
