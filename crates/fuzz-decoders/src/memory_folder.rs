//! A folder in memory, for decoders that read files.

use std::fs;
use std::path::{Path, PathBuf};

/// A folder of this process and one decoder in `/dev/shm`, removed when it is dropped.
#[derive(Debug)]
pub struct MemoryFolder(PathBuf);

impl MemoryFolder {
    /// A new, empty one.
    ///
    /// # Panics
    /// There is no room for it: nothing is decoded then.
    pub fn new(name: &str) -> Self {
        let path = PathBuf::from(format!("/dev/shm/perflab-fuzz-{}-{name}", std::process::id()));
        // What is left of an input that ended the process before, whose number this one has.
        let _ = fs::remove_dir_all(&path);
        assert!(fs::create_dir_all(&path).is_ok(), "no room for {}", path.display());
        MemoryFolder(path)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file, with the folders that it lies in.
    ///
    /// # Panics
    /// There is no room for it.
    pub fn write(&self, name: impl AsRef<Path>, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        let made = path.parent().is_none_or(|folder| fs::create_dir_all(folder).is_ok());
        assert!(made && fs::write(&path, bytes).is_ok(), "no room for {}", path.display());
        path
    }
}

impl Drop for MemoryFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
