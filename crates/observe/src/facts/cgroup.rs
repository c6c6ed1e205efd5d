//! Family `cgroup`: version, and the CPU and memory limits that hold for us.
//!
//! A limit holds for all that is below it, so the strictest from our own group up to the root counts. The group's
//! name is left out: it often differs from run to run.

use perflab_model::Scalar;
use perflab_model::fact_table;

use crate::facts::collector::FactCollector;

const OWN: &str = "/proc/self/cgroup";

const MOUNT: &str = "/sys/fs/cgroup";

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
    let limit = find_strictest_limit(&groups, |group| read_limit(notes, &format!("{group}/memory.max")));
    add_limit_fact(notes, fact_table::CGROUP_MEMORY_LIMIT, limit.map(truncate_to_value), "memory.max");
    let cpus = find_strictest_limit(&groups, |group| {
        let text = notes.read(&format!("{group}/cpu.max"))?;
        let (quota, period) = text.split_once(' ')?;
        Some(quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?)
    });
    add_limit_fact(notes, fact_table::CGROUP_CPU_LIMIT, cpus.map(Scalar::Float), "cpu.max");
}

/// Our path in the hierarchy of a controller of version 1: `4:memory:/a/b`, `3:cpu,cpuacct:/a`.
fn find_controller_path<'t>(own: &'t str, name: &str) -> Option<&'t str> {
    own.lines().find_map(|line| {
        let (names, path) = line.split_once(':')?.1.split_once(':')?;
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
