//! Other tools' results become ordinary runs: own recordings, and what is wrong with damaged copies of them.

#![expect(clippy::unwrap_used, reason = "a test may die of a surprise")]

mod bench;
mod damage;
mod kernel_logs;
mod lkp;
mod mmtests;
mod mmtests_corpus;
mod mmtests_damage;
mod recordings;
mod refused;
mod sysfs;
mod times;
mod tools;
