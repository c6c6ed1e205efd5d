//! `run.json` and `facts/facts.json`, written whole or not at all.
//!
//! `run.json` is read with its version first, so that a newer run is called newer and not broken. `facts/facts.json` is
//! what the target reported about itself, for readers who want nothing else of a run.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use perflab_model::{FORMAT_VERSION, Fact, Facts, Manifest, RunStatus};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::ArchiveError;
use crate::fresh_file::create_fresh_file;
use crate::run_layout::{FACTS, FACTS_FILE, MANIFEST, TEMPORARY};
use perflab_files::read_finite_file;

/// The longest manifest that is read: one of 200,000 executions has some 11 MB.
const LONGEST: u64 = 256 << 20;

/// What every version of `run.json` has.
#[derive(Deserialize)]
struct FormatVersion {
    format: u32,
    #[serde(default)]
    writer: String,
}

/// The little of `run.json` that a list of runs shows; skipping the rest is most of the speed.
#[derive(Deserialize)]
pub(crate) struct ManifestHead {
    pub(crate) id: String,
    pub(crate) label: Option<String>,
    pub(crate) study: ManifestStudyHead,
    pub(crate) plan: ManifestPlanHead,
    pub(crate) anchor: perflab_model::run::ClockAnchor,
    pub(crate) status: RunStatus,
    #[serde(default)]
    pub(crate) study_file: String,
    #[serde(default)]
    pub(crate) facts: ManifestFactsHead,
    /// One for each target; none where this host does everything.
    #[serde(default)]
    pub(crate) targets: Vec<serde::de::IgnoredAny>,
    /// The id of the run that it goes on with.
    #[serde(default)]
    pub(crate) continues: Option<String>,
    /// The id of the first of all that it goes on with.
    #[serde(default)]
    pub(crate) first_part: Option<String>,
}

/// Facts that runs are looked up by.
#[derive(Default, Deserialize)]
pub(crate) struct ManifestFactsHead {
    /// The hash of the files that it was imported from.
    #[serde(rename = "import.sha256")]
    pub(crate) hash: Option<Fact>,
}

#[derive(Deserialize)]
pub(crate) struct ManifestStudyHead {
    pub(crate) title: String,
}

#[derive(Deserialize)]
pub(crate) struct ManifestPlanHead {
    #[serde(deserialize_with = "perflab_model::count_slots")]
    pub(crate) slots: usize,
}

/// Reads the whole manifest of the run at `run`.
pub(crate) fn read_manifest(run: &Path) -> Result<Manifest, ArchiveError> {
    parse_manifest(run)
}

/// Reads what a list shows.
pub(crate) fn read_manifest_head(run: &Path) -> Result<ManifestHead, ArchiveError> {
    parse_manifest(run)
}

fn parse_manifest<T: DeserializeOwned>(run: &Path) -> Result<T, ArchiveError> {
    let path = run.join(MANIFEST);
    let text = read_finite_file(&path, LONGEST).map_err(ArchiveError::io("read", &path))?;
    match serde_json::from_slice(&text) {
        Ok(read) if !is_newer_format(&text) => Ok(read),
        Ok(_) => Err(manifest_error(&path, &text, String::new())),
        Err(error) => Err(manifest_error(&path, &text, error.to_string())),
    }
}

fn is_newer_format(text: &[u8]) -> bool {
    serde_json::from_slice::<FormatVersion>(text).is_ok_and(|version| version.format > FORMAT_VERSION)
}

/// A document of a newer version may fail to parse in any way: the version is the reason then.
fn manifest_error(path: &Path, text: &[u8], reason: String) -> ArchiveError {
    match serde_json::from_slice::<FormatVersion>(text) {
        Ok(version) if version.format > FORMAT_VERSION => ArchiveError::Newer {
            path: path.into(),
            found: version.format,
            known: FORMAT_VERSION,
            writer: if version.writer.is_empty() { "an unnamed program".into() } else { version.writer },
        },
        _ => ArchiveError::Damaged { path: path.into(), reason },
    }
}

/// Puts `manifest` in the place of `run.json`, atomically.
pub(crate) fn write_manifest(run: &Path, manifest: &Manifest) -> Result<(), ArchiveError> {
    let path = run.join(MANIFEST);
    let text = serde_json::to_vec(manifest).map_err(ArchiveError::damaged(&path))?;
    replace_file(&path, |file| file.write_all(&text)).map_err(ArchiveError::io("write", &path))
}

/// Puts a manifest in the place of that of the run `id`, as it is written elsewhere.
pub(crate) fn replace_manifest_text(run: &Path, id: &str, text: &[u8]) -> Result<(), ArchiveError> {
    let path = run.join(MANIFEST);
    if is_newer_format(text) {
        return Err(manifest_error(&path, text, String::new()));
    }
    let head: ManifestHead = serde_json::from_slice(text).map_err(ArchiveError::damaged(&path))?;
    if head.id != id {
        return Err(ArchiveError::damaged(&path)(format!("it is of run {}, not of {id}", head.id)));
    }
    replace_file(&path, |file| file.write_all(text)).map_err(ArchiveError::io("write", &path))
}

/// Writes a file beside `path`, syncs it and renames it over `path`; nothing is left behind on failure.
pub(crate) fn replace_file(
    path: &Path,
    fill: impl FnOnce(&mut File) -> std::io::Result<()>,
) -> std::io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(TEMPORARY);
    let temporary = Path::new(&name);
    let filled = create_fresh_file(temporary).and_then(|mut file| {
        fill(&mut file)?;
        file.sync_all()
    });
    let renamed = filled.and_then(|()| fs::rename(temporary, path));
    renamed.inspect_err(|_| drop(fs::remove_file(temporary)))
}

/// Writes the facts under `run`.
pub(crate) fn write_facts_file(run: &Path, facts: &Facts) -> Result<(), crate::error::ArchiveError> {
    let path = run.join(FACTS_FILE);
    fs::create_dir_all(run.join(FACTS)).map_err(crate::error::ArchiveError::io("create", &path))?;
    let text = serde_json::to_string_pretty(facts).map_err(crate::error::ArchiveError::damaged(&path))?;
    let written = create_fresh_file(&path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(crate::error::ArchiveError::io("write", &path))
}
