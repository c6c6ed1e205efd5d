//! Runs on disk: recorded, closed, read, selected, exchanged and let go of.
//!
//! A run is recorded as lines of a journal and becomes tables when it ends, so that measuring never waits for Parquet
//! and a killed process loses nothing that was flushed. This crate owns every file under an archive's directory
//! (`docs/format.md` describes them for readers in other languages). It computes no statistics, and reading a run never
//! writes to it.
//!
//! | module | content |
//! |---|---|
//! | [`archive_dir`] | the archive's directory: open, list, begin a run |
//! | [`run_selector`] | from what a person types to runs: prefix, `@latest`, label, path |
//! | [`index`], `run_summary` | the index of runs, which lists and histories are read from; what a list shows of a run |
//! | `accepted_steps` | the steps of histories that somebody accepted |
//! | [`run_peek`] | what a shell suggests of an archive: names and plans, without a lock, a write or a check |
//! | `run_notes` | what people wrote about a run |
//! | [`run_id`] | run ids and their shortest prefixes |
//! | [`recorder`] | a run's events into its journal, and at the end into tables |
//! | [`journal`] | the log of events, appended and read line by line |
//! | [`event_ring`], [`flight_recording`] | the last events of a stream, within a time and a size; a run that is written of them |
//! | `run_close` | from journal to tables, in steps that survive any kill |
//! | [`run_dir`] | one run as it is read |
//! | `run_layout`, `manifest`, `checksums` | what lies where in a run's directory; `run.json`; `SHA256SUMS` |
//! | `tables`, `parquet`, `text_pages` | the stored tables, and their Parquet |
//! | [`retention`] | which runs a policy lets go of |
//! | [`incoming_run`] | a run that comes from elsewhere, as a whole or not at all |
//! | [`run_list`] | the list of runs of an archive in object storage, as a table |
//! | [`portable`], [`unpack_folder`] | a run as a single file; where one is unpacked to be read |
//! | [`mod@export`] | runs in the formats of other tools |
//! | [`sql_views`] | the tables of many runs as views of SQL |
//! | `fresh_file`, `half_made` | files written where somebody else may have been; folders that are no runs yet |
//! | [`error`] | what can go wrong, naming the path |
//!
//! ```no_run
//! # fn main() -> Result<(), perflab_archive::ArchiveError> {
//! use perflab_archive::Archive;
//! let archive = Archive::open(&Archive::locate(None))?;
//! for run in archive.find_runs("@latest")? {
//!     println!("{}: {} samples", run.short_id(), run.read_record()?.samples.len());
//! }
//! # Ok(())
//! # }
//! ```

mod accepted_steps;
pub mod archive_dir;
mod checksums;
mod document_log;
pub mod error;
pub mod event_ring;
pub mod export;
pub mod flight_recording;
mod fresh_file;
mod half_made;
pub mod incoming_run;
pub mod index;
pub mod journal;
mod manifest;
mod parquet;
pub mod portable;
pub mod recorder;
pub mod retention;
mod run_close;
pub mod run_dir;
pub mod run_id;
mod run_layout;
pub mod run_list;
mod run_notes;
pub mod run_peek;
pub mod run_selector;
mod run_summary;
pub mod sql_views;
mod stored_run;
mod tables;
mod text_pages;
pub mod unpack_folder;

/// What the fuzzer calls and nobody else: decoders below the ones that are public.
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing {
    pub use crate::parquet::decode_parquet_file;
    pub use crate::text_pages::decode_text_pages;
}

pub use archive_dir::{Archive, ArchiveEntry, HeldRun};
pub use error::ArchiveError;
pub use event_ring::EventRing;
pub use flight_recording::FlightRecording;
pub use incoming_run::IncomingRun;
pub use journal::{JournalReader, StoredOutput};
pub use portable::{import_portable_run, is_portable_run, write_portable_file, write_portable_run};
pub use recorder::{BulkRecorder, RunRecorder};
pub use retention::{PrunedRuns, RESUMED_LABEL, RetentionPolicy};
pub use run_dir::{ListedMonitors, RunDir};
pub use run_id::new_run_id;
pub use run_layout::{LISTED_FILES, MANIFEST, NOTES, RUNS};
pub use run_notes::LONGEST_NOTE;
pub use run_peek::PeekedRun;
pub use run_selector::parse_label;
pub use run_summary::RunSummary;
pub use stored_run::{StoredRun, TARGET_OUTPUT};
