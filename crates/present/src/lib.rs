//! How results are seen: terminal tables, static figures and the single-file report.

pub mod chart;
pub mod comparison;
mod diagnostics;
mod facts;
pub mod fairness;
pub mod flame;
mod grid;
pub mod history;
pub mod io;
mod number;
pub mod operations;
mod packed_column;
pub mod report;
mod run_overview;
pub mod run_viewer;
mod section;
pub mod slab;
mod startup;

pub use section::{ReportData, ReportRun};
