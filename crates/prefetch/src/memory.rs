//! Memory that may be used: reading ahead must not push out what others need.

use perflab_observe::Root;

/// Half of the bytes that are available; none where the kernel does not say (before Linux 3.14).
pub fn half_of_free(root: &Root) -> Option<u64> {
    let text = root.read("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024 / 2)
}
