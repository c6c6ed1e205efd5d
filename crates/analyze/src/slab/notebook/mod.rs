//! `--method notebook`: the figures of the notebook of 2019 (davidgengenbach/linux-slab-efficiency-analysis), recomputed
//! from the same rows, beside ours, with the reasons why they differ. It refuses to repair the notebook: its faults are
//! part of its figures.
//!
//! | figure | made of | how the notebook makes it |
//! |---|---|---|
//! | [`table`] | `slabinfo-tool` | mean over ticks of the printed %Ef and of Space, caches with the lowest %Ef first |
//! | [`timeline`] | `slabinfo-tool` | mean of %Ef over caches; mean weighted by Space |
//! | [`cache`] | `slabinfo-tool` | %Ef of one cache, as printed |
//! | [`histogram`] | `slabinfo-tool` | all %Ef in 60 bins |
//! | [`proc_histogram`] | `slabinfo` | num_objs * objsize * 100 / (num_slabs * 4096 * 2^order) in 100 bins |
//!
//! Rows above 100 % are left out of all but the last, Space is read as decimal K, and M is multiplied by 1024. Bins are
//! those of numpy's `histogram`. Source: the notebook's text, cells 3 to 11.

mod bins;
mod duration;
mod frame;
mod proc_histogram;
mod reason;
mod table;
mod timeline;
mod tool_histogram;

pub use bins::NumpyHistogram;
pub use duration::notebook_minutes;
pub use proc_histogram::{NotebookProcHistogram, notebook_proc_histogram};
pub use reason::{NOTEBOOK_COLUMNS, NotebookColumn, NotebookDifference};
pub use table::{NotebookRow, NotebookTable, notebook_table};
pub use timeline::{
    NotebookCachePoint, NotebookCacheTimeline, NotebookTickPoint, NotebookTimeline, notebook_cache,
    notebook_timeline,
};
pub use tool_histogram::{NotebookToolHistogram, notebook_tool_histogram};
