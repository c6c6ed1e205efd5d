//! The kernel's log from now on: `/dev/kmsg`, read when somebody asks, not on a clock.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;

use perflab_formats::kernel::kernel_log::KernelLogRecord;
use rustix::fs::OFlags;

use crate::Root;

/// The longest record; the kernel's own limit is below it.
const LONGEST: usize = 16 << 10;

/// More records than these are not read at once: what is printed without end must not hold up the run.
const MOST: usize = 1000;

/// The kernel's log behind what was read of it.
#[derive(Debug)]
pub struct KernelLog {
    file: File,
    buffer: Box<[u8]>,
}

/// What the kernel printed since the last look.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewKernelRecords {
    /// In its order.
    pub records: Vec<KernelLogRecord>,
    /// Whether some are missing: the kernel had overwritten them, or there were too many.
    pub is_incomplete: bool,
}

impl KernelLog {
    /// Opens it behind what is there.
    ///
    /// # Errors
    /// It cannot be read: with `kernel.dmesg_restrict`, only root may.
    pub fn open_at_end(root: &Root) -> io::Result<Self> {
        let flags = OFlags::NONBLOCK.bits() as i32;
        let mut file = OpenOptions::new().read(true).custom_flags(flags).open(root.path("/dev/kmsg"))?;
        file.seek(SeekFrom::End(0))?;
        Ok(KernelLog { file, buffer: vec![0; LONGEST].into() })
    }

    /// What the kernel printed since the last look; records of programs are left out.
    pub fn read_new(&mut self) -> NewKernelRecords {
        let mut found = NewKernelRecords::default();
        for _ in 0..MOST {
            match self.file.read(&mut self.buffer) {
                Ok(0) => return found,
                Ok(length) => {
                    let text =
                        String::from_utf8_lossy(self.buffer.get(..length).unwrap_or_default()).into_owned();
                    found.records.extend(KernelLogRecord::parse(&text).filter(KernelLogRecord::is_of_kernel));
                }
                // What was to be read next was overwritten; the next read goes on with what is there.
                Err(error) if error.raw_os_error() == Some(rustix::io::Errno::PIPE.raw_os_error()) => {
                    found.is_incomplete = true;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return found,
            }
        }
        found.is_incomplete = true;
        let _ = self.file.seek(SeekFrom::End(0));
        found
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn only_what_is_printed_from_now_on_is_read() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join("dev")).unwrap();
        let path = home.path().join("dev/kmsg");
        std::fs::write(&path, "6,1,1000,-;before\n").unwrap();
        let mut log = KernelLog::open_at_end(&Root(home.path().to_owned())).unwrap();
        assert_eq!(log.read_new(), NewKernelRecords::default());
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"4,2,2000,-;WARNING: CPU: 0\n").unwrap();
        let found = log.read_new();
        assert_eq!((found.records.len(), found.is_incomplete), (1, false));
        assert!(found.records[0].trouble().is_some());
        file.write_all(b"12,3,3000,-;WARNING: a program says so\n").unwrap();
        assert_eq!(log.read_new(), NewKernelRecords::default(), "it is no record of the kernel's");
    }
}
