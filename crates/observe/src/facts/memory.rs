//! Family `memory`: total and available memory, page size, swap, huge pages.

use super::notes::{FactCollector, find_field};
use crate::Root;

const MEMINFO: &str = "/proc/meminfo";

pub(super) fn collect_memory_facts(notes: &mut FactCollector<'_>) {
    let text = notes.read(MEMINFO).unwrap_or_default();
    let keys = [
        ("memory.total", "MemTotal"),
        ("memory.available", "MemAvailable"),
        ("memory.swap", "SwapTotal"),
        ("memory.huge_page_size", "Hugepagesize"),
        ("memory.huge_pages", "HugePages_Total"),
    ];
    for (key, name) in keys {
        notes.add_optional(key, find_field(&text, ':', name).and_then(parse_kernel_bytes), MEMINFO);
    }
    // Files of /proc do not tell it, and a recorded tree may be of another machine.
    if notes.root.is_host() {
        let page_size = i64::try_from(rustix::param::page_size()).ok();
        notes.add_optional("memory.page_size", page_size, "getauxval(AT_PAGESZ)");
    }
    notes.add_file("memory.zswap", "/sys/module/zswap/parameters/enabled");
    notes.add_file("memory.ksm", "/sys/kernel/mm/ksm/run");
}

/// Bytes that can be had without swapping; none where the kernel does not say (before Linux 3.14).
pub fn read_available_memory(root: &Root) -> Option<u64> {
    let text = root.read(MEMINFO).ok()?;
    u64::try_from(find_field(&text, ':', "MemAvailable").and_then(parse_kernel_bytes)?).ok()
}

/// `24682416 kB` in bytes, and a bare count as it is.
fn parse_kernel_bytes(value: &str) -> Option<i64> {
    match value.strip_suffix("kB") {
        Some(kib) => kib.trim_end().parse::<i64>().ok()?.checked_mul(1024),
        None => value.parse().ok(),
    }
}
