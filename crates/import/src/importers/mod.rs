//! One importer a file; `registry.rs` lists them.

pub(crate) mod block_trace;
pub(crate) mod copied_tree;
pub(crate) mod criterion;
pub(crate) mod fio;
pub(crate) mod go_bench;
pub(crate) mod google_benchmark;
pub(crate) mod hdr_log;
pub(crate) mod hyperfine;
pub(crate) mod kernel_dump;
pub(crate) mod lkp;
pub(crate) mod lkp_stats;
pub(crate) mod mmtests;
pub(crate) mod mmtests_declared;
pub(crate) mod mmtests_log_reader;
pub(crate) mod mmtests_parsers;
pub(crate) mod mmtests_reaim;
pub(crate) mod mmtests_schbench;
pub(crate) mod mmtests_sockperf;
#[cfg(test)]
mod mmtests_tests;
pub(crate) mod mmtests_thpscale;
pub(crate) mod perf_stat;
pub(crate) mod phoronix;
pub(crate) mod profile;
pub(crate) mod program_trace;
pub(crate) mod pyperf;
pub(crate) mod sar;
