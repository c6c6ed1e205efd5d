//! What the blocks of a file system are for, as it says itself (`FS_IOC_GETFSMAP`; ext4 and xfs).
#![expect(unsafe_code, reason = "ioctls of file systems have no safe wrappers")]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use perflab_model::io::{DeviceNumber, MetadataClass, MetadataRange};

/// `_IOWR('X', 59, struct fsmap_head)`
const GETFSMAP: libc::c_ulong = 0xc0c0_583b;
const AT_ONCE: usize = 512;
/// Owners that are no file: bit 4 of a record's flags.
const SPECIAL: u32 = 0x10;
const LAST: u32 = 0x20;

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct FsmapRecord {
    device: u32,
    flags: u32,
    physical: u64,
    owner: u64,
    offset: u64,
    length: u64,
    reserved: [u64; 3],
}

#[repr(C)]
struct FsmapRequest {
    iflags: u32,
    oflags: u32,
    room: u32,
    entries: u32,
    reserved: [u64; 6],
    keys: [FsmapRecord; 2],
    records: [FsmapRecord; AT_ONCE],
}

/// Every stretch of metadata of the file system that `file` lies on.
pub(crate) fn list_metadata_ranges(file: &File, device: DeviceNumber) -> io::Result<Vec<MetadataRange>> {
    let mut found = Vec::new();
    let mut low = FsmapRecord::default();
    loop {
        let head = request_records(file, low)?;
        let records = head.records.get(..head.entries as usize).unwrap_or_default();
        let range = |record: &FsmapRecord| {
            let class = classify_owner(record)?;
            Some(MetadataRange { device, physical: record.physical, length: record.length, class })
        };
        records.iter().filter_map(range).for_each(|next| append_metadata_range(&mut found, next));
        match records.last() {
            Some(last) if last.flags & LAST == 0 => low = *last,
            _ => return Ok(found),
        }
    }
}

/// Neighbours of one class are one.
fn append_metadata_range(found: &mut Vec<MetadataRange>, next: MetadataRange) {
    match found.last_mut() {
        Some(last) if last.class == next.class && last.physical + last.length == next.physical => {
            last.length += next.length;
        }
        _ => found.push(next),
    }
}

fn request_records(file: &File, low: FsmapRecord) -> io::Result<Box<FsmapRequest>> {
    let high = FsmapRecord {
        device: u32::MAX,
        flags: u32::MAX,
        physical: u64::MAX,
        owner: u64::MAX,
        offset: u64::MAX,
        ..FsmapRecord::default()
    };
    let mut head = Box::new(FsmapRequest {
        iflags: 0,
        oflags: 0,
        room: AT_ONCE as u32,
        entries: 0,
        reserved: [0; 6],
        keys: [low, high],
        records: [FsmapRecord::default(); AT_ONCE],
    });
    // SAFETY: `head` is a `struct fsmap_head` with as many records behind it as `room` says; it outlives the call.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), GETFSMAP as _, &raw mut *head) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(head) }
}

/// Owners have a letter for who defined them and a number (`linux/fsmap.h`, `fs/ext4/fsmap.h`, `xfs_fs.h`).
fn classify_owner(record: &FsmapRecord) -> Option<MetadataClass> {
    if record.flags & SPECIAL == 0 {
        return None;
    }
    let (letter, number) = ((record.owner >> 32) as u8, record.owner as u32);
    Some(match (letter, number) {
        (b'X', 1 | 3) | (b'f', 1 | 2) => MetadataClass::Superblock,
        (b'X', 2) => MetadataClass::Journal,
        (b'f', 3 | 4) => MetadataClass::Bitmap,
        (b'X', 5) => MetadataClass::InodeTable,
        (b'X', 4 | 6) => MetadataClass::Tree,
        _ => return None,
    })
}
