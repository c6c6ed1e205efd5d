//! Verbs that show and compare runs.

pub mod compare;
mod confirmation;
pub mod history;
pub mod report;
pub mod show;
