//! A file of the user's state that is written anew: whatever ends perflab or the machine, it is the one before or the whole new one.

use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;

use perflab_observe::own_directories::{OwnFileAccess, open_own_file};

/// The name of a file that is being written.
const HALF: &str = "half";

/// Has a file of a folder of the user's own hold these bytes; they are on the disk when this returns. One at a time writes in a folder.
///
/// # Errors
/// It cannot be written; the file is as it was.
pub fn replace_own_file(folder: &OwnedFd, name: &str, bytes: &[u8]) -> io::Result<()> {
    // Of one that was killed while it wrote.
    let _ = rustix::fs::unlinkat(folder, HALF, rustix::fs::AtFlags::empty());
    let mut file = open_own_file(folder, OsStr::new(HALF), OwnFileAccess::New)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    rustix::fs::renameat(folder, HALF, folder, name)?;
    Ok(rustix::fs::fsync(folder)?)
}
