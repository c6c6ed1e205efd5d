//! The folder that stands for `/` of /proc and /sys: the host's own, or a recorded tree.
//!
//! Paths are written as the kernel names them (`/proc/stat`) and resolved here, in one place.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::ObserveError;

/// The directory below which `proc`, `sys` and `etc` are found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root(pub PathBuf);

impl Root {
    /// The machine that we run on.
    pub fn host() -> Self {
        Root(PathBuf::from("/"))
    }

    /// Whether this is the machine that we run on, so that system calls may be asked as well.
    pub fn is_host(&self) -> bool {
        self.0 == Path::new("/")
    }

    /// Where `path` (absolute, as the kernel names it) really lies.
    pub fn path(&self, path: &str) -> PathBuf {
        self.0.join(path.trim_start_matches('/'))
    }

    /// The whole text of a small file, without the white space at its end; bytes that are not UTF-8 are replaced.
    ///
    /// # Errors
    /// [`ObserveError::Read`] with the path as the kernel names it.
    pub fn read(&self, path: &str) -> Result<String, ObserveError> {
        let bytes = fs::read(self.path(path)).map_err(|source| ObserveError::read_failed(path, source))?;
        Ok(String::from_utf8_lossy(&bytes).trim_end().to_owned())
    }

    /// The same of a file of `longest` bytes at most, which is not waited for: a tree that somebody copied may hold anything.
    ///
    /// # Errors
    /// [`ObserveError::Read`] with the path as the kernel names it; one that is longer is an error of this kind.
    pub fn read_at_most(&self, path: &str, longest: u64) -> Result<String, ObserveError> {
        let bytes =
            self.read_bytes(path, longest).map_err(|source| ObserveError::read_failed(path, source))?;
        Ok(String::from_utf8_lossy(&bytes).trim_end().to_owned())
    }

    pub(crate) fn read_bytes(&self, path: &str, longest: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        open_unblocked(&self.path(path))?.take(longest.saturating_add(1)).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > longest {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!("it has more than {longest} bytes"),
            ));
        }
        Ok(bytes)
    }

    /// The names in a directory, sorted; empty where it cannot be read.
    pub fn list(&self, path: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(path)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }
}

/// Opens a file for reading, without waiting for who writes into a pipe: a tree that somebody copied may hold anything.
pub(crate) fn open_unblocked(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// The kernel's random id of this boot (`/proc/sys/kernel/random/boot_id`), which distinguishes boots; empty where
/// unknown.
pub fn read_boot_id(root: &Root) -> String {
    root.read("/proc/sys/kernel/random/boot_id").unwrap_or_default()
}
