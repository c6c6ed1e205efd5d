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
//! | [`emulated`] | disks that this machine does not have |
//! | [`startup`] | one start of a program, until it counts as started |
//! | [`target`] | what carries a plan out: today [`local_machine::LocalMachine`], soon a guest |
//! | [`channel`] | a byte stream to an agent |
//! | [`protocol`] | what host and agent say to each other |
//! | [`barrier`] | the points that all targets must reach before any goes on |
//! | [`agent`] | perflab inside a target |
//! | [`kernel`] | kernels to boot: files, and recipes that fetch or build one |
//! | [`executions`] | what a killed perflab leaves running, and who of it is ended |
//! | [`leftovers`] | folders for a while, which the next start removes if this one is killed |
//! | [`initramfs`] | a guest's first file system, with perflab in it |
//! | [`init`] | perflab as a guest's first process |
//! | [`machine`] | virtual machines: started, watched, ended |

pub mod agent;
pub mod barrier;
pub mod channel;
mod command;
pub mod disk;
pub mod emulated;
pub mod error;
pub mod executions;
pub mod host;
pub mod hub;
mod inert;
pub mod init;
pub mod initramfs;
pub mod kernel;
pub mod leftovers;
pub mod machine;
pub mod offset;
pub mod place;
pub mod plan;
pub mod protocol;
pub mod settings;
pub mod startup;
pub mod step;
pub mod stop;
pub mod target;

pub use channel::Connection;
pub use error::{ConductError, Refusal};
pub use host::LocalMachine;
pub use plan::{PlanChoices, plan_study};
pub use step::SynchronisedRun;
pub use stop::StopRequest;
pub use target::{RunPermissions, RunTarget};
