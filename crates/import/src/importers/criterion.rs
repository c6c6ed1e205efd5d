//! Criterion's results: `target/criterion/GROUP/FUNCTION/VALUE/new/sample.json` with `benchmark.json` beside it.
//!
//! A sample of Criterion's is the time of many iterations in a row, and gives their mean: one value.

use std::fs;
use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use perflab_formats::reading_parser::LineOutcome;
use perflab_model::{Direction, Scalar};
use serde_json::Value;

use crate::document_import::count_unusable;
use crate::error::ImportError;
use crate::import_report::{FileReport, note_unread_names};
use crate::imported_run::{ImportedRun, RunMetadata, imported_metric};
use crate::importer::{ImportOptions, ImportSource, Importer, Recognition};
use crate::input_document::{InputDocument, json_text};
use crate::input_folder::InputFolder;
use crate::packed_folder::compare_natural;

/// A folder of Criterion's results.
pub(crate) const IMPORTER: Importer = Importer {
    name: "criterion",
    about: "target/criterion, or the project that holds it",
    knows_boots: false,
    recognises: Recognition::Folder(is_criterion_folder),
    open: open_criterion_folder,
};

/// A result lies so deep in a folder of Criterion's: `GROUP/FUNCTION/VALUE/new`.
const DEEPEST: usize = 4;

/// What Criterion writes into `new` itself.
const OWN_FILES: &[&str] = &["benchmark.json", "sample.json", "estimates.json", "tukey.json", "raw.csv"];

/// Folders of Criterion's that hold no sample of a result: `base` repeats an earlier `new`, `report` holds pictures, `change` what
/// became of both.
const OWN_FOLDERS: &[&str] = &["report", "base", "change"];

/// Whether it is a folder with results of Criterion's.
fn is_criterion_folder(folder: &InputFolder) -> bool {
    has_criterion_result(folder, &criterion_results_folder(folder.path()), DEEPEST)
}

/// Whether a result is in `path`, or so many folders below it. The first that is found is enough.
fn has_criterion_result(folder: &InputFolder, path: &Path, depth: usize) -> bool {
    let is_own = |path: &PathBuf| is_one_of(path, OWN_FOLDERS);
    let mut inner = folder.list_own_folders(path).filter(|path| depth > 0 && !is_own(path));
    is_criterion_result(path) || inner.any(|path| has_criterion_result(folder, &path, depth - 1))
}

fn is_criterion_result(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "new") && path.join("sample.json").is_file()
}

fn is_one_of(path: &Path, names: &[&str]) -> bool {
    path.file_name().is_some_and(|name| names.iter().any(|known| name == *known))
}

/// What lies in a folder of Criterion's.
#[derive(Default)]
struct CriterionFolders {
    /// the folders `new` with a sample
    results: Vec<PathBuf>,
    /// what is neither a result nor Criterion's own
    others: Vec<PathBuf>,
}

/// Everything in a project's `target/criterion`, or in such a folder.
fn find_criterion_results(path: &Path) -> CriterionFolders {
    let mut found = CriterionFolders::default();
    search_criterion_folder(&criterion_results_folder(path), DEEPEST, &mut found);
    found.results.sort_by(|a, b| compare_natural(&a.to_string_lossy(), &b.to_string_lossy()));
    found
}

fn criterion_results_folder(path: &Path) -> PathBuf {
    let inner = path.join("target/criterion");
    if inner.is_dir() { inner } else { path.into() }
}

fn search_criterion_folder(path: &Path, depth: usize, found: &mut CriterionFolders) {
    let is_result = is_criterion_result(path);
    if is_result {
        found.results.push(path.into());
    }
    for entry in fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path()) {
        match entry.is_dir() && !is_result {
            true if is_one_of(&entry, OWN_FOLDERS) => {}
            true if depth > 0 => search_criterion_folder(&entry, depth - 1, found),
            false if is_result && is_one_of(&entry, OWN_FILES) => {}
            _ => found.others.push(entry),
        }
    }
}

/// The events of all results.
fn open_criterion_folder(path: &Path, options: &ImportOptions) -> Result<Box<dyn ImportSource>, ImportError> {
    let mut metadata = RunMetadata {
        title: "Criterion benchmarks".into(),
        description: format!("Samples of Criterion, imported from {}.", path.display()),
        target: "imported".into(),
        ..RunMetadata::default()
    };
    let found = find_criterion_results(path);
    for folder in &found.results {
        let report = read_criterion_result(folder, &mut metadata);
        metadata.report.push(report);
    }
    let folder = criterion_results_folder(path);
    let name = |other: &PathBuf| other.strip_prefix(&folder).unwrap_or(other).display().to_string();
    metadata.notes.extend(note_unread_names(&folder, found.others.iter().map(name).collect()));
    if metadata.results.is_empty() {
        return Err(ImportError::not_importable(
            path,
            None,
            "there is no `new/sample.json` of Criterion's in it",
        ));
    }
    Ok(Box::new(ImportedRun::new(IMPORTER.name, path, options, metadata, Vec::new())))
}

fn read_criterion_result(folder: &Path, metadata: &mut RunMetadata) -> FileReport {
    let file = folder.join("sample.json");
    let mut report = FileReport::new(&file, "samples");
    let named = folder.join("benchmark.json");
    let (about, sample) = match (InputDocument::read_optional(&named), InputDocument::read_optional(&file)) {
        (Ok(about), Ok(sample)) => (about, sample),
        (Err(reason), _) | (_, Err(reason)) => {
            report.refused = Some(reason);
            return report;
        }
    };
    let (Some(sample), Some(about)) = (sample.json(), about.json()) else {
        count_unusable(&mut report, 0, "sample.json or benchmark.json is missing or no whole JSON".into());
        return report;
    };
    let pairs = [("function", "function_id"), ("value", "value_str")];
    let value = |text: &str| text.parse().map_or_else(|_| Scalar::from(text), Scalar::Int);
    let point = pairs.iter().map(|(ours, theirs)| ((*ours).to_owned(), json_text(about, theirs)));
    let point = point.filter(|(_, text)| !text.is_empty()).map(|(name, text)| (name, value(text)));
    let case =
        metadata.results.find_or_add_case(json_text(about, "group_id"), point.collect::<IndexMap<_, _>>());
    let time =
        metadata.results.find_or_add_metric(case, imported_metric("time", "ns", Direction::Lower, true));
    let numbers = |name: &str| sample.get(name).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let (counts, times) = (numbers("iters"), numbers("times"));
    if counts.len() != times.len() {
        let reason = format!("it has {} counts of iterations and {} times", counts.len(), times.len());
        count_unusable(&mut report, 0, reason);
        return report;
    }
    for (count, total) in counts.iter().zip(times) {
        match (count.as_f64(), total.as_f64()) {
            (Some(count), Some(total)) if count >= 1.0 => {
                let execution = metadata.results.next_execution(case, 0, None);
                metadata.results.add_sample(execution, time, total / count, None);
                report.count_row(0, LineOutcome::Used);
            }
            _ => count_unusable(&mut report, 0, "a sample has no iterations or no time".into()),
        }
    }
    report
}
