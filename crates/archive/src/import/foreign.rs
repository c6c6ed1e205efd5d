//! From a path to a run.

use std::path::Path;

use perflab_model::record::Advice;
use perflab_model::{Bytes, Event, What};

use super::{Kind, Source, Took};
use crate::recorder::Recorder;
use crate::{Archive, ArchiveError, RunDir};

/// What the user says about the files.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The run's label.
    pub label: Option<String>,
    /// The page size of the machine that was recorded; else what the files say.
    pub page_size: Option<Bytes>,
    /// What the path is; guessed where left out.
    pub kind: Option<Kind>,
}

/// A run that was made of foreign files.
#[derive(Debug)]
pub struct Imported {
    /// The run, closed.
    pub run: RunDir,
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
    let mut warnings = Vec::new();
    let recorder = begin(archive, source.as_mut(), path)?;
    let run = recorder.path().to_owned();
    let recorded = record(recorder, source.as_mut(), &mut warnings);
    let recorded = recorded.inspect_err(|_| drop(std::fs::remove_dir_all(run)))?;
    Ok(Imported { run: recorded.finish()?, kind, took: source.took(), warnings })
}

fn begin(archive: &Archive, source: &mut dyn Source, path: &Path) -> Result<Recorder, ArchiveError> {
    let Some(first) = source.next().transpose()? else { return Err(nothing(path)) };
    let What::Began(manifest) = &first.what else { return Err(nothing(path)) };
    let mut recorder = archive.begin(manifest)?;
    recorder.record(&first)?;
    Ok(recorder)
}

fn record(
    mut recorder: Recorder,
    source: &mut dyn Source,
    warnings: &mut Vec<Advice>,
) -> Result<Recorder, ArchiveError> {
    for event in source {
        let event: Event = event?;
        recorder.record(&event)?;
        if let What::Warning { message, advice } = event.what {
            warnings.push(Advice { message, advice });
        }
    }
    Ok(recorder)
}

fn nothing(path: &Path) -> ArchiveError {
    ArchiveError::foreign(path, None, "there is nothing in it to import")
}
