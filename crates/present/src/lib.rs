//! How results are seen: terminal tables and the single-file report.

pub mod report;
pub mod table;
