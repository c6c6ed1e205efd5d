//! The kinds of foreign results, and which one a path is.

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::{ImportOptions, ImportSource, blocks, dump, lkp, mmtests, sysfs, tools};
use crate::ArchiveError;
use crate::finite_file::ENDLESS_KIND;

/// A kind of foreign result.
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
    pub fn detect_importer(path: &Path) -> Result<Importer, ArchiveError> {
        let found = fs::metadata(path).map_err(ArchiveError::io("read", path))?;
        if found.is_file() {
            if let Some(kind) = blocks::detect_block_trace(path) {
                return Ok(kind);
            }
            return match tools::detect_document(path)? {
                Some(kind) => Ok(kind),
                None if dump::is_kernel_dump(path)? => Ok(Importer::Dump),
                None => Err(ArchiveError::not_importable(path, None, unknown_format_reason())),
            };
        }
        if !found.is_dir() {
            let reason = format!("{ENDLESS_KIND}: write what it gives to a file, and import that");
            return Err(ArchiveError::not_importable(path, None, reason));
        }
        fs::read_dir(path).map_err(ArchiveError::io("read", path))?;
        detect_folder(path)
            .ok_or_else(|| ArchiveError::not_importable(path, None, explain_unknown_folder(path)))
    }

    /// The results that `path` holds: itself, or where it is a folder of several (`work/log` of MMTests), each of them.
    ///
    /// # Errors
    /// As [`Importer::detect_importer`].
    pub fn list_importable(path: &Path) -> Result<Vec<(Importer, PathBuf)>, ArchiveError> {
        let runs = mmtests::mmtests_runs(path);
        if mmtests::is_mmtests_log(path) || runs.is_empty() {
            return Ok(vec![(Importer::detect_importer(path)?, path.into())]);
        }
        Ok(runs.into_iter().map(|run| (Importer::Mmtests, run)).collect())
    }

    /// The events of `path`, taken for this kind.
    ///
    /// # Errors
    /// Files that cannot be read, or whose beginning is not what it should be.
    pub fn open(self, path: &Path, options: &ImportOptions) -> Result<Box<dyn ImportSource>, ArchiveError> {
        match self {
            Importer::Mmtests => mmtests::open_mmtests_log(path, options),
            Importer::Lkp => lkp::open_lkp_result(path, options),
            Importer::Criterion => tools::open_criterion(path, options),
            Importer::Dump => dump::open_kernel_dump(path, options),
            Importer::Sysfs => sysfs::open_slab_tree(path, options),
            Importer::Blktrace | Importer::Blkparse => blocks::open_block_trace(self, path, options),
            _ => tools::open_document(self, path, options),
        }
    }
}

/// What a folder is.
fn detect_folder(path: &Path) -> Option<Importer> {
    type FolderDetector = fn(&Path) -> bool;
    let known: [(Importer, FolderDetector); 4] = [
        (Importer::Mmtests, mmtests::is_mmtests_log),
        (Importer::Lkp, lkp::is_lkp_result),
        (Importer::Criterion, tools::looks_like_criterion),
        (Importer::Sysfs, sysfs::is_slab_tree),
    ];
    known.into_iter().find(|(_, looks)| looks(path)).map(|(kind, _)| kind)
}

/// Why a folder is none of the kinds.
fn explain_unknown_folder(path: &Path) -> String {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let inner = entries.map(|entry| entry.path()).find(|entry| match entry.is_dir() {
        true => detect_folder(entry).is_some(),
        // A pipe would be waited for.
        false => entry.is_file() && matches!(tools::detect_document(entry), Ok(Some(_))),
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
