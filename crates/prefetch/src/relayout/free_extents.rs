//! Free room of an ext4, in one stretch if it has one, against which blocks of files are exchanged (`EXT4_IOC_MOVE_EXT`, as
//! e4defrag does): a file without a name, which takes the old blocks away with it, whatever happens to us.
#![expect(unsafe_code, reason = "ioctls of file systems have no safe wrappers")]

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use perflab_model::io::PAGE;
use rustix::fs::{FallocateFlags, OFlags};

/// `_IOWR('f', 15, struct move_extent)`
const MOVE_EXT: libc::c_ulong = 0xc028_660f;

/// What is exchanged, in blocks; the kernel answers how many were.
#[repr(C)]
#[derive(Default)]
struct MoveExtent {
    reserved: i32,
    donor: u32,
    from: u64,
    donor_from: u64,
    count: u64,
    moved: u64,
}

/// Free room, of which the beginning is used up.
pub(super) struct FreeExtents {
    file: File,
    /// bytes of a block
    block: u64,
    /// bytes
    used: u64,
}

impl FreeExtents {
    /// So many pages of free room on the file system that is mounted at `place`.
    pub fn new(place: &Path, pages: u64) -> io::Result<Self> {
        let flags = OFlags::TMPFILE.bits() as i32;
        let file = OpenOptions::new().read(true).write(true).custom_flags(flags).mode(0o600).open(place)?;
        rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, pages * PAGE)?;
        let block = rustix::fs::fstatvfs(&file)?.f_frsize;
        let is_part = block > 0 && PAGE.is_multiple_of(block);
        is_part
            .then_some(FreeExtents { file, block, used: 0 })
            .ok_or_else(|| io::ErrorKind::Unsupported.into())
    }

    /// In how many pieces its room lies.
    pub fn fragments(&self) -> io::Result<usize> {
        Ok(perflab_observe::io::file_extents(&self.file)?.len())
    }

    /// Gives pages of a file the next room in the free file; how many bytes got it. Holes have no blocks, and stay holes.
    pub fn exchange_pages(&mut self, file: &File, first: u64, count: u64) -> io::Result<u64> {
        let (begin, end) = (first * PAGE, ((first + count) * PAGE).min(file.metadata()?.len()));
        let blocks = end.saturating_sub(begin).div_ceil(self.block);
        let room = self.used / self.block;
        self.used += count * PAGE;
        let mut moved = 0;
        while moved < blocks {
            match self.exchange_blocks(file, begin / self.block + moved, room + moved, blocks - moved) {
                Ok(0) => break,
                Ok(more) => moved += more,
                Err(error) if error.raw_os_error() == Some(libc::ENODATA) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(moved * self.block)
    }

    /// How many blocks were exchanged.
    fn exchange_blocks(&self, file: &File, from: u64, donor_from: u64, count: u64) -> io::Result<u64> {
        let donor = self.file.as_raw_fd().cast_unsigned();
        let mut exchange = MoveExtent { donor, from, donor_from, count, ..MoveExtent::default() };
        // SAFETY: `exchange` is a `struct move_extent`, which outlives the call, and both files are open.
        let done = unsafe { libc::ioctl(file.as_raw_fd(), MOVE_EXT as _, &raw mut exchange) };
        match io::Error::last_os_error() {
            error if done < 0 && exchange.moved == 0 => Err(error),
            _ => Ok(exchange.moved),
        }
    }

    /// Waits until everything that was moved lies on the disk.
    pub fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::syncfs(&self.file)?)
    }
}
