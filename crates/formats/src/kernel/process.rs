//! `/proc/PID/stat` and `status`: one process's state, ancestry, start and cost.

/// The flag of a kernel thread (PF_KTHREAD in include/linux/sched.h).
const KERNEL_THREAD: u64 = 0x0020_0000;

/// What `/proc/PID/stat` says (proc_pid_stat(5)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessStat {
    /// Its number.
    pub pid: i32,
    /// `R`, `S`, `Z` and so on.
    pub state: char,
    /// Its parent's number.
    pub parent: i32,
    /// Its process group.
    pub group: i32,
    /// Whether it is a thread of the kernel: those have no environment, ever.
    pub is_kernel_thread: bool,
    /// Page faults that needed no disk, and those that did.
    pub faults: (u64, u64),
    /// Page faults that needed a disk, of children that were waited for.
    pub child_major_faults: u64,
    /// CPU time in user and in kernel mode, in ticks.
    pub cpu_ticks: (u64, u64),
    /// Clock ticks after boot; with the number, it names one process for ever.
    pub started: u64,
    /// Hundredths of a second that it waited for disks, where the kernel counts them.
    pub disk_delay_ticks: Option<u64>,
    /// Where its environment lies in its memory; 0 of a process within exec, none where we may not know.
    pub environment: Option<u64>,
    /// How it ended, as wait(2) gives it, where nobody has waited for it.
    pub exit_status: Option<i32>,
}

impl ProcessStat {
    /// The name in parentheses may hold anything, so fields are counted from its end.
    pub fn parse(stat: &str) -> Option<Self> {
        let (head, tail) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = tail.split_ascii_whitespace().collect();
        let number = |field: usize| fields.get(field)?.parse::<u64>().ok();
        Some(ProcessStat {
            pid: head.split_ascii_whitespace().next()?.parse().ok()?,
            state: fields.first()?.chars().next()?,
            parent: fields.get(1)?.parse().ok()?,
            group: fields.get(2)?.parse().ok()?,
            is_kernel_thread: number(6)? & KERNEL_THREAD != 0,
            faults: (number(7)?, number(9)?),
            child_major_faults: number(10)?,
            cpu_ticks: (number(11)?, number(12)?),
            started: number(19)?,
            disk_delay_ticks: number(39),
            environment: number(48),
            exit_status: fields.get(49).and_then(|status| status.parse().ok()),
        })
    }

    /// One that is not reaped yet is dead, too.
    pub fn is_alive(&self) -> bool {
        !matches!(self.state, 'Z' | 'X' | 'x')
    }

    /// Whether it has left one program and not reached the next one: its memory has no environment then.
    pub fn is_in_exec(&self) -> bool {
        self.is_alive() && self.environment == Some(0)
    }
}

/// The largest resident set so far in bytes (`VmHWM` of a `status`).
pub fn find_peak_rss(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_confuse() {
        let stat = "12 (a) b (c) S 7 9 9 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 4711 1 2";
        let process = ProcessStat::parse(stat).unwrap();
        assert_eq!((process.pid, process.parent, process.group, process.started), (12, 7, 9, 4711));
        assert_eq!((process.faults, process.cpu_ticks, process.environment), ((1, 3), (5, 6), None));
        assert_eq!(
            (process.child_major_faults, process.disk_delay_ticks, process.exit_status),
            (4, None, None)
        );
        assert!(process.is_alive() && !process.is_kernel_thread && !process.is_in_exec());
    }

    #[test]
    fn the_dead_and_threads_of_the_kernel_are_known() {
        let of = |state: &str, flags: &str| {
            ProcessStat::parse(&format!("2 (k) {state} 0 0 0 0 -1 {flags} 0 0 0 0 0 0 0 0 20 0 1 0 7"))
                .unwrap()
        };
        assert!(of("S", "2129984").is_kernel_thread);
        assert!(!of("Z", "0").is_alive() && !of("X", "0").is_alive() && of("R", "0").is_alive());
        assert_eq!(ProcessStat::parse("2 (k) S 1"), None);
    }

    #[test]
    fn fields_are_counted_as_the_manual_does() {
        let numbers: Vec<String> = (4..=52).map(|field| field.to_string()).collect();
        let process = ProcessStat::parse(&format!("1 (a) S {}", numbers.join(" "))).unwrap();
        assert_eq!((process.parent, process.group, process.started), (4, 5, 22));
        assert_eq!((process.faults, process.child_major_faults, process.cpu_ticks), ((10, 12), 13, (14, 15)));
        assert_eq!(
            (process.disk_delay_ticks, process.environment, process.exit_status),
            (Some(42), Some(51), Some(52))
        );
    }

    #[test]
    fn the_peak_is_read_in_bytes() {
        assert_eq!(find_peak_rss("VmPeak:\t 9 kB\nVmHWM:\t    1648 kB\n"), Some(1648 * 1024));
        assert_eq!(find_peak_rss(""), None);
    }
}
