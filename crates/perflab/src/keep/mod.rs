//! Verbs that keep runs, name them, let them go, and move them in and out.

pub mod exchange;
pub mod imported_runs;
pub mod index;
pub mod perfetto_export;
pub mod remote_choice;
pub mod remote_runs;
pub mod runs;
pub mod transfer_bar;
