//! Verbs about this machine as an instrument, and what a study is made of.

mod answer_check;
pub mod configuration_name;
pub mod events;
pub(crate) mod guest_terminal;
pub mod host;
mod job_queue;
pub mod kernel;
pub mod leftovers;
pub mod machine;
pub mod monitors;
pub mod noise;
pub mod queue;
mod queue_watch;
pub mod setting;
pub mod study;
pub mod study_finder;
pub mod temporary_settings;
mod tree_watch;
pub mod tune;
pub mod vm;
pub mod workload;
