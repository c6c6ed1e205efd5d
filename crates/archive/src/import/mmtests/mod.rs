//! The log directory of an MMTests run (`work/log/NAME`), as written in 2020 and as written now. Each benchmark's values
//! are samples under the names that MMTests gives them today, `iter-N` is the level above executions (a boot), and each
//! monitor's logs are one series. Owns where things lie in such a directory; refuses MMTests' habits of reading what is
//! not there as 0 and of judging all metrics of a report by one direction.

mod bench;
mod dbench;
mod fio;
mod folder;
mod hackbench;
mod machine;
mod memtier;
mod monitors;
mod netperf;
mod open;
mod perfpipe;
mod pgbench;
mod redis;
mod stream;
mod sysbench;
mod times;
mod timestamps;

pub(crate) use folder::compare_natural;
pub(crate) use open::{is_mmtests_log, mmtests_runs, open_mmtests_log};

#[cfg(test)]
mod tests;
