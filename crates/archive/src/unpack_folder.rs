//! Where a portable run is unpacked to be read, for as long as it is read.

use std::io;
use std::path::Path;

/// A folder for a while, removed when it is dropped.
pub trait UnpackFolder: std::fmt::Debug + Send + Sync {
    /// Where it is.
    fn path(&self) -> &Path;
}

impl UnpackFolder for tempfile::TempDir {
    fn path(&self) -> &Path {
        tempfile::TempDir::path(self)
    }
}

/// Makes a folder for a while.
pub type UnpackFolderMaker = fn() -> io::Result<Box<dyn UnpackFolder>>;

/// A folder below that for temporary files, which a killed process leaves behind.
///
/// # Errors
/// It cannot be made.
pub fn make_unpack_folder() -> io::Result<Box<dyn UnpackFolder>> {
    Ok(Box::new(tempfile::tempdir()?))
}
