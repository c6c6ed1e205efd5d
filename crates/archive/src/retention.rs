//! Which runs a policy lets go of.
//!
//! Never a run that is being recorded, and damaged ones only where they are named.

use std::collections::HashMap;
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
    /// How many others stay only because they have a label.
    pub labelled: usize,
}

impl Archive {
    /// Removes the runs that `policy` lets go, and what killed processes left half-made.
    ///
    /// # Errors
    /// The archive cannot be read, or a run cannot be removed; those before it are gone then.
    pub fn prune(&self, policy: &RetentionPolicy) -> Result<PrunedRuns, ArchiveError> {
        let all = self.list_runs()?;
        let (runs, labelled) = policy.choose_runs(all, Timestamp::now());
        if !policy.dry_run {
            self.remove_abandoned_runs();
            runs.iter().try_for_each(|run| self.remove_files(&run.id))?;
            let gone: Vec<String> = runs.iter().map(|run| run.id.clone()).collect();
            index_refresh::note_removed_runs(self.path(), &gone);
        }
        Ok(PrunedRuns { bytes: runs.iter().map(|run| run.bytes).sum(), runs, labelled })
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

impl RetentionPolicy {
    /// Which of `entries` (oldest first) go at the time `now`, and how many stay only because they have a label. The parts of a run that was
    /// gone on with are one run: all go, or none.
    fn choose_runs(&self, entries: Vec<ArchiveEntry>, now: Timestamp) -> (Vec<ArchiveEntry>, usize) {
        if self.keep.is_none() && self.older_than.is_none() {
            return (Vec::new(), 0);
        }
        let runs = group_parts(entries.into_iter().filter(|entry| entry.summary.is_ok()).collect());
        let beyond = runs.len().saturating_sub(self.keep.unwrap_or(0));
        let (mut gone, mut labelled) = (Vec::new(), 0);
        for parts in runs.into_iter().take(beyond) {
            if !parts.iter().all(|entry| self.allows_removal(entry, now)) {
                continue;
            }
            match self.keep_labelled && parts.iter().any(has_given_label) {
                true => labelled += 1,
                false => gone.extend(parts),
            }
        }
        gone.sort_by(|one, other| one.id.cmp(&other.id));
        (gone, labelled)
    }

    fn allows_removal(&self, entry: &ArchiveEntry, now: Timestamp) -> bool {
        let Ok(summary) = &entry.summary else { return false };
        // What was imported may have begun long ago, or nobody knows when; its id is of the day on which it came.
        let came = run_id_time(&entry.id).unwrap_or(summary.begun).max(summary.begun);
        let age = Duration::try_from(now.duration_since(came)).unwrap_or_default();
        let old = self.older_than.is_none_or(|limit| age > limit);
        old && summary.status != RunStatus::Running
    }
}

/// How labels begin that perflab gives to the parts of a run without one; the beginning of the first one's id follows.
pub const RESUMED_LABEL: &str = "resumed-";

/// Whether somebody gave it a label.
fn has_given_label(entry: &ArchiveEntry) -> bool {
    let Ok(summary) = &entry.summary else { return false };
    let first = entry.first_part_id().to_ascii_lowercase();
    let is_own = |label: &str| {
        label.strip_prefix(RESUMED_LABEL).is_some_and(|of| !of.is_empty() && first.starts_with(of))
    };
    summary.label.as_deref().is_some_and(|label| !is_own(label))
}

/// Runs with all that goes on with them, in the order of their latest parts; `entries` are in the order of time.
fn group_parts(entries: Vec<ArchiveEntry>) -> Vec<Vec<ArchiveEntry>> {
    let mut groups: Vec<Vec<ArchiveEntry>> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for entry in entries {
        let place = *places.entry(entry.first_part_id().to_owned()).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(group) => group.push(entry),
            None => groups.push(vec![entry]),
        }
    }
    groups.sort_by(|one, other| one.last().map(|part| &part.id).cmp(&other.last().map(|part| &part.id)));
    groups
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
            first_part: None,
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
        policy.choose_runs(entries, now).0.into_iter().map(|entry| entry.id).collect()
    }

    /// Every part of a run stays with it, whichever has the label, and counts once.
    #[test]
    fn the_parts_of_a_run_go_together() {
        let part = |id: &str, day: i64, label: Option<&str>, continues: Option<&str>| {
            let mut entry = archive_entry(id, day, label, RunStatus::Interrupted);
            let summary = entry.summary.as_mut().unwrap();
            summary.continues = continues.map(str::to_owned);
            summary.first_part = continues.map(|_| "b".into());
            entry
        };
        let chosen = |labels: [Option<&str>; 3], keep: usize| {
            let [first, second, third] = labels;
            let entries = vec![
                archive_entry("a", 1, None, RunStatus::Finished),
                part("b", 2, first, None),
                archive_entry("c", 3, None, RunStatus::Finished),
                part("d", 4, second, Some("b")),
                // Its middle is missing.
                part("e", 5, third, Some("gone")),
            ];
            let policy =
                RetentionPolicy { keep: Some(keep), keep_labelled: true, ..RetentionPolicy::default() };
            let (gone, labelled) = policy.choose_runs(entries, Timestamp::from_second(6 * 86400).unwrap());
            (gone.into_iter().map(|entry| entry.id).collect::<String>(), labelled)
        };
        for at in 0..3 {
            let mut labels = [None; 3];
            labels[at] = Some("golden");
            assert_eq!(chosen(labels, 0), ("ac".into(), 1));
        }
        assert_eq!(chosen([None, Some("resumed-c"), None], 0), ("ac".into(), 1), "somebody's own label");
        assert_eq!(chosen([Some("resumed-b"); 3], 0), ("abcde".into(), 0));
        assert_eq!(chosen([None; 3], 1), ("ac".into(), 0));
        assert_eq!(chosen([None; 3], 2), ("a".into(), 0));
    }

    #[test]
    fn what_was_imported_today_is_not_old() {
        let id = crate::run_id::new_run_id();
        let policy =
            RetentionPolicy { older_than: Some(Duration::from_secs(86400)), ..RetentionPolicy::default() };
        let entries = || vec![archive_entry(&id, 0, None, RunStatus::Finished)];
        assert!(policy.choose_runs(entries(), Timestamp::now()).0.is_empty());
        let tomorrow = Timestamp::now() + Duration::from_secs(2 * 86400);
        assert_eq!(policy.choose_runs(entries(), tomorrow).0.len(), 1);
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
