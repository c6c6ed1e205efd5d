//! The index of runs: `index.sqlite` beside `runs/`, from which lists and histories are read without opening each run.
//!
//! It holds nothing that the runs do not, so it may be thrown away at any time. Nobody trusts it blindly: each row
//! carries the stamp of the files that it was made from, readers compare it with the files' stamps of now, and read the
//! run itself where they differ. Whoever changes a run refreshes its row; who may not write the index, or finds no
//! usable one, reads the runs.
//!
//! | module | content |
//! |---|---|
//! | `index_file` | the SQLite file: opened, checked, made anew where it is of no use |
//! | `index_lock`, `index_changes` | one writer at a time; what it writes, all or nothing |
//! | `run_stamp` | what tells that a run's files are the ones that a row was made from |
//! | `run_heads` | a row a run: what a list shows |
//! | `run_records`, `sample_blob` | a row a run: what histories are made of; its samples in few bytes |
//! | `record_refresh` | records of many runs, read through the index |
//! | `index_refresh` | reading through the index, and bringing it up to date |
//! | [`index_check`] | the index held against the runs; made anew |

mod index_changes;
pub mod index_check;
mod index_file;
pub(crate) mod index_lock;
pub(crate) mod index_refresh;
pub(crate) mod record_refresh;
mod run_heads;
mod run_records;
mod run_stamp;
mod sample_blob;
