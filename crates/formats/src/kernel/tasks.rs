//! `/proc/PID/stat`, `io`, `schedstat` and `status` as rows of `tasks`: the processes that used most since the last reading.

use perflab_model::column::{ColumnKind, ColumnType};
use perflab_model::{ColumnRef, DeclaredColumn, RowSchema};

use crate::kernel::derived_column::DerivedColumn;
use crate::kernel::kernel_file::{KernelFile, KernelFileLayout};
use crate::kernel::stat::NANOS_A_TICK;

/// The processes.
pub const TASKS: KernelFile = KernelFile {
    name: TaskRow::NAME,
    source: "/proc",
    about: "the processes that use most: CPU, memory, faults, switches, I/O, waiting; kernel threads and ended ones by name",
    needs: "",
    without: "",
    provided_by: "",
    columns: TaskRow::COLUMNS,
    layout: KernelFileLayout::Tree,
};

/// A row a process, a name of kernel threads, or a name of processes that ended.
#[derive(Debug, Clone, Copy)]
pub struct TaskRow;

const fn text(name: &'static str, meaning: &'static str) -> DeclaredColumn {
    DeclaredColumn::optional(name, ColumnType::Text, "1", ColumnKind::Value, meaning)
}

const fn counter(name: &'static str, unit: &'static str) -> DeclaredColumn {
    DeclaredColumn::counter(name, unit)
}

impl RowSchema for TaskRow {
    const NAME: &'static str = "tasks";
    const COLUMNS: &'static [DeclaredColumn] = &[
        DeclaredColumn::key("pid"),
        DeclaredColumn::key("comm"),
        text("why", "why it is there: cpu, memory, name or ended"),
        text("state", "as the kernel writes it: R, S, D, …"),
        DeclaredColumn::gauge("processes", "1"),
        DeclaredColumn::gauge("threads", "threads"),
        counter("user_ns", "ns"),
        counter("system_ns", "ns"),
        counter("run_delay_ns", "ns"),
        counter("disk_delay_ns", "ns"),
        counter("voluntary_switches", "1"),
        counter("involuntary_switches", "1"),
        counter("minor_faults", "1"),
        counter("major_faults", "1"),
        DeclaredColumn::gauge("rss", "bytes"),
        counter("read_bytes", "bytes"),
        counter("write_bytes", "bytes"),
        counter("ended", "processes"),
        DeclaredColumn::gauge("last_cpu", "1"),
    ];
}

impl TaskRow {
    /// The process; `*` for kernel threads of a name, `ended` for processes that ended.
    pub const PID: ColumnRef<Self, str> = ColumnRef::named("pid");

    /// Its name, or the pattern of several.
    pub const COMM: ColumnRef<Self, str> = ColumnRef::named("comm");

    /// Why the row is there.
    pub const WHY: ColumnRef<Self, str> = ColumnRef::named("why");

    /// Its state.
    pub const STATE: ColumnRef<Self, str> = ColumnRef::named("state");

    /// Processes of the row.
    pub const PROCESSES: ColumnRef<Self, i64> = ColumnRef::named("processes");

    /// Its threads.
    pub const THREADS: ColumnRef<Self, i64> = ColumnRef::named("threads");

    /// CPU time in user mode.
    pub const USER: ColumnRef<Self, i64> = ColumnRef::named("user_ns");

    /// CPU time in the kernel.
    pub const SYSTEM: ColumnRef<Self, i64> = ColumnRef::named("system_ns");

    /// Time in which it could run and did not.
    pub const RUN_DELAY: ColumnRef<Self, i64> = ColumnRef::named("run_delay_ns");

    /// Time in which it waited for disks.
    pub const DISK_DELAY: ColumnRef<Self, i64> = ColumnRef::named("disk_delay_ns");

    /// Switches that it asked for.
    pub const VOLUNTARY: ColumnRef<Self, i64> = ColumnRef::named("voluntary_switches");

    /// Switches that it did not ask for.
    pub const INVOLUNTARY: ColumnRef<Self, i64> = ColumnRef::named("involuntary_switches");

    /// Faults without a disk.
    pub const MINOR: ColumnRef<Self, i64> = ColumnRef::named("minor_faults");

    /// Faults with one.
    pub const MAJOR: ColumnRef<Self, i64> = ColumnRef::named("major_faults");

    /// Resident memory.
    pub const RSS: ColumnRef<Self, i64> = ColumnRef::named("rss");

    /// Bytes that it had disks read.
    pub const READ: ColumnRef<Self, i64> = ColumnRef::named("read_bytes");

    /// Bytes that it had disks write.
    pub const WRITE: ColumnRef<Self, i64> = ColumnRef::named("write_bytes");

    /// Processes of that name that ended.
    pub const ENDED: ColumnRef<Self, i64> = ColumnRef::named("ended");

    /// The CPU that it ran on last.
    pub const LAST_CPU: ColumnRef<Self, i64> = ColumnRef::named("last_cpu");
}

/// What `/proc/PID/stat` says that is counted again and again (proc_pid_stat(5)).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TaskStat<'t> {
    /// Its name.
    pub comm: &'t str,
    /// `R`, `S`, `D`, …; a byte.
    pub state: u8,
    /// Its parent's number.
    pub parent: u32,
    /// Faults without a disk, and with one.
    pub faults: (u64, u64),
    /// CPU time in user mode and in the kernel, in nanoseconds with the grain of a tick.
    pub cpu: (u64, u64),
    /// Its threads.
    pub threads: u64,
    /// Clock ticks after boot.
    pub started: u64,
    /// Resident pages.
    pub rss: u64,
    /// The CPU that it ran on last.
    pub last_cpu: u64,
    /// Waiting for disks, in nanoseconds with the grain of a tick; 0 where delays are not accounted for.
    pub disk_delay: u64,
}

impl<'t> TaskStat<'t> {
    /// The name in parentheses may hold anything, so fields are counted from its end.
    pub fn parse(stat: &'t str) -> Option<Self> {
        let (head, tail) = stat.rsplit_once(')')?;
        let comm = head.split_once('(')?.1;
        let mut found = TaskStat { comm, ..TaskStat::default() };
        let mut fields = 0;
        // The third field, the state, is the first behind the name.
        for (field, word) in (3..).zip(tail.split_ascii_whitespace()) {
            let number = || word.parse::<u64>().ok();
            let ticks = || number()?.checked_mul(NANOS_A_TICK);
            match field {
                3 => found.state = *word.as_bytes().first()?,
                4 => found.parent = word.parse().ok()?,
                10 => found.faults.0 = number()?,
                12 => found.faults.1 = number()?,
                14 => found.cpu.0 = ticks()?,
                15 => found.cpu.1 = ticks()?,
                20 => found.threads = number()?,
                22 => found.started = number()?,
                // Some kernels have printed it below zero for a moment.
                24 => found.rss = number().unwrap_or(0),
                39 => found.last_cpu = number().unwrap_or(0),
                42 => found.disk_delay = ticks().unwrap_or(0),
                43.. => break,
                _ => {}
            }
            fields = field;
        }
        (fields >= 24).then_some(found)
    }

    /// CPU time of both modes.
    pub fn cpu_time(&self) -> u64 {
        self.cpu.0.saturating_add(self.cpu.1)
    }
}

/// `read_bytes` and `write_bytes` of `/proc/PID/io`.
pub fn parse_task_io(text: &str) -> Option<(u64, u64)> {
    let number = |name: &str| {
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")?.trim().parse::<u64>().ok())
    };
    Some((number("read_bytes")?, number("write_bytes")?))
}

/// How long a task could have run and did not, in nanoseconds: the second number of `/proc/PID/schedstat`.
pub fn parse_run_delay(text: &str) -> Option<u64> {
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Switches that a task asked for, and others, of `/proc/PID/status`.
pub fn parse_task_switches(text: &str) -> Option<(u64, u64)> {
    let number =
        |name: &str| text.lines().rev().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
    Some((number("voluntary_ctxt_switches:")?, number("nonvoluntary_ctxt_switches:")?))
}

/// Whether a name is of a pattern, in which `*` may stand at the end.
pub fn is_named_so(pattern: &str, comm: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == comm, |prefix| comm.starts_with(prefix))
}

/// What is worked out of them.
pub(crate) const DERIVED: &[DerivedColumn] = &[
    DerivedColumn::per_second(
        "cpu_share",
        "%",
        "time on CPUs; over 100 with several threads",
        &["user_ns", "system_ns"],
        1e-7,
    ),
    DerivedColumn::per_second(
        "wait_share",
        "%",
        "time in which its threads waited for a CPU",
        &["run_delay_ns"],
        1e-7,
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_counted_as_the_manual_does() {
        let numbers: Vec<String> = (4..=52).map(|field| field.to_string()).collect();
        let text = format!("1 (a) b) D {}", numbers.join(" "));
        let task = TaskStat::parse(&text).unwrap();
        assert_eq!((task.comm, task.state, task.parent, task.threads), ("a) b", b'D', 4, 20));
        assert_eq!((task.faults, task.cpu), ((10, 12), (14 * NANOS_A_TICK, 15 * NANOS_A_TICK)));
        assert_eq!((task.started, task.rss, task.last_cpu, task.disk_delay), (22, 24, 39, 42 * NANOS_A_TICK));
        assert_eq!(TaskStat::parse("1 (a) D 1 2"), None);
        assert_eq!(TaskStat::parse(""), None);
    }

    #[test]
    fn small_files_of_a_task() {
        assert_eq!(
            parse_task_io("rchar: 9\nread_bytes: 4096\nwrite_bytes: 7\ncancelled_write_bytes: 1\n"),
            Some((4096, 7))
        );
        assert_eq!(parse_task_io("rchar: 9\n"), None);
        assert_eq!(parse_run_delay("12 34 5\n"), Some(34));
        assert_eq!(
            parse_task_switches("Name: a\nvoluntary_ctxt_switches:\t3\nnonvoluntary_ctxt_switches:\t4\n"),
            Some((3, 4))
        );
        assert!(is_named_so("kworker*", "kworker/0:1") && is_named_so("khugepaged", "khugepaged"));
        assert!(!is_named_so("khugepaged", "khugepaged2") && !is_named_so("kswapd*", "swapd"));
    }
}
