//! Learns what an application reads when it starts, and reads it ahead the next time.
//!
//! Nothing here ever changes a file of a trace, or opens one that its caller could not have opened: files are
//! opened by name, with the caller's rights. Only [`relayout`], which must be asked for, opens them for writing,
//! and moves their blocks. Tracing itself is in `perflab-observe`; what prefetching gains is measured in
//! `perflab-conduct`.
//!
//! | module | what a reader finds |
//! |---|---|
//! | [`startup_trace`] | what one startup read, and the traces remembered of a program, combined and aged |
//! | [`trace_builder`] | from a recording, or from what is resident afterwards, to a trace |
//! | [`trace_store`] | traces on disk, one a program: versioned, with a checksum |
//! | [`trace_dump`] | the lists of pages of the prefetch module of 2007 |
//! | [`replay_plan`] | what is read ahead: mode, order, memory budget |
//! | [`replay`], `in_flight_requests` | reading it, disk by disk, with a bounded number of requests in flight |
//! | `layout`, [`mod@relayout`] | where the extents of a startup lie and where they should; moving them |
//! | [`daemon`] | all of this for every program, without being asked |
//! | [`error`] | why a trace cannot be used or made |

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
pub use replay::{ReplayBudget, ReplayResult, replay_part};
pub use replay_plan::{ReadOrder, ReplayMode, ReplayPart, ReplayPlan, plan_replay, replay_memory_limit};
pub use startup_trace::{
    CombinePolicy, ProgramTraces, StartupTrace, TraceSource, TracedFile, TracedFileSystem, combine_traces,
};
pub use trace_builder::{build_trace, is_skipped_file_system};
pub use trace_store::TraceStore;
