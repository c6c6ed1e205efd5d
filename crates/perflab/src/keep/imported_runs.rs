//! Other tools' results as runs of the archive: where what `perflab_import` reads meets the recorder.

use std::collections::HashMap;
use std::fmt;
use std::io::IsTerminal as _;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::thread;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use perflab_archive::{Archive, BulkRecorder, RunDir, new_run_id};
use perflab_import::{FileReport, ImportOptions, ImportSource, Importer, open_import};
use perflab_model::fact_table;
use perflab_model::run::RunWarning;
use perflab_model::{RunEventKind, SharedStr};

use crate::app::App;
use crate::failure::{Failure, UnexpectedError, UsageError};

/// A run that was made of other tools' files.
#[derive(Debug)]
pub struct ImportOutcome {
    /// The run, closed.
    pub run: RunDir,
    /// Its label: the one that was asked for, or the one that the files suggest.
    pub label: Option<String>,
    /// The path.
    pub path: PathBuf,
    /// What it was taken for.
    pub kind: &'static str,
    /// What was taken of each file.
    pub file_reports: Vec<FileReport>,
    /// The warnings that the run carries.
    pub warnings: Vec<RunWarning>,
}

/// Label and hash of what a run was made of.
type ImportKey = (Option<String>, String);

/// What the runs of one call were made of, with the place of the first path that holds it: threads come to them in any order,
/// and the first path counts.
#[derive(Default)]
struct ImportedFiles(Mutex<HashMap<ImportKey, usize>>);

impl ImportedFiles {
    /// Notes that the path at `place` holds these files; gives the first place that is known to.
    fn claim(&self, key: ImportKey, place: usize) -> usize {
        let mut claimed = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let first = claimed.entry(key).or_insert(place);
        *first = place.min(*first);
        *first
    }
}

/// A run that was there before the call.
struct EarlierImport {
    short: String,
    label: Option<String>,
}

impl fmt::Display for EarlierImport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.label {
            Some(label) => write!(f, "run {} (labelled {label})", self.short),
            None => write!(f, "run {}", self.short),
        }
    }
}

/// One call's import of several results.
struct ImportCall<'a> {
    archive: &'a Archive,
    results: &'a [(&'static Importer, PathBuf)],
    /// one for each result, with the id of its run
    options: Vec<ImportOptions>,
    files: ImportedFiles,
    earlier: OnceLock<HashMap<SharedStr, Vec<EarlierImport>>>,
}

/// What came of one result.
struct ImportedResult {
    outcome: Result<ImportOutcome, Failure>,
    key: Option<ImportKey>,
}

impl ImportCall<'_> {
    /// Makes a run of the result at `place`, unless an earlier one of this call is known to be of the same files, or a run is.
    fn record(&self, place: usize) -> ImportedResult {
        let mut key = None;
        let outcome = self.try_record(place, &mut key);
        ImportedResult { outcome, key }
    }

    fn try_record(&self, place: usize, key: &mut Option<ImportKey>) -> Result<ImportOutcome, Failure> {
        let none = || UnexpectedError(format!("there is no result {place} to import"));
        let (_, path) = self.results.get(place).ok_or_else(none)?;
        let options = self.options.get(place).ok_or_else(none)?;
        let (kind, mut source) = open_import(path, options)?;
        let mut recorded = record_source(self.archive, &mut source)?;
        let file_reports = source.file_reports();
        let label = recorded.label.clone();
        *key = recorded.hash.take().map(|hash| (label.clone(), hash));
        if let Some(key) = key {
            let first = self.files.claim(key.clone(), place);
            if first < place && self.refuses_twins(place, label.as_deref()) {
                return Err(self.twin_error(place, first, label.as_deref()));
            }
            if let Some(run) = self.find_earlier_import(key) {
                if run.label == label && self.refuses_twins(place, label.as_deref()) {
                    let twin = format!("run {}", run.short);
                    return Err(already_imported_error(path, &twin, label.as_deref()).into());
                }
                recorded.warnings.push(twin_warning(&run.to_string()));
            }
        }
        Ok(ImportOutcome {
            run: recorded.recorder.finish()?,
            label,
            path: path.clone(),
            kind: kind.name,
            file_reports,
            warnings: recorded.warnings,
        })
    }

    /// Whether the same files under the same label count once.
    fn refuses_twins(&self, place: usize, label: Option<&str>) -> bool {
        label.is_some() && self.options.get(place).is_some_and(|options| !options.again)
    }

    fn path_at(&self, place: usize) -> &Path {
        self.results.get(place).map_or(Path::new(""), |(_, path)| path)
    }

    fn twin_error(&self, place: usize, first: usize, label: Option<&str>) -> Failure {
        let twin = format!("the run of {}", self.path_at(first).display());
        already_imported_error(self.path_at(place), &twin, label).into()
    }

    /// The earlier run that was made of the same files: of that label, if there is one.
    fn find_earlier_import(&self, (label, hash): &ImportKey) -> Option<&EarlierImport> {
        let earlier = self.earlier.get_or_init(|| self.list_earlier_imports()).get(hash.as_str())?;
        earlier.iter().find(|earlier| earlier.label == *label).or_else(|| earlier.first())
    }

    /// All runs of the archive that know what they were made of, but those of this call.
    fn list_earlier_imports(&self) -> HashMap<SharedStr, Vec<EarlierImport>> {
        let mut found: HashMap<SharedStr, Vec<EarlierImport>> = HashMap::new();
        for entry in self.archive.list_runs().unwrap_or_default() {
            let is_own = self.options.iter().any(|options| options.id == entry.id);
            let Some(summary) = entry.summary.ok().filter(|_| !is_own) else { continue };
            if let Some(hash) = summary.content_hash {
                found
                    .entry(hash)
                    .or_default()
                    .push(EarlierImport { short: entry.short, label: summary.label });
            }
        }
        found
    }

    /// Takes back a run whose files an earlier path of this call turned out to hold, too; says so where both stay.
    fn settle_twin(&self, place: usize, result: ImportedResult) -> Result<ImportOutcome, Failure> {
        let mut imported = result.outcome?;
        let first = result.key.map_or(place, |key| self.files.claim(key, place));
        if first == place {
            return Ok(imported);
        }
        if self.refuses_twins(place, imported.label.as_deref()) {
            self.archive.remove_run(imported.run.id())?;
            return Err(self.twin_error(place, first, imported.label.as_deref()));
        }
        imported.warnings.push(twin_warning(&format!("the run of {}", self.path_at(first).display())));
        Ok(imported)
    }
}

fn twin_warning(twin: &str) -> RunWarning {
    let message = format!("{twin} was made of the very same files");
    RunWarning { message, advice: "compare runs of different measurements: of these, one counts".into() }
}

/// A run whose events were all recorded, and that is not seen yet.
pub struct RecordedImport {
    /// its recorder, to be finished
    pub recorder: BulkRecorder,
    /// the warnings among the events
    pub warnings: Vec<RunWarning>,
    label: Option<String>,
    hash: Option<String>,
}

/// Records the events of an import.
///
/// # Errors
/// What cannot be understood, and what recording a run may fail with; no run is left behind then.
pub fn record_source(archive: &Archive, source: &mut dyn ImportSource) -> Result<RecordedImport, Failure> {
    let first = source.next().ok_or_else(|| UnexpectedError("there is nothing in it to import".into()))??;
    let RunEventKind::Began(manifest) = &first.what else {
        return Err(UnexpectedError("an import begins with its manifest".into()).into());
    };
    let (label, mut recorder) = (manifest.label.clone(), archive.begin_bulk_run(manifest)?);
    recorder.record(&first)?;
    let (mut warnings, mut hash) = (Vec::new(), None);
    for event in source {
        let event = event?;
        recorder.record(&event)?;
        if let RunEventKind::Facts(facts) = &event.what {
            hash = facts.value(&fact_table::IMPORT_SHA256).map(ToString::to_string).or(hash);
        }
        if let RunEventKind::Warning { message, advice } = event.what {
            warnings.push(RunWarning { message, advice });
        }
    }
    Ok(RecordedImport { recorder, warnings, label, hash })
}

/// Makes a run of each of several results, as many at a time as there are processors. Each comes out by itself, in the
/// order of `results`, and so do the ids of the runs.
pub fn record_imports(
    context: &App,
    archive: &Archive,
    results: &[(&'static Importer, PathBuf)],
    options: &ImportOptions,
) -> Vec<Result<ImportOutcome, Failure>> {
    let options = results
        .iter()
        .map(|(kind, _)| ImportOptions { kind: Some(*kind), id: new_run_id(), ..options.clone() })
        .collect();
    let call =
        ImportCall { archive, results, options, files: ImportedFiles::default(), earlier: OnceLock::new() };
    let bar = import_progress_bar(context, results);
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            if place >= results.len() {
                return done;
            }
            done.push((place, call.record(place)));
            bar.inc(1);
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from).min(results.len());
    let mut done = thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut done = work();
        for other in others {
            done.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        done
    });
    bar.finish_and_clear();
    done.sort_by_key(|(place, _)| *place);
    done.into_iter().map(|(place, result)| call.settle_twin(place, result)).collect()
}

/// What is imported, how many are done, and for how long: a file of ten million values takes a minute.
fn import_progress_bar(context: &App, results: &[(&'static Importer, PathBuf)]) -> ProgressBar {
    if context.quiet || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(results.len() as u64);
    let what = match results {
        [(_, path)] => format!("importing {}", path.display()),
        several => format!("importing {} results", several.len()),
    };
    if let Ok(style) = ProgressStyle::with_template("{spinner:.dim} {msg}  {pos}/{len}  {elapsed} so far") {
        bar.set_style(style);
    }
    bar.set_message(perflab_model::remove_control_characters(&what));
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}

fn already_imported_error(path: &Path, twin: &str, label: Option<&str>) -> UsageError {
    let label = label.unwrap_or_default();
    let what = format!(
        "{}: {twin} was made of the same files under the label `{label}`, and they count once",
        path.display()
    );
    UsageError::new(what, "--again takes it once more")
}

/// Files that are listed one by one; more are listed by folder.
pub const LISTED: usize = 24;

/// Lines of a file that are shown with what is wrong with them; all are counted.
const SHOWN: usize = 5;

/// Says on stderr what of the files could not be used, and why.
pub fn warn_of_import(imported: &ImportOutcome) {
    for warning in &imported.warnings {
        stderr_line!("warning: {}; {}", warning.message, warning.advice);
    }
    for took in &imported.file_reports {
        for remark in took.unusable.iter().chain(&took.flagged).take(SHOWN) {
            let line = if remark.line > 0 { format!(":{}", remark.line) } else { String::new() };
            stderr_line!("warning: {}{line}: {}", took.file.display(), remark.reason);
        }
    }
}
