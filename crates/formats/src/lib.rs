//! What the bytes of the kernel and of tools mean, each declared once: no I/O, no clock.
//!
//! | module | what a reader finds |
//! |---|---|
//! | [`column`](mod@column) | columns declared with unit and kind; words made into cells |
//! | [`reading_parser`] | where a reading begins in a text, and what became of each line; one parser for a file as it is now and for a log |
//! | [`kernel`] | one file a kernel file; [`KERNEL_FILES`](kernel::KERNEL_FILES) is the list |
//! | [`tool`] | one file a tool's output; [`TOOL_LOGS`](tool::TOOL_LOGS) is the list of those that are logs |
//! | [`metric_rules`] | `[[metric]]`: which quantity, and the one rule that finds it in an output |
//! | [`metric_lines`] | a rule asked of one line after another: heads, tables, names that the output gives |
//! | [`metric_extraction`] | from the output of an execution to measured values |
//! | [`value_histogram`] | how often values occurred, and exact percentiles of them |
//! | [`histogram_rules`] | `[[histogram]]`: where the buckets of a histogram are in an output, and which metrics follow from it |
//! | [`hdr_log`] | the log of HdrHistogram, and the histograms in it |
//! | [`series_rules`] | `[[series]]`: what an output says of moments, as rows with times |
//! | [`json_document`] | the JSON document in an output |
//! | [`finite_number`] | a number as a tool prints it |
//!
//! To add a kernel file: one file in `kernel/` with its `KernelFile`, and a line in `kernel/registry.rs`. A monitor, a
//! study's check, help and an import from a log follow from that.

pub mod column;
pub mod finite_number;
pub mod hdr_log;
pub mod histogram_rules;
pub mod json_document;
pub mod kernel;
pub mod metric_extraction;
pub mod metric_lines;
pub mod metric_rules;
pub mod reading_parser;
pub mod series_rules;
pub mod tool;
pub mod value_histogram;
