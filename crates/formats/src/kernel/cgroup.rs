//! Control groups: which files of a group are read, of both versions, and how their numbers are columns
//! (Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/).

use perflab_model::ColumnSpec;

use crate::column::DiscoveredColumn;
use crate::kernel::derived_column::DerivedColumn;
use crate::kernel::kernel_file::{KernelFile, KernelFileLayout};
use crate::kernel::stat::NANOS_A_TICK;

/// The groups of a workload.
pub const CGROUP: KernelFile = KernelFile {
    name: "cgroup",
    source: "/proc/self/cgroup",
    about: "control groups of perflab and of the workload: CPU, throttling, memory by use, events, I/O, pressure",
    needs: "",
    without: "",
    provided_by: "CONFIG_CGROUPS, with a hierarchy mounted below /sys/fs/cgroup",
    columns: &[],
    layout: KernelFileLayout::Tree,
};

/// How the text of one of a group's files is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CgroupText {
    /// one number, of a column of this name
    Number(&'static str),
    /// `name value` lines; the columns have this prefix
    Lines(&'static str),
    /// `254:0 rbytes=1 wbytes=2 …`, devices added up
    DeviceFields(&'static str),
    /// `254:0 Read 4096`, devices added up
    DeviceWords(&'static str),
    /// `some avg10=… total=…` lines: their totals
    Pressure(&'static str),
}

/// A file of a group: the controller of version 1 that has it (empty in version 2), and its text.
pub type CgroupFile = (&'static str, &'static str, CgroupText);

/// The files of version 2.
pub const CGROUP2_FILES: &[CgroupFile] = &[
    ("", "cpu.stat", CgroupText::Lines("cpu_")),
    ("", "memory.current", CgroupText::Number("memory_current")),
    ("", "memory.peak", CgroupText::Number("memory_peak")),
    ("", "memory.swap.current", CgroupText::Number("memory_swap_current")),
    ("", "memory.stat", CgroupText::Lines("memory_")),
    ("", "memory.events", CgroupText::Lines("memory_events_")),
    ("", "io.stat", CgroupText::DeviceFields("io_")),
    ("", "pids.current", CgroupText::Number("pids_current")),
    ("", "cpu.pressure", CgroupText::Pressure("cpu_pressure_")),
    ("", "memory.pressure", CgroupText::Pressure("memory_pressure_")),
    ("", "io.pressure", CgroupText::Pressure("io_pressure_")),
];

/// Those of version 1.
pub const CGROUP1_FILES: &[CgroupFile] = &[
    ("cpuacct", "cpuacct.usage", CgroupText::Number("cpu_usage_nsec")),
    ("cpuacct", "cpuacct.stat", CgroupText::Lines("cpu_ticks_")),
    ("cpu", "cpu.stat", CgroupText::Lines("cpu_")),
    ("memory", "memory.usage_in_bytes", CgroupText::Number("memory_current")),
    ("memory", "memory.max_usage_in_bytes", CgroupText::Number("memory_peak")),
    ("memory", "memory.failcnt", CgroupText::Number("memory_failcnt")),
    ("memory", "memory.stat", CgroupText::Lines("memory_")),
    ("blkio", "blkio.throttle.io_service_bytes", CgroupText::DeviceWords("io_bytes_")),
    ("blkio", "blkio.throttle.io_serviced", CgroupText::DeviceWords("io_count_")),
    ("pids", "pids.current", CgroupText::Number("pids_current")),
];

/// What goes up and down beside sizes in bytes.
const GAUGES: &[&str] = &[
    "pids_current",
    "memory_current",
    "memory_peak",
    "memory_swap_current",
    "memory_hierarchical_memory_limit",
];

/// Names of `memory.stat` that count events or pages, and do not hold bytes.
const MEMORY_COUNTERS: &[&str] = &[
    "pg",
    "total_pg",
    "workingset_refault",
    "workingset_activate",
    "workingset_restore",
    "workingset_nodereclaim",
    "thp_",
    "zswpin",
    "zswpout",
    "zswpwb",
    "swpin_zero",
    "swpout_zero",
    "pswp",
    "numa_",
    "allocstall",
];

/// The column of a name, with its prefix.
pub fn discover_cgroup_column(name: &str) -> DiscoveredColumn {
    let of = |column, scale| DiscoveredColumn { column, scale, suffix: "" };
    if name.ends_with("_usec") {
        return of(ColumnSpec::counter(name, "us"), 1);
    }
    if name.contains("_pressure_") {
        return of(ColumnSpec::counter(name, "ns"), 1000);
    }
    if name.starts_with("cpu_ticks_") {
        return of(ColumnSpec::counter(name, "ns"), NANOS_A_TICK);
    }
    if name == "cpu_usage_nsec" || name == "cpu_throttled_time" {
        return of(ColumnSpec::counter(name, "ns"), 1);
    }
    let is_size =
        name.starts_with("memory_") && !name.starts_with("memory_events_") && name != "memory_failcnt";
    let inner = name.trim_start_matches("memory_");
    if is_size && !MEMORY_COUNTERS.iter().any(|prefix| inner.starts_with(prefix)) {
        return of(ColumnSpec::gauge(name, "bytes"), 1);
    }
    let unit = if name.ends_with("bytes") || name.starts_with("io_bytes_") { "bytes" } else { "1" };
    if GAUGES.contains(&name) {
        return of(ColumnSpec::gauge(name, unit), 1);
    }
    of(ColumnSpec::counter(name, unit), 1)
}

/// Hands over each number of a file: the column's name without its prefix, and the text of the number. What is no such line
/// is left out: kernels add lines.
pub fn parse_cgroup_text<'t>(kind: CgroupText, text: &'t str, mut take: impl FnMut(&'t str, &'t str)) {
    match kind {
        CgroupText::Number(_) => take("", text.trim()),
        CgroupText::Lines(_) => {
            text.lines()
                .filter_map(|line| line.trim().split_once(' '))
                .for_each(|(name, rest)| take(name, rest));
        }
        CgroupText::DeviceFields(_) => {
            let fields = text.lines().flat_map(|line| line.split_ascii_whitespace().skip(1));
            fields.filter_map(|field| field.split_once('=')).for_each(|(name, rest)| take(name, rest));
        }
        CgroupText::DeviceWords(_) => {
            for line in text.lines() {
                let mut words = line.split_ascii_whitespace();
                if let (Some(_), Some(name), Some(number)) = (words.next(), words.next(), words.next()) {
                    take(name, number);
                }
            }
        }
        CgroupText::Pressure(_) => {
            for line in text.lines() {
                if let (Some((kind, _)), Some((_, total))) = (line.split_once(' '), line.split_once("total="))
                {
                    take(kind, total);
                }
            }
        }
    }
}

/// The paths of a process' groups, from `/proc/PID/cgroup`: of version 2 (`0::/a`), or of a controller of version 1.
pub fn find_cgroup_path<'t>(text: &'t str, controller: &str) -> Option<&'t str> {
    text.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let is_it = if controller.is_empty() {
            controllers.is_empty()
        } else {
            controllers.split(',').any(|one| one == controller)
        };
        is_it.then_some(path)
    })
}

/// What is worked out of them (Documentation/admin-guide/cgroup-v2.rst).
pub(crate) const DERIVED: &[DerivedColumn] = &[
    DerivedColumn::per_second("cpus_used", "1", "CPUs that ran it", &["cpu_usage_usec"], 1e-6),
    DerivedColumn::share(
        "throttled_share",
        "periods in which its limit of CPU time stopped it",
        &["cpu_nr_throttled"],
        &["cpu_nr_periods"],
    ),
];

#[cfg(test)]
mod tests {
    use perflab_model::column::ColumnKind;

    use super::*;

    fn read(kind: CgroupText, text: &str) -> Vec<String> {
        let mut found = Vec::new();
        parse_cgroup_text(kind, text, |name, rest| found.push(format!("{name}={rest}")));
        found
    }

    #[test]
    fn each_kind_of_text_gives_its_numbers() {
        assert_eq!(read(CgroupText::Number("a"), "12\n"), ["=12"]);
        assert_eq!(
            read(CgroupText::Lines("a"), "usage_usec 1\nuser_usec 2\n"),
            ["usage_usec=1", "user_usec=2"]
        );
        assert_eq!(
            read(CgroupText::DeviceFields("io_"), "254:0 rbytes=1 wbytes=2\n7:0 \n7:1 rbytes=4\n"),
            ["rbytes=1", "wbytes=2", "rbytes=4"]
        );
        assert_eq!(read(CgroupText::DeviceWords("io_"), "254:0 Read 7\nTotal 7\n"), ["Read=7"]);
        assert_eq!(
            read(
                CgroupText::Pressure("p"),
                "some avg10=0.00 avg60=0.00 avg300=0.00 total=7\nfull avg10=0.00 total=1\n"
            ),
            ["some=7", "full=1"]
        );
    }

    #[test]
    fn names_have_their_kind_and_unit() {
        let of = |name: &str| {
            let found = discover_cgroup_column(name);
            (found.column.kind, found.column.unit.0.to_string(), found.scale)
        };
        use ColumnKind::{Counter, Gauge};
        assert_eq!(of("cpu_usage_usec"), (Counter, "us".into(), 1));
        assert_eq!(of("cpu_nr_throttled"), (Counter, "1".into(), 1));
        assert_eq!(of("memory_anon"), (Gauge, "bytes".into(), 1));
        assert_eq!(of("memory_pgfault"), (Counter, "1".into(), 1));
        assert_eq!(of("memory_events_oom_kill"), (Counter, "1".into(), 1));
        assert_eq!(of("io_rbytes"), (Counter, "bytes".into(), 1));
        assert_eq!(of("io_pressure_some"), (Counter, "ns".into(), 1000));
        assert_eq!(of("pids_current"), (Gauge, "1".into(), 1));
    }

    #[test]
    fn groups_of_both_versions_are_found() {
        let text = "4:cpu,cpuacct:/jobs/1\n1:name=systemd:/x\n0::/user.slice\n";
        assert_eq!(find_cgroup_path(text, "cpuacct"), Some("/jobs/1"));
        assert_eq!(find_cgroup_path(text, ""), Some("/user.slice"));
        assert_eq!(find_cgroup_path(text, "memory"), None);
    }
}
