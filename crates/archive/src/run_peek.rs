//! What a shell suggests of an archive while somebody types: names of runs and what they planned, without a lock, a write or a check.

use std::fs;

use perflab_model::Manifest;

use crate::archive_dir::Archive;
use crate::error::ArchiveError;
use crate::index::index_refresh::read_stored_summaries;
use crate::manifest;
use crate::run_layout::{RUNS, SERIES, list_table_names};

/// A run as it is suggested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeekedRun {
    /// The run's id.
    pub id: String,
    /// The shortest prefix that names it.
    pub short: String,
    /// The name that the user gave it, as far as that is known.
    pub label: Option<String>,
    /// The study's title; none where nothing of the run was read.
    pub title: Option<String>,
}

/// Runs that the index does not know are read, the latest of them, up to so many: more would keep somebody waiting.
const MOST_READ: usize = 32;

/// The largest `run.json` that is read for a suggestion.
const LARGEST_MANIFEST: u64 = 4 << 20;

impl Archive {
    /// All runs, the oldest first, with labels as the index has them. What is damaged is there by its name alone.
    ///
    /// # Errors
    /// The archive's directory cannot be read.
    pub fn peek_runs(&self) -> Result<Vec<PeekedRun>, ArchiveError> {
        let names = self.list_run_names()?;
        let mut stored = read_stored_summaries(self.path());
        let mut left = MOST_READ;
        let mut runs: Vec<PeekedRun> = names
            .into_iter()
            .rev()
            .map(|(id, short)| {
                let known = stored.remove(&id).or_else(|| {
                    left = left.checked_sub(1)?;
                    self.peek_head(&id)
                });
                let (label, title) = known.map_or((None, None), |(label, title)| (label, Some(title)));
                PeekedRun { id, short, label, title }
            })
            .collect();
        runs.reverse();
        Ok(runs)
    }

    /// What a run planned, from its `run.json`; none where that is damaged, or so large that reading it would keep somebody waiting.
    pub fn peek_manifest(&self, run: &PeekedRun) -> Option<Manifest> {
        self.is_soon_read(&run.id)
            .then(|| manifest::read_manifest(&self.runs_directory().join(&run.id)).ok())?
    }

    /// The monitors that a run has tables of, sorted.
    pub fn peek_monitors(&self, run: &PeekedRun) -> Vec<String> {
        list_table_names(&self.runs_directory().join(&run.id), SERIES)
    }

    fn peek_head(&self, id: &str) -> Option<(Option<String>, String)> {
        let read = || manifest::read_manifest_head(&self.runs_directory().join(id)).ok();
        let head = self.is_soon_read(id).then(read)??;
        Some((head.label, head.study.title.as_str().to_owned()))
    }

    fn is_soon_read(&self, id: &str) -> bool {
        let path = self.path().join(RUNS).join(id).join(crate::run_layout::MANIFEST);
        fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() <= LARGEST_MANIFEST)
    }
}
