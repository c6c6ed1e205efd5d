//! The nouns of perflab, and nothing else: studies, plans, events, samples, series, facts, manifests.
//!
//! Every other room speaks through these types. This crate owns their shape, their units and the
//! version of what is stored; it refuses I/O, clocks and threads, so that a guest, an importer and a
//! test can all make the same values.
//!
//! | module | the user's noun |
//! |---|---|
//! | [`study`] | the TOML file: what to run, what to vary, what to record |
//! | [`problem`] | what is wrong with a file, where, and what to do |
//! | [`expression`] | `2 * cpus`, evaluated over host facts |
//! | [`plan`] | cases and slots: everything that will be done, in order |
//! | [`event`] | the one stream that a run is |
//! | [`series`] | what a monitor records, declared column by column |
//! | [`profile`] | sampled call stacks: frames, stacks, samples, what was lost |
//! | [`trace`] | every operation of a program, with the spans inside it |
//! | [`io_trace_problems`] | pages and disk requests of a process tree, and their files |
//! | [`stackless_sample`] | one measured value of one metric |
//! | [`factor_key_problems`] | where cases run, when it is not this host alone |
//! | [`manifest`] | `run.json` |
//! | [`untrusted_text`] | names that others chose, shown without obeying them |

pub mod event;
pub mod expression;
pub mod facts;
pub mod io_trace;
pub mod metric;
pub mod operation;
mod page_set;
pub mod plan;
pub mod problem;
pub mod profile;
pub mod quantity;
pub mod run;
pub mod scalar;
pub mod series;
mod shared_str;
mod stack;
pub mod study;
mod toml_source;
pub mod untrusted_text;

pub use event::{LatestTicks, Outcome, RunEvent, RunEventKind};
pub use facts::{Fact, Facts};
pub use metric::{Direction, Metric, Sample, Unit};
pub use page_set::PageSet;
pub use plan::{Case, RunPlan, Slot, count_slots};
pub use problem::{Problem, Problems, TextPosition, nearest_name, suggest_name};
pub use profile::{Profile, ProfileSummary, StackBatch};
pub use quantity::{Bytes, Nanos};
pub use run::{ClockOffset, IterationRecord, Manifest, Overhead, RunRecord, RunStatus, TargetRecord};
pub use scalar::Scalar;
pub use series::{CellRow, ColumnSpec, SeriesSchema, TableCell};
pub use shared_str::SharedStr;
pub use stack::{
    CommId, FrameId, FrameKind, NodeId, StackFrame, StackNode, StackSample, strip_compiler_suffixes,
};
pub use study::Study;

/// Version of everything under a run's directory. A reader refuses a higher one and names both.
///
/// It goes up when an old reader would misread a new run; a new optional field does not need it.
pub const FORMAT_VERSION: u32 = 2;
