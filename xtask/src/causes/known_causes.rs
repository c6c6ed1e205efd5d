//! The causes that are injected, each in up to three strengths, and what `perflab why` should call them.

/// How a study puts a cause in.
#[derive(Debug, Clone, Copy)]
pub enum Injection {
    /// The load does more of something: doses in `PERFLAB_DOSE`, the first being none.
    Dose,
    /// Something runs beside the load, which is kept on one CPU: commands of `cause-load`, by level.
    Beside(&'static [(&'static str, &'static str)]),
    /// The load, and perflab, run in a control group with a part of a CPU: microseconds of every 20,000, by level.
    Quota,
    /// The load runs on other CPUs.
    Placement,
    /// A setting of perflab's own, with a dose that is the same at all levels.
    Setting {
        /// its kind of factor
        kind: &'static str,
        /// what it sets
        key: &'static str,
        /// what the load does more of
        dose: &'static str,
    },
}

/// A cause.
#[derive(Debug, Clone, Copy)]
pub struct KnownCause {
    /// Its name, also that of its run.
    pub name: &'static str,
    /// What is done.
    pub about: &'static str,
    /// The baseline's level, then the strengths.
    pub levels: &'static [&'static str],
    /// How it is put in.
    pub injection: Injection,
    /// Names of causes that are right; none where nothing that is recorded measures it.
    pub right: &'static [&'static str],
}

const fn dose(
    name: &'static str,
    about: &'static str,
    levels: &'static [&'static str],
    right: &'static [&'static str],
) -> KnownCause {
    KnownCause { name, about, levels, injection: Injection::Dose, right }
}

/// All of them.
pub const KNOWN_CAUSES: &[KnownCause] = &[
    dose(
        "faults",
        "pages touched for the first time",
        &["none", "faults=5000", "faults=20000", "faults=80000"],
        &["page faults"],
    ),
    dose("calls", "lseek(2)", &["none", "calls=200000", "calls=800000", "calls=3200000"], &["system calls"]),
    dose(
        "fsyncs",
        "writes of a page, each with fsync(2)",
        &["none", "fsyncs=5", "fsyncs=20", "fsyncs=80"],
        &["flushes of a disk (fsync)"],
    ),
    dose(
        "sleeps",
        "sleeps of 100 us",
        &["none", "sleeps=100", "sleeps=400", "sleeps=1600"],
        &["waits of the workload (switches of its own accord)"],
    ),
    dose(
        "log",
        "lines of 128 bytes, each with write(2)",
        &["none", "log=4000000", "log=16000000", "log=64000000"],
        &["bytes written to files", "system calls"],
    ),
    dose(
        "reads",
        "bytes of a file that is not in the page cache",
        &["none", "read=8000000", "read=24000000", "read=60000000"],
        &["reads from a disk"],
    ),
    dose(
        "set",
        "a larger working set, with as many accesses",
        &["none", "set=1000000", "set=4000000", "set=16000000"],
        &["size of the working set"],
    ),
    dose(
        "lock",
        "a lock between two threads held longer",
        &["threads=2", "threads=2 lock=200", "threads=2 lock=600", "threads=2 lock=1800"],
        &["waits of the workload (switches of its own accord)"],
    ),
    dose(
        "thread-fewer",
        "one thread in place of two",
        &["threads=2", "threads=1"],
        &["tasks that were started"],
    ),
    dose("false-sharing", "two threads count in one cache line", &["threads=2", "threads=2 shared=1"], &[]),
    KnownCause {
        name: "hog",
        about: "programs that compute on the same CPU",
        levels: &["none", "one", "two", "four"],
        injection: Injection::Beside(&[
            ("one", "{load} spin"),
            ("two", "sh -c '{load} spin & {load} spin'"),
            ("four", "sh -c '{load} spin & {load} spin & {load} spin & {load} spin'"),
        ]),
        right: &["competition for CPUs"],
    },
    KnownCause {
        name: "timers",
        about: "programs that sleep for a microsecond on the same CPU",
        levels: &["none", "one", "two", "four"],
        injection: Injection::Beside(&[
            ("one", "{load} timers"),
            ("two", "sh -c '{load} timers & {load} timers'"),
            ("four", "sh -c '{load} timers & {load} timers & {load} timers & {load} timers'"),
        ]),
        right: &["competition for CPUs", "interrupts"],
    },
    KnownCause {
        name: "quota",
        about: "a control group with less than a CPU",
        levels: &["-1", "15000", "10000", "5000"],
        injection: Injection::Quota,
        right: &["throttling by a CPU quota"],
    },
    KnownCause {
        name: "cpu-fewer",
        about: "two threads on one CPU",
        levels: &["any", "one-cpu"],
        injection: Injection::Placement,
        right: &["competition for CPUs"],
    },
    dose(
        "children",
        "processes started and waited for",
        &["none", "children=10", "children=40", "children=160"],
        &["tasks that were started"],
    ),
    dose(
        "files",
        "files made, written to and removed",
        &["none", "files=500", "files=2000", "files=8000"],
        &["system calls"],
    ),
    dose(
        "talk",
        "messages there and back over TCP on the loopback device",
        &["none", "rounds=200", "rounds=800", "rounds=3200"],
        &["waits of the workload (switches of its own accord)", "system calls"],
    ),
    KnownCause {
        name: "reader",
        about: "a program that reads all of /proc again and again on the same CPU, as a monitor on a fast clock does",
        levels: &["none", "one", "two"],
        injection: Injection::Beside(&[
            ("one", "{load} reader"),
            ("two", "sh -c '{load} reader & {load} reader'"),
        ]),
        right: &["competition for CPUs"],
    },
    KnownCause {
        name: "bandwidth",
        about: "a program that streams through memory on the other CPU",
        levels: &["none", "one", "two"],
        injection: Injection::Beside(&[
            ("one", "{other} stream"),
            ("two", "sh -c '{other} stream & {other} stream'"),
        ]),
        right: &[],
    },
    KnownCause {
        name: "read-ahead",
        about: "less read ahead of a file that is not in the page cache",
        levels: &["128KiB", "32KiB", "8KiB", "4KiB"],
        injection: Injection::Setting { kind: "setting", key: "read-ahead:vda", dose: "read=16000000" },
        right: &["reads from a disk"],
    },
    KnownCause {
        name: "huge-pages-off",
        about: "no transparent huge pages for memory that is touched for the first time",
        levels: &["always", "never"],
        injection: Injection::Setting { kind: "setting", key: "thp", dose: "faults=40000" },
        right: &["huge pages", "page faults"],
    },
    KnownCause {
        name: "memory-limit",
        about: "a limit of memory that is less than the file that is read",
        levels: &["none", "24MiB", "16MiB", "12MiB"],
        injection: Injection::Setting { kind: "setting", key: "memory-max", dose: "read=32000000" },
        right: &["memory reclaim by the workload itself", "reads from a disk"],
    },
    KnownCause {
        name: "kill",
        about: "a limit of memory that kills the load",
        levels: &["none", "24MiB"],
        injection: Injection::Setting { kind: "setting", key: "memory-max", dose: "set=64000000" },
        right: &["a process was killed for its memory", "processes killed for want of memory"],
    },
    KnownCause {
        name: "quota-setting",
        about: "a limit of CPU time that the study sets",
        levels: &["none", "60%", "30%", "15%"],
        injection: Injection::Setting { kind: "setting", key: "cpu-max", dose: "none" },
        right: &["throttling by a CPU quota"],
    },
];
