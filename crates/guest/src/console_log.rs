//! A guest's console log: its end, the kernel's last words in it, and how much of it is kept.
//!
//! A guest decides how much it prints, so only the end of its console is ever read, and older parts of the log give
//! their room back.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use perflab_model::remove_control_characters;
use rustix::fs::{FallocateFlags, fallocate};

/// What a log may take of the disk before its beginning is given back, in bytes,
const MOST: u64 = 16 << 20;

/// and what is left of it then.
const LEFT: u64 = 4 << 20;

/// How often its size is looked at.
const LOOK: Duration = Duration::from_millis(500);

/// What the kernel's last line begins with when it gives up.
const PANIC: &str = "Kernel panic";

/// The last `most` bytes of a log; nothing where there is none.
pub fn read_log_end(log: &Path, most: usize) -> Vec<u8> {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = File::open(log)?;
        let begin = file.metadata()?.len().saturating_sub(most as u64);
        file.seek(SeekFrom::Start(begin))?;
        let mut end = Vec::new();
        file.take(most as u64).read_to_end(&mut end)?;
        Ok(end)
    };
    read().unwrap_or_default()
}

/// The line in which the kernel says that it panicked, without its time stamp; none where it did not.
pub fn find_panic(console: &str) -> Option<String> {
    let line = console.lines().rev().find(|line| line.contains(PANIC))?;
    let message = line.get(line.find(PANIC)?..)?;
    Some(remove_control_characters(message.trim()).chars().take(200).collect())
}

/// As [`find_panic`], of the end of a log.
pub fn find_panic_in(log: &Path) -> Option<String> {
    find_panic(&String::from_utf8_lossy(&read_log_end(log, LEFT as usize)))
}

/// Keeps a log within bounds for as long as it lives.
#[derive(Debug)]
pub(crate) struct ConsoleLogLimiter {
    _ended: Sender<()>,
}

impl ConsoleLogLimiter {
    /// Looks at the log on a thread of its own.
    pub(crate) fn watch(log: PathBuf) -> Self {
        let (ended, end) = channel::<()>();
        std::thread::spawn(move || {
            while end.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                // A log that cannot be cut is tried again: its file system may be full.
                let _ = free_log_beginning(&log);
            }
        });
        ConsoleLogLimiter { _ended: ended }
    }
}

/// Gives the room of a log's beginning back, where it takes too much. QEMU writes on where it was: the file keeps its
/// length, with a hole in front.
fn free_log_beginning(log: &Path) -> std::io::Result<()> {
    let file = OpenOptions::new().write(true).open(log)?;
    let found = file.metadata()?;
    if found.blocks() * 512 <= MOST {
        return Ok(());
    }
    let past = found.len().saturating_sub(LEFT);
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    match fallocate(&file, hole, 0, past) {
        Ok(()) => Ok(()),
        // A file system without holes: all of it goes.
        Err(_) => file.set_len(0),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_log_that_grows_takes_little_room_and_keeps_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("console.log");
        let mut file = File::create(&log).unwrap();
        let mut most = 0;
        for round in 0..8 {
            file.write_all(&vec![b'x'; 8 << 20]).unwrap();
            file.write_all(format!("round {round}\n").as_bytes()).unwrap();
            file.sync_all().unwrap();
            free_log_beginning(&log).unwrap();
            most = most.max(log.metadata().unwrap().blocks() * 512);
        }
        assert!(most <= MOST + (1 << 20), "{most} bytes of the disk");
        assert_eq!(log.metadata().unwrap().len(), 8 * ((8 << 20) + 8));
        assert_eq!(read_log_end(&log, 9), b"xround 7\n");
        assert_eq!(read_log_end(&folder.path().join("none"), 9), b"");
    }

    #[test]
    fn a_panic_is_found_without_its_time_stamp() {
        let console = "[    1.2] fine\r\n[    2.3] Kernel panic - not syncing: sysrq triggered crash\u{1b}\r\n[ 2.4] CPU: 0\r\n";
        assert_eq!(
            find_panic(console).as_deref(),
            Some("Kernel panic - not syncing: sysrq triggered crash\u{fffd}")
        );
        assert_eq!(find_panic("all is well"), None);
    }
}
