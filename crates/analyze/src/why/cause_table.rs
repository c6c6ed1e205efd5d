//! What is known of each kind of quantity: what it is called, where its time shows, what one of it can take, and what would test it.
//!
//! One table. A quantity that it does not have is a suspect under its own name, and stands behind those that it has.

use schemars::JsonSchema;
use serde::Serialize;

use crate::compare::case_condition::matches_pattern;

/// A part of the time of an iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TimePart {
    /// CPU time of the workload in user mode
    User,
    /// CPU time of the workload in the kernel
    System,
    /// time of the iteration in which the workload was on no CPU: it waited, or could not run
    OffCpu,
    /// of that, time in which it could run and did not
    CpuWait,
    /// of that, time in which it waited for disks
    DiskWait,
    /// of that, time in which it waited for pages to come back from swap
    SwapWait,
    /// of that, time in which it waited for memory to be freed, compacted, or read again
    MemoryWait,
    /// the rest of the time on no CPU: it slept, or waited for something else
    Blocked,
}

impl TimePart {
    /// Series of `delays` that a part of the time off the CPUs is the sum of.
    pub(crate) const WAITS: &[(TimePart, &[&str])] = &[
        (TimePart::CpuWait, &["delays run_delay_ns"]),
        (TimePart::DiskWait, &["delays disk_delay_ns"]),
        (TimePart::SwapWait, &["delays swap_delay_ns"]),
        (
            TimePart::MemoryWait,
            &["delays reclaim_delay_ns", "delays thrashing_delay_ns", "delays compaction_delay_ns"],
        ),
    ];

    /// Whether the workload runs in it.
    #[must_use]
    pub fn is_on_cpu(self) -> bool {
        matches!(self, TimePart::User | TimePart::System)
    }

    /// As people call it.
    #[must_use]
    pub fn phrase(self) -> &'static str {
        match self {
            TimePart::User => "user",
            TimePart::System => "system",
            TimePart::OffCpu => "off the CPUs",
            TimePart::CpuWait => "waiting for a CPU",
            TimePart::DiskWait => "waiting for a disk",
            TimePart::SwapWait => "waiting for swap",
            TimePart::MemoryWait => "waiting for memory",
            TimePart::Blocked => "blocked otherwise",
        }
    }
}

/// A cause that a quantity may be the measure of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CauseSpec {
    /// What people call it.
    pub name: &'static str,
    /// `MONITOR COLUMN`, or the name of what iterations used; `*` stands for any text. The best measure first.
    pub series: &'static [&'static str],
    /// Where its time shows; anywhere where empty.
    pub parts: &'static [TimePart],
    /// The most that one of it takes, in nanoseconds, where it cannot wait: what more of the change there is, it cannot carry.
    pub most_ns: Option<f64>,
    /// Whether one of it costs about what another does, so that more of it cost what those of the baseline did.
    pub alike: bool,
    /// Whether the other measures count only where the best one that was recorded differs, too: what the whole machine has more of
    /// may be what the workload left to others.
    pub by_best: bool,
    /// Whether less of it may make an iteration longer, too.
    pub either_way: bool,
    /// Whether other causes bring it: how much of the change it could hold says nothing then.
    pub is_symptom: bool,
    /// A command that varies it, or records more of it; `{study}` is the study that was run.
    pub test: &'static str,
}

use TimePart::{Blocked, CpuWait, OffCpu, System, User};

const fn cause(
    name: &'static str,
    series: &'static [&'static str],
    parts: &'static [TimePart],
    test: &'static str,
) -> CauseSpec {
    CauseSpec {
        name,
        series,
        parts,
        most_ns: None,
        alike: false,
        by_best: false,
        either_way: false,
        is_symptom: false,
        test,
    }
}

/// The causes that are known, the most particular first: of two that go together and can carry as much, the one that stands first is
/// named first.
///
/// `{study}` is the study that was run. Each test is one command that can be pasted; what it varies, or adds, tells whether the
/// change goes with it. `most_ns` are ten times what we measured, or read in the source named, so that a slow machine is not
/// ruled out: a minor fault takes 0.5 to 1 us (Linux 6.18, `perflab run memory`), a system call 0.1 to 0.3 us without its work,
/// an interrupt 1 to 2 us; files are written at 100 MB/s and more, where nothing waits for the disk.
pub const CAUSES: &[CauseSpec] = &[
    CauseSpec {
        either_way: true,
        ..cause(
            "processes killed for want of memory",
            &["vmstat oom_kill", "cgroup memory_events_oom_kill*", "cgroup memory_oom_kill*"],
            &[],
            "perflab run {study} --event direct-reclaim",
        )
    },
    cause(
        "throttling by a CPU quota",
        &["cgroup cpu_throttled_usec*", "cgroup cpu_throttled_time*", "cgroup cpu_nr_throttled*"],
        &[OffCpu],
        "systemd-run --scope -p CPUQuota= perflab run {study}",
    ),
    cause(
        "memory reclaim by the workload itself",
        &[
            "delays reclaim_delay_ns",
            "events direct-reclaim.sum*",
            "events direct-reclaim.count*",
            "vmstat allocstall_*",
            "vmstat pgscan_direct",
            "vmstat pgsteal_direct",
            "cgroup memory_events_high*",
            "cgroup memory_events_max*",
            "cgroup memory_pgscan*",
        ],
        &[],
        "perflab run {study} --vary sysctl:vm.swappiness=60,0 --event direct-reclaim",
    ),
    cause(
        "swapping",
        &["delays swap_delay_ns", "vmstat pswpin", "vmstat pswpout", "cgroup memory_pswpin*"],
        &[],
        "perflab run {study} --vary sysctl:vm.swappiness=60,0",
    ),
    cause(
        "compaction of memory",
        &[
            "delays compaction_delay_ns",
            "events compaction.sum*",
            "vmstat compact_stall",
            "vmstat compact_migrate_scanned",
        ],
        &[System, OffCpu],
        "perflab run {study} --vary setting:thp-defrag=madvise,never",
    ),
    cause(
        "flushes of a disk (fsync)",
        &["diskstats flush_ios*", "diskstats flush_ns*", "vmstat nr_foll_pin_flush"],
        &[OffCpu, System],
        "perflab run {study} --event block-latency --event system-call-latency",
    ),
    cause(
        "reads from a disk",
        &[
            "bytes-read",
            "major-faults",
            "vmstat pgpgin",
            "vmstat pgmajfault",
            "delays disk_delay_ns",
            "delays thrashing_delay_ns",
            "diskstats read_ns*",
            "diskstats read_bytes*",
            "diskstats read_ios*",
            "cgroup io_rbytes*",
            "vmstat workingset_refault_file",
        ],
        &[],
        "perflab run {study} --vary drop-caches=0,1 --event block-latency",
    ),
    cause(
        "holding up of writers by dirty memory",
        &["events writeback-stalls.*", "vmstat balance_dirty_pages*"],
        &[OffCpu],
        "perflab run {study} --vary sysctl:vm.dirty_ratio=20,40 --event writeback-stalls",
    ),
    cause(
        "writes to a disk",
        &[
            "diskstats write_ns*",
            "diskstats write_bytes*",
            "diskstats write_ios*",
            "vmstat pgpgout",
            "cgroup io_wbytes*",
        ],
        &[],
        "perflab run {study} --event block-latency --event writeback-stalls",
    ),
    CauseSpec {
        most_ns: Some(100.0),
        ..cause(
            "bytes written to files",
            &["bytes-written"],
            &[System, OffCpu],
            "perflab run {study} --event system-call-latency --event page-cache",
        )
    },
    CauseSpec {
        most_ns: Some(400_000.0),
        ..cause(
            "pages of files that became dirty",
            &["vmstat nr_dirtied", "vmstat nr_written"],
            &[System, OffCpu],
            "perflab run {study} --event system-call-latency --event page-cache",
        )
    },
    cause(
        "waiting for locks of the kernel",
        &["events lock-contention.sum*", "events lock-contention.count*"],
        &[OffCpu, System],
        "perflab run {study} --event lock-contention",
    ),
    CauseSpec {
        most_ns: Some(20_000.0),
        alike: true,
        ..cause(
            "interrupts",
            &["delays irq_delay_ns", "interrupts count*", "stat intr*", "softirqs count*"],
            &[],
            "perflab run {study} --counters irq:irq_handler_entry,irq_vectors:local_timer_entry",
        )
    },
    CauseSpec {
        by_best: true,
        ..cause(
            "competition for CPUs",
            &[
                "delays run_delay_ns",
                "events run-queue-delay.sum*",
                "schedstat run_delay_ns*",
                "involuntary-switches",
                "pressure total_ns resource=cpu kind=some",
                "others-cpu-time",
                "cgroup cpu_pressure_some*",
                "stat steal*",
            ],
            &[CpuWait],
            "perflab run {study} --event run-queue-delay",
        )
    },
    CauseSpec {
        either_way: true,
        ..cause(
            "huge pages",
            &["vmstat thp_fault_alloc", "vmstat thp_fault_fallback", "vmstat thp_split_pmd"],
            &[User, System],
            "perflab run {study} --vary setting:thp=always,never",
        )
    },
    CauseSpec {
        most_ns: Some(10_000.0),
        alike: true,
        by_best: true,
        ..cause(
            "page faults",
            &["minor-faults", "counters page-faults*", "vmstat pgfault", "counters minor-faults*"],
            &[System],
            "perflab run {study} --vary setting:thp=always,never --counters page-faults",
        )
    },
    CauseSpec {
        either_way: true,
        ..cause(
            "tasks that were started",
            &["delays threads", "stat processes*"],
            &[],
            "perflab run {study} --counters sched:sched_process_fork,sched:sched_process_exec",
        )
    },
    CauseSpec {
        by_best: true,
        is_symptom: true,
        ..cause(
            "waits of the workload (switches of its own accord)",
            &["voluntary-switches", "events off-cpu.*"],
            &[Blocked, System],
            "perflab run {study} --event off-cpu --event system-call-latency",
        )
    },
    CauseSpec {
        alike: true,
        ..cause(
            "system calls",
            &["counters raw_syscalls:sys_enter*", "counters syscalls:*", "events system-call-latency.count*"],
            &[System, OffCpu],
            "perflab run {study} --event system-call-latency",
        )
    },
    CauseSpec {
        most_ns: Some(50_000.0),
        alike: true,
        ..cause(
            "moves from one CPU to another",
            &["counters cpu-migrations*", "events migrations.count*"],
            &[],
            "perflab run {study} --vary placement=any,one-cpu",
        )
    },
    cause(
        "size of the working set",
        &["max-rss", "cgroup memory_peak*"],
        &[User, System],
        "perflab run {study} --counters instructions,cycles,cache-misses,dTLB-load-misses",
    ),
];

/// Series that follow from a change of time, or say what is there: never a cause, unless [`CAUSES`] has them.
pub const CONSEQUENCES: &[&str] = &[
    "stat idle*",
    "stat iowait*",
    "stat user*",
    "stat nice*",
    "stat system*",
    "stat guest*",
    "stat procs_*",
    "stat ctxt*",
    "counters context-switches*",
    "vmstat nr_*",
    "vmstat workingset_nodes*",
    "loadavg *",
    "pressure avg*",
    "pressure total_ns resource=cpu kind=full*",
    "schedstat sched_goidle*",
    "schedstat run_ns*",
    "schedstat sched_count*",
    "schedstat yld_count*",
    "schedstat timeslices*",
    "sched-domains *",
    "cpu-state *",
    "thermal *",
    "sensors *",
    "filesystems *",
    "meminfo *",
    "buddy *",
    "locks *",
    "swaps *",
    "tasks last_cpu*",
    "tasks processes*",
    "tasks threads*",
    "tasks ended*",
    "cgroup *group=/",
    "*.enabled*",
    "*.running*",
    "*.lost*",
    "*.unmatched*",
    "counters counted*",
    "counters task-clock*",
    "counters cpu-clock*",
];

/// The name without the target that a monitor was of: `vmstat.guest1 pgfault` -> `vmstat pgfault`.
fn without_target(name: &str) -> String {
    match name.split_once(' ') {
        Some((monitor, rest)) => format!("{} {rest}", monitor.split('.').next().unwrap_or(monitor)),
        None => name.to_owned(),
    }
}

/// The cause that a quantity measures: its place in [`CAUSES`], and how good a measure it is (0 is the best).
pub(crate) fn cause_of(name: &str) -> Option<(usize, usize)> {
    let name = without_target(name);
    CAUSES.iter().enumerate().find_map(|(at, cause)| {
        Some((at, cause.series.iter().position(|pattern| matches_pattern(pattern, &name))?))
    })
}

/// Whether a quantity can only follow from a change.
pub(crate) fn is_consequence(name: &str) -> bool {
    let without_target = without_target(name);
    cause_of(name).is_none() && CONSEQUENCES.iter().any(|pattern| matches_pattern(pattern, &without_target))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_cause_has_a_name_a_measure_and_a_command() {
        let names: BTreeSet<&str> = CAUSES.iter().map(|cause| cause.name).collect();
        assert_eq!(names.len(), CAUSES.len());
        for cause in CAUSES {
            assert!(!cause.series.is_empty() && cause.test.contains("perflab run {study}"), "{}", cause.name);
        }
    }

    #[test]
    fn a_quantity_is_found_whatever_its_target_and_row() {
        let name = |series: &str| cause_of(series).map(|(at, _)| CAUSES[at].name);
        assert_eq!(name("vmstat.guest1 pgmajfault"), Some("reads from a disk"));
        assert_eq!(name("interrupts count interrupt=LOC name= cpu=1"), Some("interrupts"));
        assert_eq!(name("minor-faults"), Some("page faults"));
        assert_eq!(name("vmstat pgmigrate_success"), None);
        assert!(is_consequence("stat idle cpu=0") && !is_consequence("minor-faults"));
    }
}
