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
pub use events::JournalReader;
pub use finite_file::read_finite_file;
pub use id::new_run_id;
pub use import::{
    FileReport, ImportOptions, ImportOutcome, Importer, LineRemark, import_as_run, import_as_runs,
};
pub use portable::{import_portable_run, is_portable_run, write_portable_file, write_portable_run};
pub use recorder::RunRecorder;
pub use retention::{PrunedRuns, RetentionPolicy};
pub use run::RunDir;
pub use store::{Archive, ArchiveEntry, RunSummary};
