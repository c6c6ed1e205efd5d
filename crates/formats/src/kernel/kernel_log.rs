//! Records of `/dev/kmsg`, and which of them say that something is wrong.
//!
//! Source: Documentation/ABI/testing/dev-kmsg (`LEVEL,SEQUENCE,MICROSECONDS,FLAGS;TEXT`), and what the kernel prints for each
//! kind of trouble (kernel/panic.c, kernel/hung_task.c, kernel/watchdog.c, kernel/rcu/tree_stall.h, mm/kasan/report.c,
//! mm/oom_kill.c, arch/x86/kernel/cpu/mce/core.c, drivers/thermal/intel/therm_throt.c, block/blk-core.c).

use std::fmt;

use perflab_model::Nanos;

/// One record of the kernel's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelLogRecord {
    /// 0 (the system is unusable) to 7 (debug).
    pub level: u8,
    /// Who printed it: 0 is the kernel, others are programs.
    pub facility: u64,
    /// Counts records from boot on.
    pub sequence: u64,
    /// Since boot, on the clock of the CPU that printed it: CLOCK_MONOTONIC to some milliseconds.
    pub stamp: Nanos,
    /// What was printed.
    pub text: String,
}

/// What is wrong where the kernel says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KernelTrouble {
    /// `WARN_ON` and its like
    Warning,
    /// `BUG`, or an access that cannot be handled
    Bug,
    /// a fault in the kernel that ended a task
    Oops,
    /// an invalid access that KASAN found
    InvalidAccess,
    /// a task that waits for minutes
    HungTask,
    /// a CPU that does not schedule, or takes no interrupts
    Lockup,
    /// a grace period that does not end
    RcuStall,
    /// a process was killed for its memory
    OutOfMemory,
    /// the hardware reports an error
    MachineCheck,
    /// a CPU is slowed down for its heat
    Throttled,
    /// a disk did not answer as it should
    IoError,
}

/// What each kind is found by, the most telling first.
const MARKS: [(&str, KernelTrouble); 17] = [
    ("BUG: KASAN:", KernelTrouble::InvalidAccess),
    ("BUG: KFENCE:", KernelTrouble::InvalidAccess),
    ("BUG: soft lockup", KernelTrouble::Lockup),
    ("hard LOCKUP", KernelTrouble::Lockup),
    ("BUG: workqueue lockup", KernelTrouble::Lockup),
    ("blocked for more than", KernelTrouble::HungTask),
    ("detected stall", KernelTrouble::RcuStall),
    ("self-detected stall", KernelTrouble::RcuStall),
    ("ut of memory: Killed process", KernelTrouble::OutOfMemory),
    ("[Hardware Error]", KernelTrouble::MachineCheck),
    ("cpu clock throttled", KernelTrouble::Throttled),
    ("I/O error, dev ", KernelTrouble::IoError),
    ("general protection fault", KernelTrouble::Oops),
    ("Oops: ", KernelTrouble::Oops),
    ("kernel BUG at ", KernelTrouble::Bug),
    ("BUG: ", KernelTrouble::Bug),
    ("WARNING: ", KernelTrouble::Warning),
];

impl KernelLogRecord {
    /// One record, without the lines that follow it with its keys; `None` where it is none.
    pub fn parse(text: &str) -> Option<Self> {
        let (head, message) = text.split_once(';')?;
        let mut fields = head.split(',');
        let priority: u64 = fields.next()?.parse().ok()?;
        let sequence = fields.next()?.parse().ok()?;
        let microseconds: u64 = fields.next()?.parse().ok()?;
        fields.next()?;
        let text = message.lines().next().unwrap_or_default().to_owned();
        let stamp = Nanos(microseconds.checked_mul(1000)?);
        Some(KernelLogRecord { level: (priority & 7) as u8, facility: priority >> 3, sequence, stamp, text })
    }

    /// Whether the kernel printed it: programs may write to its log, too.
    pub fn is_of_kernel(&self) -> bool {
        self.facility == 0
    }

    /// Whether it says that something is wrong, and what.
    pub fn trouble(&self) -> Option<KernelTrouble> {
        MARKS.iter().find(|(mark, _)| self.text.contains(mark)).map(|(_, trouble)| *trouble)
    }
}

impl fmt::Display for KernelLogRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, micros) = (self.stamp.0 / 1_000_000_000, self.stamp.0 / 1000 % 1_000_000);
        write!(f, "<{}>[{seconds:5}.{micros:06}] {}", self.level, self.text)
    }
}

impl fmt::Display for KernelTrouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            KernelTrouble::Warning => "a warning",
            KernelTrouble::Bug => "a bug",
            KernelTrouble::Oops => "an oops",
            KernelTrouble::InvalidAccess => "an invalid access",
            KernelTrouble::HungTask => "a hung task",
            KernelTrouble::Lockup => "a lockup",
            KernelTrouble::RcuStall => "an RCU stall",
            KernelTrouble::OutOfMemory => "a process killed for its memory",
            KernelTrouble::MachineCheck => "a hardware error",
            KernelTrouble::Throttled => "a CPU slowed down for its heat",
            KernelTrouble::IoError => "an I/O error",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_has_level_number_time_and_text() {
        let text = "6,339,5140900,-;NET: Registered protocol family 10\n SUBSYSTEM=net\n DEVICE=n8\n";
        let record = KernelLogRecord::parse(text).unwrap();
        assert_eq!(record.to_string(), "<6>[    5.140900] NET: Registered protocol family 10");
        assert_eq!((record.level, record.sequence), (6, 339));
        // Priority 30 is facility 3 (daemon), level 6.
        let of_daemon = KernelLogRecord::parse("30,1,2,-;a;b").unwrap();
        assert_eq!((of_daemon.level, of_daemon.is_of_kernel()), (6, false));
        for damaged in ["", "6,1,2", "6;x", "x,1,2,-;y", "6,1,18446744073709551615,-;y"] {
            assert_eq!(KernelLogRecord::parse(damaged), None, "{damaged}");
        }
    }

    #[test]
    fn trouble_is_told_by_what_the_kernel_prints() {
        let trouble = |text: &str| {
            KernelLogRecord { level: 4, facility: 0, sequence: 0, stamp: Nanos(0), text: text.into() }
                .trouble()
        };
        let known = [
            ("WARNING: CPU: 0 PID: 1 at kernel/fork.c:100 copy_process+0x1/0x2", KernelTrouble::Warning),
            ("kernel BUG at mm/slub.c:435!", KernelTrouble::Bug),
            ("BUG: unable to handle page fault for address: ffff8880", KernelTrouble::Bug),
            ("Oops: 0000 [#1] PREEMPT SMP NOPTI", KernelTrouble::Oops),
            ("BUG: KASAN: slab-out-of-bounds in kmalloc_oob_right+0xa8/0xbc", KernelTrouble::InvalidAccess),
            ("INFO: task kworker/0:1:12 blocked for more than 120 seconds.", KernelTrouble::HungTask),
            ("watchdog: BUG: soft lockup - CPU#1 stuck for 22s! [a.out:77]", KernelTrouble::Lockup),
            ("rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:", KernelTrouble::RcuStall),
            ("rcu: INFO: rcu_sched self-detected stall on CPU", KernelTrouble::RcuStall),
            ("Out of memory: Killed process 123 (a) total-vm:1kB", KernelTrouble::OutOfMemory),
            ("Memory cgroup out of memory: Killed process 9 (b)", KernelTrouble::OutOfMemory),
            ("mce: [Hardware Error]: Machine check events logged", KernelTrouble::MachineCheck),
            (
                "CPU2: Core temperature above threshold, cpu clock throttled (total events = 1)",
                KernelTrouble::Throttled,
            ),
            ("I/O error, dev sda, sector 8 op 0x0:(READ) flags 0x0", KernelTrouble::IoError),
        ];
        for (text, expected) in known {
            assert_eq!(trouble(text), Some(expected), "{text}");
        }
        for fine in ["eth0: link up", "loop0: detected capacity change from 0 to 8", "debug: no problem"] {
            assert_eq!(trouble(fine), None, "{fine}");
        }
    }
}
