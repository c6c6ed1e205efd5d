//! The system calls of reading ahead.
#![expect(
    unsafe_code,
    reason = "readahead has no safe wrapper, and nix asks for a promise about descriptors"
)]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::fanotify::Fanotify;

/// A fanotify group that another process has opened. What is none gives errors when it is read.
pub(crate) fn open_exec_group(descriptor: OwnedFd) -> Fanotify {
    // SAFETY: the descriptor is owned and goes over; of another kind of file, reads fail or give no events with descriptors,
    // as only perflab itself hands one over.
    unsafe { Fanotify::from_owned_fd(descriptor) }
}

/// Asks for a stretch of a file to be read into memory, and does not wait for it. May wait for the file's own map, and
/// for room in the disk's queue. The kernel reads at most the device's window at once: ask in pieces.
pub(crate) fn request_readahead(file: &File, offset: u64, bytes: u64) -> io::Result<()> {
    let (Ok(offset), Ok(bytes)) = (i64::try_from(offset), usize::try_from(bytes)) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    // SAFETY: numbers and an open descriptor; no memory of ours is involved.
    let done = unsafe { libc::readahead(file.as_raw_fd(), offset, bytes) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
