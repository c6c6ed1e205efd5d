//! Verbs that measure: a study, or a command made into one.

pub mod bench;
pub mod bisect;
pub mod bisection;
pub mod command_study;
pub mod command_words;
pub(crate) mod event_consumers;
mod failing_command;
pub mod flight_recorder;
pub mod flight_watch;
pub mod full_disk;
pub mod patch;
pub(crate) mod progress;
pub mod repeatable_run;
pub mod reproduce;
pub mod resume;
pub mod run;
mod target_images;
pub mod varied_factor;
pub mod watch;
