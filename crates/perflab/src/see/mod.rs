//! Verbs that show and compare runs.

mod ci_job;
pub mod compare;
mod compared_studies;
mod confirmation;
pub mod history;
mod picture_request;
pub mod plot;
mod plot_look;
mod plot_monitor;
pub mod price;
pub mod query;
mod recorded_sides;
pub mod report;
mod row_suspects;
pub mod serve;
pub mod show;
pub mod why;
mod why_test;
