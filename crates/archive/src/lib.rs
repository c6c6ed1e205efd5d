//! Runs on disk: the recorder, the reader, retention, the portable file.
//!
//! A run is recorded as lines of a journal and becomes tables when it ends, so that measuring never
//! waits for Parquet and a killed process loses nothing that was flushed. This crate owns every file
//! under an archive's directory (`docs/format.md` describes them for readers in other languages). It
//! refuses to judge: no statistics, no comparison, and reading a run never writes to it.
//!
//! | module | owns |
//! |---|---|
//! | [`store`] | the archive's directory: open, list, begin |
//! | [`select`] | from what a person types to runs: prefix, `@latest`, label, path |
//! | [`recorder`] | a run's events into its journal, and at the end into tables |
//! | [`run`] | reading one run |
//! | [`events`] | reading a journal, line by line |
//! | [`retention`] | which runs to let go of |
//! | [`portable`] | a run as a single file |
//! | [`mod@export`] | runs in the formats of other tools |
//! | [`mod@import`] | other tools' results as runs |
//! | [`id`] | run ids and their shortest prefixes |
//! | [`error`] | what can go wrong, naming the path |
//!
//! ```no_run
//! # fn main() -> Result<(), perflab_archive::ArchiveError> {
//! use perflab_archive::Archive;
//! let archive = Archive::open(&Archive::locate(None))?;
//! for run in archive.find("@latest")? {
//!     println!("{}: {} samples", run.short(), run.record()?.samples.len());
//! }
//! # Ok(())
//! # }
//! ```

pub mod error;
pub mod events;
pub mod export;
pub mod id;
pub mod import;
pub mod portable;
pub mod recorder;
pub mod retention;
pub mod run;
pub mod select;
pub mod store;

mod at_once;
mod checksums;
mod facts;
mod finish;
mod finite_file;
mod fresh_file;
mod half_made;
mod io;
mod iterations;
mod journal;
mod layout;
mod lock;
mod manifest;
mod outputs;
mod samples;
mod series;
mod stacks;
mod table;
mod traces;

pub use error::ArchiveError;
pub use events::Events;
pub use finite_file::read_finite;
pub use id::new_run_id;
pub use import::{Imported, Kind, Options, Remark, Took, import_foreign, import_several};
pub use portable::{export, export_to, import, is_portable};
pub use recorder::Recorder;
pub use retention::{Policy, Pruned};
pub use run::RunDir;
pub use store::{Archive, Entry, Summary};
