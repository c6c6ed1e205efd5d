//! Other tools' results as one more source of events: what they wrote becomes an ordinary run.
//!
//! An importer reads other tools' files into [events](perflab_model::event); the recorder takes it from there, so an
//! imported run is listed, shown, exported and reported like any other. What a file does not say is missing, what had
//! to be assumed is a warning of the run, and no row is dropped in silence (see [`FileReport`]). Memory is bounded by
//! one tick of each log, however long a log is and however well it was compressed.
//!
//! An importer is one file in `importers`: an [`Importer`], which says what it reads, how that is recognised and how it is
//! read. [`IMPORTERS`] lists them.
//!
//! What a line of a kernel file or of a tool means is in `perflab-formats`: what can be read on a clock can be imported.
//!
//! | module | content |
//! |---|---|
//! | [`registry`] | [`IMPORTERS`], which of them a path belongs to, [`open_import`]: from a path to its events |
//! | [`importer`] | [`Importer`], [`ImportOptions`], [`ImportSource`] |
//! | `importers` | one importer a file |
//! | `input_path` | a path, looked at once for all importers |
//! | `input_folder` | a folder, looked at in bounded work |
//! | `input_lines`, `input_document`, `packed_folder` | untrusted files line by line, or whole; the files of a folder, packed or not |
//! | `document_import` | an importer of one document |
//! | `dump_log`, `log_stream` | dumps after dumps as ticks; several logs in one order of time |
//! | `benchmark_results` | what benchmarks reported: cases, iterations, samples |
//! | `imported_run`, `import_report` | all of it as the events of one run; what was read, skipped and why |
//! | `machine_page_size` | the page size of an imported machine |
//! | `foreign_study` | studies made from other suites' configurations: [`convert_study`] |
//! | [`error`] | what can go wrong, naming file and line |

mod benchmark_results;
mod document_import;
mod dump_log;
pub mod error;
mod foreign_study;
mod import_report;
mod imported_run;
pub mod importer;
mod importers;
mod input_document;
mod input_folder;
mod input_lines;
mod input_path;
mod log_stream;
mod machine_page_size;
mod packed_folder;
pub mod registry;

pub use error::ImportError;
pub use foreign_study::{ConvertedStudy, FateCounts, LineAccount, LineFate, convert_study};
pub use import_report::{FileReport, LineRemark};
pub use importer::{
    BlockMapFile, BlockTraceFileSystem, ImportOptions, ImportSource, ImportedEvents, Importer,
};
pub use importers::profile::profile_source;
pub use importers::program_trace::{ProbedRun, probed_program_source};
pub use registry::{IMPORTERS, detect_importer, find_importer, list_importable, open_import};
