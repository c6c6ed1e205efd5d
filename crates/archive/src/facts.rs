//! `facts/facts.json`: what the target said about itself, for readers who want nothing else of a run.

use std::fs;
use std::path::Path;

use perflab_model::Facts;

use crate::ArchiveError;
use crate::layout::{FACTS, FACTS_FILE};

/// Writes the facts under `run`.
pub(crate) fn write(run: &Path, facts: &Facts) -> Result<(), ArchiveError> {
    let path = run.join(FACTS_FILE);
    fs::create_dir_all(run.join(FACTS)).map_err(ArchiveError::io("create", &path))?;
    let text = serde_json::to_string_pretty(facts).map_err(ArchiveError::damaged(&path))?;
    fs::write(&path, text).map_err(ArchiveError::io("write", &path))
}
