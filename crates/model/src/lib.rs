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
//! | [`io`] | pages and disk requests of a process tree, and their files |
//! | [`sample`] | one measured value of one metric |
//! | [`target`] | where cases run, when it is not this host alone |
//! | [`manifest`] | `run.json` |
//! | [`untrusted_text`] | names that others chose, shown without obeying them |

pub mod event;
pub mod expression;
pub mod facts;
pub mod io;
pub mod manifest;
pub mod metric;
mod name;
pub mod nearest;
pub mod plan;
pub mod problem;
pub mod profile;
pub mod quantity;
pub mod record;
pub mod sample;
pub mod series;
pub mod study;
pub mod target;
pub mod trace;
pub mod untrusted_text;
pub mod value;

pub use event::{Outcome, RunEvent, RunEventKind};
pub use facts::{Fact, Facts};
pub use manifest::{Manifest, Overhead, RunStatus};
pub use metric::{Direction, Metric, Unit};
pub use name::SharedStr;
pub use plan::{Case, RunPlan, Slot, count_slots};
pub use problem::{Problem, Problems, TextPosition};
pub use profile::{Profile, ProfileSummary, StackBatch};
pub use quantity::{Bytes, Nanos};
pub use record::{IterationRecord, RunRecord};
pub use sample::Sample;
pub use series::{CellRow, ColumnSpec, SeriesSchema, TableCell};
pub use study::Study;
pub use target::{ClockOffset, TargetRecord};
pub use value::Scalar;

/// Version of everything under a run's directory. A reader refuses a higher one and names both.
///
/// It goes up when an old reader would misread a new run; a new optional field does not need it.
pub const FORMAT_VERSION: u32 = 2;
