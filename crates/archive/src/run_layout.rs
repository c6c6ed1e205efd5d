//! What lies where in a run's directory, how names become file names, and the lock of a run that is being recorded.
//!
//! The kernel drops the lock with the process, however that died, so a held lock is the one proof of a living recorder.
//! Nobody waits for it.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use perflab_model::operation::TracedIteration;
use rustix::fs::OFlags;

use crate::error::ArchiveError;

/// The folder of an archive that has its runs.
pub const RUNS: &str = "runs";

/// What was planned for a run, and how it went; its label may change after the run's end.
pub const MANIFEST: &str = "run.json";

pub(crate) const JOURNAL: &str = "journal.jsonl";

/// What people wrote about the run.
pub const NOTES: &str = "notes.jsonl";

pub(crate) const LOCK: &str = "lock";

/// What the lock of a run is called that could not be closed because the disk was full: another name takes no room.
pub(crate) const DISK_FULL: &str = "disk-full";

pub(crate) const SAMPLES: &str = "samples.parquet";

pub(crate) const ITERATIONS: &str = "iterations.parquet";

/// What [`RunListEntry::of_run`](crate::run_list::RunListEntry::of_run) reads of a run.
pub const LISTED_FILES: [&str; 5] = [MANIFEST, NOTES, ITERATIONS, JOURNAL, DISK_FULL];

pub(crate) const SERIES: &str = "series";

/// Tables of what monitors read when iterations began and ended.
pub(crate) const EDGES: &str = "edges";

pub(crate) const STACKS: &str = "stacks";

pub(crate) const FRAMES: &str = "stacks/frames.parquet";

pub(crate) const TREE: &str = "stacks/tree.parquet";

/// Tables of tracers.
pub(crate) const EVENTS: &str = "events";

/// What tracers wrote, until it is in tables.
pub(crate) const RAW: &str = "raw";

pub(crate) const LOGS: &str = "logs";

pub(crate) const OUTPUTS: &str = "logs/outputs.jsonl.zst";

pub(crate) const FACTS: &str = "facts";

/// Documents of the machines about themselves.
pub(crate) const DOCUMENTS: &str = "facts/documents.jsonl.zst";

pub(crate) const FACTS_FILE: &str = "facts/facts.json";

/// The hashes of what is written when a run ends.
pub(crate) const CHECKSUMS: &str = "SHA256SUMS";

/// Tables are written here first and renamed together; whatever stands here is worth nothing.
pub(crate) const STAGE: &str = "finishing";

/// The end of the names of files that are being written.
pub(crate) const TEMPORARY: &str = ".tmp";

/// Everything that is written when a run ends, as it stands in the directory.
pub(crate) const TABLES: &[&str] =
    &[SAMPLES, ITERATIONS, SERIES, EDGES, STACKS, EVENTS, LOGS, FACTS, CHECKSUMS];

/// The table of a monitor, relative to the run.
pub(crate) fn series_path(monitor: &str) -> PathBuf {
    Path::new(SERIES).join(format!("{}.parquet", encode_file_name(monitor)))
}

/// The table of what a monitor read at the edges of iterations, relative to the run.
pub(crate) fn edges_path(monitor: &str) -> PathBuf {
    Path::new(EDGES).join(format!("{}.parquet", encode_file_name(monitor)))
}

/// The names of the tables in a folder of a run, without their ending, sorted; none of a folder that cannot be read.
pub(crate) fn list_table_names(run: &Path, folder: &str) -> Vec<String> {
    let entries = fs::read_dir(run.join(folder)).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> =
        names.filter_map(|name| Some(name.strip_suffix(".parquet")?.to_owned())).collect();
    names.sort_unstable();
    names
}

/// All files of a run that belong to it, sorted.
pub(crate) fn list_run_files(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let (name, kind) = (entry.file_name(), entry.file_type()?);
        if name == LOCK || name == STAGE || name.to_string_lossy().ends_with(TEMPORARY) {
            continue;
        }
        if kind.is_dir() {
            found.extend(list_run_files(&entry.path())?);
        } else if kind.is_file() {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

/// The table of a case's stack samples, relative to the run.
pub(crate) fn stacks_path(case: u32) -> PathBuf {
    Path::new(STACKS).join(format!("{case}.parquet"))
}

/// The table of a tracer, relative to the run.
pub(crate) fn events_path(tracer: &str) -> PathBuf {
    Path::new(EVENTS).join(format!("{}.parquet", encode_file_name(tracer)))
}

/// What a tracer wrote in an iteration, relative to the run.
pub(crate) fn raw_trace_path(tracer: &str, iteration: TracedIteration) -> PathBuf {
    let TracedIteration { slot, target } = iteration;
    let target = target.map_or_else(String::new, |target| format!("{target}."));
    Path::new(RAW).join(format!("{slot}.{target}{}", encode_file_name(tracer)))
}

/// A file name for any text: what is not a letter, a digit, `-`, `_` or an inner dot becomes `%XX`.
fn encode_file_name(text: &str) -> String {
    let plain = |at: usize, byte: u8| {
        byte.is_ascii_alphanumeric() || b"-_".contains(&byte) || (byte == b'.' && at > 0)
    };
    let encode = |(at, byte): (usize, u8)| {
        if plain(at, byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }
    };
    text.bytes().enumerate().map(encode).collect()
}

/// How long a writer waits for another one.
const PATIENCE: Duration = Duration::from_millis(100);

/// How long a writer waits for readers: one that looks at the lock holds it for an instant, unless it is stopped just then.
const READER_PATIENCE: Duration = Duration::from_secs(10);

const PAUSE: Duration = Duration::from_millis(5);

/// Held as long as it lives.
#[derive(Debug)]
pub(crate) struct RunLock {
    file: File,
}

/// Closing the file would not do: a child that another thread is just starting has it open as well, until
/// it becomes another program.
impl Drop for RunLock {
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

impl RunLock {
    /// Takes the lock of the run at `run`; `None` while a process holds it for itself. Readers, who share it, are waited for.
    pub(crate) fn try_lock(run: &Path) -> Result<Option<RunLock>, ArchiveError> {
        let path = run.join(LOCK);
        let mut options = OpenOptions::new();
        let opened =
            options.write(true).create(true).truncate(false).custom_flags(lock_open_flags()).open(&path);
        let file = opened.map_err(ArchiveError::io("open", &path))?;
        let begun = Instant::now();
        let mut writer_since = begun;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Some(RunLock { file })),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(source)) => return Err(ArchiveError::io("lock", &path)(source)),
            }
            if file.try_lock_shared().is_ok() {
                let _ = file.unlock();
                writer_since = Instant::now();
            }
            if writer_since.elapsed() >= PATIENCE || begun.elapsed() >= READER_PATIENCE {
                return Ok(None);
            }
            std::thread::sleep(PAUSE);
        }
    }
}

/// A copied archive may have anything in the place of a lock: a FIFO is not waited for, a link not followed.
fn lock_open_flags() -> i32 {
    (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits().cast_signed()
}

/// Whether a living process records the run at `run`. What cannot be found out counts as no.
pub(crate) fn is_run_live(run: &Path) -> bool {
    let opened = OpenOptions::new().read(true).custom_flags(lock_open_flags()).open(run.join(LOCK));
    let Ok(file) = opened else { return false };
    let tried = file.try_lock_shared();
    let _ = file.unlock();
    matches!(tried, Err(TryLockError::WouldBlock))
}

/// Has a run that nobody records any more say that the disk was full. Where even that cannot be said, it reads as interrupted.
pub(crate) fn mark_disk_full(run: &Path) {
    let _ = fs::rename(run.join(LOCK), run.join(DISK_FULL));
}

/// Whether a run says so.
pub(crate) fn is_marked_disk_full(run: &Path) -> bool {
    fs::symlink_metadata(run.join(DISK_FULL)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writer_waits_for_a_reader_that_is_stopped_and_not_for_another_writer() {
        let run = tempfile::tempdir().unwrap();
        let reader = File::create(run.path().join(LOCK)).unwrap();
        reader.lock_shared().unwrap();
        let writer = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(3 * PATIENCE);
                reader.unlock().unwrap();
            });
            RunLock::try_lock(run.path()).unwrap()
        });
        assert!(writer.is_some());
        assert!(RunLock::try_lock(run.path()).unwrap().is_none());
    }

    #[test]
    fn no_name_leaves_its_directory() {
        assert_eq!(encode_file_name("vmstat"), "vmstat");
        assert_eq!(encode_file_name("net/dev"), "net%2Fdev");
        assert_eq!(encode_file_name("../x"), "%2E.%2Fx");
        assert_eq!(series_path("a.b"), Path::new("series/a.b.parquet"));
    }
}
