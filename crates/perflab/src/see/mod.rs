//! Verbs that show and compare runs.

pub mod compare;
mod compared_studies;
mod confirmation;
pub mod history;
pub mod plot;
mod plot_look;
mod plot_monitor;
mod recorded_sides;
pub mod report;
mod row_suspects;
pub mod show;
mod step_summary;
pub mod why;
