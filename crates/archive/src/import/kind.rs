//! The kinds of foreign results, and which one a path is.

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::{Options, Source, blocks, dump, lkp, mmtests, sysfs, tools};
use crate::ArchiveError;
use crate::finite_file::ENDLESS_KIND;

/// A kind of foreign result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
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

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 16] = [
        Kind::Mmtests,
        Kind::Lkp,
        Kind::LkpStats,
        Kind::FioJson,
        Kind::PerfStat,
        Kind::Hyperfine,
        Kind::GoogleBenchmark,
        Kind::Pyperf,
        Kind::Criterion,
        Kind::GoBench,
        Kind::Phoronix,
        Kind::Sar,
        Kind::Dump,
        Kind::Sysfs,
        Kind::Blktrace,
        Kind::Blkparse,
    ];

    /// Its name on the command line and in facts.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Mmtests => "mmtests",
            Kind::Lkp => "lkp",
            Kind::LkpStats => "lkp-stats",
            Kind::FioJson => "fio",
            Kind::PerfStat => "perf-stat",
            Kind::Hyperfine => "hyperfine",
            Kind::GoogleBenchmark => "google-benchmark",
            Kind::Pyperf => "pyperf",
            Kind::Criterion => "criterion",
            Kind::GoBench => "go-bench",
            Kind::Phoronix => "phoronix",
            Kind::Sar => "sar",
            Kind::Dump => "dump",
            Kind::Sysfs => "sysfs",
            Kind::Blktrace => "blktrace",
            Kind::Blkparse => "blkparse",
        }
    }

    /// What it is, in a line of help.
    pub fn about(self) -> &'static str {
        match self {
            Kind::Mmtests => "log directory of an MMTests run: iter-N with logs of benchmarks and monitors",
            Kind::Lkp => {
                "result folder of an lkp-tests run: slabinfo, slabinfo_tool, orders, job, meminfo, fsmark"
            }
            Kind::LkpStats => "stats.json or matrix.json of lkp-tests",
            Kind::FioJson => "output of fio --output-format=json",
            Kind::PerfStat => "output of perf stat -j or -x",
            Kind::Hyperfine => "output of hyperfine --export-json",
            Kind::GoogleBenchmark => "output of Google Benchmark's --benchmark_format=json",
            Kind::Pyperf => "JSON of pyperf",
            Kind::Criterion => "target/criterion, or the project that holds it",
            Kind::GoBench => "output of go test -bench, also with -json",
            Kind::Phoronix => "composite.xml of the Phoronix Test Suite",
            Kind::Sar => "output of sadf -j",
            Kind::Dump => "dumps of /proc/slabinfo, with `time: EPOCH` lines or alone",
            Kind::Sysfs => "copy of /sys/kernel/slab",
            Kind::Blktrace => "a file of blktrace; NAME.blktrace.0 with those of the other CPUs beside it",
            Kind::Blkparse => "text of blkparse in its default format",
        }
    }

    /// What `path` looks like.
    ///
    /// # Errors
    /// It is not there, or looks like nothing that is known.
    pub fn guess(path: &Path) -> Result<Kind, ArchiveError> {
        let found = fs::metadata(path).map_err(ArchiveError::io("read", path))?;
        if found.is_file() {
            if let Some(kind) = blocks::guess(path) {
                return Ok(kind);
            }
            return match tools::guess(path)? {
                Some(kind) => Ok(kind),
                None if dump::looks(path)? => Ok(Kind::Dump),
                None => Err(ArchiveError::foreign(path, None, none_of_them())),
            };
        }
        if !found.is_dir() {
            let reason = format!("{ENDLESS_KIND}: write what it gives to a file, and import that");
            return Err(ArchiveError::foreign(path, None, reason));
        }
        fs::read_dir(path).map_err(ArchiveError::io("read", path))?;
        folder(path).ok_or_else(|| ArchiveError::foreign(path, None, strange(path)))
    }

    /// The results that `path` holds: itself, or where it is a folder of several (`work/log` of MMTests), each of them.
    ///
    /// # Errors
    /// As [`Kind::guess`].
    pub fn results(path: &Path) -> Result<Vec<(Kind, PathBuf)>, ArchiveError> {
        let runs = mmtests::runs(path);
        if mmtests::looks(path) || runs.is_empty() {
            return Ok(vec![(Kind::guess(path)?, path.into())]);
        }
        Ok(runs.into_iter().map(|run| (Kind::Mmtests, run)).collect())
    }

    /// The events of `path`, taken for this kind.
    ///
    /// # Errors
    /// Files that cannot be read, or whose beginning is not what it should be.
    pub fn open(self, path: &Path, options: &Options) -> Result<Box<dyn Source>, ArchiveError> {
        match self {
            Kind::Mmtests => mmtests::open(path, options),
            Kind::Lkp => lkp::open(path, options),
            Kind::Criterion => tools::open_criterion(path, options),
            Kind::Dump => dump::open(path, options),
            Kind::Sysfs => sysfs::open(path, options),
            Kind::Blktrace | Kind::Blkparse => blocks::open(self, path, options),
            _ => tools::open(self, path, options),
        }
    }
}

/// What a folder is.
fn folder(path: &Path) -> Option<Kind> {
    type Looks = fn(&Path) -> bool;
    let known: [(Kind, Looks); 4] = [
        (Kind::Mmtests, mmtests::looks),
        (Kind::Lkp, lkp::looks),
        (Kind::Criterion, tools::looks_like_criterion),
        (Kind::Sysfs, sysfs::looks),
    ];
    known.into_iter().find(|(_, looks)| looks(path)).map(|(kind, _)| kind)
}

/// Why a folder is none of the kinds.
fn strange(path: &Path) -> String {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let inner = entries.map(|entry| entry.path()).find(|entry| match entry.is_dir() {
        true => folder(entry).is_some(),
        // A pipe would be waited for.
        false => entry.is_file() && matches!(tools::guess(entry), Ok(Some(_))),
    });
    if let Some(result) = inner {
        return format!("it holds results and is none: import them one by one, such as {}", result.display());
    }
    none_of_them()
}

fn none_of_them() -> String {
    let kinds = Kind::ALL.map(|kind| format!("{} ({})", kind.name(), kind.about()));
    format!("it looks like none of {}. If you know which it is, say so with --kind", kinds.join("; "))
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = || Kind::ALL.map(Kind::name).join(", ");
        let found = Kind::ALL.into_iter().find(|kind| kind.name() == text);
        found.ok_or_else(|| format!("`{text}` is no kind of import: {}", names()))
    }
}
