//! The list of importers, and which of them a path belongs to.

use std::fs::{self, DirEntry};
use std::path::{Path, PathBuf};

use perflab_model::{RunEvent, RunEventKind, Scalar, fact_table};

use crate::error::ImportError;
use crate::import_report::{FileReport, first_unreadable};
use crate::importer::{ImportOptions, ImportSource, Importer};
use crate::importers::{
    block_trace, copied_tree, criterion, fio, go_bench, google_benchmark, hdr_log, hyperfine, kernel_dump,
    lkp, lkp_stats, mmtests, perf_stat, phoronix, profile, program_trace, pyperf, sar,
};
use crate::input_folder::{InputFolder, SearchBudget};
use crate::input_path::InputPath;
use crate::packed_folder::compare_natural;

/// All importers, in the order in which they are asked whether a path is theirs.
pub const IMPORTERS: &[&Importer] = &[
    &mmtests::IMPORTER,
    &lkp::IMPORTER,
    &criterion::IMPORTER,
    &copied_tree::IMPORTER,
    &block_trace::BLKTRACE,
    &block_trace::BLKPARSE,
    &program_trace::IMPORTER,
    &profile::PERF_DATA,
    &fio::IMPORTER,
    &hdr_log::IMPORTER,
    &perf_stat::IMPORTER,
    &hyperfine::IMPORTER,
    &google_benchmark::IMPORTER,
    &pyperf::IMPORTER,
    &go_bench::IMPORTER,
    &phoronix::IMPORTER,
    &sar::IMPORTER,
    &lkp_stats::IMPORTER,
    &profile::PERF_SCRIPT,
    &profile::FOLDED,
    &profile::PPROF,
    &kernel_dump::IMPORTER,
];

/// The importer of that name.
pub fn find_importer(name: &str) -> Option<&'static Importer> {
    IMPORTERS.iter().copied().find(|importer| importer.name == name)
}

/// Which importer reads `path`.
///
/// # Errors
/// It is not there, or looks like nothing that is known.
pub fn detect_importer(path: &Path) -> Result<&'static Importer, ImportError> {
    detect_within(path, &SearchBudget::default())
}

/// The same, where what is looked at of folders which nobody recognises counts with that of others.
fn detect_within(path: &Path, budget: &SearchBudget) -> Result<&'static Importer, ImportError> {
    let input = InputPath::look_at(path, budget)?;
    if let Some(importer) = IMPORTERS.iter().find(|importer| importer.recognises(&input)) {
        input.folder().inspect(|folder| folder.refund());
        return Ok(importer);
    }
    let is_folder = input.folder().is_some();
    Err(input.into_error().unwrap_or_else(|| {
        let reason = if is_folder { unknown_folder_reason() } else { unknown_format_reason() };
        ImportError::not_importable(path, None, reason)
    }))
}

/// Folders in a folder that are looked into.
const FOLDERS: usize = 100_000;

/// The results that `path` holds, each with its importer: itself, or where it is a folder of result folders (`work/log` of
/// MMTests), each of those.
///
/// Of folders that nobody recognises so much is looked at as takes less than a second; links in a folder, and what is mounted there, are not entered.
///
/// # Errors
/// As [`detect_importer`]; more folders that nobody recognises than are looked at.
pub fn list_importable(path: &Path) -> Result<Vec<(&'static Importer, PathBuf)>, ImportError> {
    let budget = SearchBudget::default();
    let unknown = match detect_within(path, &budget) {
        Ok(importer) => return Ok(vec![(importer, path.into())]),
        Err(error) => error,
    };
    let Ok(folder) = InputFolder::open(path, &budget) else { return Err(unknown) };
    let entries: Vec<DirEntry> = fs::read_dir(path).into_iter().flatten().flatten().take(FOLDERS).collect();
    let is_whole = entries.len() < FOLDERS;
    let own = entries.iter().filter(|entry| folder.is_own_folder(entry));
    let mut folders: Vec<PathBuf> = own.map(DirEntry::path).collect();
    folders.sort_by(|a, b| compare_natural(&a.to_string_lossy(), &b.to_string_lossy()));
    let found =
        folders.into_iter().filter_map(|folder| Some((detect_within(&folder, &budget).ok()?, folder)));
    let found: Vec<_> = found.collect();
    match found.len() {
        results if budget.is_spent() || !is_whole => Err(unlisted_results_error(path, results)),
        0 => Err(find_result_file(&entries).map_or(unknown, |file| {
            let reason = format!("it is no result and holds some: name them, such as {}", file.display());
            ImportError::not_importable(path, None, reason)
        })),
        _ => Ok(found),
    }
}

/// A folder that holds more than is looked at, with so many results in what was.
fn unlisted_results_error(path: &Path, results: usize) -> ImportError {
    let found = match results {
        0 => unknown_folder_reason(),
        _ => format!("{results} folders in it are results"),
    };
    let reason = format!("{found}; it holds more than is looked at: name the results themselves");
    ImportError::not_importable(path, None, reason)
}

/// Files of a folder that are looked at, and their bytes, to say what it holds.
const FILES: usize = 50;
const FILE_BYTES: u64 = 1 << 20;

/// A file that some importer reads, among the first small ones.
fn find_result_file(entries: &[DirEntry]) -> Option<PathBuf> {
    // A pipe would be waited for.
    let is_small = |entry: &&DirEntry| {
        let found = entry.metadata();
        found.is_ok_and(|found| found.is_file() && (1..=FILE_BYTES).contains(&found.len()))
    };
    let mut files = entries.iter().filter(is_small).take(FILES).map(DirEntry::path);
    files.find(|file| detect_importer(file).is_ok())
}

const KIND_HINT: &str = "If you know which it is, say so with --kind";

fn unknown_format_reason() -> String {
    format!("it looks like none of {}. {KIND_HINT}", list_formats(|_| true))
}

/// What is looked for in a folder.
fn unknown_folder_reason() -> String {
    let known = list_formats(Importer::reads_folders);
    format!(
        "it looks like none of {known}, nor does a folder in it (links and other file systems are not entered). {KIND_HINT}"
    )
}

fn list_formats(is_listed: impl Fn(&Importer) -> bool) -> String {
    let listed = IMPORTERS.iter().filter(|importer| is_listed(importer));
    let listed = listed.map(|importer| format!("{} ({})", importer.name, importer.about));
    listed.collect::<Vec<_>>().join("; ")
}

/// The events of what other tools wrote at `path`, and what it was taken for.
///
/// # Errors
/// [`ImportError::Foreign`], naming file and line, for what cannot be understood. That no row at all could be read is an
/// error at the end of the events.
pub fn open_import(
    path: &Path,
    options: &ImportOptions,
) -> Result<(&'static Importer, impl ImportSource + use<>), ImportError> {
    let kind = options.kind.map_or_else(|| detect_importer(path), Ok)?;
    let source = (kind.open)(path, options)?;
    Ok((kind, CheckedSource { path: path.into(), importer: kind, source, is_over: false }))
}

/// Events that end with an error where nothing could be used of any file, and begin with what is known of their importer.
struct CheckedSource {
    path: PathBuf,
    importer: &'static Importer,
    source: Box<dyn ImportSource>,
    is_over: bool,
}

impl Iterator for CheckedSource {
    type Item = Result<RunEvent, ImportError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        if let Some(mut event) = self.source.next() {
            if let Ok(RunEvent { what: RunEventKind::Began(manifest), .. }) = &mut event
                && self.importer.knows_boots
            {
                manifest.facts.add(fact_table::IMPORT_BOOTS, Scalar::Bool(true), "perflab");
            }
            return Some(event);
        }
        self.is_over = true;
        let report = self.source.file_reports();
        let is_empty = !report.is_empty() && report.iter().all(|report| report.rows_used == 0);
        is_empty.then(|| Err(unreadable_error(&self.path, &report)))
    }
}

impl ImportSource for CheckedSource {
    fn file_reports(&self) -> Vec<FileReport> {
        self.source.file_reports()
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

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::fs;

    use proptest::prelude::*;

    use super::*;

    /// The recorded documents: name and text.
    fn recorded_documents() -> Vec<(String, String)> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded/tools");
        let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let endings = ["json", "jsonl", "csv", "txt", "xml", "hlog"].map(OsStr::new);
        let files = files.filter(|file| file.extension().is_some_and(|ending| endings.contains(&ending)));
        let name = |file: &Path| file.file_name().unwrap().to_string_lossy().into_owned();
        let mut found: Vec<_> = files.map(|file| (name(&file), fs::read_to_string(&file).unwrap())).collect();
        found.sort();
        found
    }

    /// Every importer reads it, whether it looks like one of its own or not: in the end there are events or a reason, and every
    /// row is accounted for.
    fn check_every_importer(name: &str, text: &[u8]) {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join(name);
        fs::write(&path, text).unwrap();
        let budget = SearchBudget::default();
        let input = InputPath::look_at(&path, &budget).unwrap();
        for importer in IMPORTERS {
            let _ = importer.recognises(&input);
            let options = ImportOptions { kind: Some(importer), ..ImportOptions::default() };
            let Ok((_, mut source)) = open_import(&path, &options) else { continue };
            let _ = source.by_ref().try_for_each(|event| event.map(drop));
            for report in source.file_reports() {
                assert_eq!(report.rows_read, report.rows_used + report.rows_unusable, "{importer:?}");
            }
        }
    }

    #[test]
    fn names_are_unique() {
        for importer in IMPORTERS {
            assert_eq!(
                IMPORTERS.iter().filter(|other| other.name == importer.name).count(),
                1,
                "{importer:?}"
            );
            assert_eq!(find_importer(importer.name), Some(*importer));
        }
    }

    #[test]
    fn each_recording_is_recognised_by_one_importer() {
        let recorded = recorded_documents();
        assert!(recorded.len() >= 18, "{}", recorded.len());
        let home = tempfile::tempdir().unwrap();
        for (name, text) in recorded {
            let path = home.path().join(&name);
            fs::write(&path, text).unwrap();
            let budget = SearchBudget::default();
            let input = InputPath::look_at(&path, &budget).unwrap();
            let of: Vec<&str> = IMPORTERS
                .iter()
                .filter(|importer| importer.recognises(&input))
                .map(|importer| importer.name)
                .collect();
            assert_eq!(of.len(), 1, "{of:?}: {name}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn damaged_documents_are_survived(
            which in any::<prop::sample::Index>(),
            changes in proptest::collection::vec((any::<usize>(), 0..5_u8, 32..127_u8), 1..6),
        ) {
            let recorded = recorded_documents();
            let (name, text) = which.get(&recorded);
            let mut bytes = text.clone().into_bytes();
            for (place, what, byte) in changes {
                let place = place % bytes.len().max(1);
                match what {
                    0 if !bytes.is_empty() => bytes[place] = byte,
                    1 => bytes.insert(place, byte),
                    2 if !bytes.is_empty() => drop(bytes.remove(place)),
                    3 => bytes.truncate(place.max(1)),
                    _ => bytes.insert(place, b'\n'),
                }
            }
            check_every_importer(name, &bytes);
        }

        #[test]
        fn any_words_are_survived(text in "(Benchmark[a-z/=0-9-]{0,12}( [0-9.]{1,5} [a-z/]{1,5}){0,3}\n|[<>{}\\[\\],;:\"a-z0-9 .%-]{0,40}\n){0,8}") {
            check_every_importer("document", text.as_bytes());
        }
    }
}
