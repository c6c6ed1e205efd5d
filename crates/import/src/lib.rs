//! Other tools' results as one more source of events: what they wrote becomes an ordinary run.
//!
//! An importer reads other tools' files into [events](perflab_model::event); the recorder takes it from there, so an
//! imported run is listed, shown, exported and reported like any other. What a file does not say is missing, what had
//! to be assumed is a warning of the run, and no row is dropped in silence (see [`FileReport`]). Memory is bounded by
//! one tick of each log, however long a log is and however well it was compressed.
//!
//! An importer is one module that gives an [`ImportSource`]; [`Importer`] is where it is listed and detected.
//!
//! | module | content |
//! |---|---|
//! | `importer` | [`Importer`], [`open_import`]: from a path to its events |
//! | `import_source`, `imported_run` | what every importer gives; the events and manifest of an imported run |
//! | `import_report` | what was read, skipped and why |
//! | `benchmark_results` | what benchmarks reported: cases, iterations, samples |
//! | `input_lines`, `packed_folder` | untrusted files line by line; the files of a folder, packed or not |
//! | `dump_log`, `log_stream` | dumps after dumps as ticks; several logs in one order of time |
//! | `mmtests`, `lkp` | result folders of test suites |
//! | `document` | formats of one document: fio, perf stat, hyperfine, Google Benchmark and others |
//! | `kernel_dump`, `kernel_file`, `copied_tree` | logs of kernel files; a copied tree of slab caches |
//! | `tool_log` | what tools print again and again: vmstat, iostat, mpstat, perf stat and others |
//! | `block_trace` | blktrace's files, blkparse's text; maps from blocks to files |
//! | `profile` | [`profile_source`]: call stacks that another tool recorded |
//! | `program_trace` | [`program_trace_source`]: operations that a program recorded |

mod benchmark_results;
mod block_trace;
mod copied_tree;
mod document;
mod dump_log;
pub mod error;
mod import_report;
mod import_source;
mod imported_run;
mod importer;
mod input_lines;
mod kernel_dump;
mod kernel_file;
mod lkp;
mod log_stream;
mod mmtests;
mod packed_folder;
mod profile;
mod program_trace;
mod tool_log;

pub use block_trace::BlockMapFile;
pub use error::ImportError;
pub use import_report::{FileReport, LineRemark};
pub use import_source::{ImportSource, ImportedEvents};
pub use importer::{BlockTraceFileSystem, HASH_FACT, ImportOptions, Importer, open_import};
pub use profile::profile_source;
pub use program_trace::{ProbedRun, probed_program_source, program_trace_source};
