//! Family `sysctl`: the knobs that move benchmarks. Keys are `sysctl.` and the name that sysctl(8) knows.

use super::notes::FactCollector;

/// Files under /proc/sys. Those that the kernel changes by itself (`perf_event_max_sample_rate`) are left out, as
/// they would look like a change of the environment.
const TUNABLES: &[&str] = &[
    "vm/swappiness",
    "vm/dirty_ratio",
    "vm/dirty_background_ratio",
    "vm/dirty_bytes",
    "vm/dirty_background_bytes",
    "vm/dirty_expire_centisecs",
    "vm/dirty_writeback_centisecs",
    "vm/overcommit_memory",
    "vm/overcommit_ratio",
    "vm/vfs_cache_pressure",
    "vm/min_free_kbytes",
    "vm/watermark_scale_factor",
    "vm/watermark_boost_factor",
    "vm/zone_reclaim_mode",
    "vm/compaction_proactiveness",
    "vm/page-cluster",
    "vm/max_map_count",
    "vm/nr_hugepages",
    "vm/nr_overcommit_hugepages",
    "vm/laptop_mode",
    "kernel/randomize_va_space",
    "kernel/numa_balancing",
    "kernel/nmi_watchdog",
    "kernel/watchdog",
    "kernel/timer_migration",
    "kernel/perf_event_paranoid",
    "kernel/kptr_restrict",
    "kernel/pid_max",
    "kernel/threads-max",
    "fs/file-max",
    "fs/aio-max-nr",
    "net/core/somaxconn",
    "net/core/rmem_max",
    "net/core/wmem_max",
    "net/core/default_qdisc",
    "net/core/busy_poll",
    "net/ipv4/tcp_congestion_control",
    "net/ipv4/tcp_rmem",
    "net/ipv4/tcp_wmem",
];

/// Where the scheduler's knobs moved in 5.13; readable by root, with debugfs mounted.
const SCHEDULER: &str = "/sys/kernel/debug/sched";
const SCHEDULER_TUNABLES: &[&str] = &[
    "base_slice_ns",
    "latency_ns",
    "min_granularity_ns",
    "wakeup_granularity_ns",
    "migration_cost_ns",
    "nr_migrate",
];

pub(super) fn collect_sysctl_facts(notes: &mut FactCollector<'_>) {
    for knob in TUNABLES {
        notes.add_file(&format!("sysctl.{}", knob.replace('/', ".")), &format!("/proc/sys/{knob}"));
    }
    // They come and go with the version, so whatever is there is taken.
    for name in notes.root.list("/proc/sys/kernel").iter().filter(|name| name.starts_with("sched_")) {
        notes.add_file(&format!("sysctl.kernel.{name}"), &format!("/proc/sys/kernel/{name}"));
    }
    for knob in SCHEDULER_TUNABLES {
        notes.add_file(&format!("sysctl.sched.{knob}"), &format!("{SCHEDULER}/{knob}"));
    }
    notes.add_choice("sysctl.sched.preempt", &format!("{SCHEDULER}/preempt"));
}
