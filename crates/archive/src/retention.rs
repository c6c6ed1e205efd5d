//! Letting go of runs. Owns what a policy means; refuses to touch a run that is being recorded, and
//! damaged ones unless they are named.

use std::fs;
use std::time::Duration;

use jiff::Timestamp;
use perflab_model::Status;

use crate::half_made::HALF;
use crate::lock::RunLock;
use crate::{Archive, ArchiveError, Entry};

/// Which runs may go. A run goes only if every limit that is given allows it; without a limit, none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
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
pub struct Pruned {
    /// The runs, oldest first.
    pub runs: Vec<Entry>,
    /// What they took on the disk.
    pub bytes: u64,
}

impl Archive {
    /// Removes the runs that `policy` lets go, and what killed processes left half-made.
    ///
    /// # Errors
    /// The archive cannot be read, or a run cannot be removed; those before it are gone then.
    pub fn prune(&self, policy: &Policy) -> Result<Pruned, ArchiveError> {
        let runs = policy.choose(self.list()?, Timestamp::now());
        if !policy.dry_run {
            self.remove_half_made();
            runs.iter().try_for_each(|run| self.remove(&run.id))?;
        }
        Ok(Pruned { bytes: runs.iter().map(|run| run.bytes).sum(), runs })
    }

    /// Removes one run by its full id, damaged or not.
    ///
    /// # Errors
    /// [`ArchiveError::Live`] while it is recorded; [`ArchiveError::NotFound`]; files that cannot be removed.
    pub fn remove(&self, id: &str) -> Result<(), ArchiveError> {
        if !self.names()?.iter().any(|(name, _)| name == id) {
            let hint = "`perflab list` shows what is there".into();
            return Err(ArchiveError::NotFound { selector: id.into(), archive: self.path().into(), hint });
        }
        let path = self.runs().join(id);
        if !path.is_dir() {
            return fs::remove_file(&path).map_err(ArchiveError::io("remove", &path));
        }
        let _lock = RunLock::take(&path)?.ok_or_else(|| ArchiveError::Live { id: id.into() })?;
        // Renamed first, so that a kill half-way leaves rubbish and not half a run.
        let half = self.runs().join(format!("{HALF}{id}"));
        fs::rename(&path, &half).map_err(ArchiveError::io("remove", &path))?;
        fs::remove_dir_all(&half).map_err(ArchiveError::io("remove", &half))
    }
}

impl Policy {
    /// Which of `entries` (oldest first) go at the time `now`.
    fn choose(&self, entries: Vec<Entry>, now: Timestamp) -> Vec<Entry> {
        if self.keep.is_none() && self.older_than.is_none() {
            return Vec::new();
        }
        let readable: Vec<Entry> = entries.into_iter().filter(|entry| entry.summary.is_ok()).collect();
        let beyond = readable.len().saturating_sub(self.keep.unwrap_or(0));
        readable.into_iter().take(beyond).filter(|entry| self.lets_go(entry, now)).collect()
    }

    fn lets_go(&self, entry: &Entry, now: Timestamp) -> bool {
        let Ok(summary) = &entry.summary else { return false };
        let age = Duration::try_from(now.duration_since(summary.begun)).unwrap_or_default();
        let old = self.older_than.is_none_or(|limit| age > limit);
        let named = self.keep_labelled && summary.label.is_some();
        old && !named && summary.status != Status::Running
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Summary;

    fn entry(id: &str, day: i64, label: Option<&str>, status: Status) -> Entry {
        let summary = Summary {
            label: label.map(String::from),
            title: String::new(),
            status,
            begun: Timestamp::from_second(day * 86400).unwrap(),
            iterations: 0,
            planned: 0,
        };
        Entry { id: id.into(), short: id.into(), bytes: 1, summary: Ok(summary) }
    }

    fn gone(policy: &Policy) -> Vec<String> {
        let mut entries = vec![
            entry("a", 1, None, Status::Finished),
            entry("b", 2, Some("base"), Status::Finished),
            entry("c", 3, None, Status::Running),
            entry("d", 4, None, Status::Interrupted),
            entry("e", 5, None, Status::Finished),
        ];
        entries.push(Entry { summary: Err("torn".into()), ..entries[0].clone() });
        let now = Timestamp::from_second(6 * 86400).unwrap();
        policy.choose(entries, now).into_iter().map(|entry| entry.id).collect()
    }

    #[test]
    fn a_run_goes_only_if_every_limit_allows_it() {
        let days = |n: u64| Some(Duration::from_secs(n * 86400));
        assert!(gone(&Policy::default()).is_empty());
        assert_eq!(gone(&Policy { keep: Some(1), ..Policy::default() }), ["a", "b", "d"]);
        assert_eq!(gone(&Policy { keep: Some(1), keep_labelled: true, ..Policy::default() }), ["a", "d"]);
        assert_eq!(gone(&Policy { older_than: days(3), ..Policy::default() }), ["a", "b"]);
        assert_eq!(gone(&Policy { keep: Some(4), older_than: days(3), ..Policy::default() }), ["a"]);
    }
}
