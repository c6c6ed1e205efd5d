//! What tells that a run's files are the ones that a row was made from: inode, size and time of the last change, of the
//! kind that no program can set back. Its folder has no part in it: to look at one more thing of each of ten thousand runs is a
//! quarter of what a list takes, and all that it would tell is that a file came or went which no row was made from.
//!
//! A change within the grain of the file system's clock leaves the time as it is. A row that was made so shortly after
//! the last change is not trusted (git's rule for its index).

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, Stat, statat};

use crate::run_layout::{ITERATIONS, MANIFEST, SAMPLES};

/// How much older than its row the last change must be: coarser than any file system's clock.
const GRAIN: Duration = Duration::from_secs(2);

/// The stamp of some files of a run, as many as its bytes are for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RunStamp<const BYTES: usize> {
    bytes: [u8; BYTES],
    /// Nanoseconds since 1970.
    changed: i64,
}

/// Bytes that a stamp has of each file.
const BYTES_OF_FILE: usize = 3 * size_of::<u64>();

/// Of the manifest: all that a list shows, but for the bytes on the disk.
pub(super) type HeadStamp = RunStamp<BYTES_OF_FILE>;

/// A [`HeadStamp`] as it is stored.
pub(super) type HeadBytes = [u8; BYTES_OF_FILE];

/// Of the manifest and the tables of samples and iterations: all that a history is made of.
pub(super) type RecordStamp = RunStamp<{ 3 * BYTES_OF_FILE }>;

impl HeadStamp {
    /// That of `run` in the folder of runs, as its files are now.
    pub(super) fn of_head(runs: BorrowedFd<'_>, run: &str) -> Option<Self> {
        RunStamp::of_files(runs, run, [MANIFEST])
    }
}

impl RecordStamp {
    /// That of `run` in the folder of runs, as its files are now.
    pub(super) fn of_record(runs: BorrowedFd<'_>, run: &str) -> Option<Self> {
        RunStamp::of_files(runs, run, [MANIFEST, SAMPLES, ITERATIONS])
    }
}

impl<const BYTES: usize> RunStamp<BYTES> {
    fn of_files<const FILES: usize>(runs: BorrowedFd<'_>, run: &str, files: [&str; FILES]) -> Option<Self> {
        let mut stamp = RunStamp { bytes: [0; BYTES], changed: i64::MIN };
        let mut path = String::with_capacity(64);
        for (at, file) in files.into_iter().enumerate() {
            path.clear();
            path.extend([run, "/", file]);
            stamp.add(at, &stat_file(runs, &path)?);
        }
        Some(stamp)
    }

    fn add(&mut self, at: usize, found: &Stat) {
        #[allow(clippy::useless_conversion, reason = "the types of these differ between machines")]
        let changed = i64::try_from(found.st_ctime)
            .unwrap_or(i64::MAX)
            .saturating_mul(1_000_000_000)
            .saturating_add(i64::try_from(found.st_ctime_nsec).unwrap_or(0));
        let numbers = [found.st_ino, found.st_size.cast_unsigned(), changed.cast_unsigned()];
        let places = self.bytes.chunks_exact_mut(size_of::<u64>()).skip(3 * at);
        for (place, number) in places.zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        self.changed = self.changed.max(changed);
    }

    /// As it is stored.
    pub(super) fn as_bytes(&self) -> &[u8; BYTES] {
        &self.bytes
    }

    /// Whether what was read at `read_at`, nanoseconds since 1970, and stored with `stored` is what is there now.
    pub(super) fn matches(&self, stored: &[u8], read_at: i64) -> bool {
        let grain = i64::try_from(GRAIN.as_nanos()).unwrap_or(i64::MAX);
        self.bytes.as_slice() == stored && read_at.saturating_sub(self.changed) >= grain
    }
}

fn stat_file(runs: BorrowedFd<'_>, path: &str) -> Option<Stat> {
    statat(runs, path, AtFlags::empty()).ok()
}

/// The folder of runs, opened so that looking at a run's files walks no long path.
pub(super) struct RunsFolder(std::fs::File);

impl RunsFolder {
    /// The folder `runs`; `None` where it cannot be opened.
    pub(super) fn open(runs: &Path) -> Option<RunsFolder> {
        std::fs::File::open(runs).ok().map(RunsFolder)
    }
}

impl AsFd for RunsFolder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Now, in nanoseconds since 1970.
pub(super) fn nanos_since_1970() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(changed: i64) -> RunStamp<2> {
        RunStamp { bytes: [1, 2], changed }
    }

    #[test]
    fn what_was_read_too_soon_after_a_change_is_not_trusted() {
        assert!(stamp(0).matches(&[1, 2], 2_000_000_000));
        assert!(!stamp(0).matches(&[1, 2], 1_999_999_999));
        assert!(!stamp(0).matches(&[1, 3], 2_000_000_000));
        assert!(!stamp(i64::MAX).matches(&[1, 2], 0), "a clock that was set back");
    }

    #[test]
    fn every_change_of_a_manifest_changes_its_stamp() {
        let home = tempfile::tempdir().unwrap();
        let run = home.path().join("r");
        std::fs::create_dir(&run).unwrap();
        let folder = RunsFolder::open(home.path()).unwrap();
        let stamp = || HeadStamp::of_head(folder.as_fd(), "r");
        assert_eq!(stamp(), None);
        let mut seen = Vec::new();
        let other = run.join("other");
        let changes: [&dyn Fn(); 3] = [
            &|| std::fs::write(run.join(MANIFEST), "a").unwrap(),
            &|| std::fs::write(run.join(MANIFEST), "b").unwrap(),
            &|| {
                std::fs::write(&other, "b")
                    .and_then(|()| std::fs::rename(&other, run.join(MANIFEST)))
                    .unwrap()
            },
        ];
        for change in changes {
            std::thread::sleep(Duration::from_millis(20));
            change();
            let now = stamp().unwrap();
            assert!(!seen.contains(&now));
            seen.push(now);
        }
    }
}
