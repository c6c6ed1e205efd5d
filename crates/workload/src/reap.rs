//! The end of an execution's process, with what it used.

use std::fs;
use std::io;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicU64, Ordering};

use perflab_formats::kernel::process::find_peak_rss;
use perflab_model::quantity::{Bytes, Nanos};
use perflab_model::resource_use::ResourceUse;
use rustix::process::Pid;

use crate::system_calls::wait_with_usage;

/// Block I/O of `struct rusage` is counted in these, whatever the device's are.
const BLOCK: u64 = 512;

/// Reaps a child of this process that has ended or ends soon.
///
/// # Errors
/// It is no child, or was reaped before.
pub(crate) fn reap_with_resources(pid: Pid) -> io::Result<(ExitStatus, ResourceUse)> {
    let (status, usage) = wait_with_usage(pid)?;
    Ok((status, resources_of(&usage, own_peak_rss(u64::try_from(usage.ru_maxrss).unwrap_or_default() << 10))))
}

/// Resident bytes that this process had at most, or fewer that are as many as the child's: a child that was forked from it counts
/// them as its own, and they never become fewer.
fn own_peak_rss(child: u64) -> Option<u64> {
    static KNOWN: AtomicU64 = AtomicU64::new(0);
    let known = KNOWN.load(Ordering::Relaxed);
    if child <= known {
        return Some(known);
    }
    let now = find_peak_rss(&fs::read_to_string("/proc/self/status").ok()?)?;
    KNOWN.fetch_max(now, Ordering::Relaxed);
    Some(now)
}

fn resources_of(usage: &libc::rusage, own_peak: Option<u64>) -> ResourceUse {
    // None of these is ever negative.
    let count = |number: libc::c_long| u64::try_from(number).unwrap_or_default();
    let time = |time: libc::timeval| Nanos(count(time.tv_sec) * 1_000_000_000 + count(time.tv_usec) * 1_000);
    ResourceUse {
        user: time(usage.ru_utime),
        system: time(usage.ru_stime),
        max_rss: Some(Bytes(count(usage.ru_maxrss) << 10))
            .filter(|rss| own_peak.is_some_and(|own| rss.0 > own)),
        minor_faults: count(usage.ru_minflt),
        major_faults: count(usage.ru_majflt),
        voluntary_switches: count(usage.ru_nvcsw),
        involuntary_switches: count(usage.ru_nivcsw),
        bytes_read: Bytes(count(usage.ru_inblock) * BLOCK),
        bytes_written: Bytes(count(usage.ru_oublock) * BLOCK),
    }
}

#[cfg(test)]
#[expect(clippy::zombie_processes, reason = "what is tested reaps them")]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::Command;

    use super::*;

    #[test]
    fn a_child_that_writes_and_computes_has_used_what_it_did() {
        let folder = tempfile::tempdir().unwrap();
        // 64 MiB in one block: it holds them in memory, and dirties as many.
        let mut command = Command::new("dd");
        command
            .args(["if=/dev/zero", "of=file", "bs=64M", "count=1", "status=none"])
            .current_dir(folder.path());
        let child = command.spawn().unwrap();
        let (status, used) = reap_with_resources(Pid::from_child(&child)).unwrap();
        assert!(status.success());
        // Unknown where this process, with its other tests, holds more.
        assert!(used.max_rss.is_none_or(|rss| rss >= Bytes(64 << 20)), "{used:?}");
        assert!(used.minor_faults > 0 && used.user.0 + used.system.0 > 0, "{used:?}");
        assert!(reap_with_resources(Pid::from_child(&child)).is_err(), "it is reaped once");
    }

    #[test]
    fn a_peak_counts_where_it_is_above_that_of_who_started_the_program() {
        let mut usage = crate::system_calls::zeroed_usage();
        usage.ru_maxrss = 3 << 10;
        let peak = |own: Option<u64>| resources_of(&usage, own).max_rss;
        assert_eq!(
            (peak(Some(2 << 20)), peak(Some(3 << 20)), peak(None)),
            (Some(Bytes(3 << 20)), None, None)
        );
    }

    #[test]
    fn the_memory_of_who_starts_a_program_is_not_the_programs() {
        let held = vec![1_u8; 256 << 20];
        let child = Command::new("true").spawn().unwrap();
        let (_, used) = reap_with_resources(Pid::from_child(&child)).unwrap();
        assert_eq!((used.max_rss, held.len()), (None, 256 << 20));
    }

    #[test]
    fn how_it_ended_is_told_apart() {
        let end = |script: &str| {
            let child = Command::new("sh").args(["-c", script]).spawn().unwrap();
            reap_with_resources(Pid::from_child(&child)).unwrap().0
        };
        assert_eq!(end("exit 7").code(), Some(7));
        assert_eq!(end("kill -9 $$").signal(), Some(9));
    }
}
