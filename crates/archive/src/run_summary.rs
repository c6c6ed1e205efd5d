//! What a list shows of a run, read from the run itself.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use jiff::Timestamp;
use perflab_model::{RunEvent, RunEventKind, RunStatus, SharedStr};

use crate::error::ArchiveError;
use crate::journal::{JournalReader, event_kind, kind};
use crate::manifest;
use crate::run_dir::status_now;
use crate::run_layout::JOURNAL;
use crate::tables::samples;

/// What a list says about a run that can be read.
#[derive(Debug, Clone, PartialEq)]
pub struct RunSummary {
    /// The name that the user gave it.
    pub label: Option<String>,
    /// The study's title.
    pub title: SharedStr,
    /// Name of the study's file, or `quickstart` for a shipped one.
    pub study_file: SharedStr,
    /// How it stands; `Running` only while a living process records it.
    pub status: RunStatus,
    /// When it began.
    pub begun: Timestamp,
    /// Iterations that ended, warm-ups included.
    pub iterations: u64,
    /// Iterations that were planned, warm-ups included.
    pub planned: u64,
    /// The hash of the files that it was imported from.
    pub content_hash: Option<SharedStr>,
    /// The id of the interrupted run that it goes on with.
    pub continues: Option<String>,
    /// The id of the first of all runs that it goes on with.
    pub first_part: Option<String>,
}

impl RunSummary {
    /// What its study may be called: its title, its file, or that without folder and ending.
    pub fn study_names(&self) -> impl Iterator<Item = &str> {
        let file = self.study_file.as_str();
        let base = file.rsplit('/').next().unwrap_or(file);
        [self.title.as_str(), file, base, base.trim_end_matches(".toml")].into_iter()
    }
}

/// A run's summary, and whether it is final.
pub(crate) struct ReadSummary {
    pub(crate) summary: RunSummary,
    /// Whether it will not change by itself any more.
    pub(crate) is_closed: bool,
}

/// Reads the summary of the run at `run`.
pub(crate) fn summarise_run(run: &Path) -> Result<ReadSummary, ArchiveError> {
    let head = manifest::read_manifest_head(run)?;
    let begun = i64::try_from(head.anchor.realtime.0).unwrap_or(i64::MAX);
    let is_closed = head.status != RunStatus::Running;
    let summary = RunSummary {
        label: head.label,
        title: head.study.title.into(),
        study_file: head.study_file.into(),
        status: status_now(run, head.status),
        begun: Timestamp::from_nanosecond(i128::from(begun)).unwrap_or_default(),
        iterations: match (is_closed, head.targets.is_empty()) {
            (true, true) => samples::count_iterations(run)? as u64,
            (true, false) => samples::count_iterated_slots(run)? as u64,
            (false, true) => count_journal_iterations(run)?,
            (false, false) => count_journal_slots(run)?,
        },
        planned: head.plan.slots as u64,
        content_hash: head.facts.hash.map(|hash| hash.value.to_string().into()),
        continues: head.continues,
        first_part: head.first_part,
    };
    Ok(ReadSummary { summary, is_closed })
}

/// Iterations in the journal of a run that was not closed.
fn count_journal_iterations(run: &Path) -> Result<u64, ArchiveError> {
    let mut events = JournalReader::open(&run.join(JOURNAL))?;
    let mut count = 0;
    while events.next_line()? {
        count += u64::from(event_kind(events.line()) == Some(kind::ITERATION_ENDED));
    }
    Ok(count)
}

/// The same of a run with targets, which report an iteration each.
fn count_journal_slots(run: &Path) -> Result<u64, ArchiveError> {
    let mut events = JournalReader::open(&run.join(JOURNAL))?;
    let mut slots = HashSet::new();
    while events.next_line()? {
        if event_kind(events.line()) == Some(kind::ITERATION_ENDED)
            && let Some(RunEvent { what: RunEventKind::IterationEnded { slot, .. }, .. }) =
                events.parse_event()
        {
            slots.insert(slot);
        }
    }
    Ok(slots.len() as u64)
}

/// Bytes of all files under `path`; what cannot be looked at counts as nothing.
pub(crate) fn directory_size(path: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(path) else {
        return fs::symlink_metadata(path).map_or(0, |file| if file.is_file() { file.len() } else { 0 });
    };
    entries
        .flatten()
        .map(|entry| if entry.path().is_symlink() { 0 } else { directory_size(&entry.path()) })
        .sum()
}
