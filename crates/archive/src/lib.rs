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
//! | [`run_named`] | reading one run |
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

pub mod archive_dir;
mod checksums;
pub mod error;
pub mod export;
mod finite_file;
mod fresh_file;
mod half_made;
pub mod import;
pub mod journal;
mod manifest;
mod parquet_reader;
mod parquet_writer;
pub mod portable;
pub mod recorder;
pub mod retention;
mod run_close;
pub mod run_dir;
pub mod run_id;
mod run_layout;
pub mod run_selector;
mod tables;

pub use archive_dir::{Archive, ArchiveEntry, RunSummary};
pub use error::ArchiveError;
pub use finite_file::read_finite_file;
pub use import::{
    FileReport, ImportOptions, ImportOutcome, Importer, LineRemark, import_as_run, import_as_runs,
};
pub use journal::JournalReader;
pub use portable::{import_portable_run, is_portable_run, write_portable_file, write_portable_run};
pub use recorder::RunRecorder;
pub use retention::{PrunedRuns, RetentionPolicy};
pub use run_dir::RunDir;
pub use run_id::new_run_id;
