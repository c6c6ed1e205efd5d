//! What a startup cost: faults, delay and disk traffic as the kernel counts them, CPU time by control group.
//!
//! A startup gets a control group of its own, which goes with it. The kernel counts its CPU time there, whichever
//! process it was and whether or not that has ended (`cpu.stat`, `Documentation/admin-guide/cgroup-v2.rst`), and
//! ends all of it. Where there is no cgroup2, or no right to make a group, CPU time is missing, not guessed.
//!
//! The group's `io.pressure` is not used: it averages over processors, and so shows only part of the waiting of a
//! thread that moves between them (65 to 96 % were seen).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, Once};
use std::time::{Duration, Instant};

use perflab_formats::kernel::process::ProcessStat;
use perflab_model::Nanos;
use perflab_model::io_trace::{DeviceNumber, SECTOR};
use perflab_observe::Root;
use perflab_observe::mounts::MountTable;
use perflab_observe::taskstats::is_delay_accounting_on;

/// What a startup cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StartupCost {
    /// pages that had to be waited for: of its process group, and of their children that have ended
    pub major_faults: Option<u64>,
    /// CPU time of its control group, of processes that have ended, too; none where it has none
    pub cpu: Option<Nanos>,
    /// hundredths of a second that the threads of its process group waited for disks, those that have ended not among
    /// them; none unless kernel.task_delayacct is 1, nor where the kernel counted more than there was time for
    pub delay_ticks: Option<u64>,
    /// what the disk of the program's file read until then, for any process
    pub reads: Option<DiskTraffic>,
}

impl StartupCost {
    /// Of a child that leads its process group, and was not waited for yet.
    pub(crate) fn of_child(child: &Child, reads: Option<DiskTraffic>, cpu: Option<Nanos>) -> Self {
        let group: Vec<PathBuf> = process_group_folders(child.id());
        let stats = group.iter().filter_map(|process| read_process_stat(process));
        let faults = stats.map(|stat| stat.faults.1 + stat.child_major_faults);
        let major_faults = faults.reduce(|sum, more| sum + more);
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
        read_process_stat(process).is_some_and(|stat| u32::try_from(stat.group) == Ok(leader))
    };
    processes.filter(is_member).collect()
}

/// Hundredths of a second that the threads of a process waited for disks. None where one waited longer than it has lived: the
/// kernel missed when a wait began, and counted from an earlier one or from boot. That happens where counting is switched on
/// in the middle of a wait, and with Linux 6.18 now and then elsewhere (the count rises by a second within a quarter).
fn disk_delay(process: &Path, now: u64) -> Option<u64> {
    let threads = fs::read_dir(process.join("task")).into_iter().flatten().flatten();
    let stats = threads.filter_map(|thread| read_process_stat(&thread.path()));
    let waited = |stat: ProcessStat| {
        let (wait, life) = (stat.disk_delay_ticks?, now.saturating_sub(stat.started));
        (wait <= life).then_some(wait)
    };
    stats.map(waited).sum()
}

/// Hundredths of a second since boot.
fn uptime_ticks() -> Option<u64> {
    let text = fs::read_to_string("/proc/uptime").ok()?;
    text.split_whitespace().next()?.replace('.', "").parse().ok()
}

/// The `stat` in a folder of a process or a thread.
fn read_process_stat(folder: &Path) -> Option<ProcessStat> {
    ProcessStat::parse(&fs::read_to_string(folder.join("stat")).ok()?)
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

/// The disk, or partition, that a file lies on; none where that is not a disk.
pub fn disk_of_file(path: &Path) -> Option<DeviceNumber> {
    let device = perflab_observe::io::file_description::device_of(&fs::metadata(path).ok()?);
    perflab_observe::mounts::is_disk_device(device).then_some(device)
}

/// How groups are called, before the number of the process that made them.
const NAME: &str = "perflab-start-";

/// How long what was killed may take to be gone.
const END: Duration = Duration::from_secs(2);

/// A process is in one group at a time, with all of its threads.
static MOVING: Mutex<()> = Mutex::new(());

/// A control group that this process made.
#[derive(Debug)]
pub(crate) struct StartupCgroup {
    /// where this process belongs
    parent: PathBuf,
    folder: PathBuf,
    /// whether this process is in it
    are_in: bool,
}

impl StartupCgroup {
    /// Starts something in a group of its own, in which it stays, and all that it starts. This process is in it for that time. None where
    /// there is none that would count anything, or where this process cannot leave it: it would count us, too.
    pub fn run_in_cgroup<T>(start: impl FnOnce() -> T) -> (T, Option<Self>) {
        let _alone = MOVING.lock();
        let mut group = Self::create();
        let entered = group.as_mut().is_some_and(Self::enter);
        let started = start();
        let left = group.as_mut().is_some_and(Self::leave);
        (started, group.filter(|_| entered && left))
    }

    /// An empty one below this process's own.
    fn create() -> Option<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let parent = own_cgroup_folder(&MountTable::read(), &fs::read_to_string("/proc/self/cgroup").ok()?)?;
        static SWEPT: Once = Once::new();
        SWEPT.call_once(|| remove_old_cgroups(&parent, &mut Vec::new()));
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = parent.join(format!("{NAME}{}-{count}", std::process::id()));
        fs::create_dir(&folder).ok()?;
        let group = StartupCgroup { parent, folder, are_in: false };
        group.cpu_time().is_some().then_some(group)
    }

    fn enter(&mut self) -> bool {
        self.are_in = move_to_cgroup(&self.folder);
        self.are_in
    }

    fn leave(&mut self) -> bool {
        self.are_in = self.are_in && !move_to_cgroup(&self.parent);
        !self.are_in
    }

    /// CPU time of all of it so far, the making of its first process included.
    pub fn cpu_time(&self) -> Option<Nanos> {
        parse_cpu_usage(&fs::read_to_string(self.folder.join("cpu.stat")).ok()?)
    }
}

impl Drop for StartupCgroup {
    /// Ends whatever is still in it.
    fn drop(&mut self) {
        if self.are_in {
            return;
        }
        // Before 5.14 there is no such file: what left its process group lives on, and so does the group.
        let _ = fs::write(self.folder.join("cgroup.kill"), "1");
        let since = Instant::now();
        while fs::remove_dir(&self.folder).is_err() && self.folder.exists() && since.elapsed() < END {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Moves this process to a group.
fn move_to_cgroup(folder: &Path) -> bool {
    fs::write(folder.join("cgroup.procs"), "0").is_ok()
}

/// `usage_usec 1234`, among others.
fn parse_cpu_usage(stat: &str) -> Option<Nanos> {
    let used = stat.lines().find_map(|line| line.strip_prefix("usage_usec "))?;
    Some(Nanos(used.trim().parse::<u64>().ok()?.saturating_mul(1000)))
}

/// The folder of this process's group: `own` is `/proc/self/cgroup`.
fn own_cgroup_folder(mounts: &MountTable, own: &str) -> Option<PathBuf> {
    let own = Path::new(own.lines().find_map(|line| line.strip_prefix("0::"))?);
    let mount = mounts.iter().find(|mount| mount.kind == "cgroup2")?;
    Some(mount.mount_point.join(own.strip_prefix(&mount.root).ok()?))
}

/// Removes the groups of starts whose perflab was killed, wherever it was; gives those that went. One in which something still
/// runs stays.
pub fn remove_abandoned_cgroups() -> Vec<PathBuf> {
    let mounts = MountTable::read();
    let mut gone = Vec::new();
    if let Some(mount) = mounts.iter().find(|mount| mount.kind == "cgroup2") {
        remove_old_cgroups(&mount.mount_point, &mut gone);
    }
    gone
}

/// Groups of processes that were killed before they could remove them.
fn remove_old_cgroups(parent: &Path, gone: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let (name, path) = (entry.file_name(), entry.path());
        let process = name.to_str().and_then(|name| name.strip_prefix(NAME)?.split('-').next());
        match process {
            Some(process) if !Path::new("/proc").join(process).exists() => {
                gone.extend(fs::remove_dir(&path).is_ok().then_some(path));
            }
            Some(_) => {}
            None => remove_old_cgroups(&path, gone),
        }
    }
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

    #[test]
    fn the_time_on_processors_is_read() {
        assert_eq!(
            parse_cpu_usage("usage_usec 1134000\nuser_usec 1000000\nsystem_usec 134000\n"),
            Some(Nanos(1_134_000_000))
        );
        assert_eq!(parse_cpu_usage("user_usec 1000000\n"), None);
        assert_eq!(parse_cpu_usage("usage_usec many\n"), None);
    }

    #[test]
    fn groups_of_processes_that_are_gone_go_wherever_they_are() {
        let tree = tempfile::tempdir().unwrap();
        let (dead, own) = (format!("{NAME}4194305-0"), format!("{NAME}{}-0", std::process::id()));
        let below = tree.path().join("user.slice/session-1.scope");
        for folder in [&dead, &own, "another"] {
            fs::create_dir_all(below.join(folder)).unwrap();
            fs::create_dir(tree.path().join(folder)).unwrap();
        }
        let mut gone = Vec::new();
        remove_old_cgroups(tree.path(), &mut gone);
        gone.sort();
        assert_eq!(gone, [tree.path().join(&dead), below.join(&dead)]);
        assert!(below.join(&own).exists() && below.join("another").exists() && !below.join(&dead).exists());
    }

    #[test]
    fn a_group_is_found_below_what_of_the_hierarchy_is_mounted() {
        let parent = |root: &str, own: &str| {
            let all = format!("30 24 0:27 {root} /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n");
            own_cgroup_folder(&MountTable::parse(&all), own)
        };
        assert_eq!(
            parent("/", "5:cpu:/x\n0::/user.slice/session-1.scope\n"),
            Some("/sys/fs/cgroup/user.slice/session-1.scope".into())
        );
        assert_eq!(parent("/pod", "0::/pod/shell\n"), Some("/sys/fs/cgroup/shell".into()));
        assert_eq!(parent("/pod", "0::/elsewhere\n"), None);
        assert_eq!(parent("/", "5:cpu:/x\n"), None);
    }
}
