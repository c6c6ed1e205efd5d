//! How results are shown: terminal tables, static figures and the single-file report.
//!
//! | module | content |
//! |---|---|
//! | [`report`] | the report: its sections in their order, the page, its policy |
//! | [`section`] | one part of a report: [`Section`](section::Section), its blocks, and what it reads ([`ReportData`]) |
//! | [`comparison`], [`diagnostics`], [`method_text`] | verdicts as tables; what is below them; how numbers came about |
//! | `grid` | tables of anything ([`comparison::Grid`]) |
//! | [`history`] | steps of a history, the check of the newest run |
//! | [`tested_commit`] | commits that a watch of a tree has tested, a line each |
//! | [`board`] | metrics of a study, a line each, with how they went |
//! | `badge` | a metric in a line: its newest value and the verdict of its history |
//! | [`fairness`] | targets of a synchronised run |
//! | [`flame`], [`io`], [`operations`], [`slab`], `startup` | tables, scenes and section of each instrument |
//! | [`run_matter`] | pages of one matter of a run |
//! | [`run_overview`], [`facts`] | one run for people; facts side by side, and what differs between two runs |
//! | `kernels` | which kernels runs had, and what differs between them |
//! | [`perfetto`] | a run as a trace for Perfetto |
//! | [`monitor_table`] | what a monitor recorded in a run, by column |
//! | [`price`] | what a unit of each dose costs |
//! | [`why`] | why a row changed: ten lines, a table, JSON |
//! | [`noise`] | the noise of a machine, and what a precision costs |
//! | [`run_viewer`], `packed_column` | what the viewers of a report read |
//! | [`plot`] | metrics and monitors as pictures, one file a kind |
//! | [`chart`] | static figures as SVG and PNG |
//! | `sentence` | sentences for people; numbers are printed by [`perflab_model::quantity`] |

mod badge;
pub mod board;
pub mod chart;
pub mod ci_tests;
pub mod command_times;
pub mod comparison;
pub mod diagnostics;
pub mod facts;
pub mod fairness;
pub mod flame;
mod grid;
pub mod history;
pub mod io;
mod kernels;
pub mod machine_activity;
pub mod method_text;
pub mod monitor_table;
pub mod noise;
pub mod operations;
mod packed_column;
pub mod perfetto;
pub mod plot;
pub mod price;
pub mod report;
pub mod run_matter;
pub mod run_overview;
pub mod run_viewer;
pub mod section;
mod sentence;
pub mod slab;
mod startup;
mod terminal_text;
pub mod tested_commit;
pub mod why;

pub use badge::guard_badge;
pub use section::{ReportData, ReportRun};
pub use sentence::count_text;
pub use terminal_text::wrap_text;
