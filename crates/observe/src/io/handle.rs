//! Opening a file by its number, without its name (`open_by_handle_at`). A handle of number and generation 0 means
//! "whatever has this number now" on ext4 and its like; file systems with other handles refuse, and files are then looked
//! for by name.
#![expect(unsafe_code, reason = "open_by_handle_at has no safe wrapper, and a handle is built by hand")]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};

/// A handle of a number and a generation, each of 32 bits.
const INO32_GEN: i32 = 1;

/// `struct file_handle` with room for such a handle.
#[repr(C)]
struct InodeHandle {
    bytes: u32,
    kind: i32,
    inode: u32,
    generation: u32,
}

/// Opens the file for reading. Generation 0 is any.
pub(crate) fn open_by_inode(mount: &File, inode: u64, generation: u32) -> io::Result<File> {
    let inode = u32::try_from(inode).map_err(|_| io::ErrorKind::Unsupported)?;
    let mut handle = InodeHandle { bytes: 8, kind: INO32_GEN, inode, generation };
    let flags = libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOFOLLOW | libc::O_NOATIME;
    // SAFETY: `handle` is a `struct file_handle` with 8 bytes behind it, as its first field says; it outlives the call.
    let fd = unsafe { libc::open_by_handle_at(mount.as_raw_fd(), (&raw mut handle).cast(), flags) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has just returned this descriptor, and nobody else has it.
    Ok(unsafe { File::from_raw_fd(fd) })
}
