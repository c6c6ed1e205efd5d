//! How large an array must be to be out of the caches.

use std::fs;

use perflab_model::Bytes;

/// Where no cache is described.
const FALLBACK: usize = 128 << 20;
/// STREAM's rule: each array at least four times the last-level cache.
const TIMES: usize = 4;

/// Bytes of one array: four times the last-level cache, at least 32 MiB, at most a twelfth of the
/// memory that is available, as there are three.
pub(super) fn default_array_size() -> usize {
    let wanted = last_level_cache_size().map_or(FALLBACK, |cache| TIMES * cache).max(32 << 20);
    read_available_memory().map_or(wanted, |memory| wanted.min(memory / 12))
}

/// Bytes of the largest cache of the first CPU, from /sys/devices/system/cpu/cpu0/cache.
pub(super) fn last_level_cache_size() -> Option<usize> {
    let indices = fs::read_dir("/sys/devices/system/cpu/cpu0/cache").ok()?.flatten();
    let sizes = indices.filter_map(|index| fs::read_to_string(index.path().join("size")).ok());
    sizes.filter_map(|size| usize::try_from(Bytes::parse(&size).ok()?.0).ok()).max()
}

fn read_available_memory() -> Option<usize> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.split_whitespace().next()?.parse::<usize>().ok().map(|kib| kib << 10)
}
