//! From a path to a run.

use std::path::Path;

use perflab_model::record::Advice;
use perflab_model::{Bytes, What};

use super::{Kind, Source, Took};
use crate::at_once::AtOnce;
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
    let mut warnings = Vec::new();
    for event in source.by_ref() {
        let event = event?;
        recorder.record(&event)?;
        if let What::Warning { message, advice } = event.what {
            warnings.push(Advice { message, advice });
        }
    }
    let took = source.took();
    if took.iter().all(|took| took.rows_used == 0) {
        return Err(unreadable(path, &took));
    }
    Ok(Imported { run: recorder.finish(&archive.runs())?, label, kind, took, warnings })
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
