//! Where the kernel's tracing is, and an instance of it that goes with us.
//!
//! Where nobody has mounted tracefs, it is mounted for this process alone (a detached mount), so that nothing of
//! the system changes.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use super::IoTraceError;
use crate::process_owner::ProcessOwner;

/// Where distributions mount it.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// How the names of our instances begin.
const NAME: &str = "perflab-io";

/// The kernel's tracing.
#[derive(Debug, Clone)]
pub struct TraceFs {
    root: PathBuf,
    /// Keeps a mount that only this process has.
    _mount: Option<Arc<OwnedFd>>,
}

impl TraceFs {
    /// Finds it, or mounts it for this process alone.
    ///
    /// # Errors
    /// [`IoTraceError::Tracing`], with what to do.
    pub fn find() -> Result<Self, IoTraceError> {
        let found = PLACES.iter().map(Path::new).find(|place| place.join("instances").is_dir());
        match found {
            Some(place) => Ok(TraceFs { root: place.into(), _mount: None }),
            None => Self::mount().map_err(|source| IoTraceError::from_tracefs(Path::new(PLACES[0]), source)),
        }
    }

    fn mount() -> io::Result<Self> {
        use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
        let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_create(context.as_fd())?;
        let mount = fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?;
        let root = PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd()));
        Ok(TraceFs { root, _mount: Some(Arc::new(mount)) })
    }

    /// The path of a file of it.
    pub fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    /// Makes an instance for this process, and removes those of processes that are gone.
    ///
    /// # Errors
    /// [`IoTraceError::Tracing`], with what to do.
    pub fn create_instance(&self, role: &str) -> Result<TraceInstance, IoTraceError> {
        let all = self.path("instances");
        remove_abandoned_instances(&all);
        let own = ProcessOwner::current().join_fields('-');
        let serial = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let path = all.join(format!("{NAME}-{own}-{role}-{serial}"));
        fs::create_dir(&path).map_err(|source| IoTraceError::from_tracefs(&path, source))?;
        Ok(TraceInstance { path, _tracefs: self.clone() })
    }
}

static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);

/// Removes the instances of processes that are gone: tracefs is one for all PID namespaces.
fn remove_abandoned_instances(all: &Path) {
    for entry in fs::read_dir(all).into_iter().flatten().flatten() {
        if is_abandoned_instance(&entry.file_name().to_string_lossy()) {
            remove_instance(&entry.path());
        }
    }
}

fn is_abandoned_instance(name: &str) -> bool {
    parse_instance_owner(name).is_some_and(|owner| owner.is_gone())
}

fn parse_instance_owner(name: &str) -> Option<ProcessOwner> {
    ProcessOwner::parse(name.strip_prefix(NAME)?.strip_prefix('-')?.split('-'))
}

fn remove_instance(path: &Path) {
    let _ = fs::write(path.join("tracing_on"), "0");
    let _ = fs::remove_dir(path);
}

/// An instance: its own buffers, its own events. Removed when dropped.
#[derive(Debug)]
pub struct TraceInstance {
    path: PathBuf,
    _tracefs: TraceFs,
}

impl TraceInstance {
    /// The path of a file of it.
    pub fn path(&self, relative: &str) -> PathBuf {
        self.path.join(relative)
    }

    /// Writes a setting.
    ///
    /// # Errors
    /// [`IoTraceError::Tracing`].
    pub fn set(&self, relative: &str, value: &str) -> Result<(), IoTraceError> {
        let path = self.path(relative);
        fs::write(&path, value).map_err(|source| IoTraceError::from_tracefs(&path, source))
    }

    /// Reads a file of it.
    ///
    /// # Errors
    /// [`IoTraceError::Tracing`].
    pub fn read(&self, relative: &str) -> Result<String, IoTraceError> {
        let path = self.path(relative);
        fs::read_to_string(&path).map_err(|source| IoTraceError::from_tracefs(&path, source))
    }

    /// Events that its buffers had no room for, on all CPUs.
    pub fn lost_events(&self) -> u64 {
        let cpus = fs::read_dir(self.path("per_cpu")).into_iter().flatten().flatten();
        cpus.filter_map(|cpu| fs::read_to_string(cpu.path().join("stats")).ok())
            .map(|text| parse_lost_events(&text))
            .sum()
    }
}

fn parse_lost_events(stats: &str) -> u64 {
    let counts = ["overrun", "commit overrun", "dropped events"];
    let line = |line: &str| {
        let (key, value) = line.split_once(':')?;
        counts.contains(&key.trim()).then(|| value.trim().parse().ok())?
    };
    stats.lines().filter_map(line).fold(0, |sum: u64, count: u64| sum.saturating_add(count))
}

impl Drop for TraceInstance {
    fn drop(&mut self) {
        remove_instance(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_names_its_process() {
        let own = ProcessOwner::current();
        assert_eq!(parse_instance_owner(&format!("perflab-io-{}-pages-0", own.join_fields('-'))), Some(own));
        assert_eq!(parse_instance_owner("somebody-else-1-2-3"), None);
        assert_eq!(parse_instance_owner("perflab-io-x-2-3"), None);
    }

    #[test]
    fn only_instances_of_processes_that_are_gone_are_left_behind() {
        let own = ProcessOwner::current().join_fields('-');
        let (pid, rest) = own.split_once('-').unwrap();
        assert!(is_abandoned_instance(&format!("perflab-io-9{pid}-{rest}-pages-0")));
        // Ours, that of a process that /proc does not show, an older perflab's.
        for name in
            [&format!("perflab-io-{own}-pages-0"), "perflab-io-1-1-0-pages-0", "perflab-io-1-1-pages-0"]
        {
            assert!(!is_abandoned_instance(name), "{name}");
        }
    }

    #[test]
    fn what_was_lost_is_the_sum_of_three_counts() {
        let stats =
            "entries: 7\noverrun: 3\ncommit overrun: 2\nbytes: 99\ndropped events: 1\nread events: 4\n";
        assert_eq!(parse_lost_events(stats), 6);
    }
}
