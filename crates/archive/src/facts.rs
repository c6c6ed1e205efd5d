//! `facts/facts.json`: what the target said about itself, for readers who want nothing else of a run.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use perflab_model::Facts;

use crate::ArchiveError;
use crate::fresh_file::create_fresh_file;
use crate::layout::{FACTS, FACTS_FILE};

/// Writes the facts under `run`.
pub(crate) fn write_facts_file(run: &Path, facts: &Facts) -> Result<(), ArchiveError> {
    let path = run.join(FACTS_FILE);
    fs::create_dir_all(run.join(FACTS)).map_err(ArchiveError::io("create", &path))?;
    let text = serde_json::to_string_pretty(facts).map_err(ArchiveError::damaged(&path))?;
    let written = create_fresh_file(&path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(ArchiveError::io("write", &path))
}
