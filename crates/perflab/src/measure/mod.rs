//! Verbs that measure: a study, or a command made into one.

pub mod command_study;
pub(crate) mod event_consumers;
pub(crate) mod progress;
pub mod run;
