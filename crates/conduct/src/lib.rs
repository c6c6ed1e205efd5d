//! From a study to one stream of events: the plan, the settings, the target that carries it out.
//!
//! This room changes the system and undoes it; it starts processes and waits for them. It refuses to
//! know how results are stored or shown: whatever happens leaves as [`perflab_model::Event`]s, and
//! whoever holds the other end of the channel decides what becomes of them.
//!
//! | module | owns |
//! |---|---|
//! | [`plan`] | study x catalogue x facts -> every case and slot, in order |
//! | [`settings`] | factors that live in the kernel: applied, journalled, undone |
//! | [`disk`] | the scratch directory: a folder, a loop-mounted image, a partition |
//! | [`emulated_models`] | disks that this machine does not have |
//! | [`startup`] | one start of a program, until it counts as started |
//! | [`target`] | what carries a plan out: today [`local_machine::LocalMachine`], soon a guest |
//! | [`channel`] | a byte stream to an agent |
//! | [`protocol`] | what host and agent say to each other |
//! | [`barrier`] | the points that all targets must reach before any goes on |
//! | [`agent`] | perflab inside a target |
//! | [`kernel`] | kernels to boot: files, and recipes that fetch or build one |
//! | [`executions`] | what a killed perflab leaves running, and who of it is ended |
//! | [`leftovers`] | folders for a while, which the next start removes if this one is killed |
//! | [`pack_initramfs`] | a guest's first file system, with perflab in it |
//! | [`init`] | perflab as a guest's first process |
//! | [`machine`] | virtual machines: started, watched, ended |

pub mod agent;
mod agent_worker;
pub mod barrier;
mod boot_round;
mod case_expansion;
mod child_command;
pub mod clock_offset;
pub mod connection;
pub mod disk;
pub mod error;
pub mod execution_records;
mod executor;
pub mod guest;
mod host_run;
mod iteration_trace;
pub mod launcher;
pub mod leftovers;
pub mod multiplexer;
mod open_slot;
pub mod plan;
mod preflight;
pub mod protocol;
mod report_validation;
pub mod run_context;
pub mod settings;
mod stack_merge;
pub mod startup;
mod study_check;
pub mod synchronised_run;
mod targets;
mod untrusted_text;

pub use connection::Connection;
pub use error::{ConductError, Refusal};
pub use guest::init::{exec_on_terminal, guest_agent_address, is_guest_init, run_init};
pub use guest::kernel_recipe::{KernelRecipes, KernelSource, find_kernel};
pub use guest::portable_program::find_closure;
pub use plan::{PlanChoices, plan_study};
pub use run_context::{LocalMachine, RunPermissions, RunTarget, StopRequest};
pub use settings::setting::drop_caches;
pub use study_check::study_warnings;
pub use synchronised_run::SynchronisedRun;
