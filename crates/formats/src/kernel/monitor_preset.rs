//! Monitors that are asked for together, by the name of what one wants to know: `[monitors] preset = "memory"`.
//!
//! The order within a preset is that of use: what stands last is slowed or left out first where a budget is short.

use perflab_model::study::{CountersSpec, EVENTS_MONITOR};

use crate::kernel::registry::KERNEL_FILES;

/// A named choice of monitors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MonitorPreset {
    /// What studies call it.
    pub name: &'static str,
    /// What one sees by it.
    pub about: &'static str,
    /// Its monitors, those first that explain most; those that this version has not yet are left out.
    monitors: &'static [&'static str],
}

/// All monitors that are cheap enough to be read a few times a second.
const ALL: &str = "all";

/// Costly ones, that are read only where somebody names them.
const COSTLY: &[&str] =
    &["slabinfo", "slab-caches", "slab-exact", "page-types", "tasks", "task-numa", "smaps", "blocked", "gpu"];

/// The presets, in the order in which they are shown.
pub static MONITOR_PRESETS: &[MonitorPreset] = &[
    MonitorPreset {
        name: "default",
        about: "what explains most changes: CPU time, memory, disks, waiting",
        monitors: &["vmstat", "stat", "meminfo", "diskstats", "pressure", "loadavg", "net-dev"],
    },
    MonitorPreset { name: ALL, about: "every monitor but those that are costly", monitors: &[] },
    MonitorPreset {
        name: "memory",
        about: "allocation, reclaim, compaction, swap, nodes and zones",
        monitors: &[
            "vmstat",
            "meminfo",
            "pressure",
            "zones",
            "buddy",
            "node",
            "node-vmstat",
            "swaps",
            "zswap",
            "zram",
            "ksm",
            "khugepaged",
            "thp-sizes",
            "huge-pages",
            "damon",
            "stat",
        ],
    },
    MonitorPreset {
        name: "scheduler",
        about: "CPU time, waiting for a CPU, switches, interrupts",
        monitors: &[
            "delays",
            "stat",
            "schedstat",
            "pressure",
            "loadavg",
            "interrupts",
            "softirqs",
            "cpu-state",
            "energy",
            "sched-domains",
            "vmstat",
        ],
    },
    MonitorPreset {
        name: "io",
        about: "disks, writeback, file systems, waiting for them",
        monitors: &[
            "diskstats",
            "vmstat",
            "pressure",
            "writeback",
            "meminfo",
            "ext4",
            "xfs",
            "btrfs",
            "filesystems",
            "stat",
        ],
    },
    MonitorPreset {
        name: "network",
        about: "interfaces, protocols, soft interrupts",
        monitors: &["net-dev", "net-statistics", "softnet", "softirqs", "interrupts", "stat"],
    },
];

impl MonitorPreset {
    /// Its monitors, those first that explain most.
    pub fn monitors(&self) -> Vec<&'static str> {
        let is_there = |name: &&str| KERNEL_FILES.iter().any(|file| file.name == *name);
        let named = self.monitors.iter().copied().filter(is_there);
        if self.name != ALL {
            return named.collect();
        }
        // The default's first, as they explain most.
        let first = find_monitor_preset("default").map(MonitorPreset::monitors).unwrap_or_default();
        let all = KERNEL_FILES.iter().map(|file| file.name);
        // Counters come with a study's `[counters]`, events with its `[events]`.
        let is_unasked = |name: &&str| {
            !COSTLY.contains(name) && !CountersSpec::is_monitor(name) && *name != EVENTS_MONITOR
        };
        let rest = all.filter(|name| !first.contains(name) && is_unasked(name));
        first.iter().copied().chain(rest).collect()
    }
}

/// The preset of that name.
pub fn find_monitor_preset(name: &str) -> Option<&'static MonitorPreset> {
    MONITOR_PRESETS.iter().find(|preset| preset.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_preset_has_monitors_once_and_none_is_called_like_one() {
        for preset in MONITOR_PRESETS {
            let monitors = preset.monitors();
            assert!(!monitors.is_empty(), "{}", preset.name);
            let is_again = |(index, name): (usize, &&str)| monitors[..index].contains(name);
            assert!(!monitors.iter().enumerate().any(is_again), "{}: {monitors:?}", preset.name);
            assert!(KERNEL_FILES.iter().all(|file| file.name != preset.name));
        }
        let all = find_monitor_preset(ALL).unwrap().monitors();
        assert!(MONITOR_PRESETS.iter().flat_map(MonitorPreset::monitors).all(|name| all.contains(&name)));
    }
}
