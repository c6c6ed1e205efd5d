//! What numbers a sysctl takes: the kernel refuses any other with EINVAL when it is written, an hour into a run at worst.
//!
//! The bounds are those of `proc_dointvec_minmax` and its like in the kernel's tables (kernel/sysctl.c, mm/, kernel/, net/, fs/) of Linux
//! 6.18, where each was tried, and the widest of earlier versions: what some kernel takes is not refused here. A sysctl without a row may
//! be bounded, too; so are those of presets, which say so themselves.

use std::path::Path;

use perflab_model::normalize_path;

use crate::preset_list::PresetList;

const SYSCTL_RANGES: &[(&str, [i64; 2])] = &[
    ("fs/protected_fifos", [0, 2]),
    ("fs/protected_hardlinks", [0, 1]),
    ("fs/protected_regular", [0, 2]),
    ("fs/protected_symlinks", [0, 1]),
    ("fs/suid_dumpable", [0, 2]),
    ("kernel/bpf_stats_enabled", [0, 1]),
    ("kernel/dmesg_restrict", [0, 1]),
    ("kernel/io_uring_disabled", [0, 2]),
    ("kernel/kptr_restrict", [0, 2]),
    ("kernel/numa_balancing", [0, 4]),
    ("kernel/panic_on_warn", [0, 1]),
    ("kernel/perf_cpu_time_max_percent", [0, 100]),
    ("kernel/sched_autogroup_enabled", [0, 1]),
    ("kernel/soft_watchdog", [0, 1]),
    ("kernel/softlockup_panic", [0, 1]),
    ("kernel/task_delayacct", [0, 1]),
    ("kernel/timer_migration", [0, 1]),
    ("kernel/unprivileged_bpf_disabled", [0, 2]),
    ("kernel/watchdog", [0, 1]),
    ("kernel/watchdog_thresh", [0, 60]),
    ("net/core/bpf_jit_enable", [0, 2]),
    ("net/core/bpf_jit_harden", [0, 2]),
    ("net/ipv4/ip_default_ttl", [1, 255]),
    ("net/ipv4/tcp_ecn", [0, 5]),
    ("net/ipv4/tcp_tw_reuse", [0, 2]),
    ("vm/compact_unevictable_allowed", [0, 1]),
    ("vm/dirty_background_ratio", [0, 100]),
    ("vm/dirty_ratio", [0, 100]),
    ("vm/extfrag_threshold", [0, 1000]),
    ("vm/min_slab_ratio", [0, 100]),
    ("vm/min_unmapped_ratio", [0, 100]),
    ("vm/numa_stat", [0, 1]),
    ("vm/overcommit_memory", [0, 2]),
    ("vm/panic_on_oom", [0, 2]),
    ("vm/unprivileged_userfaultfd", [0, 1]),
];

/// The least and the greatest number that the file takes, where that is known.
pub(crate) fn find_sysctl_range(path: &str) -> Option<[i64; 2]> {
    let path = normalize_path(Path::new(path));
    let name = path.strip_prefix("/proc/sys").ok()?.to_str()?;
    if let Some((_, range)) = SYSCTL_RANGES.iter().find(|(known, _)| *known == name) {
        return Some(*range);
    }
    let files = PresetList::shipped().iter().flat_map(|(_, preset)| &preset.file);
    let mut own = files.filter(|file| file.paths.iter().any(|known| Path::new(known) == path));
    own.find_map(|file| file.range)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_that_of_the_table_or_of_a_preset_and_of_other_files_there_is_none() {
        for (path, range) in [
            ("/proc/sys/vm/dirty_ratio", Some([0, 100])),
            ("/proc/sys/net/../vm/swappiness", Some([0, 200])),
            ("/proc/sys/vm/max_map_count", None),
            ("/sys/vm/dirty_ratio", None),
        ] {
            assert_eq!(find_sysctl_range(path), range, "{path}");
        }
    }

    /// The kernel that this is tested on refuses what the table says that it refuses.
    #[test]
    fn the_kernel_refuses_what_is_beyond() {
        if !rustix::process::geteuid().is_root() {
            return eprintln!("skipped: writing sysctls needs root");
        }
        for (name, [least, greatest]) in SYSCTL_RANGES {
            let path = Path::new("/proc/sys").join(name);
            let before = std::fs::read_to_string(&path).unwrap_or_default();
            for value in [least - 1, greatest + 1] {
                // One that this kernel lacks, or that a container may not write, tells nothing.
                let Err(error) = std::fs::write(&path, value.to_string()) else {
                    std::fs::write(&path, before).unwrap();
                    panic!("{name} takes {value}");
                };
                let kinds = [
                    std::io::ErrorKind::InvalidInput,
                    std::io::ErrorKind::NotFound,
                    std::io::ErrorKind::PermissionDenied,
                    std::io::ErrorKind::ReadOnlyFilesystem,
                ];
                assert!(kinds.contains(&error.kind()), "{name} {value}: {error}");
            }
        }
    }
}
