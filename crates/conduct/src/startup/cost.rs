//! What a start cost: faults and waiting as the kernel counts them for the process, reads as its disk does.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;

use perflab_model::Nanos;
use perflab_model::io::{DeviceNumber, SECTOR};
use perflab_observe::Root;
use perflab_observe::taskstats::is_delay_accounting_on;

/// What a start cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StartupCost {
    /// pages that had to be waited for: of its process group, and of their children that have ended
    pub major_faults: Option<u64>,
    /// CPU time of its control group, of processes that have ended, too; none where it has none
    pub cpu: Option<Nanos>,
    /// hundredths of a second that the threads of its process group waited for disks, those that have ended not among
    /// them; none unless kernel.task_delayacct is 1, nor where the kernel counted more than there was time for
    pub delay_ticks: Option<u64>,
    /// what the disk of the program's file read meanwhile, for whomever
    pub reads: Option<DiskTraffic>,
}

impl StartupCost {
    /// Of a child that leads its process group, and was not waited for yet.
    pub(super) fn of_child(child: &Child, reads: Option<DiskTraffic>, cpu: Option<Nanos>) -> Self {
        let group: Vec<PathBuf> = process_group_folders(child.id());
        let stats = group.iter().filter_map(|process| ProcessStat::read(&process.join("stat")));
        let faults = |stat: ProcessStat| Some(stat.numeric_field(12)? + stat.numeric_field(13)?);
        let major_faults = stats.filter_map(faults).reduce(|sum, more| sum + more);
        let counts = is_delay_accounting_on(&Root::host());
        let now = uptime_ticks().unwrap_or(0);
        let waited = || group.iter().map(|process| disk_delay(process, now)).sum();
        let delay_ticks = counts.then(waited).flatten();
        StartupCost { major_faults, cpu, delay_ticks, reads }
    }
}

/// The folders in /proc of a process group's members, those that have ended and were not waited for among them.
fn process_group_folders(leader: u32) -> Vec<PathBuf> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.path());
    let is_member = |process: &PathBuf| {
        ProcessStat::read(&process.join("stat")).and_then(|stat| stat.numeric_field(5)) == Some(leader.into())
    };
    processes.filter(is_member).collect()
}

/// Hundredths of a second that the threads of a process waited for disks. None where one waited longer than it has lived: the
/// kernel missed when a wait began, and counted from an earlier one or from boot. That happens where counting is switched on
/// in the middle of a wait, and with Linux 6.18 now and then elsewhere (the count rises by a second within a quarter).
fn disk_delay(process: &Path, now: u64) -> Option<u64> {
    let threads = fs::read_dir(process.join("task")).into_iter().flatten().flatten();
    let stats = threads.filter_map(|thread| ProcessStat::read(&thread.path().join("stat")));
    let waited = |stat: ProcessStat| {
        let (wait, life) = (stat.numeric_field(42)?, now.saturating_sub(stat.numeric_field(22)?));
        (wait <= life).then_some(wait)
    };
    stats.map(waited).sum()
}

/// Hundredths of a second since boot.
fn uptime_ticks() -> Option<u64> {
    let text = fs::read_to_string("/proc/uptime").ok()?;
    text.split_whitespace().next()?.replace('.', "").parse().ok()
}

/// `/proc/PID/stat` (`man 5 proc`).
struct ProcessStat(Vec<String>);

impl ProcessStat {
    fn read(path: &Path) -> Option<Self> {
        let text = fs::read_to_string(path).ok()?;
        // The name may hold blanks and brackets: numbers follow the last one, the third first.
        Some(ProcessStat(text.rsplit_once(')')?.1.split_whitespace().map(String::from).collect()))
    }

    /// The number at a place, counted from 1 as the manual does.
    fn numeric_field(&self, place: usize) -> Option<u64> {
        self.0.get(place - 3)?.parse().ok()
    }
}

/// What a disk has read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiskTraffic {
    /// requests
    pub requests: u64,
    /// bytes
    pub bytes: u64,
    /// bytes that were written
    pub written: u64,
}

impl DiskTraffic {
    /// Since it was found: columns 1, 3 and 7 of its `stat` (`Documentation/block/stat.rst`).
    pub fn of_disk(disk: DeviceNumber) -> Option<Self> {
        let text = fs::read_to_string(PathBuf::from(format!("/sys/dev/block/{disk}/stat"))).ok()?;
        let mut numbers = text.split_whitespace().map(|text| text.parse::<u64>().ok());
        let (requests, bytes) = (numbers.next()??, numbers.nth(1)?? * SECTOR);
        Some(DiskTraffic { requests, bytes, written: numbers.nth(3)?? * SECTOR })
    }

    /// The difference.
    #[must_use]
    pub fn since(self, before: DiskTraffic) -> Self {
        DiskTraffic {
            requests: self.requests.saturating_sub(before.requests),
            bytes: self.bytes.saturating_sub(before.bytes),
            written: self.written.saturating_sub(before.written),
        }
    }
}

/// The disk, or partition, that a file lies on; none where that is no disk.
pub fn disk_of_file(path: &Path) -> Option<DeviceNumber> {
    let device = perflab_observe::io::files::device_of(&fs::metadata(path).ok()?);
    perflab_observe::io::mounts::is_disk_device(device).then_some(device)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process whose threads were started 1 s after boot and waited for so many hundredths of a second.
    fn process_with_waits(waits: &[u64]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (thread, wait) in waits.iter().enumerate() {
            let task = folder.path().join("task").join(thread.to_string());
            fs::create_dir_all(&task).unwrap();
            let mut words = vec!["0".to_string(); 50];
            (words[19], words[39]) = ("100".into(), wait.to_string());
            fs::write(task.join("stat"), format!("{thread} (a (b) c) {}", words.join(" "))).unwrap();
        }
        folder
    }

    #[test]
    fn waits_of_threads_are_added_up_unless_one_is_longer_than_there_was_time_for() {
        let sum = |waits: &[u64]| disk_delay(process_with_waits(waits).path(), 600);
        assert_eq!(sum(&[20, 500]), Some(520));
        assert_eq!(sum(&[20, 501]), None);
        assert_eq!(sum(&[]), Some(0));
    }
}
