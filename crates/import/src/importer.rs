//! The importers, which of them a path belongs to, and the import itself.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use perflab_files::{ENDLESS_KIND, open_finite_file, sha256_hex};
use perflab_model::io_trace::IoRecording;
use perflab_model::{Bytes, RunEvent};

use crate::block_trace::{self, BlockMapFile};
use crate::document::{self, criterion};
use crate::error::ImportError;
use crate::import_report::{FileReport, first_unreadable};
use crate::import_source::ImportSource;
use crate::mmtests::log_folder;
use crate::{copied_tree, kernel_dump, lkp};

/// A format that can be imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Importer {
    /// The log directory of one MMTests run.
    Mmtests,
    /// fio's JSON.
    FioJson,
    /// perf stat's JSON or separated fields.
    PerfStat,
    /// hyperfine's JSON.
    Hyperfine,
    /// Google Benchmark's JSON.
    GoogleBenchmark,
    /// pyperf's JSON.
    Pyperf,
    /// A folder of Criterion's results.
    Criterion,
    /// The text of `go test -bench`.
    GoBench,
    /// Phoronix Test Suite's `composite.xml`.
    Phoronix,
    /// sar's recording as JSON.
    Sar,
    /// lkp-tests' `stats.json` or `matrix.json`, alone.
    LkpStats,
    /// The result folder of one lkp-tests run, or any part of it.
    Lkp,
    /// One log: `/proc/slabinfo` dumped once or again and again, or the kernel's slabinfo tool, or meminfo.
    Dump,
    /// A copy of `/sys/kernel/slab`, alone or in a copied root.
    Sysfs,
    /// blktrace's binary files, one for each CPU.
    Blktrace,
    /// The text that blkparse prints.
    Blkparse,
}

impl Importer {
    /// All kinds.
    pub const ALL: [Importer; 16] = [
        Importer::Mmtests,
        Importer::Lkp,
        Importer::LkpStats,
        Importer::FioJson,
        Importer::PerfStat,
        Importer::Hyperfine,
        Importer::GoogleBenchmark,
        Importer::Pyperf,
        Importer::Criterion,
        Importer::GoBench,
        Importer::Phoronix,
        Importer::Sar,
        Importer::Dump,
        Importer::Sysfs,
        Importer::Blktrace,
        Importer::Blkparse,
    ];

    /// Its name on the command line and in facts.
    pub fn name(self) -> &'static str {
        match self {
            Importer::Mmtests => "mmtests",
            Importer::Lkp => "lkp",
            Importer::LkpStats => "lkp-stats",
            Importer::FioJson => "fio",
            Importer::PerfStat => "perf-stat",
            Importer::Hyperfine => "hyperfine",
            Importer::GoogleBenchmark => "google-benchmark",
            Importer::Pyperf => "pyperf",
            Importer::Criterion => "criterion",
            Importer::GoBench => "go-bench",
            Importer::Phoronix => "phoronix",
            Importer::Sar => "sar",
            Importer::Dump => "dump",
            Importer::Sysfs => "sysfs",
            Importer::Blktrace => "blktrace",
            Importer::Blkparse => "blkparse",
        }
    }

    /// What it is, in a line of help.
    pub fn about(self) -> &'static str {
        match self {
            Importer::Mmtests => {
                "log directory of an MMTests run: iter-N with logs of benchmarks and monitors"
            }
            Importer::Lkp => {
                "result folder of an lkp-tests run: slabinfo, slabinfo_tool, orders, job, meminfo, fsmark"
            }
            Importer::LkpStats => "stats.json or matrix.json of lkp-tests",
            Importer::FioJson => "output of fio --output-format=json",
            Importer::PerfStat => "output of perf stat -j or -x",
            Importer::Hyperfine => "output of hyperfine --export-json",
            Importer::GoogleBenchmark => "output of Google Benchmark's --benchmark_format=json",
            Importer::Pyperf => "JSON of pyperf",
            Importer::Criterion => "target/criterion, or the project that holds it",
            Importer::GoBench => "output of go test -bench, also with -json",
            Importer::Phoronix => "composite.xml of the Phoronix Test Suite",
            Importer::Sar => "output of sadf -j",
            Importer::Dump => "dumps of /proc/slabinfo, with `time: EPOCH` lines or alone",
            Importer::Sysfs => "copy of /sys/kernel/slab",
            Importer::Blktrace => {
                "a file of blktrace; NAME.blktrace.0 with those of the other CPUs beside it"
            }
            Importer::Blkparse => "text of blkparse in its default format",
        }
    }

    /// What `path` looks like.
    ///
    /// # Errors
    /// It is not there, or looks like nothing that is known.
    pub fn detect_importer(path: &Path) -> Result<Importer, ImportError> {
        let found = fs::metadata(path).map_err(ImportError::io("read", path))?;
        if found.is_file() {
            if let Some(kind) = block_trace::detect_block_trace(path) {
                return Ok(kind);
            }
            return match document::detect_document(path)? {
                Some(kind) => Ok(kind),
                None if kernel_dump::is_kernel_dump(path)? => Ok(Importer::Dump),
                None => Err(ImportError::not_importable(path, None, unknown_format_reason())),
            };
        }
        if !found.is_dir() {
            let reason = format!("{ENDLESS_KIND}: write what it gives to a file, and import that");
            return Err(ImportError::not_importable(path, None, reason));
        }
        fs::read_dir(path).map_err(ImportError::io("read", path))?;
        detect_folder(path)
            .ok_or_else(|| ImportError::not_importable(path, None, explain_unknown_folder(path)))
    }

    /// The results that `path` holds: itself, or where it is a folder of several (`work/log` of MMTests), each of them.
    ///
    /// # Errors
    /// As [`Importer::detect_importer`].
    pub fn list_importable(path: &Path) -> Result<Vec<(Importer, PathBuf)>, ImportError> {
        let runs = log_folder::mmtests_runs(path);
        if log_folder::is_mmtests_log(path) || runs.is_empty() {
            return Ok(vec![(Importer::detect_importer(path)?, path.into())]);
        }
        Ok(runs.into_iter().map(|run| (Importer::Mmtests, run)).collect())
    }

    /// The events of `path`, taken for this kind.
    ///
    /// # Errors
    /// Files that cannot be read, or whose beginning is not what it should be.
    pub fn open(self, path: &Path, options: &ImportOptions) -> Result<Box<dyn ImportSource>, ImportError> {
        match self {
            Importer::Mmtests => log_folder::open_mmtests_log(path, options),
            Importer::Lkp => lkp::open_lkp_result(path, options),
            Importer::Criterion => criterion::open_criterion_folder(path, options),
            Importer::Dump => kernel_dump::open_kernel_dump(path, options),
            Importer::Sysfs => copied_tree::open_slab_tree(path, options),
            Importer::Blktrace | Importer::Blkparse => block_trace::open_block_trace(self, path, options),
            _ => document::open_document(self, path, options),
        }
    }
}

/// What a folder is.
fn detect_folder(path: &Path) -> Option<Importer> {
    type FolderDetector = fn(&Path) -> bool;
    let known: [(Importer, FolderDetector); 4] = [
        (Importer::Mmtests, log_folder::is_mmtests_log),
        (Importer::Lkp, lkp::is_lkp_result),
        (Importer::Criterion, criterion::is_criterion_folder),
        (Importer::Sysfs, copied_tree::is_slab_tree),
    ];
    known.into_iter().find(|(_, looks)| looks(path)).map(|(kind, _)| kind)
}

/// Why a folder is none of the kinds.
fn explain_unknown_folder(path: &Path) -> String {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let inner = entries.map(|entry| entry.path()).find(|entry| match entry.is_dir() {
        true => detect_folder(entry).is_some(),
        // A pipe would be waited for.
        false => entry.is_file() && matches!(document::detect_document(entry), Ok(Some(_))),
    });
    if let Some(result) = inner {
        return format!("it holds results and is none: import them one by one, such as {}", result.display());
    }
    unknown_format_reason()
}

fn unknown_format_reason() -> String {
    let kinds = Importer::ALL.map(|kind| format!("{} ({})", kind.name(), kind.about()));
    format!("it looks like none of {}. If you know which it is, say so with --kind", kinds.join("; "))
}

impl FromStr for Importer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = || Importer::ALL.map(Importer::name).join(", ");
        let found = Importer::ALL.into_iter().find(|kind| kind.name() == text);
        found.ok_or_else(|| format!("`{text}` is no kind of import: {}", names()))
    }
}

/// What the user says about the files.
#[derive(Debug, Clone, Default)]
pub struct ImportOptions {
    /// The run's label.
    pub label: Option<String>,
    /// The page size of the machine that was recorded; else what the files say.
    pub page_size: Option<Bytes>,
    /// What the path is; guessed where left out.
    pub kind: Option<Importer>,
    /// Take what a run of the same label was made of already.
    pub again: bool,
    /// The run's id.
    pub id: String,
    /// For block traces: where the file system that was traced can be asked about its files.
    pub on: Option<BlockTraceFileSystem>,
    /// For block traces: whose the blocks of that file system were, as another tool wrote it down then.
    pub block_map: Option<BlockMapFile>,
}

/// A file system that was traced, and who asks it: an import by itself looks at nothing but what it imports.
#[derive(Debug, Clone)]
pub struct BlockTraceFileSystem {
    /// where it is mounted
    pub mount_point: PathBuf,
    /// adds the files of that place to which the recording's sectors belong
    pub find: fn(&mut IoRecording, &Path),
}

/// The events of what other tools wrote at `path`, and what it was taken for.
///
/// # Errors
/// [`ImportError::Foreign`], naming file and line, for what cannot be understood. That no row at all could be read is an
/// error at the end of the events.
pub fn open_import(
    path: &Path,
    options: &ImportOptions,
) -> Result<(Importer, impl ImportSource + use<>), ImportError> {
    let kind = options.kind.map_or_else(|| Importer::detect_importer(path), Ok)?;
    let source = kind.open(path, options)?;
    Ok((kind, CheckedSource { path: path.into(), source, is_over: false }))
}

/// Events that end with an error where nothing could be used of any file.
struct CheckedSource {
    path: PathBuf,
    source: Box<dyn ImportSource>,
    is_over: bool,
}

impl Iterator for CheckedSource {
    type Item = Result<RunEvent, ImportError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        if let Some(event) = self.source.next() {
            return Some(event);
        }
        self.is_over = true;
        let report = self.source.file_reports();
        report.iter().all(|report| report.rows_used == 0).then(|| Err(unreadable_error(&self.path, &report)))
    }
}

impl ImportSource for CheckedSource {
    fn file_reports(&self) -> Vec<FileReport> {
        self.source.file_reports()
    }
}

/// The fact that tells files that were imported already.
pub const HASH_FACT: &str = "import.sha256";

/// Bytes of files that are read once more for their hash.
const HASHED: u64 = 1 << 30;

/// The hash of all files that something was taken of; none where one cannot be read, or they are long.
pub(crate) fn hash_imported_files(report: &[FileReport]) -> Option<String> {
    let files: BTreeSet<&Path> =
        report.iter().map(|report| report.file.as_path()).filter(|file| file.is_file()).collect();
    let sizes = files.iter().filter_map(|file| file.metadata().ok()).map(|found| found.len());
    if files.is_empty() || sizes.fold(0, u64::saturating_add) > HASHED {
        return None;
    }
    let hashes = files.into_iter().map(|file| {
        let mut opened = open_finite_file(file).ok()?;
        sha256_hex(&mut opened).ok()
    });
    let hashes = hashes.collect::<Option<Vec<String>>>()?;
    match &hashes[..] {
        [only] => Some(only.clone()),
        _ => sha256_hex(&mut hashes.join("\n").as_bytes()).ok(),
    }
}

fn unreadable_error(path: &Path, report: &[FileReport]) -> ImportError {
    if let Some(refused) = first_unreadable(report) {
        return refused;
    }
    let first = report.iter().find_map(|report| Some((&report.file, report.unusable.first()?)));
    first.map_or_else(
        || empty_import_error(path),
        |(file, first)| {
            let place = if first.line > 0 { format!("line {}: ", first.line) } else { String::new() };
            ImportError::not_importable(
                file,
                None,
                format!("no row in it can be read; {place}{}", first.reason),
            )
        },
    )
}

fn empty_import_error(path: &Path) -> ImportError {
    ImportError::not_importable(path, None, "there is nothing in it to import")
}
