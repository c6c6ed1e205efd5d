//! Verbs that show and compare runs.

pub mod compare;
pub mod history;
pub mod report;
pub mod show;
