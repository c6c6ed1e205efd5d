//! From a study to one stream of events: the plan, the settings, the targets that carry it out.
//!
//! This crate changes the system and undoes what it changed; it starts processes and waits for them. How results
//! are stored or shown is not its matter: whatever happens leaves as a [`RunEvent`](perflab_model::RunEvent), and
//! whoever holds the other end of the channel decides what becomes of it.
//!
//! | module | what a reader finds |
//! |---|---|
//! | [`plan`] | study × catalogue × facts → every case and slot, in order |
//! | `case_expansion`, `study_check` | all combinations of parameters and levels; what only catalogue and facts can find wrong |
//! | `preflight` | what the environment lacks for a plan, found before anything is changed |
//! | `remaining_slots` | what an interrupted run has not done of its plan |
//! | [`run_context`] | what a run is given: machine, permissions, stop request, event sender |
//! | [`run`] | the one way of carrying out a run |
//! | `executor`, `execution_place`, `iteration_trace` | slots carried out on one machine; what is recorded inside an iteration |
//! | `kept_files` | what set-ups made in the folder that cases share, and which wrote over what another one made |
//! | `duet` | two levels at once, each on half of the CPUs, and whether that tells more |
//! | `host_target` | this host as a target inside this process |
//! | `overhead_meter` | what perflab itself costs, and the monitors of a study |
//! | `run_state` | what a run has reported and counted so far |
//! | `boot_round`, `targets`, `open_slot` | one launch of the targets; their connections; the slot that is being carried out |
//! | `inventory_targets` | hosts of an inventory as targets |
//! | [`barrier`] | the points that all targets must reach before any goes on |
//! | [`clock_offset`] | how another machine's clock relates to ours |
//! | `guest_sampling` | guests sampled from outside while they run an iteration |
//! | `report_validation`, `stack_merge`, `incoming_trace` | what targets report, checked; their stacks merged, their traces put together |
//! | [`agent`], `agent_run`, `framed_reports` | perflab inside a target |
//! | `agent_worker` | the orders of a run carried out one by one, on whatever machine |
//! | `target_role` | whose settings a machine brings about, and whether workloads run on it |
//! | [`protocol`], [`connection`], [`multiplexer`] | messages, byte streams, and the thread that serves them all |
//! | [`launcher`] | how agents are started and ended: process, ssh, guest, libvirt, Slurm |
//! | [`execution_records`] | what a killed perflab leaves running, and who ends it |
//! | [`error`] | why a run ended early or never began |

pub mod agent;
mod agent_run;
mod agent_worker;
pub mod barrier;
mod boot_round;
mod case_expansion;
pub mod clock_offset;
pub mod connection;
mod duet;
pub mod error;
mod execution_place;
pub mod execution_records;
mod executor;
mod framed_reports;
mod guest_sampling;
mod host_target;
mod incoming_trace;
mod inventory_targets;
mod iteration_trace;
mod kept_files;
pub mod launcher;
pub mod multiplexer;
mod open_slot;
mod overhead_meter;
pub mod plan;
mod preflight;
pub mod protocol;
mod remaining_slots;
mod report_validation;
pub mod run;
pub mod run_context;
mod run_hooks;
mod run_state;
mod stack_merge;
mod study_check;
mod target_role;
mod targets;

pub use connection::Connection;
pub use error::ConductError;
pub use inventory_targets::plan_host;
pub use plan::{PlanChoices, plan_study};
pub use preflight::{find_refusals, used_definitions};
pub use remaining_slots::find_remaining_slots;
pub use run::conduct_run;
pub use run_context::{LocalMachine, RunPermissions};
pub use study_check::study_warnings;
