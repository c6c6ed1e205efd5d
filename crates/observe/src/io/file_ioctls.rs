//! What a file system says of a file: extents (`FS_IOC_FIEMAP`), generation (`FS_IOC_GETVERSION`), UUID; opening it
//! by inode number.
//!
//! A handle of `open_by_handle_at` with number and generation 0 means "whatever has this number now" on ext4 and
//! its like; file systems with other handles refuse, and files are then looked for by name.

#![expect(
    unsafe_code,
    reason = "ioctls of file systems and open_by_handle_at have no safe wrappers, and a handle is built by hand"
)]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};

use perflab_model::io_trace::FileExtent;

/// `_IOWR('f', 11, struct fiemap)`
const FIEMAP: libc::c_ulong = 0xc020_660b;

/// `_IOR('v', 1, long)`
const GETVERSION: libc::c_ulong = 0x8008_7601;

const LAST: u32 = 1;

/// Address unknown, not allocated yet, encoded, or within metadata: nothing that could be read from the disk.
const NOWHERE: u32 = 0x2 | 0x4 | 0x8 | 0x200;

const AT_ONCE: usize = 128;

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct FiemapExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved: [u64; 2],
    flags: u32,
    reserved_too: [u32; 3],
}

#[repr(C)]
struct FiemapRequest {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    room: u32,
    reserved: u32,
    extents: [FiemapExtent; AT_ONCE],
}

/// The extents of a file, in its order; neighbours that also lie together on the disk are one.
///
/// # Errors
/// The system's error: a file system without extents to report.
pub fn file_extents(file: &File) -> io::Result<Vec<FileExtent>> {
    let mut all: Vec<FileExtent> = Vec::new();
    let mut start = 0;
    loop {
        let map = request_extents(file, start)?;
        let found = map.extents.get(..map.mapped as usize).unwrap_or_default();
        for extent in found.iter().filter(|extent| extent.flags & NOWHERE == 0) {
            append_extent(
                &mut all,
                FileExtent { logical: extent.logical, physical: extent.physical, length: extent.length },
            );
        }
        match found.last() {
            Some(last) if last.flags & LAST == 0 => start = last.logical + last.length,
            _ => return Ok(all),
        }
    }
}

fn append_extent(all: &mut Vec<FileExtent>, next: FileExtent) {
    match all.last_mut() {
        Some(last)
            if last.logical + last.length == next.logical && last.physical + last.length == next.physical =>
        {
            last.length += next.length;
        }
        _ => all.push(next),
    }
}

fn request_extents(file: &File, start: u64) -> io::Result<FiemapRequest> {
    let mut map = FiemapRequest {
        start,
        length: u64::MAX - start,
        flags: 0,
        mapped: 0,
        room: AT_ONCE as u32,
        reserved: 0,
        extents: [FiemapExtent::default(); AT_ONCE],
    };
    // SAFETY: `map` is a `struct fiemap` with room for as many extents as `room` says; it outlives the call.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), FIEMAP as _, &raw mut map) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(map) }
}

/// `_IOR(0x15, 0, struct fsuuid2)`
const GETFSUUID: libc::c_ulong = 0x8011_1500;

/// `_IOR(0x94, 31, struct btrfs_ioctl_fs_info_args)`, of which the UUID is the third member.
const BTRFS_FS_INFO: libc::c_ulong = 0x8400_941f;

const BTRFS_UUID: std::ops::Range<usize> = 16..32;

/// The UUID of the file system that a file lies on, as 32 hexadecimal digits; none where it has none.
pub fn file_system_uuid(file: &File) -> Option<String> {
    read_generic_uuid(file).or_else(|| read_btrfs_uuid(file))
}

/// What btrfs reports by an ioctl of its own.
fn read_btrfs_uuid(file: &File) -> Option<String> {
    let mut answer = [0_u8; 1024];
    // SAFETY: the kernel writes as many bytes as the request's number says, 1024, for which there is room.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), BTRFS_FS_INFO as _, answer.as_mut_ptr()) };
    (done == 0).then(|| format_hexadecimal(answer.get(BTRFS_UUID).unwrap_or_default()))
}

/// Two digits a byte.
pub(crate) fn format_hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// As most file systems report it, since Linux 6.9.
fn read_generic_uuid(file: &File) -> Option<String> {
    let mut answer = [0_u8; 17];
    // SAFETY: the kernel writes a length and 16 bytes, for which there is room.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), GETFSUUID as _, answer.as_mut_ptr()) };
    let (length, uuid) = answer.split_first()?;
    let known = uuid.get(..usize::from(*length))?;
    (done == 0 && !known.is_empty()).then(|| format_hexadecimal(known))
}

/// The generation of a file, which changes when its number is given to another one; none where its file system has none.
pub fn file_generation(file: &File) -> Option<u32> {
    let mut version: libc::c_long = 0;
    // SAFETY: file systems write an int or a long, and there is room for a long.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), GETVERSION as _, &raw mut version) };
    (done >= 0).then_some(version as u32)
}

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
    // SAFETY: the call has just returned this descriptor, and nothing else has it.
    Ok(unsafe { File::from_raw_fd(fd) })
}
