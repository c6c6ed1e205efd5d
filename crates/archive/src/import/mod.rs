//! Other tools' results as one more source of events: what they wrote becomes an ordinary run.
//!
//! Owns the way from foreign files to [`perflab_model::Event`]s; the recorder takes it from there, so an
//! imported run is listed, shown, exported and reported like any other. Refuses to guess: what a file does
//! not say is missing, what had to be assumed is a warning of the run, and no row is dropped in silence
//! (see [`FileReport`]). Memory is bounded by one tick of each log, however long a log is and however well it
//! was compressed.
//!
//! A kind of foreign result is one module that gives a [`ImportSource`]; [`Importer`] is where it is listed and
//! guessed.
//!
//! | module | owns |
//! |---|---|
//! | `foreign` | [`import_as_run`], [`import_as_runs`]: from paths to runs |
//! | `kind` | the kinds, and which one a path is |
//! | `source` | what every kind gives |
//! | `mmtests`, `lkp`, `dump`, `sysfs` | a kind each |
//! | `tools` | the kinds that are one document: fio, perf stat, hyperfine, Google Benchmark and others |
//! | `blocks` | block traces: blktrace's files, blkparse's text; maps from blocks to files |
//! | `given` | a series that was read at once |
//! | `slabinfo`, `slabinfo_tool`, `meminfo`, `orders`, `job`, `fsmark`, `timed`, `vmstat_tool`, `iostat`, `mpstat`, `perf_stat_log`, `proc_vmstat` | a file's format each |
//! | `stamp` | the time that MMTests puts before lines |
//! | `format`, `log`, `lines`, `feed`, `session` | dumps after dumps, line by line; several logs in one order of time |
//! | `story` | what is known besides the logs: title, facts, benchmark |
//! | `profile` | [`import_profile_run`]: call stacks that another tool recorded |
//! | `results` | what benchmarks reported: cases, iterations, samples |
//! | `took` | what was read of each file |

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
