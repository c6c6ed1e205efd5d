//! Family `cgroup`: version, our own group with its controllers, and what is set on the way from the root down to it.
//!
//! A limit holds for all that is below it, so the strictest from our own group up to the root counts. What is set is
//! listed by file, from the root on, without the names of the groups: they often differ from run to run.

use std::collections::BTreeSet;

use perflab_model::Scalar;
use perflab_model::fact_table;

use crate::facts::collector::FactCollector;

const OWN: &str = "/proc/self/cgroup";

const MOUNT: &str = "/sys/fs/cgroup";

/// Files of version 2 that limit or weigh a group (Documentation/admin-guide/cgroup-v2.rst), each with what it holds where
/// nothing is set.
const SETTINGS: &[(&str, &[&str])] = &[
    ("cpu.max", &["max 100000"]),
    ("cpu.max.burst", &["0"]),
    ("cpu.weight", &["100"]),
    ("cpu.idle", &["0"]),
    ("cpu.uclamp.min", &["0.00"]),
    ("cpu.uclamp.max", &["max"]),
    ("cpuset.cpus", &[]),
    ("cpuset.mems", &[]),
    ("cpuset.cpus.partition", &["member"]),
    ("io.max", &[]),
    ("io.weight", &["default 100", "100"]),
    ("io.bfq.weight", &["default 100", "100"]),
    ("io.latency", &[]),
    ("memory.min", &["0"]),
    ("memory.low", &["0"]),
    ("memory.high", &["max"]),
    ("memory.max", &["max"]),
    ("memory.swap.max", &["max"]),
    ("memory.swap.high", &["max"]),
    ("memory.zswap.max", &["max"]),
    ("memory.oom.group", &["0"]),
    ("pids.max", &["max"]),
];

/// The same of version 1, with the controller in whose hierarchy the file is.
const SETTINGS_OF_VERSION_1: &[(&str, &str, &[&str])] = &[
    ("cpu", "cpu.shares", &["1024"]),
    ("cpu", "cpu.cfs_quota_us", &["-1"]),
    ("cpu", "cpu.rt_runtime_us", &["0", "950000"]),
    ("cpuset", "cpuset.cpus", &[]),
    ("cpuset", "cpuset.mems", &[]),
    ("memory", "memory.limit_in_bytes", &[]),
    ("memory", "memory.soft_limit_in_bytes", &[]),
    ("memory", "memory.memsw.limit_in_bytes", &[]),
    ("blkio", "blkio.weight", &["500", "1000", "100"]),
    ("blkio", "blkio.throttle.read_bps_device", &[]),
    ("blkio", "blkio.throttle.write_bps_device", &[]),
    ("blkio", "blkio.throttle.read_iops_device", &[]),
    ("blkio", "blkio.throttle.write_iops_device", &[]),
    ("pids", "pids.max", &["max"]),
];

/// Version 1 writes "no limit" as the largest number of whole pages.
const NO_LIMIT: i64 = i64::MAX - 0xffff;

pub(crate) fn collect_cgroup_facts(notes: &mut FactCollector<'_>) {
    let Some(text) = notes.read(OWN) else { return };
    match find_controller_path(&text, "memory").or_else(|| find_controller_path(&text, "cpu")) {
        Some(_) => collect_v1_limits(notes, &text),
        None => collect_v2_limits(notes, &text),
    }
}

fn collect_v1_limits(notes: &mut FactCollector<'_>, own: &str) {
    notes.add(fact_table::CGROUP_VERSION, 1, OWN);
    collect_v1_settings(notes, own);
    let memory = find_controller_path(own, "memory")
        .map(|path| list_group_ancestors(&format!("{MOUNT}/memory"), path))
        .unwrap_or_default();
    let limit =
        find_strictest_limit(&memory, |group| read_limit(notes, &format!("{group}/memory.limit_in_bytes")));
    add_limit_fact(
        notes,
        fact_table::CGROUP_MEMORY_LIMIT,
        limit.filter(|bytes| *bytes < NO_LIMIT as f64).map(truncate_to_value),
        "memory.limit_in_bytes",
    );
    let cpu = find_controller_path(own, "cpu")
        .map(|path| list_group_ancestors(&format!("{MOUNT}/cpu"), path))
        .unwrap_or_default();
    let cpus = find_strictest_limit(&cpu, |group| {
        let quota = read_limit(notes, &format!("{group}/cpu.cfs_quota_us")).filter(|quota| *quota > 0.0)?;
        Some(quota / read_limit(notes, &format!("{group}/cpu.cfs_period_us"))?)
    });
    add_limit_fact(notes, fact_table::CGROUP_CPU_LIMIT, cpus.map(Scalar::Float), "cpu.cfs_quota_us");
}

fn collect_v2_limits(notes: &mut FactCollector<'_>, own: &str) {
    let Some(path) = own.lines().find_map(|line| line.strip_prefix("0::")) else { return };
    notes.add(fact_table::CGROUP_VERSION, 2, OWN);
    let groups = list_group_ancestors(MOUNT, path);
    notes.add(fact_table::CGROUP_PATH, path, OWN);
    if let Some(own) = groups.first() {
        notes.add_text(fact_table::CGROUP_CONTROLLERS, &format!("{own}/cgroup.controllers"));
    }
    for (file, unset) in SETTINGS {
        add_settings_fact(notes, &groups, file, unset);
    }
    let limit = find_strictest_limit(&groups, |group| read_limit(notes, &format!("{group}/memory.max")));
    add_limit_fact(notes, fact_table::CGROUP_MEMORY_LIMIT, limit.map(truncate_to_value), "memory.max");
    let cpus = find_strictest_limit(&groups, |group| {
        let text = notes.read(&format!("{group}/cpu.max"))?;
        let (quota, period) = text.split_once(' ')?;
        Some(quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?)
    });
    add_limit_fact(notes, fact_table::CGROUP_CPU_LIMIT, cpus.map(Scalar::Float), "cpu.max");
}

fn collect_v1_settings(notes: &mut FactCollector<'_>, own: &str) {
    // A hierarchy without controllers has a name: systemd's own.
    let has_controllers = |(names, _): &(&str, &str)| !names.is_empty() && !names.starts_with("name=");
    let hierarchies: Vec<(&str, &str)> =
        own.lines().filter_map(parse_hierarchy).filter(has_controllers).collect();
    let controllers: BTreeSet<&str> = hierarchies.iter().flat_map(|(names, _)| names.split(',')).collect();
    let controllers: Vec<&str> = controllers.into_iter().collect();
    notes.add(fact_table::CGROUP_CONTROLLERS, controllers.join(" ").as_str(), OWN);
    let paths = hierarchies.iter().filter(|(_, path)| *path != "/");
    let paths: Vec<String> = paths.map(|(names, path)| format!("{names}:{path}")).collect();
    let path = if paths.is_empty() { "/".to_owned() } else { paths.join(" ") };
    notes.add(fact_table::CGROUP_PATH, path.as_str(), OWN);
    for (controller, file, unset) in SETTINGS_OF_VERSION_1 {
        let Some(path) = find_controller_path(own, controller) else { continue };
        let groups = list_group_ancestors(&format!("{MOUNT}/{controller}"), path);
        add_settings_fact(notes, &groups, file, unset);
    }
}

/// What a file holds in the groups that set it, the root's first; no fact where none does.
fn add_settings_fact(notes: &mut FactCollector<'_>, groups: &[String], file: &str, unset: &[&str]) {
    // The root has all CPUs and nodes.
    let all = match file {
        "cpuset.cpus" => notes.read("/sys/devices/system/cpu/online"),
        "cpuset.mems" => notes.read("/sys/devices/system/node/online"),
        _ => None,
    };
    let is_set = |text: &String| {
        let is_no_limit = text.parse::<i64>().is_ok_and(|number| number >= NO_LIMIT);
        !unset.contains(&text.as_str()) && !is_no_limit && all.as_ref() != Some(text)
    };
    let value = |group: &String| {
        let text = notes.read(&format!("{group}/{file}"))?;
        Some(text.split_whitespace().collect::<Vec<_>>().join(" ")).filter(is_set)
    };
    let set: Vec<String> = groups.iter().rev().filter_map(value).collect();
    if !set.is_empty() {
        let source = format!("{MOUNT}: {file} of our group and those above");
        notes.add(fact_table::CGROUP_LIMIT.key(file), set.join(" > ").as_str(), &source);
    }
}

/// The controllers and our path of a line of version 1: `3:cpu,cpuacct:/a`.
fn parse_hierarchy(line: &str) -> Option<(&str, &str)> {
    let (names, path) = line.split_once(':')?.1.split_once(':')?;
    Some((names, path))
}

/// Our path in the hierarchy of a controller of version 1: `4:memory:/a/b`, `3:cpu,cpuacct:/a`.
fn find_controller_path<'t>(own: &'t str, name: &str) -> Option<&'t str> {
    own.lines().find_map(|line| {
        let (names, path) = parse_hierarchy(line)?;
        names.split(',').any(|one| one == name).then_some(path)
    })
}

/// Our group and all above it, the root last.
fn list_group_ancestors(mount: &str, path: &str) -> Vec<String> {
    let mut groups = vec![format!("{mount}{}", path.trim_end_matches('/'))];
    while let Some((above, _)) =
        groups.last().filter(|last| *last != mount).and_then(|last| last.rsplit_once('/'))
    {
        groups.push(above.to_owned());
    }
    groups
}

fn find_strictest_limit(groups: &[String], limit: impl Fn(&str) -> Option<f64>) -> Option<f64> {
    groups.iter().filter_map(|group| limit(group)).filter(|limit| limit.is_finite()).min_by(f64::total_cmp)
}

fn read_limit(notes: &FactCollector<'_>, path: &str) -> Option<f64> {
    notes.read(path)?.parse::<f64>().ok().filter(|number| number.is_finite())
}

fn truncate_to_value(number: f64) -> Scalar {
    Scalar::Int(number as i64)
}

fn add_limit_fact(
    notes: &mut FactCollector<'_>,
    key: fact_table::FactKey,
    limit: Option<Scalar>,
    file: &str,
) {
    notes.add(
        key,
        limit.unwrap_or_else(|| Scalar::from("none")),
        &format!("{MOUNT}: {file} of our group and those above"),
    );
}
