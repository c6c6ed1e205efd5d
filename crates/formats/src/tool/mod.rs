//! Texts that tools print, one file each.

pub mod fs_mark;
pub mod gnu_time;
pub mod iostat;
pub mod mpstat;
pub mod perf_stat;
pub mod registry;
pub mod slabinfo_tool;
pub mod vmstat_tool;

pub use registry::{TOOL_LOGS, ToolLog, find_tool_log};
