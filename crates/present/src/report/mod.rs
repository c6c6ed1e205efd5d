//! The single-file report: one HTML page that works offline, with or without JavaScript.
//!
//! Owns the page's structure, the JSON that its front end reads ([`data`]) and how runs become that
//! JSON. It refuses to judge (verdicts come from `analyze`), to read runs and to write files.
//!
//! What can be read with JavaScript off (verdicts, interval plots, facts, plan) is rendered here; what
//! needs a pointer (dots, timelines, filter) is drawn by the bundle under `assets/`, built from `web/`.

pub(crate) mod bundle;
pub mod data;
mod facts;
mod fairness;
mod input;
mod interval;
mod number;
mod page;
mod render;
mod run;
mod series;
mod startup;
mod verdicts;

pub(crate) use bundle::encode_base64;
pub use input::{ReportData, ReportError, ReportRun};
pub(crate) use render::{embed_json as page_json, page_templates};
pub use render::{render_report, render_report_with_history};

#[cfg(test)]
mod tests;
