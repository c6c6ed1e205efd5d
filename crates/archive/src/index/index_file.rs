//! The SQLite file: opened to be read, or to be written under the lock, where one that is of no use is replaced.
//!
//! Whatever is wrong with it (no database, cut short, another program's, another version's), the answer is another file.
//! It keeps a rollback journal, which works on every file system and needs no shared memory: a writer that is killed
//! leaves a journal behind, and the next writer takes back what it had begun.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt as _, lchown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::index_lock::IndexLock;
use crate::fresh_file::check_folder_owners;
use crate::run_layout::RUNS;

/// The index's file, in the archive's directory.
pub(super) const INDEX: &str = "index.sqlite";

/// What it is while it is written.
const JOURNAL_ENDING: &str = "-journal";

/// Tells perflab's files from those of other programs: `pflb`.
const APPLICATION: i32 = 0x7066_6c62;

/// Version of the tables below. Another one is made anew.
const VERSION: i32 = 8;

const TABLES: &str = "
CREATE TABLE run (
    id TEXT PRIMARY KEY,
    stamp BLOB NOT NULL,
    read_at INTEGER NOT NULL,
    label TEXT,
    title TEXT NOT NULL,
    study_file TEXT NOT NULL,
    status TEXT NOT NULL,
    begun INTEGER NOT NULL,
    iterations INTEGER NOT NULL,
    planned INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    content_hash TEXT,
    continues TEXT,
    first_part TEXT
) WITHOUT ROWID;
CREATE INDEX run_label ON run (label) WHERE label IS NOT NULL;
CREATE TABLE document (number INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE, body TEXT NOT NULL);
CREATE TABLE record (
    run TEXT PRIMARY KEY,
    stamp BLOB NOT NULL,
    read_at INTEGER NOT NULL,
    plan INTEGER NOT NULL,
    facts INTEGER NOT NULL,
    own TEXT NOT NULL,
    samples BLOB NOT NULL
);
CREATE INDEX run_content ON run (content_hash) WHERE content_hash IS NOT NULL;
";

/// How long another connection is waited for; each holds the file for milliseconds, unless its process is stopped.
const PATIENCE: Duration = Duration::from_secs(1);

/// Why an index cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum IndexError {
    /// There is none.
    #[error("there is no index yet")]
    Absent,
    /// It is no index of this version of perflab.
    #[error("{0}")]
    Foreign(String),
    /// The archive may not be written.
    #[error("the archive cannot be written: {0}")]
    ReadOnly(String),
    /// Its lock, or the file itself.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// SQLite refuses.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
}

/// An open index.
#[derive(Debug)]
pub(super) struct IndexFile {
    pub(super) connection: Connection,
}

impl IndexFile {
    /// Where the index of `archive` is.
    pub(super) fn path(archive: &Path) -> PathBuf {
        archive.join(INDEX)
    }

    /// Opens the index of `archive` without ever writing to it.
    pub(super) fn open_to_read(archive: &Path) -> Result<IndexFile, IndexError> {
        check_owners(archive)?;
        let path = find_regular_file(archive)?;
        IndexFile::connect(&path, OpenFlags::SQLITE_OPEN_READ_ONLY)?.checked()
    }

    /// Opens the index of `archive` under its lock; one that is of no use is replaced by an empty one.
    pub(super) fn open_to_write(archive: &Path, lock: &IndexLock) -> Result<IndexFile, IndexError> {
        check_owners(archive)?;
        let opened = find_regular_file(archive).and_then(|path| {
            IndexFile::connect(&path, OpenFlags::SQLITE_OPEN_READ_WRITE)?.writable()?.checked()
        });
        match opened {
            Err(error) if error.is_cured_by_another_file() => IndexFile::replace(archive, lock),
            opened => opened,
        }
    }

    /// Throws the index of `archive` away and makes an empty one.
    pub(super) fn replace(archive: &Path, _lock: &IndexLock) -> Result<IndexFile, IndexError> {
        check_owners(archive)?;
        let path = IndexFile::path(archive);
        // The journal first: it belongs to the old file, and would be played back into the new one.
        let mut journal = path.clone().into_os_string();
        journal.push(JOURNAL_ENDING);
        for old in [PathBuf::from(journal), path.clone()] {
            remove_old_file(&old)?;
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let mut made = IndexFile::connect(&path, flags)?.writable()?;
        // Large pages: a list reads all of a table.
        made.connection.execute_batch("PRAGMA page_size = 16384;")?;
        let transaction = made.connection.transaction()?;
        transaction.execute_batch(TABLES)?;
        transaction.pragma_update(None, "application_id", APPLICATION)?;
        transaction.pragma_update(None, "user_version", VERSION)?;
        transaction.commit()?;
        give_to_owner(&path, archive);
        Ok(made)
    }

    fn connect(path: &Path, flags: OpenFlags) -> Result<IndexFile, IndexError> {
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        // SQLite resolves links of the folders itself and refuses one in the end: the folder is resolved here.
        let folder = path.parent().unwrap_or(Path::new(".")).canonicalize()?;
        let connection =
            Connection::open_with_flags(folder.join(path.file_name().unwrap_or_default()), flags)?;
        connection.busy_timeout(PATIENCE)?;
        // Whoever copied the archive here may have put anything into the file.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
        connection.execute_batch("PRAGMA cell_size_check = ON; PRAGMA temp_store = MEMORY;")?;
        Ok(IndexFile { connection })
    }

    fn writable(self) -> Result<IndexFile, IndexError> {
        self.connection.execute_batch("PRAGMA journal_mode = TRUNCATE; PRAGMA synchronous = NORMAL;")?;
        Ok(self)
    }

    fn checked(self) -> Result<IndexFile, IndexError> {
        let number = |name: &str| self.connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
        match (number("application_id")?, number("user_version")?) {
            (APPLICATION, VERSION) => Ok(self),
            (APPLICATION, other) => {
                Err(IndexError::Foreign(format!("it has version {other}, and this perflab uses {VERSION}")))
            }
            _ => Err(IndexError::Foreign("it was not written by perflab".into())),
        }
    }
}

impl IndexError {
    /// Whether a new file would do.
    pub(super) fn is_cured_by_another_file(&self) -> bool {
        use rusqlite::ErrorCode::{
            ApiMisuse, ConstraintViolation, DatabaseCorrupt, NotADatabase, TypeMismatch, Unknown,
        };
        match self {
            IndexError::Absent | IndexError::Foreign(_) => true,
            IndexError::ReadOnly(_) | IndexError::Io(_) => false,
            IndexError::Sqlite(rusqlite::Error::SqliteFailure(error, _)) => matches!(
                error.code,
                ApiMisuse | ConstraintViolation | DatabaseCorrupt | NotADatabase | TypeMismatch | Unknown
            ),
            // A column that is missing or of another type: the tables are not ours.
            IndexError::Sqlite(_) => true,
        }
    }
}

/// Root leaves the index of an archive that others may change alone, as it does the runs.
fn check_owners(archive: &Path) -> Result<(), IndexError> {
    check_folder_owners(&archive.join(RUNS), None).map_err(|error| IndexError::ReadOnly(error.to_string()))
}

/// The index's path, where a file is; what is a link, a pipe or a folder is no index.
fn find_regular_file(archive: &Path) -> Result<PathBuf, IndexError> {
    let path = IndexFile::path(archive);
    match fs::symlink_metadata(&path) {
        Ok(found) if found.is_file() => Ok(path),
        Ok(_) => Err(IndexError::Foreign("it is no file".into())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(IndexError::Absent),
        Err(error) => Err(error.into()),
    }
}

/// Removes a file or a link; a folder of that name is somebody's, and stays.
fn remove_old_file(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// What root makes in somebody's archive, as by `sudo`, is theirs: they go on writing it.
fn give_to_owner(path: &Path, archive: &Path) {
    let (Ok(owner), true) = (fs::metadata(archive), rustix::process::geteuid().is_root()) else { return };
    for made in [path, &archive.join(super::index_lock::INDEX_LOCK)] {
        let _ = lchown(made, Some(owner.uid()), Some(owner.gid()));
    }
}
