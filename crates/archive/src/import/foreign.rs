//! From a path to a run.

use std::collections::BTreeSet;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use perflab_model::io::IoRecording;
use perflab_model::record::Advice;
use perflab_model::{Bytes, What};

use super::blocks::BlockMapFile;
use super::took::first_refused;
use super::{Kind, Source, Took};
use crate::at_once::AtOnce;
use crate::finite_file::open_finite;
use crate::{Archive, ArchiveError, RunDir, checksums, new_run_id};

/// What the user says about the files.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The run's label.
    pub label: Option<String>,
    /// The page size of the machine that was recorded; else what the files say.
    pub page_size: Option<Bytes>,
    /// What the path is; guessed where left out.
    pub kind: Option<Kind>,
    /// Take what a run of the same label was made of already.
    pub again: bool,
    /// The run's id; a fresh one where left out.
    pub id: Option<String>,
    /// For block traces: where the file system that was traced can be asked about its files.
    pub on: Option<On>,
    /// For block traces: whose the blocks of that file system were, as another tool wrote it down then.
    pub block_map: Option<BlockMapFile>,
}

/// A file system that was traced, and who asks it: an import by itself looks at nothing but what it imports.
#[derive(Debug, Clone)]
pub struct On {
    /// where it is mounted
    pub place: PathBuf,
    /// adds the files of that place to which the recording's sectors belong
    pub find: fn(&mut IoRecording, &Path),
}

/// A run that was made of foreign files.
#[derive(Debug)]
pub struct Imported {
    /// The run, closed.
    pub run: RunDir,
    /// Its label: the one that was asked for, or the one that the files suggest.
    pub label: Option<String>,
    /// What the path was taken for.
    pub kind: Kind,
    /// What was taken of each file.
    pub took: Vec<Took>,
    /// The warnings that the run carries.
    pub warnings: Vec<Advice>,
}

/// Makes a run in `archive` of what other tools wrote at `path`.
///
/// # Errors
/// [`ArchiveError::Foreign`], naming file and line, for what cannot be understood; no run is left behind
/// then. Else what recording a run may fail with.
pub fn import_foreign(archive: &Archive, path: &Path, options: &Options) -> Result<Imported, ArchiveError> {
    let kind = options.kind.map_or_else(|| Kind::guess(path), Ok)?;
    let mut source = kind.open(path, options)?;
    let (mut recorder, label) = begin(archive, source.as_mut(), path)?;
    let (mut warnings, mut hash) = (Vec::new(), None);
    for event in source.by_ref() {
        let event = event?;
        recorder.record(&event)?;
        if let What::Facts(facts) = &event.what {
            hash = facts.get(HASH).map(ToString::to_string).or(hash);
        }
        if let What::Warning { message, advice } = event.what {
            warnings.push(Advice { message, advice });
        }
    }
    let took = source.took();
    if took.iter().all(|took| took.rows_used == 0) {
        return Err(unreadable(path, &took));
    }
    let twin = hash.and_then(|hash| twin(archive, &hash, label.as_deref()));
    if let (Some(twin), false, true) = (&twin, options.again, label.is_some()) {
        return Err(already(path, twin, label.as_deref()));
    }
    if let Some(twin) = twin {
        let message = format!("run {twin} was made of the very same files");
        let advice = "compare runs of different measurements";
        warnings.push(Advice { message, advice: advice.into() });
    }
    Ok(Imported { run: recorder.finish(&archive.runs())?, label, kind, took, warnings })
}

/// Makes a run of each of several results, as many at a time as there are processors. Each comes out by itself, in the
/// order of `results`, and so do the ids of the runs.
pub fn import_several(
    archive: &Archive,
    results: &[(Kind, PathBuf)],
    options: &Options,
) -> Vec<Result<Imported, ArchiveError>> {
    let own: Vec<Options> = results
        .iter()
        .map(|(kind, _)| Options { kind: Some(*kind), id: Some(new_run_id()), ..options.clone() })
        .collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let (Some((_, path)), Some(options)) = (results.get(at), own.get(at)) else { return done };
            done.push((at, import_foreign(archive, path, options)));
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
fn twin(archive: &Archive, hash: &str, label: Option<&str>) -> Option<String> {
    let same =
        |entry: &crate::Entry| entry.summary.as_ref().is_ok_and(|summary| summary.label.as_deref() == label);
    let manifest = |entry: &crate::Entry| crate::manifest::read(&archive.runs().join(&entry.id)).ok();
    let is_twin = |entry: &crate::Entry| {
        manifest(entry)
            .is_some_and(|manifest| manifest.facts.get(HASH).is_some_and(|known| known.to_string() == hash))
    };
    archive.list().ok()?.into_iter().filter(same).find(is_twin).map(|entry| entry.short)
}

fn already(path: &Path, twin: &str, label: Option<&str>) -> ArchiveError {
    let reason = format!(
        "run {twin} of the label `{}` was made of it already, and counts once; --again takes it once more",
        label.unwrap_or_default()
    );
    ArchiveError::foreign(path, None, reason)
}

/// The hash of all files that something was taken of; none where one cannot be read, or they are long.
pub(crate) fn hash_of_files(took: &[Took]) -> Option<String> {
    let files: BTreeSet<&Path> =
        took.iter().map(|took| took.file.as_path()).filter(|file| file.is_file()).collect();
    let sizes = files.iter().filter_map(|file| file.metadata().ok()).map(|found| found.len());
    if files.is_empty() || sizes.fold(0, u64::saturating_add) > HASHED {
        return None;
    }
    let hashes = files.into_iter().map(|file| {
        let mut opened = open_finite(file).ok()?;
        checksums::hash(&mut opened).ok()
    });
    let hashes = hashes.collect::<Option<Vec<String>>>()?;
    match &hashes[..] {
        [only] => Some(only.clone()),
        _ => checksums::hash(&mut hashes.join("\n").as_bytes()).ok(),
    }
}

fn begin(
    archive: &Archive,
    source: &mut dyn Source,
    path: &Path,
) -> Result<(AtOnce, Option<String>), ArchiveError> {
    let Some(first) = source.next().transpose()? else { return Err(nothing(path)) };
    let What::Began(manifest) = &first.what else { return Err(nothing(path)) };
    let mut recorder = AtOnce::begin(&archive.runs(), manifest)?;
    recorder.record(&first)?;
    Ok((recorder, manifest.label.clone()))
}

fn unreadable(path: &Path, took: &[Took]) -> ArchiveError {
    if let Some(refused) = first_refused(took) {
        return refused;
    }
    let first = took.iter().find_map(|took| Some((&took.file, took.unusable.first()?)));
    first.map_or_else(
        || nothing(path),
        |(file, first)| {
            let place = if first.line > 0 { format!("line {}: ", first.line) } else { String::new() };
            ArchiveError::foreign(file, None, format!("no row in it can be read; {place}{}", first.reason))
        },
    )
}

fn nothing(path: &Path) -> ArchiveError {
    ArchiveError::foreign(path, None, "there is nothing in it to import")
}
