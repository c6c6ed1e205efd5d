//! From a path to a run.

use std::collections::BTreeSet;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use perflab_model::io::IoRecording;
use perflab_model::record::RunWarning;
use perflab_model::{Bytes, RunEventKind};

use super::blocks::BlockMapFile;
use super::took::first_unreadable;
use super::{FileReport, ImportSource, Importer};
use crate::at_once::BulkRecorder;
use crate::finite_file::open_finite_file;
use crate::{Archive, ArchiveError, RunDir, checksums, new_run_id};

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
    /// The run's id; a fresh one where left out.
    pub id: Option<String>,
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

/// A run that was made of foreign files.
#[derive(Debug)]
pub struct ImportOutcome {
    /// The run, closed.
    pub run: RunDir,
    /// Its label: the one that was asked for, or the one that the files suggest.
    pub label: Option<String>,
    /// What the path was taken for.
    pub kind: Importer,
    /// What was taken of each file.
    pub file_reports: Vec<FileReport>,
    /// The warnings that the run carries.
    pub warnings: Vec<RunWarning>,
}

/// Makes a run in `archive` of what other tools wrote at `path`.
///
/// # Errors
/// [`ArchiveError::Foreign`], naming file and line, for what cannot be understood; no run is left behind
/// then. Else what recording a run may fail with.
pub fn import_as_run(
    archive: &Archive,
    path: &Path,
    options: &ImportOptions,
) -> Result<ImportOutcome, ArchiveError> {
    let kind = options.kind.map_or_else(|| Importer::detect_importer(path), Ok)?;
    let mut source = kind.open(path, options)?;
    let (mut recorder, label) = begin_imported_run(archive, source.as_mut(), path)?;
    let (mut warnings, mut hash) = (Vec::new(), None);
    for event in source.by_ref() {
        let event = event?;
        recorder.record(&event)?;
        if let RunEventKind::Facts(facts) = &event.what {
            hash = facts.value(HASH).map(ToString::to_string).or(hash);
        }
        if let RunEventKind::Warning { message, advice } = event.what {
            warnings.push(RunWarning { message, advice });
        }
    }
    let took = source.file_reports();
    if took.iter().all(|took| took.rows_used == 0) {
        return Err(unreadable_error(path, &took));
    }
    let twin = hash.and_then(|hash| find_earlier_import(archive, &hash, label.as_deref()));
    if let (Some(twin), false, true) = (&twin, options.again, label.is_some()) {
        return Err(already_imported_error(path, twin, label.as_deref()));
    }
    if let Some(twin) = twin {
        let message = format!("run {twin} was made of the very same files");
        let advice = "compare runs of different measurements";
        warnings.push(RunWarning { message, advice: advice.into() });
    }
    Ok(ImportOutcome {
        run: recorder.finish(&archive.runs_directory())?,
        label,
        kind,
        file_reports: took,
        warnings,
    })
}

/// Makes a run of each of several results, as many at a time as there are processors. Each comes out by itself, in the
/// order of `results`, and so do the ids of the runs.
pub fn import_as_runs(
    archive: &Archive,
    results: &[(Importer, PathBuf)],
    options: &ImportOptions,
) -> Vec<Result<ImportOutcome, ArchiveError>> {
    let own: Vec<ImportOptions> = results
        .iter()
        .map(|(kind, _)| ImportOptions { kind: Some(*kind), id: Some(new_run_id()), ..options.clone() })
        .collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let (Some((_, path)), Some(options)) = (results.get(at), own.get(at)) else { return done };
            done.push((at, import_as_run(archive, path, options)));
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

/// The fact that tells files that were imported already.
pub(crate) const HASH: &str = "import.sha256";
/// Bytes of files that are read once more for their hash.
const HASHED: u64 = 1 << 30;

/// The run of that label that was made of the same files.
fn find_earlier_import(archive: &Archive, hash: &str, label: Option<&str>) -> Option<String> {
    let same = |entry: &crate::ArchiveEntry| {
        entry.summary.as_ref().is_ok_and(|summary| summary.label.as_deref() == label)
    };
    let manifest = |entry: &crate::ArchiveEntry| {
        crate::manifest::read_manifest(&archive.runs_directory().join(&entry.id)).ok()
    };
    let is_twin = |entry: &crate::ArchiveEntry| {
        manifest(entry)
            .is_some_and(|manifest| manifest.facts.value(HASH).is_some_and(|known| known.to_string() == hash))
    };
    archive.list_runs().ok()?.into_iter().filter(same).find(is_twin).map(|entry| entry.short)
}

fn already_imported_error(path: &Path, twin: &str, label: Option<&str>) -> ArchiveError {
    let reason = format!(
        "run {twin} of the label `{}` was made of it already, and counts once; --again takes it once more",
        label.unwrap_or_default()
    );
    ArchiveError::not_importable(path, None, reason)
}

/// The hash of all files that something was taken of; none where one cannot be read, or they are long.
pub(crate) fn hash_imported_files(took: &[FileReport]) -> Option<String> {
    let files: BTreeSet<&Path> =
        took.iter().map(|took| took.file.as_path()).filter(|file| file.is_file()).collect();
    let sizes = files.iter().filter_map(|file| file.metadata().ok()).map(|found| found.len());
    if files.is_empty() || sizes.fold(0, u64::saturating_add) > HASHED {
        return None;
    }
    let hashes = files.into_iter().map(|file| {
        let mut opened = open_finite_file(file).ok()?;
        checksums::sha256_hex(&mut opened).ok()
    });
    let hashes = hashes.collect::<Option<Vec<String>>>()?;
    match &hashes[..] {
        [only] => Some(only.clone()),
        _ => checksums::sha256_hex(&mut hashes.join("\n").as_bytes()).ok(),
    }
}

fn begin_imported_run(
    archive: &Archive,
    source: &mut dyn ImportSource,
    path: &Path,
) -> Result<(BulkRecorder, Option<String>), ArchiveError> {
    let Some(first) = source.next().transpose()? else { return Err(empty_import_error(path)) };
    let RunEventKind::Began(manifest) = &first.what else { return Err(empty_import_error(path)) };
    let mut recorder = BulkRecorder::begin(&archive.runs_directory(), manifest)?;
    recorder.record(&first)?;
    Ok((recorder, manifest.label.clone()))
}

fn unreadable_error(path: &Path, took: &[FileReport]) -> ArchiveError {
    if let Some(refused) = first_unreadable(took) {
        return refused;
    }
    let first = took.iter().find_map(|took| Some((&took.file, took.unusable.first()?)));
    first.map_or_else(
        || empty_import_error(path),
        |(file, first)| {
            let place = if first.line > 0 { format!("line {}: ", first.line) } else { String::new() };
            ArchiveError::not_importable(
                file,
                None,
                format!("no row in it can be read; {place}{}", first.reason),
            )
        },
    )
}

fn empty_import_error(path: &Path) -> ArchiveError {
    ArchiveError::not_importable(path, None, "there is nothing in it to import")
}
