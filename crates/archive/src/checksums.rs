//! `SHA256SUMS`: the hash of each file that is written when a run ends, in the lines of sha256sum.
//!
//! A bit that flips on a disk is reported and not taken for a number. Runs that were closed before there was such a
//! file are read as they are.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Seek as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use crate::ArchiveError;
use crate::fresh_file::create_fresh_file;
use crate::run_layout::{CHECKSUMS, JOURNAL, MANIFEST, NOTES, RAW, list_run_files};
use perflab_files::{open_finite_file, read_finite_file, sha256_hex};

/// The longest list that is read: a line is some hundred bytes, and a run has hundreds of files at most.
const LONGEST: u64 = 16 << 20;

/// A file that changed as lately as this may change again without its time telling.
const SETTLED: Duration = Duration::from_secs(2);

/// A file as it was when it was found to be whole: device, inode, size, time of its last change.
type VerifiedFileStamp = (u64, u64, u64, SystemTime);

/// What was found whole already: a table is opened often, and hashed once.
static WHOLE: Mutex<Option<HashSet<VerifiedFileStamp>>> = Mutex::new(None);

/// Writes the hashes of all files under `stage`.
pub(crate) fn write_checksums(stage: &Path) -> Result<(), ArchiveError> {
    let path = stage.join(CHECKSUMS);
    let mut text = String::new();
    for file in list_files_below(stage).map_err(ArchiveError::io("read", stage))? {
        let hash = File::open(&file)
            .and_then(|mut file| sha256_hex(&mut file))
            .map_err(ArchiveError::io("read", &file))?;
        let name = file.strip_prefix(stage).unwrap_or(&file);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{hash}  {}", name.display());
    }
    let written = create_fresh_file(&path).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    written.map_err(ArchiveError::io("write", &path))
}

/// Opens the file `name` of the closed run at `run`, and compares it with its hash where the run has hashes.
pub(crate) fn open_verified(run: &Path, name: &Path) -> Result<File, ArchiveError> {
    let path = run.join(name);
    let mut file = open_finite_file(&path).map_err(ArchiveError::io("read", &path))?;
    let list = run.join(CHECKSUMS);
    if list.symlink_metadata().is_err() {
        return Ok(file);
    }
    let found = file.metadata().map_err(ArchiveError::io("read", &path))?;
    let changed = found.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    let seen = (found.dev(), found.ino(), found.len(), changed);
    let is_known = |seen: &VerifiedFileStamp| {
        WHOLE.lock().is_ok_and(|whole| whole.as_ref().is_some_and(|all| all.contains(seen)))
    };
    if is_known(&seen) {
        return Ok(file);
    }
    let text = read_finite_file(&list, LONGEST).map_err(ArchiveError::io("read", &list))?;
    let text = String::from_utf8_lossy(&text);
    let named = |line: &'_ &str| line.split_once("  ").is_some_and(|(_, of)| Path::new(of) == name);
    let requested = text.lines().find(named).and_then(|line| line.split_once("  "));
    let hash = sha256_hex(&mut file).map_err(ArchiveError::io("read", &path))?;
    if requested.is_none_or(|(requested, _)| requested != hash) {
        return Err(ArchiveError::Altered { path, list });
    }
    file.rewind().map_err(ArchiveError::io("read", &path))?;
    if changed.elapsed().is_ok_and(|age| age > SETTLED)
        && let Ok(mut whole) = WHOLE.lock()
    {
        whole.get_or_insert_default().insert(seen);
    }
    Ok(file)
}

/// Files of a run that are written before it ends, or may change afterwards: no hash is kept of them.
const WITHOUT_HASH: [&str; 4] = [MANIFEST, JOURNAL, NOTES, CHECKSUMS];

/// Holds every file of the run at `run` against its hash. A file that the list names and that is not there, and one that it does not
/// name, are not as they were written. A run that was never closed has no list, and no files but those without a hash.
pub(crate) fn verify_all(run: &Path) -> Result<(), ArchiveError> {
    let list = run.join(CHECKSUMS);
    let text = match read_finite_file(&list, LONGEST) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        read => read.map_err(ArchiveError::io("read", &list))?,
    };
    let text = String::from_utf8_lossy(&text);
    let altered = |path: PathBuf| ArchiveError::Altered { path, list: list.clone() };
    let mut named = HashSet::new();
    for line in text.lines() {
        let (_, name) =
            line.split_once("  ").ok_or_else(|| ArchiveError::damaged(&list)("a line names no file"))?;
        named.insert(run.join(name));
        open_verified(run, Path::new(name)).map_err(|error| match error {
            ArchiveError::Io { source, path, .. } if source.kind() == io::ErrorKind::NotFound => {
                altered(path)
            }
            other => other,
        })?;
    }
    let is_closed = list.exists();
    for file in list_run_files(run).map_err(ArchiveError::io("read", run))? {
        let is_known = named.contains(&file)
            || WITHOUT_HASH.iter().any(|name| file == run.join(name))
            // What tracers wrote, which the tables were made of.
            || file.starts_with(run.join(RAW));
        if is_closed && !is_known {
            return Err(altered(file));
        }
    }
    Ok(())
}

/// All files under `folder`, sorted.
fn list_files_below(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            found.extend(list_files_below(&entry.path())?);
        } else {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}
