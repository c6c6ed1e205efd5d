//! Other tools' results as runs of the archive: where what `perflab_import` reads meets the recorder.

use std::collections::HashMap;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use perflab_archive::{Archive, ArchiveEntry, BulkRecorder, RunDir, new_run_id};
use perflab_import::{FileReport, HASH_FACT, ImportOptions, ImportSource, Importer, open_import};
use perflab_model::RunEventKind;
use perflab_model::run::RunWarning;

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

/// What the runs of one call were made of: label and hash of the files, and the path that came first.
#[derive(Default)]
struct ImportedFiles(Mutex<HashMap<(Option<String>, String), PathBuf>>);

impl ImportedFiles {
    /// The path that the same files came from before in this call; else `path` is the first.
    fn claim(&self, label: Option<&str>, hash: &str, path: &Path) -> Option<PathBuf> {
        let key = (label.map(String::from), hash.to_owned());
        let mut claimed = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        match claimed.get(&key) {
            Some(first) => Some(first.clone()),
            None => claimed.insert(key, path.into()),
        }
    }
}

/// Makes a run in `archive` of what other tools wrote at `path`.
///
/// # Errors
/// What cannot be understood, and what recording a run may fail with; no run is left behind then.
fn record_import(
    archive: &Archive,
    path: &Path,
    options: &ImportOptions,
    files: &ImportedFiles,
) -> Result<ImportOutcome, Failure> {
    let (kind, mut source) = open_import(path, options)?;
    let mut recorded = record_source(archive, &mut source)?;
    let file_reports = source.file_reports();
    let label = recorded.label.clone();
    let twin = recorded.hash.take().and_then(|hash| {
        let of_this_call = files.claim(label.as_deref(), &hash, path);
        let twin = of_this_call.map(|twin| format!("the run of {}", twin.display()));
        twin.or_else(|| Some(format!("run {}", find_earlier_import(archive, &hash, label.as_deref())?)))
    });
    if let (Some(twin), false, true) = (&twin, options.again, label.is_some()) {
        return Err(already_imported_error(path, twin, label.as_deref()).into());
    }
    if let Some(twin) = twin {
        let message = format!("{twin} was made of the very same files");
        let advice = "compare runs of different measurements";
        recorded.warnings.push(RunWarning { message, advice: advice.into() });
    }
    Ok(ImportOutcome {
        run: recorded.recorder.finish()?,
        label,
        path: path.into(),
        kind: kind.name,
        file_reports,
        warnings: recorded.warnings,
    })
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
/// As [`record_import`].
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
            hash = facts.value(HASH_FACT).map(ToString::to_string).or(hash);
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
    archive: &Archive,
    results: &[(&'static Importer, PathBuf)],
    options: &ImportOptions,
) -> Vec<Result<ImportOutcome, Failure>> {
    let own: Vec<ImportOptions> = results
        .iter()
        .map(|(kind, _)| ImportOptions { kind: Some(*kind), id: new_run_id(), ..options.clone() })
        .collect();
    let (next, files) = (AtomicUsize::new(0), ImportedFiles::default());
    let work = || {
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let (Some((_, path)), Some(options)) = (results.get(at), own.get(at)) else { return done };
            done.push((at, record_import(archive, path, options, &files)));
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
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, imported)| imported).collect()
}

/// The run of that label that was made of the same files.
fn find_earlier_import(archive: &Archive, hash: &str, label: Option<&str>) -> Option<String> {
    let same =
        |entry: &ArchiveEntry| entry.summary.as_ref().is_ok_and(|summary| summary.label.as_deref() == label);
    let is_twin = |entry: &ArchiveEntry| {
        archive.open_run(entry).manifest().is_ok_and(|manifest| {
            manifest.facts.value(HASH_FACT).is_some_and(|known| known.to_string() == hash)
        })
    };
    archive.list_runs().ok()?.into_iter().filter(same).find(is_twin).map(|entry| entry.short)
}

fn already_imported_error(path: &Path, twin: &str, label: Option<&str>) -> UsageError {
    let label = label.unwrap_or_default();
    let what = format!(
        "{}: {twin} was made of the same files under the label `{label}`, and they count once",
        path.display()
    );
    UsageError::new(what, "--again takes it once more")
}
