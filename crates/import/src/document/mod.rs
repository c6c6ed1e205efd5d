//! Formats that are one JSON or text document, each read whole.
//!
//! Such a document is what a benchmark or a counter printed of its own measurements, so it is small; a longer one is
//! refused by name. Another format is one module with `looks` and `read`, and a line in [`TOOLS`].

pub(crate) mod criterion;
pub(crate) mod fio;
pub(crate) mod go_bench;
pub(crate) mod google_benchmark;
pub(crate) mod hyperfine;
pub(crate) mod input_document;
pub(crate) mod lkp_stats;
pub(crate) mod perf_stat;
pub(crate) mod phoronix;
pub(crate) mod pyperf;
pub(crate) mod sar;
#[cfg(test)]
mod tests;

use std::hash::Hash;
use std::path::Path;

use indexmap::{IndexMap, IndexSet};

use perflab_formats::reading_parser::LineOutcome;

use crate::error::ImportError;
use crate::import_report::FileReport;
use crate::import_source::ImportSource;
use crate::imported_run::{ImportedRun, RunMetadata};
use crate::importer::{ImportOptions, Importer};
use crate::log_stream::LogStream;

pub(crate) use input_document::InputDocument;

/// What is wrong with a document, and in which line where that is known.
#[derive(Debug, PartialEq)]
pub(crate) struct DocumentError {
    pub(crate) line: Option<u64>,
    pub(crate) reason: String,
}

impl DocumentError {
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        DocumentError { line: None, reason: reason.into() }
    }
}

/// The names of which `members` have different values; a name that some lack counts as different, unless the value that the others
/// have says no more than that (`is_missing`). `pairs` are those of all members, each name once a member.
fn varied_names<N: Hash + Eq, V: PartialEq>(
    pairs: impl Iterator<Item = (N, V)>,
    members: usize,
    is_missing: impl Fn(&V) -> bool,
) -> IndexSet<N> {
    // By name: its first value, how many have it, and whether all these have that value.
    let mut seen: IndexMap<N, (V, usize, bool)> = IndexMap::new();
    for (name, value) in pairs {
        match seen.get_mut(&name) {
            Some((first, times, is_alike)) => {
                *times += 1;
                *is_alike &= *first == value;
            }
            None => drop(seen.insert(name, (value, 1, true))),
        }
    }
    let is_varied =
        |(value, times, is_alike): &(V, usize, bool)| !is_alike || (*times < members && !is_missing(value));
    seen.into_iter().filter_map(|(name, found)| is_varied(&found).then_some(name)).collect()
}

/// A kind that is one document.
struct DocumentImporter {
    kind: Importer,
    looks: fn(&InputDocument) -> bool,
    /// Reads it into the metadata; gives the series that it holds.
    read: fn(&InputDocument, &mut RunMetadata, &mut FileReport) -> Result<Vec<LogStream>, DocumentError>,
}

const TOOLS: &[DocumentImporter] = &[
    DocumentImporter {
        kind: Importer::FioJson,
        looks: crate::document::fio::is_fio_document,
        read: crate::document::fio::read_fio_document,
    },
    DocumentImporter {
        kind: Importer::PerfStat,
        looks: crate::document::perf_stat::is_perf_stat_document,
        read: crate::document::perf_stat::read_perf_stat_document,
    },
    DocumentImporter {
        kind: Importer::Hyperfine,
        looks: crate::document::hyperfine::is_hyperfine_document,
        read: crate::document::hyperfine::read_hyperfine_document,
    },
    DocumentImporter {
        kind: Importer::GoogleBenchmark,
        looks: crate::document::google_benchmark::is_google_benchmark_document,
        read: crate::document::google_benchmark::read_google_benchmark_document,
    },
    DocumentImporter {
        kind: Importer::Pyperf,
        looks: crate::document::pyperf::is_pyperf_document,
        read: crate::document::pyperf::read_pyperf_document,
    },
    DocumentImporter {
        kind: Importer::GoBench,
        looks: crate::document::go_bench::is_go_bench_document,
        read: crate::document::go_bench::read_go_bench_document,
    },
    DocumentImporter {
        kind: Importer::Phoronix,
        looks: crate::document::phoronix::is_phoronix_document,
        read: crate::document::phoronix::read_phoronix_document,
    },
    DocumentImporter {
        kind: Importer::Sar,
        looks: crate::document::sar::is_sar_document,
        read: crate::document::sar::read_sar_document,
    },
    DocumentImporter {
        kind: Importer::LkpStats,
        looks: crate::document::lkp_stats::is_lkp_stats_document,
        read: crate::document::lkp_stats::read_lkp_stats_document,
    },
];

/// Which of them a file is, if it is one.
///
/// # Errors
/// A document that begins as JSON and is none: it is cut off or damaged.
pub(crate) fn detect_document(path: &Path) -> Result<Option<Importer>, ImportError> {
    if !InputDocument::is_likely_document(path) {
        return Ok(None);
    }
    let document = InputDocument::read(path)?;
    let found = TOOLS.iter().find(|tool| (tool.looks)(&document)).map(|tool| tool.kind);
    match (found, document.json_error()) {
        (None, Some(fault)) => Err(ImportError::not_importable(path, fault.line, fault.reason)),
        _ => Ok(found),
    }
}

/// The events of a document.
pub(crate) fn open_document(
    kind: Importer,
    path: &Path,
    options: &ImportOptions,
) -> Result<Box<dyn ImportSource>, ImportError> {
    let document = InputDocument::read(path)?;
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
    let mut metadata = RunMetadata {
        title: format!("Imported from {name}"),
        description: format!("What {} measured, imported from {}.", kind.name(), path.display()),
        target: "imported".into(),
        ..RunMetadata::default()
    };
    let mut report = FileReport::new(path, "samples");
    let Some(tool) = TOOLS.iter().find(|tool| tool.kind == kind) else {
        return Err(ImportError::not_importable(path, None, "it is no document"));
    };
    let read = (tool.read)(&document, &mut metadata, &mut report);
    let streams = read.map_err(|fault| ImportError::not_importable(path, fault.line, fault.reason))?;
    if metadata.results.is_empty() && streams.is_empty() {
        let first = report.unusable.first().map_or("there is no result in it", |first| first.reason.as_str());
        return Err(ImportError::not_importable(path, None, first));
    }
    if report.rows_read > 0 || streams.is_empty() {
        metadata.report.push(report);
    }
    Ok(Box::new(ImportedRun::new(kind, path, options, metadata, streams)))
}

/// Counts a result that is left out.
fn count_unusable(report: &mut FileReport, line: u64, reason: String) {
    report.count_row(line, LineOutcome::Unusable(reason));
}
