//! Which runs a policy lets go of.
//!
//! Never a run that is being recorded, and damaged ones only where they are named.

use std::collections::HashSet;
use std::fs;
use std::time::Duration;

use jiff::Timestamp;
use perflab_model::RunStatus;

use crate::half_made::HALF;
use crate::index::index_refresh;
use crate::run_id::run_id_time;
use crate::run_layout::RunLock;
use crate::{Archive, ArchiveEntry, ArchiveError};

/// Which runs may go. A run goes only if every limit that is given allows it; without a limit, none. One that another run goes on
/// with stays as long as that one does: both are one measurement.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RetentionPolicy {
    /// The newest runs that stay, counting all that can be read.
    pub keep: Option<usize>,
    /// Runs younger than this stay.
    pub older_than: Option<Duration>,
    /// Runs with a label stay.
    pub keep_labelled: bool,
    /// Only say what would go.
    pub dry_run: bool,
}

/// What went, or would go.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PrunedRuns {
    /// The runs, oldest first.
    pub runs: Vec<ArchiveEntry>,
    /// What they took on the disk.
    pub bytes: u64,
}

impl Archive {
    /// Removes the runs that `policy` lets go, and what killed processes left half-made.
    ///
    /// # Errors
    /// The archive cannot be read, or a run cannot be removed; those before it are gone then.
    pub fn prune(&self, policy: &RetentionPolicy) -> Result<PrunedRuns, ArchiveError> {
        let all = self.list_runs()?;
        let mut runs = policy.choose_runs(all.clone(), Timestamp::now());
        keep_continued_runs(&all, &mut runs);
        if !policy.dry_run {
            self.remove_abandoned_runs();
            runs.iter().try_for_each(|run| self.remove_files(&run.id))?;
            let gone: Vec<String> = runs.iter().map(|run| run.id.clone()).collect();
            index_refresh::note_removed_runs(self.path(), &gone);
        }
        Ok(PrunedRuns { bytes: runs.iter().map(|run| run.bytes).sum(), runs })
    }

    /// Removes one run by its full id, damaged or not.
    ///
    /// # Errors
    /// [`ArchiveError::Live`] while it is recorded; [`ArchiveError::NotFound`]; files that cannot be removed.
    pub fn remove_run(&self, id: &str) -> Result<(), ArchiveError> {
        if !self.list_run_names()?.iter().any(|(name, _)| name == id) {
            let hint = "`perflab list` shows what is there".into();
            return Err(ArchiveError::NotFound { selector: id.into(), archive: self.path().into(), hint });
        }
        self.remove_files(id)?;
        index_refresh::note_removed_runs(self.path(), &[id.to_owned()]);
        Ok(())
    }

    fn remove_files(&self, id: &str) -> Result<(), ArchiveError> {
        let path = self.runs_directory().join(id);
        if !path.is_dir() {
            return fs::remove_file(&path).map_err(ArchiveError::io("remove", &path));
        }
        let _lock = RunLock::try_lock(&path)?.ok_or_else(|| ArchiveError::Live { id: id.into() })?;
        // Renamed first, so that a kill half-way leaves rubbish and not half a run.
        let half = self.runs_directory().join(format!("{HALF}{id}"));
        fs::rename(&path, &half).map_err(ArchiveError::io("remove", &path))?;
        fs::remove_dir_all(&half).map_err(ArchiveError::io("remove", &half))
    }
}

/// Takes from `chosen` what a run that stays goes on with, from the newest to the oldest.
fn keep_continued_runs(all: &[ArchiveEntry], chosen: &mut Vec<ArchiveEntry>) {
    let mut going: HashSet<String> = chosen.iter().map(|entry| entry.id.clone()).collect();
    for entry in all.iter().rev() {
        let before = entry.summary.as_ref().ok().and_then(|summary| summary.continues.as_ref());
        if let Some(before) = before
            && !going.contains(&entry.id)
        {
            going.remove(before);
        }
    }
    chosen.retain(|entry| going.contains(&entry.id));
}

impl RetentionPolicy {
    /// Which of `entries` (oldest first) go at the time `now`.
    fn choose_runs(&self, entries: Vec<ArchiveEntry>, now: Timestamp) -> Vec<ArchiveEntry> {
        if self.keep.is_none() && self.older_than.is_none() {
            return Vec::new();
        }
        let readable: Vec<ArchiveEntry> = entries.into_iter().filter(|entry| entry.summary.is_ok()).collect();
        let beyond = readable.len().saturating_sub(self.keep.unwrap_or(0));
        readable.into_iter().take(beyond).filter(|entry| self.allows_removal(entry, now)).collect()
    }

    fn allows_removal(&self, entry: &ArchiveEntry, now: Timestamp) -> bool {
        let Ok(summary) = &entry.summary else { return false };
        // What was imported may have begun long ago, or nobody knows when; its id is of the day on which it came.
        let came = run_id_time(&entry.id).unwrap_or(summary.begun).max(summary.begun);
        let age = Duration::try_from(now.duration_since(came)).unwrap_or_default();
        let old = self.older_than.is_none_or(|limit| age > limit);
        let named = self.keep_labelled && summary.label.is_some();
        old && !named && summary.status != RunStatus::Running
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use perflab_model::SharedStr;

    use crate::RunSummary;

    fn archive_entry(id: &str, day: i64, label: Option<&str>, status: RunStatus) -> ArchiveEntry {
        let summary = RunSummary {
            label: label.map(String::from),
            title: SharedStr::default(),
            study_file: SharedStr::default(),
            status,
            begun: Timestamp::from_second(day * 86400).unwrap(),
            iterations: 0,
            planned: 0,
            content_hash: None,
            continues: None,
        };
        ArchiveEntry { id: id.into(), short: id.into(), bytes: 1, summary: Ok(summary) }
    }

    fn chosen_ids(policy: &RetentionPolicy) -> Vec<String> {
        let mut entries = vec![
            archive_entry("a", 1, None, RunStatus::Finished),
            archive_entry("b", 2, Some("base"), RunStatus::Finished),
            archive_entry("c", 3, None, RunStatus::Running),
            archive_entry("d", 4, None, RunStatus::Interrupted),
            archive_entry("e", 5, None, RunStatus::Finished),
        ];
        entries.push(ArchiveEntry { summary: Err("torn".into()), ..entries[0].clone() });
        let now = Timestamp::from_second(6 * 86400).unwrap();
        policy.choose_runs(entries, now).into_iter().map(|entry| entry.id).collect()
    }

    #[test]
    fn what_was_imported_today_is_not_old() {
        let id = crate::run_id::new_run_id();
        let policy =
            RetentionPolicy { older_than: Some(Duration::from_secs(86400)), ..RetentionPolicy::default() };
        let entries = || vec![archive_entry(&id, 0, None, RunStatus::Finished)];
        assert!(policy.choose_runs(entries(), Timestamp::now()).is_empty());
        let tomorrow = Timestamp::now() + Duration::from_secs(2 * 86400);
        assert_eq!(policy.choose_runs(entries(), tomorrow).len(), 1);
    }

    #[test]
    fn a_run_goes_only_if_every_limit_allows_it() {
        let days = |n: u64| Some(Duration::from_secs(n * 86400));
        assert!(chosen_ids(&RetentionPolicy::default()).is_empty());
        assert_eq!(
            chosen_ids(&RetentionPolicy { keep: Some(1), ..RetentionPolicy::default() }),
            ["a", "b", "d"]
        );
        assert_eq!(
            chosen_ids(&RetentionPolicy { keep: Some(1), keep_labelled: true, ..RetentionPolicy::default() }),
            ["a", "d"]
        );
        assert_eq!(
            chosen_ids(&RetentionPolicy { older_than: days(3), ..RetentionPolicy::default() }),
            ["a", "b"]
        );
        assert_eq!(
            chosen_ids(&RetentionPolicy { keep: Some(4), older_than: days(3), ..RetentionPolicy::default() }),
            ["a"]
        );
    }
}
