//! The nouns of perflab, and nothing else: studies, plans, events, samples, series, facts, manifests.
//!
//! All other crates exchange these types. Their shape, their units and the version of what is stored are defined
//! here, without I/O, clocks or threads, so that a guest, an importer and a test can all make the same values.
//!
//! | module | what a reader finds |
//! |---|---|
//! | [`study`] | the TOML file: what to run, what to vary, what to record |
//! | [`problem`], `toml_source` | what is wrong with a file, where, and what to do; a TOML file with its text |
//! | [`expression`], `expression_limits` | `2 * cpus`, evaluated over host facts; how large such a text may be |
//! | [`error_class`] | what an error means to the caller, said by the error |
//! | [`named`] | choices by name, for the command line and its help |
//! | [`scalar`], [`quantity`] | one value of a study; times, sizes, counts and ratios, parsed and printed |
//! | [`plan`], `setting` | cases and slots: everything that will be done, in order, and what is set for it |
//! | `setting_preset` | settings with a name of their own: their files, levels, tolerance and needs |
//! | `layout` | where a program happens to lie, as far as a study varies it |
//! | [`event`] | the one stream that a run is |
//! | [`metric`] | metric, unit, direction, and one sample |
//! | [`series`], `edge_reading` | what a monitor records: on a clock, and at the edges of iterations |
//! | [`mod@column`], [`table`] | columns declared by the type of their rows, and cells; tables in memory, over Arrow's arrays |
//! | [`profile`], `stack` | sampled call stacks: frames, nodes, samples, what was lost |
//! | [`operation`] | every operation of a traced program, with the spans inside it |
//! | [`io_trace`], `page_set` | pages and disk requests of a process tree, and their files; sets of pages |
//! | [`fact_table`] | every kind of fact, declared once: key, unit, whether it varies, how often it explains a change, what is good |
//! | [`facts`] | what a machine says about itself, and what differs between two |
//! | [`run`] | `run.json`, targets, clock offsets, overhead; a run as a reader holds it |
//! | `environment_variables` | variables that workloads inherit, as facts of a run |
//! | `continued_run` | an interrupted run, and those that go on with it, as one |
//! | `run_data` | a run as sections and analyses read it, wherever it lies ([`RunData`]) |
//! | `syscall_delay` | a delay in a system call of a workload ([`SyscallDelay`]) |
//! | `host_inventory` | `hosts.toml`: machines that ssh reaches, by names and in groups ([`HostInventory`]) |
//! | `run_note` | what somebody wrote about a run ([`RunNote`]) |
//! | `trigger` | what a flight recorder was waiting for, once it has happened ([`Trigger`]) |
//! | `accepted_step` | a step of a history that somebody accepts ([`AcceptedStep`]) |
//! | [`untrusted_text`], `shared_str` | names that others chose, shown without obeying them; names held once |
//! | `refusal`, `error_chain`, `stop_request` | what the environment lacks or refuses; an error with its causes; a request to end a run |

mod accepted_step;
pub mod column;
mod continued_run;
mod edge_reading;
mod environment_variables;
mod error_chain;
pub mod error_class;
pub mod event;
pub mod expression;
mod expression_limits;
mod expression_lists;
pub mod fact_document;
pub mod fact_table;
pub mod facts;
pub mod go_unit;
mod host_inventory;
pub mod io_trace;
mod layout;
pub mod metric;
pub mod named;
pub mod operation;
mod page_set;
pub mod placement;
pub mod plan;
pub mod problem;
pub mod profile;
pub mod quantity;
mod refusal;
pub mod resource_use;
pub mod run;
mod run_data;
mod run_note;
pub mod scalar;
pub mod series;
mod setting;
mod setting_preset;
mod shared_str;
mod stack;
mod stop_request;
pub mod study;
mod syscall_delay;
pub mod table;
mod toml_source;
mod trigger;
pub mod untrusted_text;

pub use accepted_step::AcceptedStep;
pub use column::{CellRow, ColumnRef, ColumnSpec, DeclaredColumn, RowSchema, TableCell};
pub use continued_run::{MEASUREMENT_FACTS, join_continued_runs};
pub use edge_reading::{EdgeReading, EdgeReadings, EdgeStamp, IterationEdge};
pub use environment_variables::{environment_facts, named_variable_changes, named_variables};
pub use error_chain::describe_error_chain;
pub use event::{LatestTicks, RunEvent, RunEventKind};
pub use expression_limits::ExpressionTooLarge;
pub use fact_document::{FactDocument, MachineDocument};
pub use facts::{Fact, Facts};
pub use host_inventory::{HostInventory, InventoryHost};
pub use layout::PlannedLayout;
pub use metric::{Direction, Metric, Sample, Unit};
pub use page_set::PageSet;
pub use plan::{
    BlockLayouts, Case, PlannedBeside, PlannedDelay, PlannedDisk, PlannedParticipation, PlannedPlacement,
    PlannedTarget, PlannedTargetVariant, RunPlan, Slot, UNKNOWN_PARAMETER, count_slots,
};
pub use problem::{Problem, Problems, TextPosition, nearest_name, nearest_names, suggest_name};
pub use profile::{Profile, ProfileSummary, StackBatch};
pub use quantity::{Bytes, Nanos, Ratio};
pub use refusal::Refusal;
pub use run::{
    ClockOffset, DuetCheck, FORMAT_VERSION, GuestStops, IterationRecord, JoinedPart, Manifest, Outcome,
    Overhead, OverwrittenSettingRecord, RunRecord, RunStatus, TargetRecord, TargetVariantRecord,
    describe_overwritten_settings,
};
pub use run_data::{RunData, RunDataError};
pub use run_note::RunNote;
pub use scalar::Scalar;
pub use series::SeriesSchema;
pub use setting::{PlannedSetting, Setting, normalize_path};
pub use setting_preset::{
    PresetFile, PresetLevel, PresetLevelError, PresetName, PresetNeeds, PresetPart, PresetValue, QuietLevel,
    SettingMechanism, SettingPreset, ValueTolerance,
};
pub use shared_str::SharedStr;
pub use stack::{
    CommId, FrameId, FrameKind, NodeId, StackFrame, StackNode, StackSample, strip_compiler_suffixes,
};
pub use stop_request::{EndReason, StopRequest};
pub use study::Study;
pub use syscall_delay::SyscallDelay;
pub use table::{SchemaMismatch, Table, TableBuilder, TypedTable, TypedTableBuilder};
pub use trigger::{Trigger, TriggerFinding, TriggerRecord};
pub use untrusted_text::remove_control_characters;
