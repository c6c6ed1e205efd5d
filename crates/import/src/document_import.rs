//! Importers of formats that are one JSON or text document, each read whole.
//!
//! Such a document is what a benchmark or a counter printed of its own measurements, so it is small; a longer one is
//! refused by name.

use std::hash::Hash;
use std::path::Path;

use indexmap::{IndexMap, IndexSet};

use crate::error::ImportError;
use crate::import_report::FileReport;
use crate::imported_run::{ImportedRun, RunMetadata};
use crate::importer::{ImportOptions, ImportSource};
use crate::input_document::{DocumentError, InputDocument};
use crate::log_stream::LogStream;
use perflab_formats::reading_parser::LineOutcome;

/// Reads a document into the metadata; gives the series that it holds.
type DocumentReader =
    fn(&InputDocument, &mut RunMetadata, &mut FileReport) -> Result<Vec<LogStream>, DocumentError>;

/// The events of a document that `read` understands.
pub(crate) fn open_document(
    importer: &'static str,
    path: &Path,
    options: &ImportOptions,
    read: DocumentReader,
) -> Result<Box<dyn ImportSource>, ImportError> {
    let document = InputDocument::read(path)?;
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
    let mut metadata = RunMetadata {
        title: format!("Imported from {name}"),
        description: format!("What {importer} measured, imported from {}.", path.display()),
        target: "imported".into(),
        ..RunMetadata::default()
    };
    let mut report = FileReport::new(path, "samples");
    let read = read(&document, &mut metadata, &mut report);
    let streams = read.map_err(|fault| ImportError::not_importable(path, fault.line, fault.reason))?;
    if metadata.results.is_empty() && streams.is_empty() {
        let first = report.unusable.first().map_or("there is no result in it", |first| first.reason.as_str());
        return Err(ImportError::not_importable(path, None, first));
    }
    if report.rows_read > 0 || streams.is_empty() {
        metadata.report.push(report);
    }
    Ok(Box::new(ImportedRun::new(importer, path, options, metadata, streams)))
}

/// Counts a result that is left out.
pub(crate) fn count_unusable(report: &mut FileReport, line: u64, reason: String) {
    report.count_row(line, LineOutcome::Unusable(reason));
}

/// Counts an execution that failed: it is in the run, without a value.
pub(crate) fn count_failed(report: &mut FileReport, line: u64, reason: String) {
    report.count_row(line, LineOutcome::Flagged(reason));
}

/// The names of which `members` have different values; a name that some lack counts as different, unless the value that the others
/// have says no more than that (`is_missing`). `pairs` are those of all members, each name once a member.
pub(crate) fn varied_names<N: Hash + Eq, V: PartialEq>(
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
