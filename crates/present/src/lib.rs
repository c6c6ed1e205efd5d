//! How results are seen: terminal tables, static figures and the single-file report.

pub mod chart;
pub mod flame;
pub mod history;
pub mod io;
pub mod report;
pub mod slab;
pub mod table;
pub mod trace;
