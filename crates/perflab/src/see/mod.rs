//! Verbs that show and compare runs.

pub mod compare;
mod compared_studies;
mod confirmation;
pub mod history;
pub mod plot;
mod plot_look;
mod plot_monitor;
pub mod report;
pub mod show;
pub mod why;
