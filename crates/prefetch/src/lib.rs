//! Learns what an application reads when it starts, and reads it ahead the next time.
//!
//! Owns the trace of an application: what it is made of, how several starts become one, when it is stale, its file, and
//! how it is replayed. Refuses to trace (that is `observe`), to measure what it brings (`conduct`), and ever to change a file
//! of a trace or to open one that its caller could not have opened: files are opened by name, as who calls. Only [`relayout`],
//! which must be asked for, opens them for writing, and moves their blocks.
//!
//! | module | the user's noun |
//! |---|---|
//! | [`trace`] | what one start read, and the starts that are remembered of a program |
//! | [`mod@learn`] | from a recording to a start |
//! | [`residency`] | the same without root: what of your own files is in memory afterwards |
//! | [`policy`] | from several starts to what is read ahead; ageing |
//! | [`file`](mod@file) | the trace on disk: versioned, with a checksum |
//! | [`dump`] | the lists of pages of the prefetch module of 2007 |
//! | [`store`] | where traces lie, one a program |
//! | [`plan`] | what is to be read, in which order |
//! | [`mode`] | what is read before a program starts, and what beside it |
//! | [`memory`] | how much may be read |
//! | [`replay`] | reading it |
//! | [`mod@warm`] | whether there is anything to read |
//! | [`mod@relayout`] | what is read, brought together on the disk |
//! | [`daemon`] | all of this for every program, by itself |

pub mod daemon;
pub mod dump;
pub mod error;
pub mod file;
mod kernel;
pub mod learn;
pub mod memory;
pub mod mode;
pub mod plan;
pub mod policy;
pub mod relayout;
pub mod replay;
pub mod residency;
pub mod store;
pub mod trace;
pub mod warm;

pub use error::PrefetchError;
pub use learn::{build_trace, is_skipped_file_system};
pub use memory::replay_memory_limit;
pub use mode::ReplayMode;
pub use plan::{ReadOrder, ReplayPlan, plan_replay};
pub use policy::{CombinePolicy, combine_traces};
pub use replay::{ReplayBudget, ReplayPart, ReplayResult, replay_part};
pub use store::TraceStore;
pub use trace::{ProgramTraces, StartupTrace, TraceSource, TracedFile, TracedFileSystem};
