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
//! | [`plan_replay`] | what is to be read, in which order |
//! | [`mode`] | what is read before a program starts, and what beside it |
//! | [`memory`] | how much may be read |
//! | [`replay`] | reading it |
//! | [`mod@warm`] | whether there is anything to read |
//! | [`mod@relayout`] | what is read, brought together on the disk |
//! | [`daemon`] | all of this for every program, by itself |

pub mod daemon;
pub mod error;
mod in_flight_requests;
mod layout;
pub mod relayout;
pub mod replay;
pub mod replay_plan;
pub mod startup_trace;
pub mod trace_builder;
pub mod trace_dump;
pub mod trace_store;

pub use error::PrefetchError;
pub use layout::{refresh_extents, shares_files};
pub use replay::{ReplayBudget, ReplayPart, ReplayResult, replay_part};
pub use replay_plan::{ReadOrder, ReplayMode, ReplayPlan, plan_replay, replay_memory_limit};
pub use startup_trace::{
    CombinePolicy, ProgramTraces, StartupTrace, TraceSource, TracedFile, TracedFileSystem, combine_traces,
};
pub use trace_builder::{build_trace, is_skipped_file_system};
pub use trace_store::TraceStore;
