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
//! | `importer` | [`Importer`], [`import_as_run`], [`import_as_runs`]: from paths to runs |
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
//! | `profile` | [`import_profile_run`]: call stacks that another tool recorded |
//! | `program_trace` | [`import_program_trace`]: operations that a program recorded |

pub(crate) mod benchmark_results;
pub(crate) mod block_trace;
pub(crate) mod copied_tree;
pub(crate) mod document;
pub(crate) mod dump_log;
pub(crate) mod import_report;
pub(crate) mod import_source;
pub(crate) mod imported_run;
pub(crate) mod importer;
pub(crate) mod input_lines;
pub(crate) mod kernel_dump;
pub(crate) mod kernel_file;
pub(crate) mod lkp;
pub(crate) mod log_stream;
pub(crate) mod mmtests;
pub(crate) mod packed_folder;
pub(crate) mod profile;
pub(crate) mod program_trace;
pub(crate) mod tool_log;

pub use block_trace::BlockMapFile;
pub use import_report::{FileReport, LineRemark};
pub use import_source::ImportSource;
pub use importer::{
    BlockTraceFileSystem, ImportOptions, ImportOutcome, Importer, import_as_run, import_as_runs,
};
pub use profile::import_profile_run;
pub use program_trace::{ProbedRun, import_probed_program, import_program_trace};
