//! Records of `/dev/kmsg`, and which of them say that something is wrong.
//!
//! Source: Documentation/ABI/testing/dev-kmsg (`LEVEL,SEQUENCE,MICROSECONDS,FLAGS;TEXT`), and what the kernel prints for each
//! kind of trouble (kernel/panic.c, kernel/hung_task.c, kernel/watchdog.c, kernel/rcu/tree_stall.h, mm/kasan/report.c,
//! mm/oom_kill.c, arch/x86/kernel/cpu/mce/core.c, drivers/thermal/intel/therm_throt.c, block/blk-core.c).

use std::borrow::Cow;
use std::fmt;

use perflab_model::Nanos;
use perflab_model::named::Named;
use serde::{Serialize, Serializer};

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
    /// the kernel gave up
    Panic,
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
const MARKS: [(&str, KernelTrouble); 18] = [
    ("Kernel panic - not syncing", KernelTrouble::Panic),
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
        KernelTrouble::find(&self.text)
    }
}

impl KernelTrouble {
    /// What a line says that is wrong, if it does.
    pub fn find(text: &str) -> Option<Self> {
        MARKS.iter().find(|(mark, _)| text.contains(mark)).map(|(_, trouble)| *trouble)
    }
}

impl Named for KernelTrouble {
    const NAMES: &'static [(Self, &'static str, &'static str)] = &[
        (KernelTrouble::Panic, "panic", "the kernel gave up"),
        (KernelTrouble::Warning, "warning", "WARN_ON and its like"),
        (KernelTrouble::Bug, "bug", "BUG, or an access that cannot be handled"),
        (KernelTrouble::Oops, "oops", "a fault in the kernel that ended a task"),
        (KernelTrouble::InvalidAccess, "invalid-access", "what KASAN or KFENCE found"),
        (KernelTrouble::HungTask, "hung-task", "a task that waits for minutes"),
        (KernelTrouble::Lockup, "lockup", "a CPU that does not schedule, or takes no interrupts"),
        (KernelTrouble::RcuStall, "rcu-stall", "a grace period that does not end"),
        (KernelTrouble::OutOfMemory, "out-of-memory", "a process was killed for its memory"),
        (KernelTrouble::MachineCheck, "machine-check", "the hardware reports an error"),
        (KernelTrouble::Throttled, "throttled", "a CPU is slowed down for its heat"),
        (KernelTrouble::IoError, "io-error", "a disk did not answer as it should"),
    ];
}

impl Serialize for KernelTrouble {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// A line as it is stored and shown: `<4>[    5.140900] text`, or of a console, without the level: its level, where it has one, and
/// its text. `None` where it has no time stamp.
pub fn split_printed_line(line: &str) -> Option<(Option<u8>, &str)> {
    let (level, rest) = match line.strip_prefix('<') {
        Some(rest) => {
            let (level, rest) = rest.split_once('>')?;
            (Some(level.parse().ok()?), rest)
        }
        None => (None, line),
    };
    let (stamp, text) = rest.strip_prefix('[')?.split_once(']')?;
    let is_stamp = |stamp: &str| {
        !stamp.is_empty() && stamp.chars().all(|c| c.is_ascii_digit() || c == '.') && stamp.contains('.')
    };
    // Kernels may add who printed it: `[    5.140900][    T1]`.
    let text = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((caller, text)) if caller.trim_start().starts_with(['T', 'C']) && is_caller(caller) => text,
        _ => text,
    };
    is_stamp(stamp.trim_start()).then(|| (level, text.strip_prefix(' ').unwrap_or(text)))
}

fn is_caller(text: &str) -> bool {
    text.trim_start()
        .get(1..)
        .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|c| c.is_ascii_digit()))
}

/// Whether a line is one of many of a dump: of stacks, registers, memory. What happened is in another one.
pub fn is_dump_line(text: &str) -> bool {
    const BEGINNINGS: [&str; 10] = [
        "Call Trace:",
        "Modules linked in:",
        "Hardware name:",
        "Tainted:",
        "---[",
        "Code:",
        "Mem-Info:",
        "Tasks state",
        "active_anon:",
        "[",
    ];
    // RIP: RAX: CR2: FS: R10:
    let is_register = text.split_once(':').is_some_and(|(name, _)| {
        (2..=3).contains(&name.len())
            && name.bytes().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit())
            && name != "BUG"
            && name != "CPU"
    });
    // rss_huge 0
    let is_count = text.split_once(' ').is_some_and(|(name, count)| {
        let is_name = name.bytes().all(|c| c.is_ascii_lowercase() || c == b'_');
        is_name && !count.is_empty() && (count == "N" || count.bytes().all(|c| c.is_ascii_digit()))
    });
    let is_of_cpu = text.starts_with("CPU: ") && text.contains(" PID: ");
    text.starts_with(char::is_whitespace)
        || is_register
        || is_count
        || is_of_cpu
        || BEGINNINGS.iter().any(|beginning| text.starts_with(beginning))
}

/// A line without what differs each time that it is printed, so that two of it are the same: addresses are `X`, numbers (of processes,
/// CPUs, lines, seconds, sectors) are `N`. Digits in a name stay: `ext4`, `eth0`, `x86_64`.
pub fn normalise_kernel_line(text: &str) -> String {
    let mut normal = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_of_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let length = rest.find(|c| !is_of_word(c)).unwrap_or(rest.len());
        if length == 0 {
            normal.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let (word, after) = rest.split_at(length);
        normal.push_str(&normalise_word(word));
        rest = after;
    }
    normal
}

/// Fewest digits of an address without `0x` in front.
const ADDRESS_DIGITS: usize = 8;

fn normalise_word(word: &str) -> Cow<'_, str> {
    let is_hexadecimal = |digits: &str| !digits.is_empty() && digits.bytes().all(|c| c.is_ascii_hexdigit());
    let digits = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X"));
    let has_letters = word.bytes().any(|c| !c.is_ascii_digit());
    let is_address = word.len() >= ADDRESS_DIGITS && is_hexadecimal(word) && has_letters;
    if digits.is_some_and(is_hexadecimal) || is_address {
        return "X".into();
    }
    let number = word.len() - word.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    if number > 0 {
        // Its unit stays: 22s.
        return format!("N{}", word.get(number..).unwrap_or_default()).into();
    }
    let is_cpu = |name: &str| ["CPU", "cpu"].contains(&name);
    match word.trim_end_matches(|c: char| c.is_ascii_digit()) {
        name if is_cpu(name) && name.len() < word.len() => format!("{name}N").into(),
        _ => word.into(),
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
            KernelTrouble::Panic => "a panic",
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
    fn a_line_is_the_same_whatever_it_counts() {
        let same = [
            (
                "WARNING: CPU: 0 PID: 1 at kernel/fork.c:100 copy_process+0x1/0x2",
                "WARNING: CPU: N PID: N at kernel/fork.c:N copy_process+X/X",
            ),
            (
                "BUG: unable to handle page fault for address: ffff8880deadbeef",
                "BUG: unable to handle page fault for address: X",
            ),
            (
                "INFO: task kworker/0:1:12 blocked for more than 120 seconds.",
                "INFO: task kworker/N:N:N blocked for more than N seconds.",
            ),
            (
                "watchdog: BUG: soft lockup - CPU#1 stuck for 22s! [a.out:77]",
                "watchdog: BUG: soft lockup - CPU#N stuck for Ns! [a.out:N]",
            ),
            ("CPU2: Core temperature above threshold", "CPUN: Core temperature above threshold"),
            ("Oops: 0000 [#1] PREEMPT SMP NOPTI", "Oops: N [#N] PREEMPT SMP NOPTI"),
            (
                "I/O error, dev sda, sector 8 op 0x0:(READ) flags 0x0",
                "I/O error, dev sda, sector N op X:(READ) flags X",
            ),
            // Names stay, and so does what only looks like an address.
            (
                "EXT4-fs (vdb1): mounted filesystem with ordered data mode",
                "EXT4-fs (vdb1): mounted filesystem with ordered data mode",
            ),
            ("eth0: link up, 1000Mbps", "eth0: link up, NMbps"),
            ("x86_64 facade: µ 3", "x86_64 facade: µ N"),
            // However large a number is.
            ("rss 123456 of 1234567890", "rss N of N"),
            ("", ""),
        ];
        for (line, expected) in same {
            assert_eq!(normalise_kernel_line(line), expected, "{line}");
            assert_eq!(normalise_kernel_line(expected), expected, "normal lines are normal");
        }
    }

    #[test]
    fn what_dumps_consist_of_is_told_from_what_happened() {
        let dumps = [
            " ? do_anonymous_page+0x1/0x2",
            "RIP: 0033:0x7f",
            "RAX: 00000 RBX: 0",
            "CR2: 0000",
            "R10: 00",
            "Call Trace:",
            "CPU: 1 UID: 0 PID: 2796 Comm: dd Not tainted 6.18",
            "[  pid  ]   uid  tgid",
            "---[ end trace ]---",
            "rss_huge N",
            "cache 4096",
        ];
        for line in dumps {
            assert!(is_dump_line(line), "{line}");
        }
        let told = [
            "WARNING: CPU: 0 PID: 1 at mm/slub.c:1",
            "BUG: unable to handle",
            "dd invoked oom-killer: gfp_mask=0x1",
            "eth0: link up",
            "CPU2: Core temperature above threshold",
            "md: md0 stopped",
            "",
        ];
        for line in told {
            assert!(!is_dump_line(line), "{line}");
        }
    }

    #[test]
    fn printed_lines_come_with_their_stamps_only() {
        let record = KernelLogRecord::parse("4,2,2000,-;WARNING: CPU: 0").unwrap();
        assert_eq!(split_printed_line(&record.to_string()), Some((Some(4), "WARNING: CPU: 0")));
        assert_eq!(split_printed_line("[    1.250000] Kernel panic"), Some((None, "Kernel panic")));
        assert_eq!(split_printed_line("[    1.250000][  T112] hm"), Some((None, "hm")));
        assert_eq!(split_printed_line("[    1.250000] [drm] hm"), Some((None, "[drm] hm")));
        for other in ["", "[perflab: more was printed]", "a program's line", "[x] y", "<4>no stamp"] {
            assert_eq!(split_printed_line(other), None, "{other}");
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
            ("Kernel panic - not syncing: sysrq triggered crash", KernelTrouble::Panic),
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
