//! Texts that tools print again and again, one file each.

pub(crate) mod fs_mark;
pub(crate) mod gnu_time;
pub(crate) mod iostat;
pub(crate) mod mpstat;
pub(crate) mod perf_stat;
pub(crate) mod slabinfo_tool;
pub(crate) mod vmstat_tool;
