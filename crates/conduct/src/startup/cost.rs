//! What a start cost: faults and waiting as the kernel counts them for the process, reads as its disk does.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;

use perflab_model::io::{Device, SECTOR};

/// What a start cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cost {
    /// pages that had to be waited for: of the process, and of its children that have ended
    pub major_faults: Option<u64>,
    /// hundredths of a second that its main thread waited for disks; none unless kernel.task_delayacct is 1
    pub delay_ticks: Option<u64>,
    /// what the disk of the program's file read meanwhile, for whomever
    pub reads: Option<DiskReads>,
}

impl Cost {
    /// Of a child that was not waited for yet.
    pub(super) fn of(child: &Child, reads: Option<DiskReads>) -> Self {
        let text = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap_or_default();
        // The name may hold blanks and brackets: numbers follow the last one, the third first.
        let numbers: Vec<&str> =
            text.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
        let number = |place: usize| numbers.get(place - 3).and_then(|text| text.parse::<u64>().ok());
        let major_faults = number(12).zip(number(13)).map(|(own, children)| own + children);
        let counts =
            fs::read_to_string("/proc/sys/kernel/task_delayacct").is_ok_and(|text| text.trim() == "1");
        Cost { major_faults, delay_ticks: number(42).filter(|_| counts), reads }
    }
}

/// What a disk has read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiskReads {
    /// requests
    pub requests: u64,
    /// bytes
    pub bytes: u64,
    /// bytes that were written
    pub written: u64,
}

impl DiskReads {
    /// Since it was found: columns 1, 3 and 7 of its `stat` (`Documentation/block/stat.rst`).
    pub fn of(disk: Device) -> Option<Self> {
        let text = fs::read_to_string(PathBuf::from(format!("/sys/dev/block/{disk}/stat"))).ok()?;
        let mut numbers = text.split_whitespace().map(|text| text.parse::<u64>().ok());
        let (requests, bytes) = (numbers.next()??, numbers.nth(1)?? * SECTOR);
        Some(DiskReads { requests, bytes, written: numbers.nth(3)?? * SECTOR })
    }

    /// The difference.
    #[must_use]
    pub fn since(self, before: DiskReads) -> Self {
        DiskReads {
            requests: self.requests.saturating_sub(before.requests),
            bytes: self.bytes.saturating_sub(before.bytes),
            written: self.written.saturating_sub(before.written),
        }
    }
}

/// The disk, or partition, that a file lies on; none where that is no disk.
pub fn disk_of(path: &Path) -> Option<Device> {
    let device = perflab_observe::io::files::device(&fs::metadata(path).ok()?);
    perflab_observe::io::mounts::is_disk(device).then_some(device)
}
