//! The kernel's log from now on: `/dev/kmsg`, read when somebody asks, not on a clock.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread::{Builder, JoinHandle};

use perflab_formats::kernel::kernel_log::KernelLogRecord;
use perflab_model::{Nanos, RunEvent, RunEventKind};
use rustix::fs::OFlags;

use crate::clock::{StopSignal, monotonic_now};
use crate::root::Root;

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

impl NewKernelRecords {
    /// The records as a run stores them, a line each; none where nothing was printed.
    #[must_use]
    pub fn stored_text(&self) -> Option<String> {
        if self.records.is_empty() && !self.is_incomplete {
            return None;
        }
        let mut text: String = self.records.iter().map(|record| format!("{record}\n")).collect();
        if self.is_incomplete {
            text.push_str("[perflab: more was printed, and is not here]\n");
        }
        Some(text)
    }
}

/// How often a follower looks: one read that finds nothing.
const LOOK: Nanos = Nanos(100_000_000);

/// Sends what the kernel prints as events, within a tenth of a second. Dropping it ends that as well.
#[derive(Debug)]
pub struct KernelLogFollower {
    stop: Arc<StopSignal>,
    thread: Option<JoinHandle<()>>,
}

impl KernelLogFollower {
    /// Follows a log from where it was read to, on a thread of its own.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(mut log: KernelLog, sink: Sender<RunEvent>) -> io::Result<Self> {
        let stop = Arc::new(StopSignal::default());
        let asked = Arc::clone(&stop);
        let follow = move || {
            while !asked.wait(LOOK) {
                let Some(text) = log.read_new().stored_text() else { continue };
                let name = RunEventKind::KERNEL_LOG.to_owned();
                let printed = RunEventKind::Output { slot: None, name, text };
                if sink.send(RunEvent::new(monotonic_now(), printed)).is_err() {
                    return;
                }
            }
        };
        let thread = Builder::new().name("kernel-log".into()).spawn(follow)?;
        Ok(KernelLogFollower { stop, thread: Some(thread) })
    }
}

impl Drop for KernelLogFollower {
    fn drop(&mut self) {
        self.stop.request();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_follower_sends_what_is_printed() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join("dev")).unwrap();
        let path = home.path().join("dev/kmsg");
        std::fs::write(&path, "6,1,1000,-;before\n").unwrap();
        let log = KernelLog::open_at_end(&Root(home.path().to_owned())).unwrap();
        let (sink, events) = std::sync::mpsc::channel();
        let follower = KernelLogFollower::start(log, sink).unwrap();
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"4,2,2000000,-;WARNING: CPU: 0\n").unwrap();
        let RunEventKind::Output { slot, name, text } = events.recv().unwrap().what else { panic!() };
        let expected = "<4>[    2.000000] WARNING: CPU: 0\n";
        assert_eq!((slot, name.as_str(), text.as_str()), (None, RunEventKind::KERNEL_LOG, expected));
        drop(follower);
        assert!(events.recv().is_err(), "it has let go of its end");
    }

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
